//! A pod: where it is, its containers and how they are.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;
use trainyard_core::{Phase, PodState, PodView};

use super::sheet::Sheet;
use crate::commands::job_logs::wait::waits_for;
use crate::present::template::shown;
use crate::present::time::{ago, time};
use crate::present::{items, text};

pub(super) fn describe(sheet: &mut Sheet, pod: &Value) {
    sheet.metadata(pod);
    let created = sheet.when(&pod["metadata"]["creationTimestamp"]);
    sheet.field("Created", &created);
    sheet.owners(pod);
    let node = text(pod, &["spec", "nodeName"]);
    sheet.field("Node", if node.is_empty() { "<none>" } else { node });
    sheet.field("Status", &phase(pod));
    sheet.maybe(0, "Message", text(pod, &["status", "message"]));
    if let Some(why) = why_pending(pod) {
        sheet.field("Waits For", &why);
    }
    sheet.maybe(0, "IP", text(pod, &["status", "podIP"]));
    sheet.maybe(0, "Account", text(pod, &["spec", "serviceAccountName"]));
    sheet.maybe(0, "Restart", text(pod, &["spec", "restartPolicy"]));
    for (list, statuses, heading) in [
        ("initContainers", "initContainerStatuses", "Init Containers"),
        ("containers", "containerStatuses", "Containers"),
    ] {
        let containers: Vec<&Value> = items(pod, &["spec", list]).collect();
        if !containers.is_empty() {
            sheet.heading(heading);
        }
        for one in containers {
            let status =
                items(pod, &["status", statuses]).find(|status| status["name"] == one["name"]);
            container(sheet, one, status.unwrap_or(&Value::Null));
        }
    }
    sheet.conditions(pod);
    volumes(sheet, pod);
}

/// Whether a pod is as it should be: it runs, or has ended well.
pub(super) fn is_fine(pod: &Value) -> bool {
    PodView::of_json(pod)
        .is_some_and(|view| matches!(view.state(), PodState::Running | PodState::Succeeded))
}

/// What kubectl calls the status: the reason where there is one, else the phase.
pub(super) fn phase(pod: &Value) -> String {
    let view = PodView::of_json(pod);
    let phase = match view.as_ref().map(|view| view.phase) {
        Some(Phase::Succeeded) => "Succeeded",
        Some(Phase::Failed) => "Failed",
        _ => text(pod, &["status", "phase"]),
    };
    let lost = view.as_ref().is_some_and(|view| view.state() == PodState::Lost);
    let away = if lost { ", its node cannot be reached" } else { "" };
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return format!("Terminating ({phase}{away})");
    }
    let reason = text(pod, &["status", "reason"]);
    let waiting = items(pod, &["status", "containerStatuses"])
        .map(|status| text(status, &["state", "waiting", "reason"]))
        .find(|reason| !reason.is_empty());
    match (reason, waiting) {
        ("", Some(waiting)) => format!("{phase} ({waiting}{away})"),
        ("", None) if lost => format!("{phase} (its node cannot be reached)"),
        ("", None) => phase.to_owned(),
        (reason, _) => format!("{phase} ({reason}{away})"),
    }
}

/// Why a pod does not run yet, in the scheduler's or the node's words.
pub(super) fn why_pending(pod: &Value) -> Option<String> {
    let is_pending = PodView::of_json(pod).is_some_and(|view| view.phase == Phase::Pending);
    let message = waits_for(pod).message;
    (is_pending && !message.is_empty()).then_some(message)
}

/// How containers ended, those that did: now, or in the run before.
pub(super) fn ends(pod: &Value, now: Timestamp) -> Vec<(String, String)> {
    let statuses = ["initContainerStatuses", "containerStatuses"];
    statuses
        .into_iter()
        .flat_map(|list| items(pod, &["status", list]).map(move |status| (list, status)))
        .filter_map(|(list, status)| {
            let name = text(status, &["name"]).to_owned();
            let (state, last) =
                (&status["state"]["terminated"], &status["lastState"]["terminated"]);
            // A first container that has done its work is no news.
            if list == "initContainerStatuses" && state["exitCode"] == 0 {
                return None;
            }
            if state.is_object() {
                Some((name, ended(state, now)))
            } else {
                last.is_object().then(|| (name, format!("before: {}", ended(last, now))))
            }
        })
        .collect()
}

/// `exit code 137 (OOMKilled), 30s ago`.
fn ended(state: &Value, now: Timestamp) -> String {
    let mut said = format!("exit code {}", shown(&state["exitCode"]));
    let reason = text(state, &["reason"]);
    if !reason.is_empty() {
        let _ = write!(said, " ({reason})");
    }
    if time(&state["finishedAt"]).is_some() {
        let _ = write!(said, ", {} ago", ago(&state["finishedAt"], now));
    }
    said
}

fn container(sheet: &mut Sheet, container: &Value, status: &Value) {
    sheet.line(&format!("  {}:", text(container, &["name"])));
    sheet.field_at(4, "Image", text(container, &["image"]));
    sheet.maybe(4, "Image ID", text(status, &["imageID"]));
    for (field, name) in [("command", "Command"), ("args", "Args")] {
        let words: Vec<String> = items(container, &[field]).map(shown).collect();
        sheet.maybe(4, name, &words.join("\n"));
    }
    let state = match &status["state"] {
        state if state["running"].is_object() => {
            let since = sheet.when(&state["running"]["startedAt"]);
            format!("Running since {since}")
        }
        state if state["terminated"].is_object() => {
            format!("Terminated: {}", ended(&state["terminated"], sheet.now))
        }
        state if state["waiting"].is_object() => {
            let waiting = &state["waiting"];
            format!("Waiting: {} {}", text(waiting, &["reason"]), text(waiting, &["message"]))
        }
        _ => String::new(),
    };
    sheet.maybe(4, "State", state.trim_end());
    let last = &status["lastState"]["terminated"];
    if last.is_object() {
        let said = ended(last, sheet.now);
        sheet.field_at(4, "Last State", &said);
    }
    let words = [text(&status["state"], &["terminated", "message"]), text(last, &["message"])];
    sheet.maybe(4, "Last Words", words.into_iter().find(|one| !one.is_empty()).unwrap_or_default());
    if status.is_object() {
        sheet.field_at(4, "Ready", &shown(&status["ready"]));
        sheet.field_at(4, "Restarts", &shown(&status["restartCount"]));
    }
    for (field, name) in [("requests", "Requests"), ("limits", "Limits")] {
        let amounts: Vec<String> = container["resources"][field]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, amount)| format!("{name} {}", shown(amount)))
            .collect();
        sheet.maybe(4, name, &amounts.join(", "));
    }
    let variables: Vec<String> = items(container, &["env"]).map(variable).collect();
    sheet.maybe(4, "Environment", &variables.join("\n"));
    let mounts: Vec<String> = items(container, &["volumeMounts"])
        .map(|mount| {
            let read_only = if mount["readOnly"] == true { " (read only)" } else { "" };
            format!("{} from {}{read_only}", text(mount, &["mountPath"]), text(mount, &["name"]))
        })
        .collect();
    sheet.maybe(4, "Mounts", &mounts.join("\n"));
}

/// A variable; one from elsewhere says from where.
fn variable(variable: &Value) -> String {
    let name = text(variable, &["name"]);
    let from = variable["valueFrom"].as_object().and_then(|from| from.iter().next());
    match from {
        Some((kind, from)) => {
            let path =
                [text(from, &["fieldPath"]), text(from, &["resource"]), text(from, &["key"])]
                    .into_iter()
                    .find(|path| !path.is_empty())
                    .unwrap_or_default();
            let source = text(from, &["name"]);
            let of = if source.is_empty() { String::new() } else { format!(" of {source}") };
            format!("{name} from {}: {path}{of}", kind.trim_end_matches("Ref"))
        }
        None => format!("{name}={}", text(variable, &["value"])),
    }
}

fn volumes(sheet: &mut Sheet, pod: &Value) {
    let rows: Vec<Vec<String>> = items(pod, &["spec", "volumes"])
        .map(|volume| {
            let source = volume.as_object().into_iter().flatten().find(|(key, _)| *key != "name");
            let (kind, what) =
                source.map_or(("", &Value::Null), |(kind, what)| (kind.as_str(), what));
            let named = ["claimName", "path", "name", "secretName"]
                .into_iter()
                .map(|field| text(what, &[field]))
                .find(|named| !named.is_empty())
                .unwrap_or_default();
            vec![text(volume, &["name"]).to_owned(), kind.to_owned(), named.to_owned()]
        })
        .collect();
    if !rows.is_empty() {
        sheet.heading("Volumes");
        sheet.table(2, &rows);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_that_waits_says_for_what() {
        let meta = json!({"name": "p"});
        let pod = json!({"metadata": meta, "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]}});
        assert_eq!(why_pending(&pod).as_deref(), Some("0/1 nodes are available"));
        let pod = json!({"metadata": meta, "status": {"phase": "Pending", "containerStatuses": [
            {"state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}]}});
        assert_eq!(why_pending(&pod).as_deref(), Some("no such image"));
        assert_eq!(phase(&pod), "Pending (ErrImagePull)");
        let runs = json!({"metadata": meta, "status": {"phase": "Running"}});
        assert_eq!(why_pending(&runs), None);
    }

    #[test]
    fn a_pod_that_runs_no_more_or_nobody_knows_where_is_not_fine() {
        let pod = |status: Value| json!({"metadata": {"name": "p"}, "status": status});
        let runs = pod(json!({"phase": "Running"}));
        assert!(is_fine(&runs) && is_fine(&pod(json!({"phase": "Succeeded"}))));
        let away = pod(json!({"phase": "Running", "conditions": [
            {"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]}));
        assert!(!is_fine(&away));
        assert_eq!(phase(&away), "Running (its node cannot be reached)");
        let again = pod(json!({"phase": "Running", "containerStatuses": [
            {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}));
        assert!(!is_fine(&again));
        assert_eq!(phase(&again), "Running (CrashLoopBackOff)");
        let mut leaves = runs;
        leaves["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(!is_fine(&leaves));
        assert_eq!(phase(&leaves), "Terminating (Running)");
        let mut done = pod(json!({"phase": "Running", "containerStatuses": [
            {"state": {"terminated": {"exitCode": 0}}}]}));
        done["spec"]["restartPolicy"] = json!("Never");
        assert_eq!(phase(&done), "Succeeded");
    }

    #[test]
    fn containers_are_described() {
        let pod = json!({
            "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "main", "image": "x", "command": ["sh", "-c"],
                "env": [{"name": "A", "value": "1"},
                        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "resources": {"limits": {"cpu": "1"}},
                "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": true}]}],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
            "status": {"phase": "Running", "containerStatuses": [{"name": "main", "ready": true,
                "restartCount": 1, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}]},
        });
        let mut sheet = Sheet::new("2026-01-01T00:00:05Z".parse().unwrap());
        describe(&mut sheet, &pod);
        let text = sheet.text();
        for line in [
            "    State:        Running since 2026-01-01T00:00:00Z (5s ago)\n",
            "    Last State:   exit code 1 (Error)\n",
            "    Limits:       cpu 1\n",
            "    Environment:  A=1\n                  B from field: metadata.name\n",
            "    Mounts:       /v from v (read only)\n",
            "  v     persistentVolumeClaim   data\n",
        ] {
            assert!(text.contains(line), "{line}\n--- in\n{text}");
        }
    }
}
