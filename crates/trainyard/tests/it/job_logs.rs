//! `logs` of jobs whose pods run on this machine.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use crate::process::run;
use crate::yard::Yard;

fn job(name: &str, policy: &str, script: &str) -> String {
    format!(
        "\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {{name: {name}}}
spec:
  runPolicy: {{cleanPodPolicy: None, backoffLimit: 1}}
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: {policy}
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - name: tensorflow
            image: shell
            command: [sh, -c, '{script}']
"
    )
}

#[test]
fn replicas_are_merged_followed_and_kept() {
    let yard = Yard::with(&["--nodes=here", "--image=shell=host"]);
    yard.apply(&job("fine", "Never", "echo one; sleep 1; echo two"));
    // Follows from before the pods run until the job has finished, and then ends by itself.
    let ended = yard.run(&["logs", "-f", "fine"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.err.ends_with("fine: Succeeded\n"), "{}", ended.err);
    for line in ["worker-0 | one\n", "worker-0 | two\n", "worker-1 | one\n"] {
        assert!(ended.out.contains(line), "{line} in {}", ended.out);
    }
    assert_eq!(yard.out(&["wait", "fine"]), "tfjob.kubeflow.org/fine condition met\n");
    // In the order of time: both first lines come before both second lines.
    let text = yard.out(&["logs", "fine"]);
    let words: Vec<&str> = text.lines().filter_map(|line| line.rsplit(' ').next()).collect();
    assert_eq!(words, ["one", "one", "two", "two"], "{text}");
    assert_eq!(yard.out(&["logs", "fine", "--replica=worker-1", "--tail=1"]), "two\n");
    let text = yard.out(&["logs", "pod/fine-worker-0", "--timestamps", "--color=always"]);
    assert!(text.lines().all(|line| line.starts_with("20") && line.contains("Z ")), "{text}");
    let text = yard.out(&["logs", "fine", "--color=always"]);
    assert!(text.starts_with("\u{1b}["), "{text:?}");
    yard.out(&["delete", "fine"]);
    // The pods are gone, their logs are not.
    let text = yard.out(&["logs", "fine", "--all"]);
    assert_eq!(text.matches("| one\n").count(), 2, "{text}");
    let ended = yard.run(&["logs", "nothing"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("neither a job nor a pod \"nothing\""), "{}", ended.err);
}

#[test]
fn earlier_runs_are_there_and_a_failure_is_explained() {
    let yard = Yard::with(&["--nodes=here", "--image=shell=host"]);
    let script = "echo begin $(date +%N); case $HOSTNAME in *-1) exit 137;; esac; sleep 60";
    yard.apply(&job("bad", "ExitCode", script));
    let ended = yard.run(&["wait", "bad", "--timeout=60s"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert!(ended.err.contains("tfjob.kubeflow.org/bad: the job has failed: "), "{}", ended.err);
    let text = yard.out(&["logs", "bad", "--all", "--replica", "worker-1"]);
    let labels: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(labels, ["worker-1#1", "worker-1#2"], "{text}");
    let first = text.lines().next().and_then(|line| line.split_once("| ")).expect("a line").1;
    let before = yard.out(&["logs", "bad", "--previous"]);
    assert_eq!(before, format!("{first}\n"));
    let text = yard.out(&["describe", "bad"]);
    for part in ["Failure:\n", "  Exit Code:    137\n", "tensorflow: exit code 137 ("] {
        assert!(text.contains(part), "{part}\n--- in\n{text}");
    }
}

#[test]
fn a_pod_that_was_deleted_leaves_its_traces_and_no_log() {
    let yard = Yard::with(&["--nodes=here", "--image=shell=host"]);
    yard.apply(&job("gone", "OnFailure", "echo begin; sleep 60"));
    yard.out(&["wait", "gone", "--for=condition=Running", "--timeout=60s"]);
    let uid = || yard.out(&["get", "pod", "gone-worker-1", "-o", "jsonpath={.metadata.uid}"]);
    let before = uid();
    yard.out(&["delete", "pod", "gone-worker-1"]);
    yard.out(&["wait", "pod/gone-worker-1", "--for=create", "--timeout=60s"]);
    yard.out(&["wait", "pod/gone-worker-1", "--for=condition=Ready", "--timeout=60s"]);
    assert_ne!(uid(), before);
    let foreign = yard.foreign_kubeconfig();
    let ended = run(&["logs", "gone", "--previous", &foreign]);
    assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{}", ended.err);
    let said = "not shown: worker-1: the pod before the present one is gone, and a cluster keeps the logs of \
        deleted pods nowhere\n  worker-1: its present pod was made ";
    assert!(ended.err.starts_with(said), "{}", ended.err);
    assert!(ended.err.contains("gone-worker-1 has been "), "{}", ended.err);
    // This machine's yard has kept it.
    assert_eq!(yard.out(&["logs", "gone", "--previous"]), "begin\n");
}

#[test]
fn many_long_logs_are_merged_side_by_side() {
    let yard = Yard::with(&["--nodes=here", "--image=shell=host"]);
    let script = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); head -c 60000 /dev/zero | tr \\000 x; \
        echo; done";
    let manifest = job("long", "Never", "SCRIPT").replace("'SCRIPT'", &format!("{script:?}"));
    let manifest = manifest.replace("  runPolicy:", "  successPolicy: AllWorkers\n  runPolicy:");
    yard.apply(&manifest.replace("replicas: 2", "replicas: 6"));
    yard.out(&["wait", "long", "--timeout=120s"]);
    let child = yard.command(&["logs", "long"]).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("the command starts");
    let out = child.stdout.take().expect("standard output is piped");
    let (sender, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(BufReader::new(out).lines().map_while(Result::ok).count());
    });
    let count = lines.recv_timeout(Duration::from_mins(1));
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(count, Ok(360), "nothing may wait for what is not read yet");
}
