//! `docs/kubectl.md`, from what the tests gave: the page and whether the one in the tree is it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::matrix::{self, Column};
use super::stories::Story;

/// Says that the page is to be written.
const WRITE: &str = "TRAINYARD_WRITE_DOCS";

const HEAD: &str = "\
# kubectl on a yard

What `trainyard up` answers to the real kubectl. This page is written by the tests that try every cell of it:
`cargo xtask test --tier yard --write-docs`.

Two things hold everywhere: `kubectl apply --server-side` is refused with a word on what to use instead, and a strategic merge patch
(plain `kubectl patch -p`) of a TFJob is answered with 415, as by every API server; say `--type=merge`.

## Any object

";

const KINDS: &str = "
## What `kubectl get` shows

A star: with `-o wide` alone.

| | kind | columns |
|---|---|---|
";

const STORIES: &str = "
## Beyond objects

| `kubectl …` | gives | |
|---|---|---|
";

/// The page.
pub(super) fn page(columns: &[Column], stories: &[(Story, bool)]) -> String {
    let mut page = HEAD.to_owned();
    page += &line("", columns.iter().map(|column| column.short.to_owned()));
    page += &line("---", columns.iter().map(|_| "---".to_owned()));
    for (at, verb) in matrix::verbs().iter().enumerate() {
        let cells = columns.iter().map(|column| mark(column.cells[at]).to_owned());
        page += &line(&format!("`{verb}`"), cells);
    }
    page += KINDS;
    for column in columns {
        let Column { short, kind, version, columns, .. } = column;
        // Writing into a text cannot fail.
        let _ = writeln!(page, "| {short} | {kind} ({version}) | {columns} |");
    }
    page += STORIES;
    for ((_, [command, gives]), good) in stories {
        let command = command.replace('`', "'");
        let _ = writeln!(page, "| `{command}` | {gives} | {} |", mark(*good));
    }
    page
}

fn line(first: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {first} | {} |\n", cells.join(" | "))
}

const fn mark(good: bool) -> &'static str {
    if good { "yes" } else { "**no**" }
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kubectl.md")
}

/// Writes the page where that is asked for, or compares it with the one in the tree.
pub(super) fn settle(page: &str) -> Result<()> {
    let file = file();
    if std::env::var_os(WRITE).is_some_and(|value| !value.is_empty() && value != "0") {
        return std::fs::write(file, page).context("writing docs/kubectl.md");
    }
    let there = std::fs::read_to_string(file).unwrap_or_default();
    let line = there.lines().zip(page.lines()).find(|(old, new)| old != new);
    ensure!(
        there == page,
        "docs/kubectl.md is not what this run gives: {line:?}; write it with \
         `cargo xtask test --tier yard --write-docs`"
    );
    Ok(())
}
