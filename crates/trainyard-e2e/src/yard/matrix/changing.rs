//! Verbs that write.

use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::desk::Desk;
use crate::check::{contains, equal};

pub(super) async fn create(desk: &Desk) -> Result<()> {
    let words = ["create", "-f", "-"];
    let tried =
        desk.feed(&["create", "--dry-run=server", "-f", "-"], &desk.manifest("new")).await?;
    equal("dry run", tried.trim(), format!("{} created (server dry run)", desk.printed()))?;
    let told = desk.feed(&words, &desk.manifest("new")).await?;
    equal("create", told.trim(), format!("{} created", desk.printed()))?;
    let again = desk.run(&words, &desk.manifest("new")).await?.stderr_of_failure()?;
    contains("a second time", &again, &["(AlreadyExists)", &desk.name(), "already exists"])?;
    let mut wrong: Value = serde_json::from_str(&desk.manifest("new"))?;
    wrong["metadata"]["lables"] = serde_json::json!({"a": "b"});
    let refused = desk.run(&words, &wrong.to_string()).await?.stderr_of_failure()?;
    contains("a misspelt field", &refused, &["unknown field", "metadata.lables"])
}

pub(super) async fn label(desk: &Desk) -> Result<()> {
    let told = desk.ok(&["label", &desk.target(), "--overwrite", "step=labelled"]).await?;
    equal("label", told.trim(), format!("{} labeled", desk.printed()))?;
    desk.is_at("labelled").await?;
    let refused = desk.run(&["label", &desk.target(), "step=other"], "").await?;
    contains("without --overwrite", &refused.stderr_of_failure()?, &["already has a value"])
}

pub(super) async fn annotate(desk: &Desk) -> Result<()> {
    let told = desk.ok(&["annotate", &desk.target(), "note=read me"]).await?;
    equal("annotate", told.trim(), format!("{} annotated", desk.printed()))?;
    let path = "jsonpath={.metadata.annotations.note}";
    equal("annotation", desk.ok(&["get", &desk.target(), "-o", path]).await?, "read me")?;
    desk.ok(&["annotate", &desk.target(), "note-"]).await?;
    equal("taken off", desk.ok(&["get", &desk.target(), "-o", path]).await?, "")
}

/// All three kinds of patch; a strategic one is refused where the server has no Go type to read.
pub(super) async fn patch(desk: &Desk) -> Result<()> {
    let (target, printed) = (desk.target(), desk.printed());
    let merge = r#"{"metadata":{"labels":{"step":"merged"}}}"#;
    let told = desk.ok(&["patch", &target, "--type=merge", "-p", merge]).await?;
    equal("merge patch", told.trim(), format!("{printed} patched"))?;
    desk.is_at("merged").await?;
    let told = desk.ok(&["patch", &target, "--type=merge", "-p", merge]).await?;
    equal("the same again", told.trim(), format!("{printed} patched (no change)"))?;
    let json = r#"[{"op":"test","path":"/metadata/labels/step","value":"merged"},
        {"op":"replace","path":"/metadata/labels/step","value":"replaced"}]"#;
    desk.ok(&["patch", &target, "--type=json", "-p", json]).await?;
    desk.is_at("replaced").await?;
    let stale = desk.run(&["patch", &target, "--type=json", "-p", json], "").await?;
    ensure!(!stale.success(), "a test that fails was passed over: {}", stale.stdout);
    let strategic = r#"{"metadata":{"labels":{"step":"patched"}}}"#;
    let outcome = desk.run(&["patch", &target, "-p", strategic], "").await?;
    if desk.specimen.kind == "TFJob" {
        contains(
            "strategic",
            &outcome.stderr_of_failure()?,
            &["not supported", "merge-patch+json"],
        )?;
        desk.ok(&["patch", &target, "--type=merge", "-p", strategic]).await?;
    } else {
        outcome.stdout_of_success()?;
    }
    desk.is_at("patched").await
}

/// With an editor that is a script.
pub(super) async fn edit(desk: &Desk) -> Result<()> {
    let editor = desk.dir.join(format!("editor-{}", desk.specimen.short));
    std::fs::write(&editor, "#!/bin/sh\nexec sed -i 's/step: patched/step: edited/' \"$1\"\n")?;
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755))?;
    let output = desk
        .kubectl
        .command(&["-n", &desk.namespace, "edit", &desk.target()])
        .env("KUBE_EDITOR", &editor)
        .output()
        .await
        .context("running kubectl edit")?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    equal("edit", told.trim(), format!("{} edited", desk.printed()))?;
    desk.is_at("edited").await
}

pub(super) async fn replace(desk: &Desk) -> Result<()> {
    let mut object: Value =
        serde_json::from_str(&desk.ok(&["get", &desk.target(), "-o", "json"]).await?)?;
    object["metadata"]["labels"]["step"] = "replaced".into();
    // Others may write to the object at any time; that replacements can be refused is shown below.
    let version = object["metadata"]["resourceVersion"].take();
    let told = desk.feed(&["replace", "-f", "-"], &object.to_string()).await?;
    equal("replace", told.trim(), format!("{} replaced", desk.printed()))?;
    desk.is_at("replaced").await?;
    object["metadata"]["resourceVersion"] = version;
    let stale =
        desk.run(&["replace", "-f", "-"], &object.to_string()).await?.stderr_of_failure()?;
    contains("an old version", &stale, &["(Conflict)", "the object has been modified"])
}

pub(super) async fn delete(desk: &Desk) -> Result<()> {
    let told = desk.ok(&["delete", &desk.target(), "--timeout=60s"]).await?;
    is_deleted(desk, &told)?;
    let gone = desk.run(&["get", &desk.target()], "").await?.stderr_of_failure()?;
    contains("get", &gone, &["(NotFound)"])?;
    desk.ok(&["wait", "--for=delete", "--timeout=5s", &desk.target()]).await.map(drop)
}

fn is_deleted(desk: &Desk, told: &str) -> Result<()> {
    let words = format!("{} \"{}\" deleted", desk.specimen.printed(), desk.name());
    ensure!(told.lines().any(|line| line.starts_with(&words)), "{words:?} in {told}");
    Ok(())
}

pub(super) async fn apply_new(desk: &Desk) -> Result<()> {
    let words = ["apply", "-f", "-"];
    let told = desk.feed(&words, &desk.manifest("new")).await?;
    equal("new", told.trim(), format!("{} created", desk.printed()))?;
    let told = desk.feed(&words, &desk.manifest("new")).await?;
    equal("the same", told.trim(), format!("{} unchanged", desk.printed()))
}

pub(super) async fn apply_changed(desk: &Desk) -> Result<()> {
    let told = desk.feed(&["apply", "-f", "-"], &desk.manifest("changed")).await?;
    equal("changed", told.trim(), format!("{} configured", desk.printed()))?;
    desk.is_at("changed").await
}

pub(super) async fn diff(desk: &Desk) -> Result<()> {
    let same = desk.run(&["diff", "-f", "-"], &desk.manifest("changed")).await?;
    ensure!(same.code == Some(0), "no difference: {}{}", same.stdout, same.stderr);
    let other = desk.run(&["diff", "-f", "-"], &desk.manifest("other")).await?;
    ensure!(other.code == Some(1), "a difference: {:?} {}", other.code, other.stderr);
    contains("diff", &other.stdout, &["-    step: changed", "+    step: other"])
}

pub(super) async fn delete_by_label(desk: &Desk) -> Result<()> {
    let label = format!("matrix={}", desk.specimen.short);
    let told = desk.ok(&["delete", &desk.resource(), "-l", &label, "--timeout=60s"]).await?;
    is_deleted(desk, &told)?;
    let left = desk.ok(&["get", &desk.resource(), "-l", &label, "-o", "name"]).await?;
    equal("left", left.as_str(), "")
}
