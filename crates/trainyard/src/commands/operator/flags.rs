//! The operator's flags and what they set.
//!
//! Owns names and defaults, ours and those of the reference operator that keep their meaning.
//! What a setting does is the business of the operator.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use trainyard_api::CleanPodPolicy;
use trainyard_operator::Options;

use super::{
    gangs::Gangs,
    go_syntax::{boolean, duration},
    inherited::Inherited,
    leader::{LEASE, Timing, given},
    listen::{Endpoint, endpoint},
    logs::Logs,
};
use crate::failure::Failure;

/// Job kinds the reference operator knows.
const SCHEMES: [&str; 7] =
    ["tfjob", "pytorchjob", "xgboostjob", "mpijob", "paddlejob", "jaxjob", "mxjob"];

/// Run the operator of TFJobs and Volcano Jobs against a cluster
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
    /// Job kinds to run of the reference operator's; TFJob always is, the others never are
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
    gangs: Gangs,
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
    #[command(flatten)]
    timing: Timing,
}

impl Leader {
    fn options(&self) -> Result<Option<trainyard_operator::LeaderOptions>, Failure> {
        self.elect.then(|| self.timing.options(&self.lease_name)).transpose()
    }
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
        options.planner.gang = self.gangs.gang();
        options.volcano_jobs = self.gangs.volcano_jobs();
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
            notes.push(
                "--enable-scheme has no effect: of its kinds TFJob is run and nothing else"
                    .to_owned(),
            );
        }
        if self.kube_api_burst.is_some() && self.kube_api_qps.is_none_or(|qps| qps <= 0.0) {
            notes.push("--kube-api-burst has no effect without --kube-api-qps".to_owned());
        }
        notes
    }
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
