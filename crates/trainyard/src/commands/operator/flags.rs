//! The operator's flags and what they set.
//!
//! Owns names and defaults, ours and those of the reference operator that keep their meaning.
//! What a setting does is the business of the operator.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use trainyard_api::CleanPodPolicy;
use trainyard_operator::{LeaderOptions, Options};

use super::{
    go_syntax::{boolean, duration},
    inherited::Inherited,
    listen::{Endpoint, endpoint},
    logs::Logs,
};
use crate::failure::Failure;

/// Name of the lease, that of the reference operator: the two never act at the same time.
pub(crate) const LEASE: &str = "1ca428e5.training-operator.kubeflow.org";

/// Where a pod finds its namespace.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Job kinds the reference operator knows.
const SCHEMES: [&str; 7] =
    ["tfjob", "pytorchjob", "xgboostjob", "mpijob", "paddlejob", "jaxjob", "mxjob"];

/// Run the TFJob operator against a cluster
///
/// Runs until it gets SIGTERM or SIGINT, or loses its lease (exit code 1). Takes the command line
/// of the reference operator: one dash or two, `--flag=value` or `--flag value`, booleans without
/// a value.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct Flags {
    /// Look after the jobs of this namespace only
    #[arg(long, env = "KUBEFLOW_NAMESPACE")]
    namespace: Option<String>,
    /// What happens to the pods of a finished job that does not say: Running, All or None
    #[arg(long, default_value = "Running", value_name = "POLICY", value_parser = clean_pod_policy)]
    default_clean_pod_policy: CleanPodPolicy,
    /// List the evaluator in everybody's `TF_CONFIG`, as the reference operator does
    #[arg(long, default_value = "false", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = boolean, value_name = "BOOL")]
    evaluator_in_cluster: bool,
    /// A pod that should have been gone for this long is replaced without waiting for its node;
    /// 0 means never
    #[arg(long, default_value = "5m", value_parser = duration, value_name = "DURATION")]
    lost_pod_timeout: Duration,
    /// Domain after `.svc` in `TF_CONFIG`, for example cluster.local
    #[arg(long, env = "CUSTOM_CLUSTER_DOMAIN", value_name = "DOMAIN")]
    cluster_domain: Option<String>,
    /// Jobs worked on at the same time
    #[arg(long, default_value_t = Options::default().passes, alias = "threadiness",
        value_parser = count, value_name = "N")]
    controller_threads: usize,
    /// Job kinds to run; TFJob always is, the others never are
    #[arg(long, value_name = "KIND", action = clap::ArgAction::Append, value_parser = SCHEMES,
        ignore_case = true)]
    enable_scheme: Vec<String>,

    /// Kubeconfig file; without it KUBECONFIG, the pod's own account, or ~/.kube/config
    #[arg(long, value_name = "FILE", help_heading = "API server")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Address of the API server, instead of the kubeconfig's
    #[arg(long, value_name = "URL", help_heading = "API server")]
    pub(super) master: Option<String>,
    /// Most requests per second; no limit when not given
    #[arg(
        long,
        alias = "qps",
        value_name = "QPS",
        help_heading = "API server",
        allow_negative_numbers = true
    )]
    kube_api_qps: Option<f64>,
    /// Requests that may go out at once under a limit [default: one and a half times the limit]
    #[arg(long, alias = "burst", value_name = "N", help_heading = "API server")]
    kube_api_burst: Option<u32>,

    /// Where /metrics is served; 0 turns it off
    #[arg(long, default_value = ":8080", value_parser = endpoint, value_name = "ADDRESS",
        help_heading = "Metrics and probes")]
    pub(super) metrics_bind_address: Endpoint,
    /// Where /healthz and /readyz are served; 0 turns it off
    #[arg(long, default_value = ":8081", value_parser = endpoint, value_name = "ADDRESS",
        help_heading = "Metrics and probes")]
    pub(super) health_probe_bind_address: Endpoint,

    #[command(flatten)]
    leader: Leader,
    #[command(flatten)]
    pub(super) logs: Logs,
    #[command(flatten)]
    inherited: Inherited,
}

/// Flags about the lease.
#[derive(Debug, Args)]
#[command(next_help_heading = "Leader election")]
struct Leader {
    /// Act only while holding a lease, so that several operators can stand by
    #[arg(long = "leader-elect", default_value = "false", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = boolean, value_name = "BOOL")]
    elect: bool,
    /// Name of the lease
    #[arg(long = "leader-election-id", default_value = LEASE, value_name = "NAME")]
    lease_name: String,
    /// Namespace of the lease [default: the pod's own, else kubeflow]
    #[arg(long = "leader-election-namespace", env = "MY_POD_NAMESPACE", value_name = "NAMESPACE")]
    lease_namespace: Option<String>,
    /// How long others wait for a holder that does not renew
    #[arg(long = "leader-elect-lease-duration", default_value = "15s", value_parser = duration, value_name = "DURATION")]
    lease_duration: Duration,
    /// A holder that could not renew for this long stops acting
    #[arg(long = "leader-elect-renew-deadline", default_value = "10s", value_parser = duration, value_name = "DURATION")]
    renew_deadline: Duration,
    /// Pause between two attempts
    #[arg(long = "leader-elect-retry-period", default_value = "2s", value_parser = duration, value_name = "DURATION")]
    retry_period: Duration,
}

impl Flags {
    /// The operator's settings.
    pub(super) fn options(&self) -> Result<Options, Failure> {
        let mut options = Options::default();
        options.planner.default_clean_pod_policy = self.default_clean_pod_policy;
        options.planner.evaluator_in_cluster = self.evaluator_in_cluster;
        options.planner.cluster_domain = given(self.cluster_domain.as_deref());
        options.planner.lost_pod_ms =
            i64::try_from(self.lost_pod_timeout.as_millis()).unwrap_or(i64::MAX);
        options.namespace = given(self.namespace.as_deref());
        options.passes = self.controller_threads;
        options.qps = self.kube_api_qps.filter(|qps| *qps > 0.0);
        options.burst = self.burst();
        options.leader = self.leader.options()?;
        Ok(options)
    }

    fn burst(&self) -> u32 {
        let usual = self.kube_api_qps.map_or(0.0, |qps| (qps * 1.5).ceil());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates, which is what is wanted"
        )]
        self.kube_api_burst.unwrap_or(usual as u32).max(1)
    }

    /// One line about every flag that was given and means nothing or less than it did.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.inherited.notes().collect();
        if self.enable_scheme.iter().any(|kind| !kind.eq_ignore_ascii_case("tfjob")) {
            notes.push("--enable-scheme has no effect: TFJobs and nothing else are run".to_owned());
        }
        if self.kube_api_burst.is_some() && self.kube_api_qps.is_none_or(|qps| qps <= 0.0) {
            notes.push("--kube-api-burst has no effect without --kube-api-qps".to_owned());
        }
        notes
    }
}

impl Leader {
    fn options(&self) -> Result<Option<LeaderOptions>, Failure> {
        if !self.elect {
            return Ok(None);
        }
        let (lease, renew, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        // Otherwise two could hold it, or a single failed attempt would lose it.
        if lease <= renew || renew <= retry || retry.is_zero() {
            let problem = format!(
                "leader election with lease {lease:?}, deadline {renew:?}, retry {retry:?} \
                 cannot work"
            );
            return Err(Failure::usage(problem).hint(
                "choose --leader-elect-lease-duration > --leader-elect-renew-deadline > \
                 --leader-elect-retry-period > 0",
            ));
        }
        let namespace = given(self.lease_namespace.as_deref())
            .or_else(|| given(std::fs::read_to_string(OWN_NAMESPACE).ok().as_deref()))
            .unwrap_or_else(|| "kubeflow".to_owned());
        Ok(Some(LeaderOptions {
            lease_duration: lease,
            renew_deadline: renew,
            retry_period: retry,
            ..LeaderOptions::new(namespace, self.lease_name.clone(), identity())
        }))
    }
}

/// A name for this process that no other has, readable in the lease.
fn identity() -> String {
    let host = ["MY_POD_NAME", "HOSTNAME"]
        .iter()
        .find_map(|variable| given(std::env::var(variable).ok().as_deref()))
        .or_else(|| given(std::fs::read_to_string("/proc/sys/kernel/hostname").ok().as_deref()))
        .unwrap_or_else(|| "operator".to_owned());
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_micros();
    format!("{host}_{:x}_{since:x}", std::process::id())
}

/// A value that is not empty. An empty environment variable is one that is not set.
fn given(text: Option<&str>) -> Option<String> {
    text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn clean_pod_policy(text: &str) -> Result<CleanPodPolicy, String> {
    CleanPodPolicy::parse(text).ok_or_else(|| "write Running, All or None".to_owned())
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=10_000) => Ok(count),
        _ => Err("write a number from 1 to 10000".to_owned()),
    }
}

#[cfg(test)]
mod tests;
