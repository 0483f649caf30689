//! Makes ready what stands for the images of a run, before its jobs are made.
//!
//! What can never be had ends the run at once, with the line to type; what only the network keeps away is
//! tried again, visibly. Must not know how environments are made.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use trainyard_image::{ImageError, Images, Progress, PullPolicy};

use super::board::{Board, Notice, Weight};
use super::bundle::Bundle;
use super::script::IMAGE;
use super::voice::Voice;
use super::words::{length, listed};
use crate::failure::Failure;
use crate::present::{items, text};

/// The annotation with further Python packages.
const REQUIREMENTS: &str = "trainyard.dev/requirements";
/// Between looks at the clock.
const TICK: Duration = Duration::from_millis(200);
/// How long after a failure the network is tried again: at first, and at most.
const PAUSE_FIRST: Duration = Duration::from_secs(5);
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// An image that containers of a run want.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    image: String,
    /// Packages that it is to have as well.
    requirements: Vec<String>,
    policy: PullPolicy,
    /// Where it is written: `job.yaml: document 1: container "tensorflow" of worker`.
    places: Vec<String>,
    /// Those of them that say no command of their own.
    without_command: Vec<String>,
}

/// The images of all containers, each once, in the order in which they are written.
pub(crate) fn wanted(bundle: &Bundle) -> Vec<Wanted> {
    let mut all: Vec<Wanted> = Vec::new();
    for job in &bundle.jobs {
        let mut roles = BTreeSet::new();
        for member in (job.row.members)(&job.object) {
            let role = member.role.to_lowercase();
            if !roles.insert(role.clone()) {
                continue;
            }
            for container in containers(member.template) {
                let name = text(container, &["name"]);
                let place = format!("{}: container {name:?} of {role}", job.place);
                add(&mut all, of(&job.object, member.template, container), place, container);
            }
        }
    }
    all
}

fn containers(template: &Value) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers"].into_iter().flat_map(|list| items(template, &["spec", list]))
}

fn of(job: &Value, template: &Value, container: &Value) -> Wanted {
    let image = text(container, &["image"]).to_owned();
    // Annotations of the job under this name are its pods' too.
    let lines = [template, job]
        .into_iter()
        .map(|object| text(object, &["metadata", "annotations", REQUIREMENTS]))
        .find(|lines| !lines.is_empty())
        .unwrap_or_default();
    let policy = match text(container, &["imagePullPolicy"]) {
        "Always" => PullPolicy::Always,
        "Never" => PullPolicy::Never,
        "" if moves(&image) => PullPolicy::Always,
        _ => PullPolicy::IfNotPresent,
    };
    let requirements = lines.lines().map(str::to_owned).collect();
    Wanted { image, requirements, policy, places: Vec::new(), without_command: Vec::new() }
}

/// Whether Kubernetes looks for an image anew where the manifest does not say.
fn moves(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or(image);
    !image.contains('@') && (name.ends_with(":latest") || !name.contains(':'))
}

fn add(all: &mut Vec<Wanted>, new: Wanted, place: String, container: &Value) {
    let same = |one: &Wanted| {
        (&one.image, &one.requirements, one.policy) == (&new.image, &new.requirements, new.policy)
    };
    let at = all.iter().position(same).unwrap_or(all.len());
    if at == all.len() {
        all.push(new);
    }
    let Some(wanted) = all.get_mut(at) else { return };
    let says_none =
        ["command", "args"].into_iter().all(|field| items(container, &[field]).next().is_none());
    if says_none {
        wanted.without_command.push(place.clone());
    }
    wanted.places.push(place);
}

/// Whether everything can be had, as far as that can be said without making or asking anything.
pub(crate) fn check(images: &Images, wanted: &[Wanted]) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for one in wanted {
        match images.foresee(&one.image, &one.requirements) {
            Err(error) => failures.push(impossible(one, &error)),
            Ok(image) if !image.has_command && !one.without_command.is_empty() => {
                failures.push(no_command(one));
            }
            Ok(_) => {}
        }
    }
    Failure::all(failures)
}

/// What is said of an image that can never be had here.
fn impossible(wanted: &Wanted, error: &ImageError) -> Failure {
    let places = listed(&wanted.places);
    let image = &wanted.image;
    match error {
        ImageError::InvalidName { .. } if is_left_open(image) => Failure::unschedulable(vec![
            format!("{places}: the image {image:?} is a name that the manifest leaves open"),
        ])
        .hint(format!(
            "say what stands for it: --image '{image}={IMAGE}', with --mount SRC:DST for the program that \
             the image would hold; or write the name of your own image into the file"
        )),
        ImageError::InvalidName { reason, .. } => {
            Failure::invalid(vec![format!("{places}: {image:?} is no name of an image: {reason}")])
                .hint("nothing was started")
        }
        ImageError::NoEnvironment { dir, .. } => {
            Failure::unschedulable(vec![format!("{places}: {error}")]).hint(format!(
                "make one there: python3 -m venv {} && {}/bin/pip install tensorflow-cpu",
                dir.display(),
                dir.display()
            ))
        }
        _ => Failure::unschedulable(vec![format!("{places}: {error}")]).hint("nothing was started"),
    }
}

/// Whether a name is a template that somebody was to fill in.
fn is_left_open(image: &str) -> bool {
    image.contains(['<', '>', '{', '}', '$'])
}

fn no_command(wanted: &Wanted) -> Failure {
    let Wanted { image, without_command, .. } = wanted;
    let problem = format!(
        "{}: it has no command, and what stands for image {image:?} brings none: the ENTRYPOINT of the \
         real image is not known here",
        listed(without_command)
    );
    let mut hint = "write it into trainyard.toml in this folder, instead of --image:\n".to_owned();
    let _ = write!(
        hint,
        "  [images.{image:?}]\n  use = \"{IMAGE}\"\n  entrypoint = [\"python\", \"/app/main.py\"]\n\
         or give the container a command in the manifest"
    );
    Failure::unschedulable(vec![problem]).hint(hint)
}

/// Makes everything ready, telling how far it is; answers with what was told.
pub(crate) async fn ready(
    images: &Images,
    wanted: &[Wanted],
    voice: &mut Voice,
    (began, is_offline): (Instant, bool),
) -> Result<BTreeSet<String>, Failure> {
    let mut told = BTreeSet::new();
    for one in wanted {
        let (since, mut pause) = (Instant::now(), PAUSE_FIRST);
        while let Err(error) = resolve(images, one, voice, began, &mut told).await? {
            voice.progress_ends();
            if !error.may_heal() || is_offline {
                return Err(impossible(one, &error));
            }
            let words = format!(
                "waits for the network, for {} so far: {error}; tries again in {} s, Ctrl-C ends it",
                length(since.elapsed()),
                pause.as_secs()
            );
            let notice = Notice::new(Weight::Warning, "Waiting", words);
            voice.notice(&Board::default(), &notice)?;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        voice.progress_ends();
    }
    Ok(told)
}

/// One attempt. The outer error is the terminal's.
async fn resolve(
    images: &Images,
    wanted: &Wanted,
    voice: &mut Voice,
    began: Instant,
    told: &mut BTreeSet<String>,
) -> Result<Result<(), ImageError>, Failure> {
    let board = Board::default();
    let (sender, mut steps) = mpsc::unbounded_channel::<Progress>();
    let tell = move |step| {
        // Nobody listens any more once the attempt is over.
        let _ = sender.send(step);
    };
    let made = images.resolve(&wanted.image, &wanted.requirements, wanted.policy, tell);
    tokio::pin!(made);
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let made = loop {
        tokio::select! {
            biased;
            Some(step) = steps.recv() => tell_step(&step, voice, &board, began, told)?,
            made = &mut made => break made,
            _ = tick.tick() => voice.tick(&board, began.elapsed())?,
        }
    };
    while let Ok(step) = steps.try_recv() {
        tell_step(&step, voice, &board, began, told)?;
    }
    Ok(made.map(drop))
}

fn tell_step(
    step: &Progress,
    voice: &mut Voice,
    board: &Board,
    began: Instant,
    told: &mut BTreeSet<String>,
) -> Result<(), Failure> {
    let words = match step.percent {
        Some(percent) => format!("[{percent}%] {}", step.words),
        None => step.words.clone(),
    };
    if !told.insert(words.clone()) {
        return Ok(());
    }
    let notice = Notice::new(Weight::Normal, "Pulling", words);
    voice.progress(board, &notice, began.elapsed())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trainyard_image::{Mapping, Settings};

    use super::*;
    use crate::commands::files::Manifest;

    fn bundle(image: &str, command: &Value) -> Bundle {
        let container = json!({"name": "tensorflow", "image": image, "command": command});
        let template = json!({"spec": {"containers": [container]}});
        let object = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "mnist"},
            "spec": {"tfReplicaSpecs": {
                "PS": {"replicas": 2, "template": template},
                "Worker": {"replicas": 2, "template": template}}},
        });
        let manifest = Manifest { place: "job.yaml: document 1".to_owned(), object };
        Bundle::sort(vec![manifest], "default", &[]).unwrap()
    }

    fn images(mappings: &[&str]) -> (tempfile::TempDir, Images) {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let mappings = mappings.iter().map(|text| Mapping::parse(text, here).unwrap()).collect();
        let settings = Settings { cache: here.join("cache"), mappings, ..Settings::default() };
        let images = Images::new(settings).unwrap();
        (folder, images)
    }

    fn checked(image: &str, command: &Value, mappings: &[&str]) -> Result<(), Failure> {
        let (_folder, images) = images(mappings);
        check(&images, &wanted(&bundle(image, command)))
    }

    #[test]
    fn each_image_is_wanted_once_with_all_its_places() {
        let all = wanted(&bundle("a/b:1", &json!(["x"])));
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].places.len(), 2);
        assert!(all[0].places[1].ends_with("container \"tensorflow\" of worker"));
        assert_eq!((all[0].policy, all[0].without_command.len()), (PullPolicy::IfNotPresent, 0));
        assert_eq!(wanted(&bundle("a/b", &json!(["x"])))[0].policy, PullPolicy::Always);
    }

    #[test]
    fn what_can_never_be_had_ends_with_the_line_to_type() {
        let command = json!(["python", "x.py"]);
        let open = "<DOCKER_USERNAME>/tf-mnist:gpu";
        for (image, command, mappings, code, said) in [
            (open, &command, &[][..], 4, "--image '<DOCKER_USERNAME>/tf-mnist:gpu=tensorflow/"),
            ("My Image", &command, &[], 3, "is no name of an image"),
            ("me/mnist:1", &command, &[], 4, "--image me/mnist:1=tensorflow/tensorflow:X"),
            (
                open,
                &json!([]),
                &["<DOCKER_USERNAME>/tf-mnist:gpu=tensorflow/tensorflow:2.21.0"],
                4,
                "entrypoint = [",
            ),
            ("me/mnist:1", &command, &["me/mnist:1=env:nowhere"], 4, "python3 -m venv "),
            ("tensorflow/tensorflow:nope", &command, &[], 4, "names no release"),
        ] {
            let failure = checked(image, command, mappings).unwrap_err();
            let text = failure.to_string();
            assert_eq!(failure.exit_code(), code, "{image}: {text}");
            assert!(text.contains(said) && text.contains("job.yaml: document 1"), "{text}");
        }
    }

    #[test]
    fn what_may_be_had_is_not_refused() {
        let command = json!(["python", "x.py"]);
        for (image, command, mappings) in [
            ("tensorflow/tensorflow:2.21.0", &json!([]), &[][..]),
            ("me/mnist:1", &command, &["me/mnist:1=host"]),
            ("<X>/y", &command, &["<X>/y=tensorflow/tensorflow:2.21.0"]),
        ] {
            assert!(checked(image, command, mappings).is_ok(), "{image}");
        }
    }
}
