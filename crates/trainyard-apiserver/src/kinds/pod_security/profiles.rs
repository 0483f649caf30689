//! Checks on the profiles that the machine's kernel holds containers to: `AppArmor`, seccomp, `SELinux`.

use std::collections::BTreeSet;

use serde_json::Value;
use trainyard_schema::golang;

use super::words::{Subject, Violation, containers, counted, quoted, setters, wrongly_set};
use crate::kinds::json::{members, text};

/// The kind of a profile that a security context names.
fn named<'a>(context: &'a Value, profile: &str) -> Option<&'a str> {
    context[profile].is_object().then(|| text(&context[profile], "type"))
}

fn is_usual(profile: &str) -> bool {
    matches!(profile, "RuntimeDefault" | "Localhost")
}

/// The annotations that were used before there were fields.
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(super) fn app_armor(subject: Subject<'_>) -> Option<Violation> {
    let field = |context| named(context, "appArmorProfile");
    let (pod, names, values) = wrongly_set(subject, field, is_usual);
    let annotations: BTreeSet<String> = members(subject.metadata, "annotations")
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .filter(|(key, value)| {
            let usual = value.is_empty() || *value == "runtime/default";
            key.starts_with(APP_ARMOR) && !usual && !value.starts_with("localhost/")
        })
        .map(|(key, value)| format!("{key}={}", golang::quote(value)))
        .collect();
    let word = counted("annotation", "annotations", annotations.len()).to_owned();
    let annotated = (!annotations.is_empty()).then_some(word);
    let who: Vec<String> = setters(pod, &names).into_iter().chain(annotated).collect();
    let values: Vec<&str> =
        values.into_iter().chain(annotations.iter().map(String::as_str)).collect();
    let reason = counted("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len());
    let detail = || {
        let who = who.join(" and ");
        format!("{who} must not set AppArmor profile type to {}", quoted(&values))
    };
    (!who.is_empty()).then(|| Violation::new(reason, detail()))
}

/// Types of `SELinux` that engines give containers.
const SELINUX: [&str; 4] = ["", "container_t", "container_init_t", "container_kvm_t"];

/// Those, and what came with 1.31.
pub(super) fn selinux_since_31(subject: Subject<'_>) -> Option<Violation> {
    selinux(subject, |of| of == "container_engine_t" || SELINUX.contains(&of))
}

pub(super) fn selinux_before(subject: Subject<'_>) -> Option<Violation> {
    selinux(subject, |of| SELINUX.contains(&of))
}

fn selinux(subject: Subject<'_>, allows: impl Fn(&str) -> bool) -> Option<Violation> {
    let options = |holder: &Value| holder["securityContext"]["seLinuxOptions"].clone();
    let is_set = |holder: &Value, key: &str| !text(&options(holder), key).is_empty();
    let wrong = |holder: &Value| {
        !allows(text(&options(holder), "type")) || is_set(holder, "user") || is_set(holder, "role")
    };
    let who = setters(wrong(subject.spec), &subject.named(wrong))?;
    let holders = || std::iter::once(subject.spec).chain(subject.containers());
    let types: BTreeSet<String> = holders()
        .map(|holder| text(&options(holder), "type").to_owned())
        .filter(|of| !allows(of))
        .collect();
    let mut told = Vec::new();
    if !types.is_empty() {
        told.push(format!("{} {}", counted("type", "types", types.len()), quoted(&types)));
    }
    for key in ["user", "role"] {
        if holders().any(|holder| is_set(holder, key)) {
            told.push(format!("{key} may not be set"));
        }
    }
    let told = told.join("; ");
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {told}");
    Some(Violation::new("seLinuxOptions", detail))
}

const SECCOMP: &str = "seccompProfile";

/// Of the time when seccomp was told by annotations.
pub(super) fn seccomp_annotations(subject: Subject<'_>) -> Option<Violation> {
    let of_pod = "seccomp.security.alpha.kubernetes.io/pod".to_owned();
    let of_containers = subject.containers().map(|container| {
        format!("container.seccomp.security.alpha.kubernetes.io/{}", text(container, "name"))
    });
    let wrong: BTreeSet<String> = std::iter::once(of_pod)
        .chain(of_containers)
        .filter_map(|key| {
            let value = subject.metadata["annotations"][&key].as_str()?;
            let usual = matches!(value, "runtime/default" | "docker/default");
            let allowed = usual || value.starts_with("localhost/");
            (!allowed).then(|| format!("{key}={}", golang::quote(value)))
        })
        .collect();
    let detail = || {
        let wrong: Vec<&str> = wrong.iter().map(String::as_str).collect();
        let word = counted("annotation", "annotations", wrong.len());
        format!("forbidden {word} {}", wrong.join(", "))
    };
    (!wrong.is_empty()).then(|| Violation::new(SECCOMP, detail()))
}

pub(super) fn seccomp(subject: Subject<'_>) -> Option<Violation> {
    let (pod, names, values) = wrongly_set(subject, |context| named(context, SECCOMP), is_usual);
    let who = setters(pod, &names)?;
    let values = quoted(&values);
    let detail = format!("{who} must not set securityContext.seccompProfile.type to {values}");
    Some(Violation::new(SECCOMP, detail))
}

pub(super) fn seccomp_required(subject: Subject<'_>) -> Option<Violation> {
    let wrong = seccomp(subject);
    if wrong.is_some() || named(&subject.spec["securityContext"], SECCOMP).is_some() {
        return wrong;
    }
    let silent = subject.named(|container| named(&container["securityContext"], SECCOMP).is_none());
    let detail = || {
        format!(
            "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
            containers(&silent)
        )
    };
    (!silent.is_empty()).then(|| Violation::new(SECCOMP, detail()))
}
