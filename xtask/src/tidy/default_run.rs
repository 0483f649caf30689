//! What a bare `cargo run` starts: README's first command has no room for a choice. Pure.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Finding;

const PROGRAM: &str = "trainyard";

/// Looks at the answer of `cargo metadata --no-deps`.
pub(crate) fn examine(metadata: &[u8]) -> Result<Vec<Finding>> {
    let metadata: Value =
        serde_json::from_slice(metadata).context("`cargo metadata` is not JSON")?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` has no packages")?;
    let named: Vec<_> =
        packages.iter().filter_map(|package| package["default_run"].as_str()).collect();
    if named == [PROGRAM] {
        return Ok(Vec::new());
    }
    let words =
        format!("`cargo run` must start {PROGRAM}; packages with default-run name {named:?}");
    Ok(vec![Finding::Error(words)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_program_is_meant() {
        let of = |names: &str| examine(format!(r#"{{"packages": {names}}}"#).as_bytes()).unwrap();
        assert_eq!(of(r#"[{"default_run": null}, {"default_run": "trainyard"}]"#), []);
        assert_eq!(of("[{}]").len(), 1);
        assert_eq!(of(r#"[{"default_run": "trainyard"}, {"default_run": "xtask"}]"#).len(), 1);
    }
}
