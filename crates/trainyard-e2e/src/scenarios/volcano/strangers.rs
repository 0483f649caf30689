//! Objects that have the names of a job's own and are somebody else's: named, never touched, and
//! waited for. What runs beside them would run without what it needs.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::rest::Resource;
use crate::seen::{Seen, text};
use crate::volcano::{Scene, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/strangers":
        a_config_map_has_our_name,
        a_network_policy_has_our_name,
        a_claim_is_ours_no_longer,
        a_group_is_ours_no_longer,
    ]
}

/// An object that is in the way.
struct Stranger {
    resource: Resource,
    plural: &'static str,
    name: String,
    /// The event that tells of it, up to its name.
    told: &'static str,
}

impl Stranger {
    fn object<'s>(&self, seen: &'s Seen) -> &'s Value {
        seen.object(self.resource, &self.name)
    }

    /// What nobody but the operator would change: a claim, for one, is bound meanwhile.
    fn essence(&self, seen: &Seen) -> Value {
        let mut object = self.object(seen).clone();
        let meta = object["metadata"].take();
        let (uid, labels, owners) = (&meta["uid"], &meta["labels"], &meta["ownerReferences"]);
        if let Some(spec) = object["spec"].as_object_mut() {
            spec.remove("volumeName");
        }
        json!([uid, labels, owners, object["data"], object["spec"]])
    }

    fn uid<'s>(&self, seen: &'s Seen) -> &'s str {
        text(&self.object(seen)["metadata"]["uid"])
    }

    /// The job names it, leaves it as it is and makes no pod while it is there.
    async fn is_in_the_way(&self, scene: &Scene) -> Result<Arc<Seen>> {
        let (told, plural, name) = (self.told, self.plural, &self.name);
        let words = format!(
            "{told}{plural} {name:?} already exists and is controlled by nobody; waiting for it \
             to go away"
        );
        let seen = scene.wait_until(&words, |seen| seen.vc("a").told(&words)).await?;
        let before = self.essence(&seen);
        let what = "it is touched, or pods are made beside it";
        scene
            .never_within(400, what, |seen| self.essence(seen) != before || !seen.pods().is_empty())
            .await?;
        equal("the job", seen.vc("a").phase(), "Pending")?;
        Ok(seen)
    }

    /// It goes, the job's own takes its place, and the job runs.
    async fn goes(&self, scene: &Scene) -> Result<()> {
        let gone = self.uid(&scene.seen()).to_owned();
        scene.rest.delete(self.resource, &self.name, None).await.context("deleting a stranger")?;
        let is_ours = |seen: &Seen| {
            let owner = &self.object(seen)["metadata"]["ownerReferences"][0];
            self.uid(seen) != gone && owner["kind"] == "Job" && owner["name"] == "a"
        };
        scene.wait_until("the job's own takes its place", is_ours).await?;
        scene.runs("a", 2).await.map(drop)
    }

    /// What the job has made is taken from it: neither its owner nor its labels are there any
    /// more, and nothing keeps it from being deleted.
    async fn is_taken(&self, scene: &Scene) -> Result<()> {
        let nobody = json!({"metadata": {
            "labels": null, "ownerReferences": null, "finalizers": null,
        }});
        scene.merge(self.resource, &self.name, &nobody).await?;
        let is_nobodys = |seen: &Seen| self.object(seen)["metadata"]["ownerReferences"].is_null();
        scene.wait_until("it is nobody's", is_nobodys).await.map(drop)
    }
}

async fn a_config_map_has_our_name(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a-svc"},
        "data": {"w.host": "elsewhere"},
    });
    scene.create(Resource::ConfigMaps, &map).await?;
    scene.submit(vcjob("a").task(task("w", 2)).plugin("svc", &[])).await?;
    let stranger = Stranger {
        resource: Resource::ConfigMaps,
        plural: "configmaps",
        name: "a-svc".to_owned(),
        told: "Warning PluginError Execute plugin when job add failed, err: ",
    };
    stranger.is_in_the_way(&scene).await?;
    stranger.goes(&scene).await?;
    let hosts = scene.seen().vc("a").hosts()["data"]["w.host"].clone();
    equal("its own hosts", text(&hosts), "a-w-0.a\na-w-1.a")
}

async fn a_network_policy_has_our_name(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "a"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    });
    scene.create(Resource::Policies, &policy).await?;
    scene.submit(vcjob("a").task(task("w", 2)).plugin("svc", &[])).await?;
    let stranger = Stranger {
        resource: Resource::Policies,
        plural: "networkpolicies",
        name: "a".to_owned(),
        told: "Warning PluginError Execute plugin when job add failed, err: ",
    };
    stranger.is_in_the_way(&scene).await?;
    stranger.goes(&scene).await
}

/// The name of a claim follows from the job, so that nobody can have one like it before.
async fn a_claim_is_ours_no_longer(scene: Scene) -> Result<()> {
    let claim = json!({"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}});
    let volumes = json!([{"mountPath": "/data", "volumeClaim": claim}]);
    scene.submit(vcjob("a").task(task("w", 2)).spec("volumes", volumes)).await?;
    let is_made = |seen: &Seen| !seen.names(Resource::Claims).is_empty();
    let seen = scene.wait_until("a claim is made", is_made).await?;
    let name = seen.names(Resource::Claims).first().context("a claim")?.to_string();
    let stranger = Stranger {
        resource: Resource::Claims,
        plural: "persistentvolumeclaims",
        name,
        told: "Warning PVCError Failed to create PVC, err: ",
    };
    stranger.is_taken(&scene).await?;
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    stranger.is_in_the_way(&scene).await?;
    stranger.goes(&scene).await
}

/// The same is true of a PodGroup.
async fn a_group_is_ours_no_longer(scene: Scene) -> Result<()> {
    scene.submit(vcjob("a").task(task("w", 2))).await?;
    let is_made = |seen: &Seen| !seen.vc("a").group().is_null();
    let name = scene.wait_until("a group is made", is_made).await?.vc("a").group_name();
    let stranger = Stranger {
        resource: Resource::Groups,
        plural: "podgroups",
        name,
        told: "Warning PodGroupError Failed to create PodGroup, err: ",
    };
    stranger.is_taken(&scene).await?;
    stranger.is_in_the_way(&scene).await?;
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    stranger.goes(&scene).await
}
