//! `get`, `apply`, `delete`, `describe`, `wait`, `suspend`, `resume`, `scale` and `events` against a
//! yard that runs no pods; where kubectl shows the same, it is the referee.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::process::run;
use crate::yard::Yard;

const JOB: &str = "\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: mnist
  labels: {team: vision}
spec:
  tfReplicaSpecs:
    PS: {template: {spec: {containers: [{name: tensorflow, image: x}]}}}
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template:
        metadata: {creationTimestamp: null}
        spec: {containers: [{name: tensorflow, image: x}]}
";

const CONFIG: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: one, b: two <&>}
";

const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80}, {name: alt, port: 81}]
";

/// Waits until the operator has made the job's pods.
fn submit(yard: &Yard) {
    assert_eq!(yard.apply(JOB), "tfjob.kubeflow.org/mnist created\n");
    yard.out(&["wait", "mnist", "--for=condition=Created"]);
    for pod in ["mnist-ps-0", "mnist-worker-0", "mnist-worker-1"] {
        yard.out(&["wait", "pod", pod, "--for=create"]);
    }
}

#[test]
fn objects_are_shown_as_kubectl_shows_them() {
    let yard = Yard::start();
    submit(&yard);
    yard.apply(CONFIG);
    assert!(yard.out(&["get"]).starts_with("NAME    STATE     AGE\nmnist   Created   "));
    assert_eq!(yard.out(&["get", "mnist", "-o", "name"]), "tfjob.kubeflow.org/mnist\n");
    for args in [
        &["get", "pods"][..],
        &["get", "po", "-o", "wide"],
        &["get", "tfjobs,pods"],
        &["get", "pods", "-A"],
        &["get", "pods", "--show-labels"],
        &["get", "pods", "-L", "training.kubeflow.org/replica-type"],
        &["get", "pods", "-l", "training.kubeflow.org/replica-type=ps", "--no-headers"],
        &["get", "pods", "--sort-by=.metadata.name"],
        &["get", "tfjob/mnist", "cm/settings"],
        &["get", "tfjob", "mnist", "-o", "json"],
        &["get", "cm", "-o", "jsonpath={range .items[*]}{.metadata.name}={.data}{\"\\n\"}{end}"],
        &["get", "pods", "-o", "custom-columns=N:.metadata.name,I:.spec.containers[*].image,X:.x"],
        &["get", "pods", "--field-selector=metadata.name=mnist-ps-0", "-o", "name"],
        &["get", "all"],
        &["get", "namespaces"],
        &["get", "pods", "-n", "nowhere"],
        &["get", "cm", "missing"],
        &["get", "cm", "missing", "settings", "--ignore-not-found"],
    ] {
        let Some(expected) = yard.kubectl(args) else { return };
        let mut ended = yard.run(args);
        if ended.out != expected.out {
            // Ages go on between the two.
            let expected = yard.kubectl(args).expect("kubectl is there");
            ended = yard.run(args);
            assert_eq!(ended.out, expected.out, "{args:?}");
        }
        assert_eq!(ended.code, expected.code, "{args:?}: {}", ended.err);
    }
}

#[test]
fn changes_are_shown_as_they_come() {
    let yard = Yard::start();
    yard.apply(CONFIG);
    let args = ["get", "cm", "-w", "-o", "jsonpath={.metadata.name}:{.data.a}{\"\\n\"}"];
    let mut child = yard.command(&args).stdout(Stdio::piped()).spawn().expect("the command starts");
    let out = BufReader::new(child.stdout.take().expect("standard output is piped"));
    let mut lines = out.lines().map(|line| line.expect("a line"));
    let mut until = |wanted: &str| lines.find(|line| line == wanted).expect(wanted);
    until("settings:one");
    assert_eq!(yard.apply(&CONFIG.replace("one", "three")), "configmap/settings configured\n");
    until("settings:three");
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn kubectl_and_we_apply_in_turn() {
    let yard = Yard::start();
    let all = format!("{JOB}---\n{CONFIG}---\n{SERVICE}");
    let created =
        "tfjob.kubeflow.org/mnist created\nconfigmap/settings created\nservice/web created\n";
    let unchanged = created.replace("created", "unchanged");
    assert_eq!(yard.apply(&all), created);
    assert_eq!(yard.apply(&all), unchanged);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("all.yaml");
    let path = file.to_str().expect("the path is text");
    // One port goes, one comes, a label goes, a value goes: all of it, and nothing else.
    let changed = all
        .replace("{name: alt, port: 81}", "{name: new, port: 82}")
        .replace("  labels: {team: vision}\n", "")
        .replace("a: one, ", "");
    std::fs::write(&file, &changed).expect("the file can be written");
    assert_eq!(yard.out(&["apply", "-f", path]), created.replace("created", "configured"));
    let ports = yard.out(&["get", "svc", "web", "-o", "jsonpath={.spec.ports[*].port}"]);
    assert_eq!(ports, "80 82");
    let rest = "jsonpath={.metadata.labels}{.metadata.name}";
    assert_eq!(yard.out(&["get", "mnist", "-o", rest]), "mnist");
    assert_eq!(
        yard.out(&["get", "cm", "settings", "-o", "jsonpath={.data}"]).matches(':').count(),
        1
    );
    if let Some(ended) = yard.kubectl(&["apply", "-f", path]) {
        assert_eq!(ended.out, unchanged, "{}", ended.err);
        std::fs::write(&file, &all).expect("the file can be written");
        let ended = yard.kubectl(&["apply", "-f", path]).expect("kubectl is there");
        assert_eq!(ended.out, created.replace("created", "configured"), "{}", ended.err);
        assert_eq!(yard.apply(&all), unchanged);
    }
}

#[test]
fn nothing_is_half_done() {
    let yard = Yard::start();
    let wrong = JOB.replace("replicas: 2", "replicas: -1");
    let ended = yard.run_with(&["apply", "-f", "-"], &format!("{CONFIG}---\n{wrong}"));
    assert_eq!(ended.code, 3);
    assert_eq!(ended.out, "");
    assert!(
        ended.err.starts_with("error: standard input: document 2 (from line 6): TFJob"),
        "{}",
        ended.err
    );
    assert!(ended.err.ends_with("\nhint: nothing was changed\n"), "{}", ended.err);
    assert_eq!(yard.run(&["get", "cm", "settings"]).code, 1);
    // What is no YAML is found before anything is sent, wherever it stands.
    let ended = yard.run_with(&["apply", "-f", "-"], &format!("{CONFIG}---\na: [1\n"));
    assert_eq!((ended.code, ended.out.as_str()), (3, ""));
    assert!(ended.err.contains("standard input: document 2, line "), "{}", ended.err);
    let ended = yard.run_with(&["apply", "-f", "-"], &CONFIG.replace("\ndata", "\ndatta"));
    assert_eq!(ended.code, 3);
    assert!(ended.err.contains("unknown field \"datta\""), "{}", ended.err);
    let ended = yard.run_with(&["apply", "-f", "-", "--dry-run=server"], CONFIG);
    assert_eq!(ended.out, "configmap/settings created (server dry run)\n");
    let ended = yard.run_with(&["apply", "-f", "-", "--dry-run"], CONFIG);
    assert_eq!(ended.out, "configmap/settings created (dry run)\n");
    assert_eq!(yard.run(&["get", "cm", "settings"]).code, 1);
}

#[test]
fn a_definition_and_its_objects_go_together() {
    let yard = Yard::start();
    let manifest = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList, shortNames: [th]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {n: {type: integer}}}}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: lab}
---
apiVersion: example.org/v1
kind: Thing
metadata: {name: one, namespace: lab}
spec: {n: 1}
";
    let said = yard.apply(manifest);
    assert!(said.ends_with("namespace/lab created\nthing.example.org/one created\n"), "{said}");
    assert_eq!(yard.out(&["get", "th", "-n", "lab", "-o", "name"]), "thing.example.org/one\n");
}

#[test]
fn objects_are_deleted_and_waited_for() {
    let yard = Yard::start();
    submit(&yard);
    yard.apply(CONFIG);
    let ended = yard.run(&["delete", "pods"]);
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("no pod is named"), "{}", ended.err);
    assert_eq!(
        yard.out(&["delete", "cm/settings"]),
        "configmap \"settings\" deleted from default namespace\n"
    );
    let ended = yard.run(&["delete", "cm", "settings"]);
    assert_eq!((ended.code, ended.err.as_str()), (1, "error: configmaps \"settings\" not found\n"));
    assert_eq!(yard.out(&["delete", "cm", "settings", "--ignore-not-found"]), "");
    assert_eq!(
        yard.out(&["delete", "tfjobs", "-l", "team=vision", "--cascade=foreground"]),
        "tfjob.kubeflow.org \"mnist\" deleted from default namespace\n"
    );
    // The pods went first.
    assert_eq!(yard.out(&["get", "pods"]), "");
    let ended = yard.run(&["delete", "mnist"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
}

#[test]
fn jobs_are_steered() {
    let yard = Yard::start();
    submit(&yard);
    let name = "tfjob.kubeflow.org/mnist";
    assert_eq!(yard.out(&["scale", "mnist", "--replicas=3"]), format!("{name} scaled\n"));
    yard.out(&["wait", "pod/mnist-worker-2", "--for=create"]);
    let ended = yard.run(&["scale", "mnist", "--replicas=1", "--replica-type=Chief"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("no replicas of type Chief: it has PS, Worker"), "{}", ended.err);
    assert_eq!(yard.out(&["suspend", "tfjob/mnist"]), format!("{name} suspended\n"));
    assert_eq!(yard.out(&["suspend", "mnist"]), format!("{name} is suspended already\n"));
    assert_eq!(
        yard.out(&["wait", "mnist", "--for=condition=Suspended"]),
        format!("{name} condition met\n")
    );
    yard.out(&["wait", "pods", "--all", "--for=delete"]);
    assert_eq!(yard.out(&["resume", "mnist"]), format!("{name} resumed\n"));
    yard.out(&["wait", "pod/mnist-worker-2", "--for=create"]);
    let ended = yard.run(&["wait", "mnist", "--for=condition=Succeeded", "--timeout=100ms"]);
    assert_eq!(ended.code, 5);
    assert!(ended.err.contains("timed out waiting for condition Succeeded"), "{}", ended.err);
    let path = "--for=jsonpath={.spec.tfReplicaSpecs.Worker.replicas}=3";
    assert_eq!(yard.out(&["wait", "mnist", path]), format!("{name} condition met\n"));
}

#[test]
fn jobs_and_other_objects_are_described() {
    let yard = Yard::start();
    submit(&yard);
    let text = yard.out(&["describe", "mnist"]);
    for part in [
        "Name:         mnist\nNamespace:    default\nLabels:       team=vision\n",
        "State:        Created\n",
        "Conditions:\n  Type      Status   Since",
        "  Worker: 2 (0 active, 0 succeeded, 0 failed), restart ExitCode, image x\n    mnist-worker-0: Pending",
        "SuccessfulCreatePod",
        "tfjob/mnist",
    ] {
        assert!(text.contains(part), "{part}\n--- in\n{text}");
    }
    let text = yard.out(&["describe", "pod/mnist-ps-0"]);
    assert!(text.contains("Controlled By: TFJob/mnist\n"), "{text}");
    assert!(text.contains("    Image:        x\n"), "{text}");
    let text = yard.out(&["describe", "ns", "default"]);
    assert!(text.contains("Status:\n  phase: Active\n"), "{text}");
    let text = yard.out(&["events", "mnist"]);
    assert!(text.starts_with("LAST SEEN   TYPE "), "{text}");
    assert!(text.contains("TFJob/mnist"), "{text}");
    let ended = yard.run(&["events", "nothing"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("neither a TFJob nor a Volcano Job \"nothing\""), "{}", ended.err);
}

#[test]
fn what_cannot_be_reached_or_is_not_known_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kubeconfig");
    let text = "\
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
";
    std::fs::write(&file, text).expect("the file can be written");
    let flag = format!("--kubeconfig={}", file.display());
    for (args, code, said) in [
        (&["get", &flag][..], 1, "cannot reach the API server at https://127.0.0.1:1: connection"),
        (&["logs", "mnist", &flag], 1, "\nhint: is the yard up? start it with `trainyard up`"),
        (&["get", "--kubeconfig=/nowhere/file"], 1, "\nhint: start a yard with `trainyard up`"),
        (&["get", &flag, "--context=y"], 2, "\nhint: contexts are: x"),
        (&["get", "-o", "xml"], 2, "write one of wide, yaml, json"),
        (&["apply"], 2, "no manifest is given"),
        (&["apply", "-f", "/nowhere/job.yaml"], 1, "error: reading /nowhere/job.yaml: "),
        (&["delete"], 2, "nothing is named"),
        (&["wait", "x", "--for=nonsense"], 2, "write condition=TYPE"),
        (&["scale", "mnist"], 2, "--replicas <N>"),
        (&["suspend"], 2, "<JOB>"),
        (&["descrbe"], 2, "'describe'"),
    ] {
        let ended = run(args);
        assert_eq!(ended.code, code, "{args:?}: {}", ended.err);
        assert!(ended.err.contains(said), "{args:?}: {}", ended.err);
        assert_eq!(ended.out, "", "{args:?}");
    }
    let yard = Yard::start();
    let ended = yard.run(&["get", "pdos", "x"]);
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("hint: did you mean \"pods\"?"), "{}", ended.err);
    let ended = yard.run(&["get", "pdos"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("did you mean \"pods\"?"), "{}", ended.err);
}

#[test]
fn an_empty_name_is_not_everything() {
    let yard = Yard::start();
    yard.apply(CONFIG);
    submit(&yard);
    for args in [
        &["delete", ""][..],
        &["delete", "tfjobs", ""],
        &["delete", "cm", "", "--wait=false"],
        &["delete", "cm/", "--force"],
        &["delete", "cm", ".."],
        &["delete", "cm", "-l", ""],
        &["delete", "tfjobs", "--selector= "],
        &["delete", "cm", "settings", "--namespace="],
        &["get", ""],
        &["describe", "cm", ""],
        &["suspend", ""],
        &["scale", "", "--replicas=0"],
        &["wait", "", "--for=delete"],
        &["logs", ""],
        &["logs", "pod/"],
        &["events", ""],
    ] {
        let ended = yard.run(args);
        assert_eq!(ended.code, 2, "{args:?}: {} {}", ended.out, ended.err);
        assert_eq!(ended.out, "", "{args:?}");
    }
    assert_eq!(yard.out(&["get", "cm/settings", "tfjob/mnist", "-o", "name"]).lines().count(), 2);
}
