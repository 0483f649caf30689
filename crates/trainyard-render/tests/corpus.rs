//! Replays the kept corpus of the fuzz targets: what once was worth keeping must never fail again.

use std::fs;
use std::path::Path;

#[allow(
    unreachable_pub,
    missing_docs,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "shared with the fuzz targets, where a panic is a finding"
)]
#[path = "../../../fuzz/render_checks.rs"]
mod checks;

/// Runs a check on every file of a target's corpus, whole and cut short.
fn replay(target: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the corpus is kept in the repository") {
        let path = entry.expect("a readable folder").path();
        let input = fs::read(&path).expect("a readable file");
        check(&input);
        for end in 0..input.len().min(256) {
            check(&input[..end]);
        }
        count += 1;
    }
    assert!(count > 2, "{} has {count} files", folder.display());
}

#[test]
fn template() {
    replay("template", checks::template);
}

#[test]
fn hosts() {
    replay("hosts", checks::hosts);
}

/// Every template of the differential test, with one byte left out or doubled anywhere.
#[test]
fn damaged_templates() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/templates.json");
    let cases: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let mut count = 0;
    for case in cases["cases"].as_array().unwrap() {
        let text = case["template"].as_str().unwrap().as_bytes();
        // One place in some keeps this quick; the fuzzer does the rest.
        for at in (0..text.len()).step_by(61) {
            let without = [&text[..at], &text[at + 1..]].concat();
            let doubled = [&text[..=at], &text[at..]].concat();
            checks::template(&without);
            checks::template(&doubled);
            count += 2;
        }
    }
    assert!(count > 500, "{count}");
}
