//! `crd`, `manifests`, and what every command has in common.

use std::process::Stdio;

use crate::process::{command, run};

#[test]
fn the_definition_is_printed_the_same_each_time() {
    let first = run(&["crd"]);
    assert_eq!((first.code, first.err.as_str()), (0, ""));
    assert!(first.out.starts_with("apiVersion: apiextensions.k8s.io/v1\n"), "{:.200}", first.out);
    assert!(first.out.contains("\n  name: tfjobs.kubeflow.org\n"));
    assert_eq!(first.out, run(&["crd"]).out);
}

#[test]
fn the_definition_is_part_of_the_manifests_unless_not_wanted() {
    let crd = run(&["crd"]).out;
    let with = run(&["manifests", "--namespace", "ops", "--image=registry/ty:9"]);
    assert_eq!((with.code, with.err.as_str()), (0, ""));
    assert!(with.out.contains(&crd));
    assert!(with.out.contains("\n        image: registry/ty:9\n"));
    assert!(with.out.starts_with("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ops\n---\n"));
    let without =
        run(&["manifests", "--namespace", "ops", "--image=registry/ty:9", "--crds=false"]);
    assert_eq!(with.out.replace(&format!("{crd}---\n"), ""), without.out);
}

#[test]
fn volcanos_definitions_and_the_scheduler_come_when_asked() {
    let volcano = run(&["crd", "--volcano"]).out;
    for name in ["jobs.batch", "commands.bus", "podgroups.scheduling", "queues.scheduling"] {
        assert!(volcano.contains(&format!("\n  name: {name}.volcano.sh\n")), "{name}");
    }
    assert_eq!(format!("{}---\n{volcano}", run(&["crd"]).out), run(&["crd", "--all"]).out);
    let few = run(&["manifests"]).out;
    assert!(!few.contains("volcano.sh") && !few.contains("trainyard-scheduler"));
    let all = run(&["manifests", "--volcano", "--scheduler"]).out;
    assert!(all.contains("\n  name: jobs.batch.volcano.sh\n"));
    assert!(all.contains("\n  name: trainyard-scheduler\n"));
}

#[test]
fn the_default_image_has_our_version() {
    let out = run(&["manifests"]).out;
    assert!(out.contains(concat!("image: trainyard:", env!("CARGO_PKG_VERSION"), "\n")));
    assert!(out.contains("\n  name: kubeflow\n"));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut child = command(&["crd"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    let ended = child.wait_with_output().expect("the command ends");
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}

#[test]
fn a_full_disk_is_one() {
    let Ok(full) = std::fs::File::create("/dev/full") else {
        return;
    };
    let ended = command(&["crd"]).stdout(full).output().expect("the command ends");
    assert_eq!(ended.status.code(), Some(1));
    let err = String::from_utf8_lossy(&ended.stderr);
    assert!(err.starts_with("error: writing to standard output: "), "{err}");
}

#[test]
fn what_is_not_understood_is_a_usage_error() {
    for (args, said) in [
        (&[][..], "Usage: trainyard"),
        (&["crds"], "'crd'"),
        (&["convert"], "<FILE>"),
        (&["manifests", "--namespace=Not_A_Name"], "lower-case letters"),
        (&["manifests", "--image="], "image"),
        (&["operator", "-leader-elekt"], "'--leader-elect'"),
    ] {
        let ended = run(args);
        assert_eq!(ended.code, 2, "{args:?}");
        assert!(ended.err.contains(said), "{args:?}: {}", ended.err);
        assert_eq!(ended.out, "");
    }
}

#[test]
fn help_and_version_are_answers() {
    let ended = run(&["--version"]);
    assert_eq!(ended.code, 0);
    assert_eq!(ended.out, concat!("trainyard ", env!("CARGO_PKG_VERSION"), "\n"));
    for command in ["crd", "manifests", "convert", "operator"] {
        let ended = run(&[command, "--help"]);
        assert_eq!(ended.code, 0, "{command}");
        assert!(ended.out.contains(&format!("Usage: trainyard {command}")), "{}", ended.out);
    }
}
