//! Volcano on a real control plane: its definitions, its webhooks and its controllers, with a played
//! scheduler.
//!
//! Must not know what is played on it.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::process::Command;

use super::programs::Programs;
use crate::bench::process::Watched;
use crate::control_plane::{ControlPlane, Identity, Options, free_ports};
use crate::suite::install;

/// Kinds whose definitions are Volcano's own here.
const DEFINITIONS: [&str; 4] = [
    "batch.volcano.sh_jobs",
    "bus.volcano.sh_commands",
    "scheduling.volcano.sh_podgroups",
    "scheduling.volcano.sh_queues",
];
/// Its webhooks: resource, what it does with it, and when it is asked.
const WEBHOOKS: [(&str, &str, &[&str]); 6] = [
    ("jobs", "mutate", &["CREATE"]),
    ("jobs", "validate", &["CREATE", "UPDATE"]),
    ("podgroups", "mutate", &["CREATE"]),
    ("podgroups", "validate", &["CREATE"]),
    ("queues", "mutate", &["CREATE"]),
    ("queues", "validate", &["CREATE", "UPDATE", "DELETE"]),
];
/// Its controllers of these kinds; the others would wait for definitions that are not there.
const CONTROLLERS: &str = "--controllers=job-controller,queue-controller,gc-controller";
/// Attempts, one a second, to get past webhooks that are about to start.
const ATTEMPTS: usize = 60;

/// Volcano, running.
pub(super) struct Stand {
    controllers: Watched,
    admission: Watched,
    pub(super) plane: ControlPlane,
}

impl Stand {
    pub(super) async fn open(programs: &Programs) -> Result<Self> {
        let options = Options { controller_manager: false, ..Options::default() };
        let mut plane = ControlPlane::start(options).await?;
        for kind in DEFINITIONS {
            let file = programs.definitions().join(format!("{kind}.yaml"));
            install::install_definitions(&plane, &file).await?;
        }
        // Scenarios look at all kinds of jobs.
        apply(&plane, &trainyard_api::crd::tfjob_crd()).await?;
        plane.start_controller_manager()?;
        let admission = admission(&plane, programs).await?;
        let mut stand = Self { controllers: controllers(&plane, programs)?, admission, plane };
        stand.until_there_is_a_queue().await?;
        Ok(stand)
    }

    /// Fails when a part of it has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        self.admission.check()?;
        self.controllers.check()
    }

    /// Ends it.
    pub(super) async fn close(self) -> Result<()> {
        self.controllers.stop().await?;
        self.admission.stop().await
    }

    /// Its scheduler makes that queue, and there is none.
    async fn until_there_is_a_queue(&mut self) -> Result<()> {
        let queue = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "metadata": {"name": "default"}, "spec": {"weight": 1},
        });
        let mut made = apply(&self.plane, &queue).await;
        for _ in 0..ATTEMPTS {
            if made.is_ok() {
                break;
            }
            self.check()?;
            tokio::time::sleep(Duration::from_secs(1)).await;
            made = apply(&self.plane, &queue).await;
        }
        made.with_context(|| format!("Volcano's webhooks:\n{}", self.admission.last_lines()))
    }
}

async fn apply(plane: &ControlPlane, object: &Value) -> Result<()> {
    let words = ["apply", "--server-side", "-f", "-"];
    let applied = plane.kubectl().run_with_input(&words, &object.to_string()).await?;
    applied.stdout_of_success().map(drop)
}

fn controllers(plane: &ControlPlane, programs: &Programs) -> Result<Watched> {
    let mut command = Command::new(programs.controllers());
    command.arg("--kubeconfig").arg(plane.kubeconfig(Identity::Admin)).args([
        "--leader-elect=false",
        "--logtostderr",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        CONTROLLERS,
    ]);
    Watched::start(plane, "volcano-controllers", Identity::Admin, command)
}

async fn admission(plane: &ControlPlane, programs: &Programs) -> Result<Watched> {
    let [port] = free_ports()?;
    for webhook in WEBHOOKS {
        apply(plane, &configuration(webhook, port)).await.context("installing webhooks")?;
    }
    let mut command = Command::new(programs.admission());
    let serving = plane.serving();
    command.arg("--kubeconfig").arg(plane.kubeconfig(Identity::Admin));
    command.arg("--tls-cert-file").arg(serving.certificate);
    command.arg("--tls-private-key-file").arg(serving.key);
    command.arg("--ca-cert-file").arg(serving.authority);
    let enabled = WEBHOOKS.map(|(plural, does, _)| format!("/{plural}/{does}")).join(",");
    command.args([
        "--listen-address=127.0.0.1",
        "--logtostderr",
        &format!("--port={port}"),
        &format!("--webhook-url=https://127.0.0.1:{port}"),
        &format!("--enabled-admission={enabled}"),
    ]);
    Watched::start(plane, "volcano-admission", Identity::Admin, command)
}

/// As Volcano's chart has it, at an address instead of a Service's.
fn configuration((plural, does, operations): (&str, &str, &[&str]), port: u16) -> Value {
    let (group, version) = match plural {
        "jobs" => ("batch.volcano.sh", "v1alpha1"),
        _ => ("scheduling.volcano.sh", "v1beta1"),
    };
    let kind = match does {
        "mutate" => "MutatingWebhookConfiguration",
        _ => "ValidatingWebhookConfiguration",
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        // The program writes its authority into the one of this name.
        "metadata": {"name": format!("volcano-admission-service-{plural}-{does}")},
        "webhooks": [{
            "name": format!("{does}{plural}.volcano.sh"),
            "clientConfig": {"url": format!("https://127.0.0.1:{port}/{plural}/{does}")},
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail",
            "sideEffects": "NoneOnDryRun",
            "rules": [{
                "apiGroups": [group], "apiVersions": [version], "resources": [plural],
                "operations": operations, "scope": "*",
            }],
        }],
    })
}
