//! What is to be run: manifests from files, or a command made into one.

use std::path::Path;

use serde_json::Value;

use super::flags::Flags;
use super::print_objects;
use crate::commands::files::{Files, Manifest};
use crate::failure::Failure;
use crate::run::bundle::Bundle;
use crate::run::overrides::Overrides;
use crate::run::script::{ENVIRONMENT, ENVIRONMENT_IMAGE, IMAGE, Script};
use crate::run::voice::Form;

/// Reads what is to be run.
pub(super) fn manifests(flags: &Flags) -> Result<Vec<Manifest>, Failure> {
    if !flags.command.is_empty() {
        let image = flags.image()?;
        let requirements = requirements(flags.requirements.as_deref())?;
        let script = Script {
            name: flags.name.as_deref(),
            workers: flags.workers,
            ps: flags.ps.unwrap_or_default(),
            chief: flags.chief,
            evaluator: flags.evaluator,
            tensorboard: flags.tensorboard.as_deref(),
            image: match image.as_deref() {
                Some(image) if image.starts_with(ENVIRONMENT) => ENVIRONMENT_IMAGE,
                image => image.unwrap_or(IMAGE),
            },
            requirements: &requirements,
            env: &flags.env,
            command: &flags.command,
            namespace: flags.namespace(),
        };
        let here = std::env::current_dir()
            .map_err(|error| Failure::other("finding the current folder", &error))?;
        let object = script.job(&here)?;
        return Ok(vec![Manifest { place: "command line".to_owned(), object }]);
    }
    let files = flags.files.iter().chain(&flags.more).cloned().collect::<Vec<_>>();
    if files.is_empty() {
        return Err(Failure::usage("nothing to run is given")
            .hint("name a file, as `trainyard run job.yaml`, or a command after `--`"));
    }
    flags.image()?;
    if let Some(failure) = counts(flags) {
        return Err(failure);
    }
    let mut manifests = Files { files, recursive: false }.read()?;
    let overrides = Overrides {
        env: &flags.env,
        name: flags.name.as_deref(),
        tensorboard: flags.tensorboard.as_deref(),
    };
    overrides.apply(&mut manifests)?;
    Ok(manifests)
}

/// Flags that say how many replicas a command has; a manifest says it itself.
fn counts(flags: &Flags) -> Option<Failure> {
    let given = [
        ("--workers", flags.workers.is_some(), "Worker"),
        ("--ps", flags.ps.is_some(), "PS"),
        ("--chief", flags.chief, "Chief"),
        ("--evaluator", flags.evaluator, "Evaluator"),
    ];
    let (flag, _, role) = given.into_iter().find(|(_, is_given, _)| *is_given)?;
    Some(
        Failure::usage(format!(
            "{flag} is for a command after `--`; a manifest says its own counts"
        ))
        .hint(format!("write spec.tfReplicaSpecs.{role}.replicas into the file")),
    )
}

/// Prints what would be run.
pub(super) fn print(manifests: &[Manifest], form: Form) -> Result<(), Failure> {
    let objects: Vec<Value> = manifests.iter().map(|manifest| manifest.object.clone()).collect();
    print_objects(&objects, form)
}

/// The packages of a requirements file.
pub(super) fn requirements(file: Option<&Path>) -> Result<Vec<String>, Failure> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::other(format!("reading {}", file.display()), &error))?;
    let mut packages = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split(" #").next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with('-') {
            let place = format!("{}, line {}", file.display(), number + 1);
            return Err(Failure::usage(format!("{place}: options of pip are not taken: {line:?}"))
                .hint("list packages only, one per line"));
        }
        packages.push(line.to_owned());
    }
    Ok(packages)
}

/// Reads a variable.
pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// The replica that is to decide the exit code must be one.
pub(super) fn check_replica(bundle: &Bundle, wanted: Option<&str>) -> Result<(), Failure> {
    let Some(wanted) = wanted else { return Ok(()) };
    let all: Vec<String> = bundle
        .jobs
        .iter()
        .flat_map(|job| {
            let names = (job.row.known)(&job.object);
            names.into_iter().flat_map(|name| [format!("{}/{name}", job.name), name])
        })
        .collect();
    if all.iter().any(|name| name == wanted) {
        return Ok(());
    }
    let plain: Vec<&str> =
        all.iter().filter(|name| !name.contains('/')).map(String::as_str).take(20).collect();
    Err(Failure::usage(format!("--exit-code-from {wanted:?}: there is no such replica"))
        .hint(format!("replicas are: {}", plain.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_packages_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("requirements.txt");
        std::fs::write(&file, "# data\nscikit-learn>=1.0  # digits\n\npandas\n").unwrap();
        assert_eq!(requirements(Some(&file)).unwrap(), ["scikit-learn>=1.0", "pandas"]);
        std::fs::write(&file, "pandas\n-r other.txt\n").unwrap();
        let wrong = requirements(Some(&file)).unwrap_err();
        assert!(wrong.to_string().contains("line 2: options of pip"), "{wrong}");
        assert_eq!(requirements(None).unwrap(), [""; 0]);
    }

    #[test]
    fn variables_have_names() {
        assert_eq!(variable("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert!(variable("A").is_err() && variable("=x").is_err());
    }
}
