//! What names turn out to mean, and what is said of those that mean nothing.

use std::path::PathBuf;

use super::*;
use crate::image::View;
use crate::settings::CodeMount;

struct Fixture {
    dir: tempfile::TempDir,
    images: Images,
}

fn with(mappings: &[&str]) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let images = Images::new(Settings {
        cache: dir.path().join("envs"),
        mappings: mappings.iter().map(|text| Mapping::parse(text, dir.path()).unwrap()).collect(),
        offline: true,
        ..Settings::default()
    });
    Fixture { images: images.unwrap(), dir }
}

impl Fixture {
    async fn get(&self, reference: &str, policy: PullPolicy) -> Result<Arc<Image>, ImageError> {
        self.images.resolve(reference, &[], policy, |_| ()).await
    }

    async fn error(&self, reference: &str, policy: PullPolicy) -> (&'static str, String) {
        let error = self.get(reference, policy).await.unwrap_err();
        (error.kind(), error.to_string())
    }
}

#[tokio::test]
async fn names_that_are_none_are_told_as_a_kubelet_does() {
    let (kind, words) = with(&[]).error("<IMAGE>", PullPolicy::Always).await;
    assert_eq!(kind, "InvalidImageName");
    assert_eq!(
        words,
        "Failed to apply default image tag \"<IMAGE>\": couldn't parse image reference \"<IMAGE>\": \
         invalid reference format"
    );
}

#[tokio::test]
async fn a_name_that_is_left_open_means_what_the_user_says() {
    let images = with(&["<DOCKER_USERNAME>/tf-mnist:gpu=host"]);
    let found = images.get("<DOCKER_USERNAME>/tf-mnist:gpu", PullPolicy::Always).await.unwrap();
    assert_eq!(found.id, "trainyard://host");
    assert!(found.note.contains("<DOCKER_USERNAME>/tf-mnist:gpu"), "{}", found.note);
    let (kind, _) = images.error("<DOCKER_USERNAME>/tf-mnist:cpu", PullPolicy::Always).await;
    assert_eq!(kind, "InvalidImageName");
}

#[tokio::test]
async fn unmapped_images_name_the_remedies() {
    let digest = "a".repeat(64);
    let name = format!("gcr.io/me/mnist:1@sha256:{digest}");
    let (kind, words) = with(&["gcr.io/me/other=host"]).error(&name, PullPolicy::Always).await;
    assert_eq!(kind, "ErrImagePull");
    for remedy in [
        "--image gcr.io/me/mnist:1=tensorflow/tensorflow:X",
        "--image gcr.io/me/mnist:1=env:DIR",
        "--image gcr.io/me/mnist:1=host",
        "--mount SRC:DST[:ro]",
        "trainyard.toml",
    ] {
        assert!(words.contains(remedy), "{remedy}: {words}");
    }
    let (kind, words) = with(&[]).error("tensorflow/tensorflow:nightly", PullPolicy::Always).await;
    assert_eq!(kind, "ErrImagePull");
    assert!(words.contains("--image tensorflow/tensorflow:nightly="), "{words}");
}

#[tokio::test]
async fn never_means_only_what_is_ready() {
    let fixture = with(&[]);
    let (kind, words) = fixture.error("tensorflow/tensorflow:2.21.0", PullPolicy::Never).await;
    assert_eq!(kind, "ErrImageNeverPull");
    assert_eq!(
        words,
        "Container image \"tensorflow/tensorflow:2.21.0\" is not present with pull policy of Never"
    );
}

#[tokio::test]
async fn the_mapping_of_a_tag_wins_over_that_of_the_name() {
    let fixture = with(&["mnist=host", "mnist:2=env:venv", "mnist:latest=host"]);
    let host = fixture.get("docker.io/library/mnist:1", PullPolicy::Always).await.unwrap();
    assert_eq!((host.id.as_str(), host.cmd.len()), ("trainyard://host", 0));
    assert_eq!(host.root, [View::System]);
    let (kind, words) = fixture.error("mnist:2", PullPolicy::Always).await;
    assert_eq!(kind, "ErrImagePull");
    assert!(words.contains("is no Python environment"), "{words}");
    assert!(fixture.get("mnist", PullPolicy::Always).await.is_ok());
}

#[tokio::test]
async fn packages_are_not_added_to_what_is_not_ours() {
    let fixture = with(&["mnist=host"]);
    let lines = ["six".to_owned()];
    let refused = fixture.images.resolve("mnist", &lines, PullPolicy::Always, |_| ()).await;
    assert!(refused.unwrap_err().to_string().contains("packages six cannot be added"));
    let lines = ["-r /etc/passwd".to_owned()];
    let refused = fixture.images.resolve("python:3", &lines, PullPolicy::Always, |_| ()).await;
    assert!(refused.unwrap_err().to_string().contains("options are not taken"));
    assert!(fixture.dir.path().join("envs").is_dir());
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let base = Settings { cache: dir.path().join("envs"), ..Settings::default() };
    let mapping = |text| Mapping::parse(text, dir.path()).unwrap();
    let mount = |text| CodeMount::parse(text, dir.path()).unwrap();
    let kind = |settings: Settings| Images::new(settings).unwrap_err().kind();
    let twice = vec![mapping("a=host"), mapping("a=python:3")];
    assert_eq!(kind(Settings { mappings: twice, ..base.clone() }), "GivenTwice");
    let missing = vec![mount("nowhere:/app")];
    assert_eq!(kind(Settings { mounts: missing, ..base.clone() }), "BadMount");
    let same = vec![mount(".:/app"), mount("..:/app")];
    assert_eq!(kind(Settings { mounts: same, ..base.clone() }), "GivenTwice");
    let with = vec!["--pre".to_owned()];
    assert_eq!(kind(Settings { with, ..base.clone() }), "BadRequirement");
    let cache = PathBuf::from("/proc/nowhere");
    assert_eq!(kind(Settings { cache, ..base }), "BadCache");
}
