//! House rules on single files: length, header, left-overs, paths of somebody's machine. Pure.

use super::Finding;

const LONG: usize = 480;
const TOO_LONG: usize = 800;

/// Endings of files that people write by hand and others read from top to bottom.
const SOURCE: [&str; 7] = ["rs", "py", "sh", "js", "ts", "css", "html"];

/// Data and generated files, by the start of their path: exempt from every rule on content.
/// The known example of simpletfjob has folders of its own pods in it.
const DATA: [&str; 2] = ["Cargo.lock", "crates/trainyard-render/tests/data/"];

/// Top-level folders that are private to one machine.
const MACHINE: [&str; 3] = ["work", "root", "home"];

/// Examines one file; `path` is relative to the workspace.
pub(crate) fn examine(path: &str, content: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if DATA.iter().any(|data| path.starts_with(data)) {
        return findings;
    }
    findings.extend(length(path, content));
    findings.extend(header(path, content));
    for (number, line) in (1..).zip(content.lines()) {
        if let Some(found) = machine_path(line) {
            findings.push(Finding::Error(format!(
                "{path}:{number}: `{found}` is a path of one machine; name it relative to the \
                 project or by a variable"
            )));
        }
        if let Some(found) = left_over(path, line) {
            findings.push(Finding::Error(format!(
                "{path}:{number}: `{found}`: finish it now, or leave it out"
            )));
        }
    }
    findings
}

fn length(path: &str, content: &str) -> Option<Finding> {
    let lines = content.lines().count();
    if !SOURCE.contains(&ending(path)) || lines <= LONG {
        return None;
    }
    Some(if lines > TOO_LONG {
        let message =
            format!("{path}: {lines} lines, more than {TOO_LONG}; split it by what it owns");
        Finding::Error(message)
    } else {
        Finding::Warning(format!("{path}: {lines} lines, more than {LONG}"))
    })
}

fn ending(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// Each source file opens by saying what it owns.
fn header(path: &str, content: &str) -> Option<Finding> {
    let in_src = path.starts_with("src/") || path.contains("/src/");
    if !in_src || ending(path) != "rs" {
        return None;
    }
    let first = content.lines().next().unwrap_or_default();
    let words = first.strip_prefix("//!").map_or("", str::trim);
    (words.is_empty() || words.eq_ignore_ascii_case("placeholder")).then(|| {
        Finding::Error(format!(
            "{path}: opens without a `//!` line that says what the file owns and must not know"
        ))
    })
}

/// The first absolute path into a private folder. Something longer that merely contains one, such
/// as a URL or a path relative to a variable, is none.
fn machine_path(line: &str) -> Option<&str> {
    MACHINE.iter().find_map(|folder| {
        let pattern = format!("/{folder}/");
        line.match_indices(&pattern).map(|(start, _)| start).find_map(|start| {
            let before = line[..start].chars().next_back();
            let inside = before.is_some_and(|c| c.is_alphanumeric() || "_-.~}/$>*".contains(c));
            let rest = &line[start..];
            let end = rest.find(|c: char| c.is_whitespace() || "\"'`,;)]".contains(c));
            (!inside).then(|| &rest[..end.unwrap_or(rest.len())])
        })
    })
}

/// Marks of unfinished work in code. Spelt in halves, or this file would find itself.
fn left_over(path: &str, line: &str) -> Option<&'static str> {
    let marks = [concat!("to", "do!("), concat!("TO", "DO"), concat!("FIX", "ME")];
    let code = SOURCE.contains(&ending(path));
    marks.into_iter().find(|mark| code && line.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(lines: usize) -> String {
        format!("//! Owns nothing.\n{}", "\n".repeat(lines - 1))
    }

    #[test]
    fn long_files_are_listed_and_longer_ones_refused() {
        assert_eq!(examine("src/a.rs", &source(480)), []);
        assert!(matches!(examine("src/a.rs", &source(481))[..], [Finding::Warning(_)]));
        assert!(matches!(examine("src/a.rs", &source(800))[..], [Finding::Warning(_)]));
        assert!(matches!(examine("src/a.rs", &source(801))[..], [Finding::Error(_)]));
        assert_eq!(examine("data/a.json", &source(2000)), []);
    }

    #[test]
    fn source_files_open_with_what_they_own() {
        assert!(matches!(examine("xtask/src/a.rs", "fn a() {}\n")[..], [Finding::Error(_)]));
        assert!(matches!(examine("src/a.rs", "//!\n")[..], [Finding::Error(_)]));
        assert!(matches!(examine("src/a.rs", "//! placeholder\n")[..], [Finding::Error(_)]));
        assert!(matches!(examine("src/a.rs", "")[..], [Finding::Error(_)]));
        assert_eq!(examine("build.rs", "fn main() {}\n"), []);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let place = |folder: &str| format!("/{folder}/x");
        for folder in MACHINE {
            let path = place(folder);
            assert_eq!(machine_path(&format!("see `{path}` there")), Some(path.as_str()));
            assert_eq!(machine_path(&path), Some(path.as_str()));
            assert_eq!(machine_path(&format!("https://example.org{path}")), None);
            assert_eq!(machine_path(&format!("${{HOME}}{path}")), None);
        }
        assert!(matches!(examine("a.md", &place("home"))[..], [Finding::Error(_)]));
        assert_eq!(examine("Cargo.lock", &place("home")), []);
    }

    #[test]
    fn unfinished_work_is_found_in_code() {
        let line = format!("//! Owns.\n// {}: later\n", concat!("TO", "DO"));
        assert!(matches!(examine("src/a.rs", &line)[..], [Finding::Error(_)]));
        assert_eq!(examine("notes.md", &line), []);
    }
}
