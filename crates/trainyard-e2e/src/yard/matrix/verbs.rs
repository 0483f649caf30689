//! What people do with kubectl to an object of any kind, in an order in which each finds what it
//! needs.
//!
//! Must not know kinds, nor which server answers.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::desk::Desk;
use super::{changing, getting};
use crate::check::contains;
use crate::harness::Case;

/// All verbs, in the order in which they are tried.
pub(super) fn all() -> Vec<Case<Arc<Desk>>> {
    vec![
        Case::new("api-resources", api_resources),
        Case::new("explain", explain),
        Case::new("auth can-i", can_i),
        Case::new("create -f", changing::create),
        Case::new("get", getting::table),
        Case::new("get -o wide", getting::wide),
        Case::new("get -o yaml", getting::yaml),
        Case::new("get -o json", getting::json),
        Case::new("get -o name", getting::name),
        Case::new("get -o jsonpath", getting::jsonpath),
        Case::new("get -o custom-columns", getting::custom_columns),
        Case::new("get -l", getting::by_label),
        Case::new("get --field-selector", getting::by_field),
        Case::new("get -A", getting::everywhere),
        Case::new("get --sort-by", getting::sorted),
        Case::new("get -w", getting::watched),
        Case::new("describe", describe),
        Case::new("label", changing::label),
        Case::new("annotate", changing::annotate),
        Case::new("patch", changing::patch),
        Case::new("edit", changing::edit),
        Case::new("replace", changing::replace),
        Case::new("wait", wait),
        Case::new("delete", changing::delete),
        Case::new("apply (new)", changing::apply_new),
        Case::new("apply (changed)", changing::apply_changed),
        Case::new("diff", changing::diff),
        Case::new("delete -l", changing::delete_by_label),
    ]
}

async fn api_resources(desk: &Desk) -> Result<()> {
    let group = desk.specimen.version.rsplit_once('/').map_or("", |(group, _)| group);
    let listed = desk.ok(&["api-resources", "--no-headers", "--api-group", group]).await?;
    let row =
        listed.lines().find(|line| line.split_whitespace().next() == Some(desk.specimen.resource));
    let words: Vec<&str> = row.unwrap_or_default().split_whitespace().collect();
    let namespaced = if desk.specimen.namespaced { "true" } else { "false" };
    let end = [desk.specimen.version, namespaced, desk.specimen.kind];
    ensure!(words.ends_with(&end), "no row ends with {end:?}: {listed}");
    let is_short = words.len() == 5;
    ensure!(
        !is_short || words[1].split(',').any(|short| short == desk.specimen.short),
        "{:?} is not among the short names {:?}",
        desk.specimen.short,
        words[1]
    );
    Ok(())
}

async fn explain(desk: &Desk) -> Result<()> {
    let (path, kind) = desk.specimen.field;
    let field = path.rsplit('.').next().unwrap_or_default();
    let told = desk.ok(&["explain", path]).await?;
    let line = format!("FIELD: {field} {kind}");
    contains("explain", &told, &["KIND:", desk.specimen.kind, "VERSION:", &line, "DESCRIPTION:"])?;
    let top = desk.ok(&["explain", &desk.resource()]).await?;
    contains("explain", &top, &["FIELDS:", "metadata\t<ObjectMeta>"])
}

async fn can_i(desk: &Desk) -> Result<()> {
    for verb in ["create", "deletecollection"] {
        let told = desk.ok(&["auth", "can-i", verb, &desk.resource()]).await?;
        ensure!(told.trim() == "yes", "may one {verb}? {told}");
    }
    Ok(())
}

async fn describe(desk: &Desk) -> Result<()> {
    let name = desk.name();
    let told = desk.ok(&["describe", &desk.resource(), &name]).await?;
    contains("describe", &told, &["Name:", &name])?;
    contains("describe", &told, desk.specimen.described)
}

async fn wait(desk: &Desk) -> Result<()> {
    let target = desk.target();
    let words =
        ["wait", "--for=jsonpath={.metadata.labels.step}=replaced", "--timeout=20s", &target];
    contains("wait", &desk.ok(&words).await?, &["condition met"])?;
    let words = ["wait", "--for=jsonpath={.metadata.labels.step}=never", "--timeout=1s", &target];
    let refused = desk.run(&words, "").await?.stderr_of_failure()?;
    contains("a wait in vain", &refused, &["timed out waiting for the condition"])
}
