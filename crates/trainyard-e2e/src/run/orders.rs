//! What strangers print and call things gives a terminal no orders: lines of pods, reasons, messages,
//! names, errors.
//!
//! Seen to succeed before there was one filter for all: the clipboard, the title and the clearing of the
//! screen came from live lines and from the reasons of events as they were.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::desk::{Desk, job};
use super::terminal::Screen;
use crate::check::contains;
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Desk>>> {
    cases!["run/orders": lines_on_a_terminal, lines_in_a_pipe, objects, errors]
}

/// Clipboard, title, clearing, C1 as text and as a byte, a text read backwards; and a colour, which is none.
const SCRIPT: &str = "printf '\\033]52;c;ZXZpbA==\\007 \\033]0;owned\\007 \\033[2J\\033[H \\302\\2332J \\2333J \
     \\342\\200\\256live \\033[32mgreen\\033[0m\\n'; sleep 1";
/// The same in what an object says.
const WORDS: &str = "\u{1b}]52;c;ZXZpbA==\u{7} \u{1b}]0;owned\u{7} \u{1b}[2J \u{9b}2J \u{202e}live";

/// Nothing but colours, ends of lines and the live line may be left to obey.
fn obeys_nothing(what: &str, shown: &[u8]) -> Result<()> {
    let text = std::str::from_utf8(shown).with_context(|| format!("{what}: single bytes"))?;
    let mut rest = text.replace("\r\u{1b}[K", "");
    while let Some(at) = rest.find("\u{1b}[") {
        let after = &rest[at + 2..];
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(after.len());
        ensure!(after[end..].starts_with('m'), "{what}: an order in {:?}", &rest[at..]);
        rest = format!("{}{}", &rest[..at], &after[end + 1..]);
    }
    let order = |c: char| c.is_control() && !matches!(c, '\r' | '\n' | '\t');
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let found = rest.chars().find(|c| order(*c) || turns(*c));
    ensure!(found.is_none(), "{what}: {found:?} in {rest:?}");
    Ok(())
}

/// Writes an object into a file; what YAML may not hold as it is stands there as a number.
fn write(desk: &Desk, name: &str, object: &Value) -> Result<String> {
    let path = desk.path(name);
    std::fs::write(&path, object.to_string().replace('\u{9b}', "\\u009b"))?;
    Ok(path.display().to_string())
}

async fn lines_on_a_terminal(desk: &Desk) -> Result<()> {
    let script = format!("{SCRIPT}; exit 3");
    let file = desk.write("job.yaml", &[job("mnist", &[("Worker", 1, &script, "Never")])])?;
    let shown = Screen::open(desk, &[&file], &[])?.bytes_at_the_end().await?;
    obeys_nothing("a run", &shown)?;
    let text = String::from_utf8_lossy(&shown);
    contains("what was printed", &text, &["^[]52;c;ZXZpbA==", "\u{1b}[32mgreen", "failed after"])
}

async fn lines_in_a_pipe(desk: &Desk) -> Result<()> {
    let script = format!("{SCRIPT}; exit 3");
    let file = desk.write("job.yaml", &[job("mnist", &[("Worker", 1, &script, "Never")])])?;
    let told = desk.run(&[&file]).await?.with_code(1)?.stdout;
    obeys_nothing("in a pipe", told.as_bytes())?;
    contains("in a pipe", &told, &["^[]52;c;ZXZpbA==", "live green\n"])?;
    let told = desk.run(&["-o", "json", &file]).await?.with_code(1)?.stdout;
    obeys_nothing("JSON", told.as_bytes())?;
    contains("JSON", &told, &["\\u001b]52;c;ZXZpbA==\\u0007", "\\u202elive"])
}

async fn objects(desk: &Desk) -> Result<()> {
    let mut mnist = job("mnist", &[("Worker", 1, SCRIPT, "Never")]);
    mnist["metadata"]["annotations"] = json!({"words": WORDS});
    let file = write(desk, "job.yaml", &mnist)?;
    let mut running = desk.start(&["--keep", &file])?;
    running.until("the yard stays until Ctrl-C").await?;
    let kubeconfig = desk.path("data/trainyard/runs/mnist/kubeconfig").display().to_string();
    let event = write(
        desk,
        "event.yaml",
        &json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "orders"},
            "involvedObject": {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "namespace": "default", "name": "mnist"},
            "type": "Normal", "reason": WORDS, "message": WORDS,
            "lastTimestamp": "2026-01-01T00:00:00Z", "firstTimestamp": "2026-01-01T00:00:00Z",
        }),
    )?;
    let with = |words: &[&str]| -> Vec<String> {
        let at = ["--kubeconfig", kubeconfig.as_str()];
        words.iter().chain(&at).map(|word| (*word).to_owned()).collect()
    };
    run(desk, &with(&["apply", "-f", &event])).await?;
    for words in [&["logs", "mnist"][..], &["logs", "mnist", "--prefix=never"]] {
        let words = with(words);
        let told = run(desk, &words).await?;
        obeys_nothing("a log in a pipe", told.as_bytes())?;
        contains("a log in a pipe", &told, &["^[]52;c;ZXZpbA==", "green"])?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let shown = Screen::start(desk, &words, &[])?.bytes_at_the_end().await?;
        obeys_nothing("a log on a terminal", &shown)?;
        let shown = String::from_utf8_lossy(&shown).into_owned();
        contains("a log on a terminal", &shown, &["^[]52;c;", "\u{1b}[32mgreen"])?;
    }
    let mut seen = String::new();
    for words in [
        &["events"][..],
        &["get", "events"],
        &["get", "events", "-o", "custom-columns=A:.reason"],
        &["get", "events", "-o", "json"],
        &["get", "tfjob", "mnist", "-o", "yaml"],
        &["describe", "tfjob", "mnist"],
        &["explain", "mnist"],
    ] {
        let told = run(desk, &with(words)).await?;
        obeys_nothing(&words.join(" "), told.as_bytes())?;
        seen += &told;
    }
    contains("what was said", &seen, &["^[]52;c;ZXZpbA==", "\\u001b]52;c", "\\x1b]52;c"])?;
    // A path into an object is data in a pipe, and words on a terminal.
    let words = with(&["get", "events", "orders", "-o", "jsonpath={.reason}"]);
    let told = run(desk, &words).await?;
    ensure!(told == WORDS, "a path in a pipe: {told:?}");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let shown = Screen::start(desk, &words, &[])?.bytes_at_the_end().await?;
    obeys_nothing("a path on a terminal", &shown)?;
    running.signal(Signal::INT)?;
    running.end().await?.with_code(0)?;
    Ok(())
}

/// A command that ends well; all that it says.
async fn run(desk: &Desk, words: &[String]) -> Result<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let told = desk.other(&words).await?.with_code(0)?;
    Ok(told.stdout + &told.stderr)
}

async fn errors(desk: &Desk) -> Result<()> {
    let mut odd = job("mnist", &[("Worker", 1, "true", "Never")]);
    odd["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"] =
        json!(WORDS);
    let strange = json!({"apiVersion": "v1", "kind": WORDS, "metadata": {"name": WORDS}});
    for (name, object) in [("image.yaml", odd), ("kind.yaml", strange)] {
        let file = write(desk, name, &object)?;
        let told = desk.run(&[&file]).await?;
        ensure!(told.code != Some(0), "{name} runs");
        ensure!(told.stderr.contains("error: "), "{name}: {:?}", told.stderr);
        obeys_nothing(name, format!("{}{}", told.stdout, told.stderr).as_bytes())?;
    }
    Ok(())
}
