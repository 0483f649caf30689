//! `logs` of jobs whose pods run on this machine.

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
