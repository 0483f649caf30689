//! Replays the kept corpus of the fuzz targets: what once was worth keeping must never fail again.

use std::fs;
use std::path::Path;

use serde_json::Value;

#[allow(
    unreachable_pub,
    missing_docs,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "shared with the fuzz targets, where a panic is a finding"
)]
#[path = "../../../fuzz/checks.rs"]
mod checks;

/// Runs a check on every file of a target's corpus.
fn replay(target: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the corpus is kept in the repository") {
        let path = entry.expect("a readable folder").path();
        let input = fs::read(&path).expect("a readable file");
        check(&input);
        // Cut short it must be answered as well.
        for end in 0..input.len().min(256) {
            check(&input[..end]);
        }
        count += 1;
    }
    assert!(count > 2, "{} has {count} files", folder.display());
}

#[test]
fn json_patch() {
    replay("json_patch", checks::json_patch);
}

#[test]
fn merge_patch() {
    replay("merge_patch", checks::merge_patch);
}

#[test]
fn strategic_merge() {
    replay("strategic_merge", checks::strategic_merge);
}

#[test]
fn label_selector() {
    replay("label_selector", checks::label_selector);
}

#[test]
fn field_selector() {
    replay("field_selector", checks::field_selector);
}

#[test]
fn continue_token() {
    replay("continue_token", checks::continue_token);
}

#[test]
fn quantity() {
    replay("quantity", checks::quantity);
}

#[test]
fn jsonpath() {
    replay("jsonpath", checks::jsonpath);
}

/// With the limits of the command line's reader, whose own tests hold it to more.
#[test]
fn yaml() {
    let options = || {
        serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: 128, max_nodes: 1_000_000 },
            legacy_octal_numbers: true,
            emit_comments: false,
            with_snippet: false,
        }
    };
    replay("yaml", |mut input| {
        for document in serde_saphyr::read_with_options::<_, Value>(&mut input, options()) {
            let Ok(value) = document else { return };
            checks::comes_back(&value);
        }
    });
}
