//! `convert`: files, documents, and where a problem is.

use crate::process::{run, run_with};

const OLD: &str = "\
apiVersion: kubeflow.org/v1beta1
kind: TFJob
metadata:
  name: example-tfjob
spec:
  cleanPodPolicy: None
  tfReplicaSpecs:
    MASTER:
      replicas: 1
      template:
        spec:
          containers:
          - image: tf-mnist:gpu # from our registry
            name: tensorflow
            resources:
              limits:
                nvidia.com/gpu: 1
          restartPolicy: OnFailure
";

const OTHER: &str = "\
apiVersion: v1
data:
  mode: \"0644\"
  \"on\": \"off\"
  run.sh: |
    #!/bin/sh
    exec python \"$@\"
kind: ConfigMap
metadata:
  name: settings
";

#[test]
fn an_old_job_becomes_v1_and_stays_it() {
    let first = run_with(&["convert", "-"], OLD);
    assert_eq!(first.code, 0, "{}", first.err);
    assert!(first.out.starts_with("apiVersion: kubeflow.org/v1\nkind: TFJob\n"), "{}", first.out);
    assert!(first.out.contains("example-tfjob") && first.out.contains("cleanPodPolicy: None"));
    let second = run_with(&["convert", "-"], &first.out);
    assert_eq!((second.code, second.out.as_str()), (0, first.out.as_str()), "{}", second.err);
}

#[test]
fn other_kinds_keep_every_value() {
    let ended = run_with(&["convert", "-"], OTHER);
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (0, OTHER, ""));
}

#[test]
fn several_files_and_documents_keep_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("jobs.yaml");
    std::fs::write(&path, format!("{OTHER}---\n# nothing\n---\n{OLD}")).expect("a file");
    let path = path.to_str().expect("the path is text");
    let ended = run_with(&["convert", path, "-"], OTHER);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let job = run_with(&["convert", "-"], OLD).out;
    assert_eq!(ended.out, format!("{OTHER}---\n{job}---\n{OTHER}"));
}

#[test]
fn jobs_inside_a_list_are_converted() {
    let item = |text: &str| text.replace('\n', "\n  ").trim_end().to_owned();
    let list = format!("apiVersion: v1\nkind: List\nitems:\n- {}\n- {}\n", item(OLD), item(OTHER));
    let ended = run_with(&["convert", "-"], &list);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.contains("items:\n- apiVersion: kubeflow.org/v1\n"), "{}", ended.out);
    assert!(ended.out.contains("kind: List\n"));
}

#[test]
fn a_problem_is_named_with_file_document_and_field_and_nothing_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wrong.yaml");
    let wrong = OLD.replace("replicas: 1", "replicas: -1");
    std::fs::write(&path, format!("{OTHER}---\n{wrong}")).expect("a file");
    let path = path.to_str().expect("the path is text");
    let ended = run(&["convert", path]);
    assert_eq!((ended.code, ended.out.as_str()), (3, ""));
    let place = format!("error: {path}: document 2: spec.tfReplicaSpecs");
    assert!(ended.err.starts_with(&place), "{}", ended.err);
    assert!(ended.err.contains("replicas") && ended.err.ends_with("hint: nothing was printed\n"));
}

#[test]
fn every_problem_is_told_at_once() {
    let wrong = OLD.replace("replicas: 1", "replicas: -1");
    let text = format!("{wrong}---\n{OTHER}---\n{wrong}");
    let ended = run_with(&["convert", "-"], &text);
    assert_eq!(ended.code, 3);
    for document in [1, 3] {
        let place = format!("error: standard input: document {document}: ");
        assert!(ended.err.contains(&place), "{}", ended.err);
    }
}

#[test]
fn what_is_not_yaml_is_named_with_its_place() {
    let ended = run_with(&["convert", "-"], "a: 1\n---\nb: [1\nc: 2\n");
    assert_eq!((ended.code, ended.out.as_str()), (3, ""));
    assert!(ended.err.starts_with("error: standard input: document 2, line "), "{}", ended.err);
}

#[test]
fn what_cannot_be_read_is_another_failure() {
    let ended = run(&["convert", "no-such-file.yaml"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.starts_with("error: reading no-such-file.yaml: "), "{}", ended.err);
    let ended = run(&["convert", "-", "-"]);
    assert_eq!(ended.code, 2, "{}", ended.err);
}

#[test]
fn an_empty_text_is_worth_a_word() {
    let ended = run(&["convert", "-"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, ""));
    assert_eq!(ended.err, "warning: standard input: there is nothing in it\n");
}
