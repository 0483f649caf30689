//! Command lines of the reference operators, as found in deployments.

use super::*;
use crate::cli::{self, Command};
use crate::commands::logs::Format;

fn read(line: &str) -> Result<Flags, clap::Error> {
    let args = ["trainyard", "operator"].into_iter().chain(line.split_whitespace());
    match cli::parse(args.map(Into::into))?.command {
        Command::Operator(flags) => Ok(*flags),
        other => panic!("{other:?}"),
    }
}

fn options(line: &str) -> Options {
    read(line).unwrap().options().unwrap()
}

#[test]
fn defaults() {
    let flags = read("").unwrap();
    let options = flags.options().unwrap();
    assert_eq!(options.planner, trainyard_core::Config::default());
    assert_eq!(options.volcano_jobs, trainyard_operator::VolcanoJobs::Auto);
    assert_eq!(options.namespace, None);
    assert_eq!(options.qps, None);
    assert!(options.leader.is_none());
    assert_eq!(flags.metrics_bind_address, Endpoint::Port(8080));
    assert_eq!(flags.health_probe_bind_address, Endpoint::Port(8081));
    assert_eq!(flags.notes(), [] as [String; 0]);
}

#[test]
fn every_flag_of_the_reference_operator_is_taken() {
    let flags = read(
        "-metrics-bind-address=:9090 -health-probe-bind-address :9091 -leader-elect \
         --leader-election-id=x -enable-scheme=tfjob --enable-scheme PyTorchJob \
         -gang-scheduler-name=volcano -namespace=team -controller-threads=7 \
         --kube-api-qps=20 --kube-api-burst 30 --webhook-server-port=9443 \
         --webhook-service-name=training-operator --webhook-secret-name=s \
         --pytorch-init-container-image=alpine:3.10 \
         -pytorch-init-container-template-file=/etc/config/initContainer.yaml \
         --pytorch-init-container-max-tries=100 --mpi-kubectl-delivery-image=k \
         --zap-devel=false --zap-encoder=console --zap-log-level=debug \
         --zap-stacktrace-level=error --zap-time-encoding=iso8601 --kubeconfig=/k",
    )
    .unwrap();
    let options = flags.options().unwrap();
    assert_eq!(flags.metrics_bind_address, Endpoint::Port(9090));
    assert_eq!(flags.health_probe_bind_address, Endpoint::Port(9091));
    assert_eq!(options.leader.unwrap().lease, "x");
    assert_eq!(options.namespace.as_deref(), Some("team"));
    assert_eq!(options.passes, 7);
    assert_eq!((options.qps, options.burst), (Some(20.0), 30));
    assert_eq!(flags.logs.format(), Format::Text);
    assert_eq!(flags.kubeconfig.as_deref(), Some("/k".as_ref()));
    // Nine say nothing here, and the other job kinds are not run.
    let notes = flags.notes();
    assert_eq!(notes.len(), 10, "{notes:#?}");
    assert!(notes.iter().all(|note| note.contains("has no effect")), "{notes:#?}");
    assert!(!notes.iter().any(|note| note.contains("gang")), "{notes:#?}");
}

#[test]
fn every_flag_of_the_older_operators_is_taken() {
    let flags = read(
        "--master=https://127.0.0.1:1 --threadiness=4 --json-log-format=true \
         --enable-gang-scheduling --gang-scheduler-name=volcano --monitoring-port=8443 \
         --resyc-period=12h --qps=5 --burst=10 --chaos-level -1 --gc-interval=10m \
         --controller-config-file=/etc/config/controller_config_file.yaml",
    )
    .unwrap();
    let options = flags.options().unwrap();
    assert_eq!(options.passes, 4);
    assert_eq!((options.qps, options.burst), (Some(5.0), 10));
    assert_eq!(flags.logs.format(), Format::Json);
    assert_eq!(flags.notes().len(), 5, "{:#?}", flags.notes());
}

#[test]
fn booleans_with_and_without_a_value_and_the_last_one_wins() {
    assert!(options("--leader-elect").leader.is_some());
    assert!(options("-leader-elect=1").leader.is_some());
    assert!(options("-leader-elect -leader-elect=false").leader.is_none());
    assert!(options("--evaluator-in-cluster").planner.evaluator_in_cluster);
    assert_eq!(options("--namespace=a --namespace=b").namespace.as_deref(), Some("b"));
}

#[test]
fn our_own_flags() {
    let options = options(
        "--default-clean-pod-policy=All --lost-pod-timeout=1m30s --cluster-domain=cluster.local \
         --leader-elect --leader-election-namespace=ops --leader-elect-lease-duration=3s \
         --leader-elect-renew-deadline=2s --leader-elect-retry-period=500ms",
    );
    assert_eq!(options.planner.default_clean_pod_policy, CleanPodPolicy::All);
    assert_eq!(options.planner.lost_pod_ms, 90_000);
    assert_eq!(options.planner.cluster_domain.as_deref(), Some("cluster.local"));
    let leader = options.leader.unwrap();
    assert_eq!((leader.namespace.as_str(), leader.lease.as_str()), ("ops", LEASE));
    assert_eq!(leader.lease_duration, Duration::from_secs(3));
    assert_eq!(leader.retry_period, Duration::from_millis(500));
}

#[test]
fn a_limit_of_nothing_is_no_limit() {
    assert_eq!(options("--kube-api-qps=-1").qps, None);
    assert_eq!(options("--kube-api-qps=0").qps, None);
    assert_eq!(options("--kube-api-qps=3").burst, 5);
    assert_eq!(read("--kube-api-burst=3").unwrap().notes().len(), 1);
}

#[test]
fn mistakes_are_usage_errors_with_a_suggestion() {
    let error = read("--leader-elekt").unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("'--leader-elect'"), "{error}");
    let error = read("-metrics-bind-adress=:1").unwrap_err().to_string();
    assert!(error.contains("'--metrics-bind-address'"), "{error}");
    for wrong in [
        "--enable-scheme=foo",
        "--default-clean-pod-policy=Some",
        "--metrics-bind-address=8080",
        "--controller-threads=0",
        "--lost-pod-timeout=5",
        "--leader-elect=yes",
        "surplus",
    ] {
        assert_eq!(read(wrong).unwrap_err().exit_code(), 2, "{wrong}");
    }
    let timing = read("--leader-elect --leader-elect-lease-duration=5s").unwrap().options();
    assert_eq!(timing.unwrap_err().exit_code(), 2);
}
