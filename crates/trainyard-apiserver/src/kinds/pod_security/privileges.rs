//! Checks on what containers may do: privileges, capabilities, the users they run as.

use std::collections::BTreeSet;

use serde_json::Value;

use super::words::{Subject, Violation, containers, quoted, setters, wrongly_set};
use crate::kinds::json::{items, text};

/// A field of a holder's security context that is true or false, if it is said.
fn flag(holder: &Value, key: &str) -> Option<bool> {
    holder["securityContext"][key].as_bool()
}

pub(super) fn privileged(subject: Subject<'_>) -> Option<Violation> {
    let names = subject.named(|container| flag(container, "privileged") == Some(true));
    let detail = || format!("{} must not set securityContext.privileged=true", containers(&names));
    (!names.is_empty()).then(|| Violation::new("privileged", detail()))
}

pub(super) fn host_process(subject: Subject<'_>) -> Option<Violation> {
    let is_set = |holder: &Value| {
        holder["securityContext"]["windowsOptions"]["hostProcess"].as_bool() == Some(true)
    };
    let who = setters(is_set(subject.spec), &subject.named(is_set))?;
    let detail = format!("{who} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Violation::new("hostProcess", detail))
}

pub(super) fn escalation(subject: Subject<'_>) -> Option<Violation> {
    let key = "allowPrivilegeEscalation";
    let names = subject.named(|container| flag(container, key) != Some(false));
    let detail = || format!("{} must set securityContext.{key}=false", containers(&names));
    (!names.is_empty()).then(|| Violation::new("allowPrivilegeEscalation != false", detail()))
}

/// What engines give every container, `NET_RAW` apart.
const USUAL: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The containers that add capabilities beyond these, and which.
fn added<'a>(subject: Subject<'a>, allowed: &[&str]) -> (Vec<&'a str>, BTreeSet<&'a str>) {
    let mut names = Vec::new();
    let mut all = BTreeSet::new();
    for container in subject.containers() {
        let added = items(&container["securityContext"]["capabilities"], "add").iter();
        let added = added.filter_map(Value::as_str).filter(|name| !allowed.contains(name));
        let added: Vec<&str> = added.collect();
        if !added.is_empty() {
            names.push(text(container, "name"));
            all.extend(added);
        }
    }
    (names, all)
}

fn may_not_add(names: &[&str], capabilities: &BTreeSet<&str>) -> String {
    let (names, capabilities) = (containers(names), quoted(capabilities));
    format!("{names} must not include {capabilities} in securityContext.capabilities.add")
}

pub(super) fn usual_capabilities(subject: Subject<'_>) -> Option<Violation> {
    let (names, all) = added(subject, &USUAL);
    let detail = || may_not_add(&names, &all);
    (!names.is_empty()).then(|| Violation::new("non-default capabilities", detail()))
}

pub(super) fn few_capabilities(subject: Subject<'_>) -> Option<Violation> {
    let keeps = subject.named(|container| {
        let dropped = items(&container["securityContext"]["capabilities"], "drop");
        !dropped.iter().any(|name| name == "ALL")
    });
    let (names, all) = added(subject, &["NET_BIND_SERVICE"]);
    let mut details = Vec::new();
    if !keeps.is_empty() {
        let who = containers(&keeps);
        details.push(format!("{who} must set securityContext.capabilities.drop=[\"ALL\"]"));
    }
    if !names.is_empty() {
        details.push(may_not_add(&names, &all));
    }
    let detail = || details.join("; ");
    (!details.is_empty()).then(|| Violation::new("unrestricted capabilities", detail()))
}

pub(super) fn not_root(subject: Subject<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    let said = |holder: &Value| flag(holder, "runAsNonRoot");
    let pod = said(subject.spec);
    let wrong = subject.named(|container| said(container) == Some(false));
    if let Some(who) = setters(pod == Some(false), &wrong) {
        let detail = format!("{who} must not set securityContext.runAsNonRoot=false");
        return Some(Violation::new(REASON, detail));
    }
    let silent = subject.named(|container| said(container).is_none() && pod != Some(true));
    let detail =
        || format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&silent));
    (!silent.is_empty()).then(|| Violation::new(REASON, detail()))
}

pub(super) fn not_user_zero(subject: Subject<'_>) -> Option<Violation> {
    let is_zero = |holder: &Value| holder["securityContext"]["runAsUser"].as_i64() == Some(0);
    let who = setters(is_zero(subject.spec), &subject.named(is_zero))?;
    Some(Violation::new("runAsUser=0", format!("{who} must not set runAsUser=0")))
}

pub(super) fn proc_mount(subject: Subject<'_>) -> Option<Violation> {
    // A pod has no such field, so nothing is said of it.
    let field = |context| Some(text(context, "procMount")).filter(|value| !value.is_empty());
    let (_, names, values) = wrongly_set(subject, field, |value| value == "Default");
    let detail = || {
        let (names, values) = (containers(&names), quoted(&values));
        format!("{names} must not set securityContext.procMount to {values}")
    };
    (!names.is_empty()).then(|| Violation::new("procMount", detail()))
}
