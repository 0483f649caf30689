//! Volcano Jobs and `explain` against a yard that runs no pods.

use crate::process::run;
use crate::yard::Yard;

const JOB: &str = "\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: dist}
spec:
  minAvailable: 3
  queue: default
  plugins: {env: [], svc: []}
  policies: [{event: PodEvicted, action: RestartJob}]
  tasks:
    - name: ps
      replicas: 1
      template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}
    - name: worker
      replicas: 2
      policies: [{event: TaskCompleted, action: CompleteJob}]
      template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}
";

#[test]
fn a_name_alone_finds_a_volcano_job_where_there_is_no_such_tfjob() {
    let yard = Yard::start();
    assert_eq!(yard.apply(JOB), "job.batch.volcano.sh/dist created\n");
    yard.out(&["wait", "dist", "--for=condition=Pending"]);
    for words in [&["get"][..], &["get", "dist"], &["get", "vcjob"], &["get", "vj", "dist"]] {
        assert!(yard.out(words).contains("dist"), "{words:?}");
    }
    let told = yard.out(&["describe", "dist"]);
    for part in ["State:        Pending", "PodEvicted → RestartJob", "worker: 2 (0 running"] {
        assert!(told.contains(part), "{part:?} in\n{told}");
    }
    assert!(
        yard.out(&["get", "pg", "-o", "name"]).contains("podgroup.scheduling.volcano.sh/dist-")
    );
    assert!(yard.out(&["get", "q"]).contains("default"));
    assert_eq!(yard.out(&["delete", "dist"]).lines().count(), 1);
    assert!(yard.run(&["get", "dist"]).err.contains("not found"));
}

#[test]
fn a_volcano_job_is_scaled_suspended_and_resumed() {
    let yard = Yard::start();
    yard.apply(JOB);
    yard.out(&["wait", "dist", "--for=condition=Pending"]);
    let said = yard.out(&["scale", "dist", "--task", "worker", "--replicas", "1"]);
    assert_eq!(said, "job.batch.volcano.sh/dist scaled, with minAvailable 2 instead of 3\n");
    let shown = yard.out(&["get", "dist", "-o", "jsonpath={.spec.tasks[1].replicas}"]);
    assert_eq!(shown.trim(), "1");
    assert_eq!(yard.out(&["suspend", "vcjob/dist"]), "job.batch.volcano.sh/dist suspended\n");
    yard.out(&["wait", "dist", "--for=condition=Aborted"]);
    assert_eq!(yard.out(&["suspend", "dist"]), "job.batch.volcano.sh/dist is suspended already\n");
    assert_eq!(yard.out(&["resume", "dist"]), "job.batch.volcano.sh/dist resumed\n");
    yard.out(&["wait", "dist", "--for=condition=Pending"]);
    let ended = yard.run(&["suspend", "none"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("neither a TFJob nor a Volcano Job \"none\""), "{}", ended.err);
}

#[test]
fn what_waits_is_explained() {
    let yard = Yard::start();
    yard.apply(JOB);
    yard.out(&["wait", "dist", "--for=condition=Pending"]);
    let told = yard.out(&["explain", "dist"]);
    assert!(told.starts_with("job.batch.volcano.sh/dist: "), "{told}");
    assert!(told.contains("asks       3 pods together or none\n"), "{told}");
    assert!(told.contains("because    there are no nodes\n"), "{told}");
    let json = yard.out(&["explain", "vcjob/dist", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json["groups"][0]["minimum"], 3);
    assert_eq!((json["kind"].as_str(), json["name"].as_str()), (Some("Job"), Some("dist")));
    let ended = yard.run(&["explain", "service/x"]);
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("nothing that waits for nodes"), "{}", ended.err);
}

#[test]
fn a_run_refuses_what_cannot_be_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = format!("--data-dir={}", folder.path().display());
    let file = folder.path().join("job.yaml");
    let path = file.to_str().expect("the path is text");
    for (from, to, code, said) in [
        ("queue: default", "queue: vision", 3, "dist uses Queue \"vision\", which is in no file"),
        ("minAvailable: 3", "minAvailable: 9", 3, "minAvailable"),
        ("name: worker", "name: ps", 3, "duplicated task name"),
        (
            "{name: c, image: x}",
            "{name: c, image: x, resources: {requests: {cpu: \"999\"}}}",
            4,
            "999.0 cpu",
        ),
    ] {
        std::fs::write(&file, JOB.replace(from, to)).expect("the file is written");
        let ended = run(&["run", &data, path]);
        assert_eq!(ended.code, code, "{to}: {}", ended.err);
        assert!(ended.err.contains(said), "{to}: {}", ended.err);
    }
}
