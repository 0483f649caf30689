//! Pod Security admission: what a namespace's labels ask of its pods.
//!
//! Owns which writes are looked at and what is said of them, in Kubernetes' words. Pure: objects come as
//! they will be stored. Must not know verbs. There are no exempt namespaces, users or classes here.

mod checks;
mod host;
mod labels;
mod privileges;
mod profiles;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use trainyard_schema::golang;

use self::checks::violations;
use self::labels::{Demand, Level, policy};
use self::words::{Subject, Violation};
use super::json::{items, text};
use crate::failure::{About, Failure};
use crate::kind::{Kind, World};

/// No more pods of a namespace are looked at when its labels change.
const MOST_PODS: usize = 3_000;

/// A write that is about to be stored.
pub(crate) struct Write<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) object: &'a Value,
    /// What is replaced; none at creation.
    pub(crate) before: Option<&'a Value>,
}

/// Refuses what the labels of the namespace forbid; answers with words of warning about the rest.
pub(crate) fn admit(write: &Write<'_>, world: &dyn World) -> Result<Vec<String>, Failure> {
    match write.kind.storage.as_str() {
        "namespaces" => namespace(write, world),
        "pods" => pod(write, world),
        "jobs.batch" => Ok(template(&write.object["spec"]["template"], write, world)),
        _ => Ok(Vec::new()),
    }
}

fn namespace_of(object: &Value, world: &dyn World) -> Value {
    let name = text(&object["metadata"], "namespace");
    world.get("namespaces", "", name).unwrap_or_default()
}

fn pod(write: &Write<'_>, world: &dyn World) -> Result<Vec<String>, Failure> {
    if write.before.is_some_and(|before| has_same_programs(write.object, before)) {
        return Ok(Vec::new());
    }
    let (policy, _) = policy(&namespace_of(write.object, world));
    let subject = Subject { metadata: &write.object["metadata"], spec: &write.object["spec"] };
    let found = violations(policy.enforce, subject);
    if found.is_empty() {
        return Ok(warning(policy.warn, subject));
    }
    let why = format!("violates PodSecurity {}", told(policy.enforce, &found));
    let about = About::new("", "pods", text(&write.object["metadata"], "name"));
    Err(Failure::forbidden(about, &why))
}

/// What is made from a template is judged when it is made: of the template itself, one is only warned.
fn template(template: &Value, write: &Write<'_>, world: &dyn World) -> Vec<String> {
    let (policy, _) = policy(&namespace_of(write.object, world));
    warning(policy.warn, Subject { metadata: &template["metadata"], spec: &template["spec"] })
}

fn warning(demand: Demand, subject: Subject<'_>) -> Vec<String> {
    let found = violations(demand, subject);
    let words = || format!("would violate PodSecurity {}", told(demand, &found));
    if found.is_empty() { Vec::new() } else { vec![words()] }
}

fn told(demand: Demand, found: &[Violation]) -> String {
    let found: Vec<String> = found.iter().map(Violation::whole).collect();
    format!("{}: {}", golang::quote(&demand.to_string()), found.join(", "))
}

/// Whether a change of a pod is none of what it runs: nothing else that is judged can change.
fn has_same_programs(new: &Value, old: &Value) -> bool {
    ["initContainers", "containers", "ephemeralContainers"].into_iter().all(|key| {
        let images = |pod: &Value| -> Vec<String> {
            let containers = items(&pod["spec"], key).iter();
            containers.map(|container| text(container, "image").to_owned()).collect()
        };
        images(new) == images(old)
    })
}

fn namespace(write: &Write<'_>, world: &dyn World) -> Result<Vec<String>, Failure> {
    let (now, errors) = policy(write.object);
    let Some(before) = write.before else {
        return refuse(write, &errors).map(|()| Vec::new());
    };
    let (before, known) = policy(before);
    if errors != known {
        refuse(write, &errors)?;
    }
    let (new, old) = (now.enforce, before.enforce);
    let is_relaxed = new.version == old.version && new.level <= old.level;
    if new == old || new.level == Level::Privileged || is_relaxed {
        return Ok(Vec::new());
    }
    Ok(about_pods(text(&write.object["metadata"], "name"), new, world))
}

fn refuse(write: &Write<'_>, errors: &[trainyard_schema::FieldError]) -> Result<(), Failure> {
    if errors.is_empty() {
        return Ok(());
    }
    let name = text(&write.object["metadata"], "name");
    Err(Failure::invalid(About::new("", "Namespace", name), errors))
}

/// What would now be refused of a namespace's pods, those with the same faults told together.
fn about_pods(namespace: &str, demand: Demand, world: &dyn World) -> Vec<String> {
    let pods = world.list("pods", Some(namespace));
    let (all, checked) = (pods.len(), pods.len().min(MOST_PODS));
    let mut faults: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for pod in &pods[..checked] {
        let subject = Subject { metadata: &pod["metadata"], spec: &pod["spec"] };
        let found = violations(demand, subject);
        if !found.is_empty() {
            let reasons: Vec<&str> = found.iter().map(|one| one.reason).collect();
            faults.entry(reasons.join(", ")).or_default().insert(text(&pod["metadata"], "name"));
        }
    }
    let mut warnings = Vec::new();
    if checked < all {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {checked} of {all} existing pods"
        ));
    }
    if !faults.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {} violate the new PodSecurity enforce level {}",
            golang::quote(namespace),
            golang::quote(&demand.to_string())
        ));
    }
    let mut lines: Vec<String> = faults.iter().map(|(reasons, pods)| line(reasons, pods)).collect();
    lines.sort();
    warnings.extend(lines);
    warnings
}

fn line(reasons: &str, pods: &BTreeSet<&str>) -> String {
    let first = pods.first().copied().unwrap_or_default();
    match pods.len() {
        1 => format!("{first}: {reasons}"),
        2 => format!("{first} (and 1 other pod): {reasons}"),
        several => format!("{first} (and {} other pods): {reasons}", several - 1),
    }
}

#[cfg(test)]
mod tests;
