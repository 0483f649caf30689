//! The ways of `kubectl get`.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::desk::Desk;
use crate::check::{contains, equal};

/// How long a watch may take to show a change.
const PATIENCE: Duration = Duration::from_secs(20);

/// The words of every line, joined by single blanks.
fn rows(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// One table whose heads are these, with the object in it.
fn is_table(desk: &Desk, text: &str, heads: &str) -> Result<()> {
    let rows = rows(text);
    equal("heads", rows.first().map(String::as_str), Some(heads))?;
    // The table of events has no names.
    let sign = if desk.specimen.kind == "Event" { "pod/engine".to_owned() } else { desk.name() };
    let row = rows.iter().skip(1).find(|row| row.split(' ').any(|word| word == sign));
    row.with_context(|| format!("no row has {sign}: {text}")).map(drop)
}

pub(super) async fn table(desk: &Desk) -> Result<()> {
    let plain = desk.specimen.heads();
    is_table(desk, &desk.ok(&["get", &desk.resource()]).await?, &plain)?;
    // One by name, by each of its names.
    for resource in [desk.specimen.short, &desk.specimen.kind.to_lowercase()] {
        is_table(desk, &desk.ok(&["get", resource, &desk.name()]).await?, &plain)?;
    }
    let missing = desk.run(&["get", &desk.resource(), "nobody"], "").await?.stderr_of_failure()?;
    let words = format!("Error from server (NotFound): {} \"nobody\" not found", desk.resource());
    equal("what is not there", missing.trim(), words.as_str())
}

pub(super) async fn wide(desk: &Desk) -> Result<()> {
    let wide = desk.specimen.wide_heads();
    is_table(desk, &desk.ok(&["get", &desk.resource(), "-o", "wide"]).await?, &wide)
}

pub(super) async fn yaml(desk: &Desk) -> Result<()> {
    let text = desk.ok(&["get", &desk.target(), "-o", "yaml"]).await?;
    let lines = [
        format!("apiVersion: {}", desk.specimen.version),
        format!("kind: {}", desk.specimen.kind),
        format!("  name: {}", desk.name()),
        "    step: new".to_owned(),
    ];
    for line in lines {
        ensure!(text.lines().any(|there| there == line), "{line:?} is missing in\n{text}");
    }
    contains("yaml", &text, &["creationTimestamp:", "resourceVersion:", "uid:"])?;
    ensure!(!text.contains("managedFields"), "managed fields are shown unasked:\n{text}");
    Ok(())
}

pub(super) async fn json(desk: &Desk) -> Result<()> {
    let text = desk.ok(&["get", &desk.resource(), "-o", "json"]).await?;
    let list: Value = serde_json::from_str(&text)?;
    equal("kind", &list["kind"], "List")?;
    let items = list["items"].as_array().context("a list has items")?;
    let object = items.iter().find(|item| item["metadata"]["name"] == desk.name());
    let object = object.context("the object is not in its list")?;
    equal("kind", &object["kind"], desk.specimen.kind)?;
    equal("version", &object["apiVersion"], desk.specimen.version)
}

pub(super) async fn name(desk: &Desk) -> Result<()> {
    let text = desk.ok(&["get", &desk.resource(), "-o", "name"]).await?;
    ensure!(text.lines().any(|line| line == desk.printed()), "{} in {text}", desk.printed());
    Ok(())
}

pub(super) async fn jsonpath(desk: &Desk) -> Result<()> {
    let path = "jsonpath={range .items[*]}{.metadata.name}={.metadata.labels.step}{\"\\n\"}{end}";
    let text = desk.ok(&["get", &desk.resource(), "-o", path]).await?;
    let line = format!("{}=new", desk.name());
    ensure!(text.lines().any(|there| there == line), "{line} in {text}");
    Ok(())
}

pub(super) async fn custom_columns(desk: &Desk) -> Result<()> {
    let columns = "custom-columns=WHO:.metadata.name,STEP:.metadata.labels.step,NONE:.nothing";
    let text = desk.ok(&["get", &desk.resource(), "-o", columns]).await?;
    let rows = rows(&text);
    equal("heads", rows.first().map(String::as_str), Some("WHO STEP NONE"))?;
    let row = format!("{} new <none>", desk.name());
    ensure!(rows.contains(&row), "{row} in {text}");
    Ok(())
}

/// Names that a selector finds.
async fn found(desk: &Desk, words: &[&str]) -> Result<Vec<String>> {
    let resource = desk.resource();
    let words = [&["get", &resource, "-o", "name"][..], words].concat();
    Ok(desk.ok(&words).await?.lines().map(str::to_owned).collect())
}

pub(super) async fn by_label(desk: &Desk) -> Result<()> {
    let label = format!("matrix in ({}, other),step=new,!nothing", desk.specimen.short);
    equal("selected", found(desk, &["-l", &label]).await?, [desk.printed()])?;
    let none: [String; 0] = [];
    equal("selected", found(desk, &["-l", &format!("{label},step!=new")]).await?, none)
}

pub(super) async fn by_field(desk: &Desk) -> Result<()> {
    let field = format!("metadata.name={}", desk.name());
    equal("selected", found(desk, &["--field-selector", &field]).await?, [desk.printed()])?;
    let words = ["get", &desk.resource(), "--field-selector", "spec.nonsense=1"];
    let refused = desk.run(&words, "").await?.stderr_of_failure()?;
    contains("an unknown field", &refused, &["(BadRequest)", "spec.nonsense"])
}

pub(super) async fn everywhere(desk: &Desk) -> Result<()> {
    let plain = desk.specimen.heads();
    let heads = if desk.specimen.namespaced { format!("NAMESPACE {plain}") } else { plain };
    is_table(desk, &desk.ok(&["get", &desk.resource(), "-A"]).await?, &heads)
}

pub(super) async fn sorted(desk: &Desk) -> Result<()> {
    let plain = desk.specimen.heads();
    let words = ["get", &desk.resource(), "--sort-by=.metadata.creationTimestamp"];
    is_table(desk, &desk.ok(&words).await?, &plain)
}

/// A watch shows the object, and shows it again when it has changed.
pub(super) async fn watched(desk: &Desk) -> Result<()> {
    let (resource, field) = (desk.resource(), format!("metadata.name={}", desk.name()));
    let words = ["-n", &desk.namespace, "get", &resource, "--field-selector", &field, "-w"];
    let columns = ["-o", "custom-columns=SEEN:.metadata.annotations.seen", "--no-headers"];
    let words = [&words[..], &columns].concat();
    let mut child =
        desk.kubectl.command(&words).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("its output")?).lines();
    let mut next = async |wanted: &str| -> Result<()> {
        // Others may write to the object at any time.
        let shown = async {
            while let Some(line) = lines.next_line().await? {
                if line.trim() == wanted {
                    return anyhow::Ok(());
                }
            }
            anyhow::bail!("the watch has ended")
        };
        let shown = tokio::time::timeout(PATIENCE, shown).await;
        shown.with_context(|| format!("the watch has not shown {wanted:?}"))?
    };
    next("<none>").await?;
    desk.ok(&["annotate", &desk.target(), "seen=twice"]).await?;
    next("twice").await?;
    child.kill().await?;
    Ok(())
}
