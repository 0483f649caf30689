//! Extra packages, written as lines of a requirements file. Pure. Only names, versions and addresses
//! of packages are taken: an option or a path would reach into the host. Addresses only where packages may
//! be built from their sources: what is there need not be a wheel.

use crate::error::ImageError;

const LONGEST_LINE: usize = 1000;
const MOST_LINES: usize = 500;

/// Lines without comments and repetitions, in a fixed order, so that equal wishes share one environment.
/// With `sources` addresses are taken.
pub(crate) fn normalise<'a>(
    lines: impl IntoIterator<Item = &'a String>,
    sources: bool,
) -> Result<Vec<String>, ImageError> {
    let mut kept: Vec<String> = Vec::new();
    for line in lines.into_iter().flat_map(|text| text.lines()) {
        let line = without_comment(line).trim();
        if line.is_empty() {
            continue;
        }
        check(line)?;
        if is_address(line) && !sources {
            return Err(refused(line, ADDRESS));
        }
        kept.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    kept.sort_by_key(|line| (name(line), line.clone()));
    kept.dedup();
    if kept.len() > MOST_LINES {
        return Err(refused(
            "…",
            &format!("there are {} of them, {MOST_LINES} are taken", kept.len()),
        ));
    }
    Ok(kept)
}

/// The package a line asks for, as the index spells names: lower case, dashes.
pub(crate) fn name(line: &str) -> String {
    let end = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(line.len());
    let mut name = String::with_capacity(end);
    for c in line[..end].chars() {
        let c = if matches!(c, '_' | '.') { '-' } else { c.to_ascii_lowercase() };
        if c != '-' || !name.ends_with('-') {
            name.push(c);
        }
    }
    name
}

const ADDRESS: &str = "it names an address, and what lies there may have to be built, which runs its code; \
     --allow-source-packages, or allow-source-packages = true in trainyard.toml, allows that in a sandbox";

/// Whether a line says where a package lies.
pub(crate) fn is_address(line: &str) -> bool {
    line.contains('@') || line.contains("://")
}

fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    line.find(" #").map_or(line, |at| &line[..at])
}

fn check(line: &str) -> Result<(), ImageError> {
    if line.len() > LONGEST_LINE {
        return Err(refused("…", "it is too long"));
    }
    if line.starts_with('-') || line.contains(" --") {
        return Err(refused(line, "options are not taken here"));
    }
    if line.chars().any(char::is_control) {
        return Err(refused(line, "it holds control characters"));
    }
    if !line.starts_with(|c: char| c.is_ascii_alphanumeric()) || line.contains("file:") {
        return Err(refused(line, "paths of the host are not taken here"));
    }
    let after = line[name_end(line)..].trim_start();
    let known =
        after.is_empty() || after.starts_with(['=', '<', '>', '!', '~', '[', ';', '@', '(']);
    // `git+https://…` and plain addresses have no name in front.
    if known || after.starts_with("://") || after.starts_with("+https://") {
        return Ok(());
    }
    Err(refused(line, "it is neither a package nor an address"))
}

fn name_end(line: &str) -> usize {
    line.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(line.len())
}

fn refused(line: &str, why: &str) -> ImageError {
    ImageError::Requirement { line: line.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[&str]) -> Result<Vec<String>, ImageError> {
        normalise(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>(), true)
    }

    #[test]
    fn equal_wishes_become_equal_lines() {
        let expected = vec!["keras==3.1".to_owned(), "six".to_owned()];
        assert_eq!(lines(&["six", "keras==3.1"]).unwrap(), expected);
        assert_eq!(lines(&["# tools\n keras==3.1  # pinned\n\nsix\n", "six"]).unwrap(), expected);
        assert_eq!(lines(&[]).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn names_are_spelled_as_the_index_does() {
        assert_eq!(name("Tf_Keras>=2"), "tf-keras");
        assert_eq!(name("scikit.learn[extra] ; python_version > '3'"), "scikit-learn");
        assert_eq!(name("a-_b"), "a-b");
    }

    #[test]
    fn what_reaches_into_the_host_is_refused() {
        for line in [
            "-r /etc/passwd",
            "--index-url x",
            "-e .",
            "./pkg",
            "/pkg",
            "a @ file:///x",
            "six --global-option=x",
            "hello world",
            "é",
        ] {
            let error = lines(&[line]).unwrap_err();
            assert_eq!(error.kind(), "ErrImagePull");
            assert!(error.to_string().contains(line), "{error}");
        }
        for line in [
            "six",
            "six==1.0 ; python_version<'4'",
            "a @ https://x/y.whl",
            "git+https://x/y",
            "https://x/y.whl",
            "pkg[extra]>=1,<2",
            "pkg (>=1)",
        ] {
            assert!(lines(&[line]).is_ok(), "{line}");
        }
    }
}
