//! Clippy reads one settings file per crate, the nearest; so a crate with settings of its own must
//! repeat the workspace's. Pure.

use super::Finding;

/// Lines of the workspace's `clippy.toml` that a crate's own lacks.
pub(crate) fn examine(workspace: &str, path: &str, own: &str) -> Vec<Finding> {
    let settings = workspace.lines().map(str::trim);
    settings
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter(|line| !own.lines().any(|own| own.trim() == *line))
        .map(|line| {
            Finding::Error(format!("{path}: lacks `{line}` of the workspace's clippy.toml"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_repeats_the_workspace() {
        let workspace = "# Why.\na = true\n\nb = 70\n";
        assert_eq!(examine(workspace, "x", "b = 70\nc = 1\na = true\n"), []);
        let findings = examine(workspace, "x", "a = true\nb = 71\n");
        assert!(matches!(&findings[..], [Finding::Error(text)] if text.contains("`b = 70`")));
    }
}
