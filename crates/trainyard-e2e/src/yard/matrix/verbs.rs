//! What people do with kubectl to an object of any kind, in an order in which each finds what it
//! needs.
//!
//! Must not know kinds, nor which server answers.

use anyhow::{Result, ensure};
use futures::future::BoxFuture;

use super::desk::Desk;
use super::{changing, getting};
use crate::check::contains;

/// A verb and what must come of it.
#[derive(Clone, Copy)]
pub(super) struct Verb {
    /// As in the table.
    pub(super) name: &'static str,
    pub(super) play: for<'a> fn(&'a Desk) -> BoxFuture<'a, Result<()>>,
}

/// Rows of the table.
macro_rules! verbs {
    ($($name:literal => $play:path),+ $(,)?) => {
        vec![$($crate::yard::matrix::verbs::Verb {
            name: $name, play: |desk| Box::pin($play(desk)),
        }),+]
    };
}

/// All verbs, in the order in which they are tried.
pub(super) fn all() -> Vec<Verb> {
    verbs![
        "api-resources" => api_resources,
        "explain" => explain,
        "auth can-i" => can_i,
        "create -f" => changing::create,
        "get" => getting::table,
        "get -o wide" => getting::wide,
        "get -o yaml" => getting::yaml,
        "get -o json" => getting::json,
        "get -o name" => getting::name,
        "get -o jsonpath" => getting::jsonpath,
        "get -o custom-columns" => getting::custom_columns,
        "get -l" => getting::by_label,
        "get --field-selector" => getting::by_field,
        "get -A" => getting::everywhere,
        "get --sort-by" => getting::sorted,
        "get -w" => getting::watched,
        "describe" => describe,
        "label" => changing::label,
        "annotate" => changing::annotate,
        "patch" => changing::patch,
        "edit" => changing::edit,
        "replace" => changing::replace,
        "wait" => wait,
        "delete" => changing::delete,
        "apply (new)" => changing::apply_new,
        "apply (changed)" => changing::apply_changed,
        "diff" => changing::diff,
        "delete -l" => changing::delete_by_label,
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
