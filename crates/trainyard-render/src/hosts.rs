//! Lists of machines, as people write them: one name per line, or separated by commas.
//!
//! Owns what a line means and what a machine's name looks like; must not know files or roles.

use std::collections::BTreeMap;

use thiserror::Error;

/// Longest name of a machine in Kubernetes.
const NAME_BYTES_MAX: usize = 253;

/// Why a list of machines is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostsError {
    /// There is nothing in it.
    #[error("there is no host in it")]
    Empty,
    /// A name that no machine can have.
    #[error(
        "line {line}: {name:?} is not the name of a machine: lower-case letters, digits, `-` and `.`"
    )]
    Name {
        /// Counted from 1.
        line: usize,
        /// What stands there.
        name: String,
    },
    /// The same machine twice.
    #[error("line {line}: {name} stands there already, in line {first}")]
    Duplicate {
        /// Counted from 1.
        line: usize,
        /// The machine.
        name: String,
        /// Where it stands first.
        first: usize,
    },
}

impl HostsError {
    /// A short name for the kind of error.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Name { .. } => "name",
            Self::Duplicate { .. } => "duplicate",
        }
    }
}

/// Reads one name per line. White space around it, empty lines and lines that start with `#` do
/// not count.
pub fn read(text: &str) -> Result<Vec<String>, HostsError> {
    let lines = (1..).zip(text.lines()).map(|(line, text)| (line, text.trim()));
    collect(lines.filter(|(_, name)| is_said(name)), Again::Refused)
}

/// Reads machines to leave alone: as [`read`], but one may be said twice.
pub fn read_excluded(text: &str) -> Result<Vec<String>, HostsError> {
    let lines = (1..).zip(text.lines()).map(|(line, text)| (line, text.trim()));
    collect(lines.filter(|(_, name)| is_said(name)), Again::Allowed)
}

fn is_said(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('#')
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    Refused,
    Allowed,
}

/// Reads names separated by commas; places count as lines.
pub fn read_list(text: &str) -> Result<Vec<String>, HostsError> {
    collect((1..).zip(text.split(',').map(str::trim)), Again::Refused)
}

fn collect<'a>(
    entries: impl Iterator<Item = (usize, &'a str)>,
    again: Again,
) -> Result<Vec<String>, HostsError> {
    let mut seen = BTreeMap::new();
    let mut names = Vec::new();
    for (line, name) in entries {
        if !is_name(name) {
            return Err(HostsError::Name { line, name: name.to_owned() });
        }
        if let Some(first) = seen.insert(name, line) {
            if again == Again::Allowed {
                continue;
            }
            return Err(HostsError::Duplicate { line, name: name.to_owned(), first });
        }
        names.push(name.to_owned());
    }
    if names.is_empty() { Err(HostsError::Empty) } else { Ok(names) }
}

/// Whether Kubernetes would let a machine be called so.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(|byte| plain(*byte))
            && bytes.last().is_some_and(|byte| plain(*byte))
            && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
    };
    name.len() <= NAME_BYTES_MAX && name.split('.').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_empty_lines_and_remarks_do_not_count() {
        let text = "\u{20}h10 \r\n\n# in use\nnode-1.example.com\n";
        assert_eq!(read(text).unwrap(), ["h10", "node-1.example.com"]);
        assert_eq!(read_list("h10, h14").unwrap(), ["h10", "h14"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let said = |text| read(text).unwrap_err().to_string();
        assert_eq!(said(" \n# x\n"), "there is no host in it");
        assert!(said("h1\nh 2\n").starts_with("line 2: \"h 2\" is not the name of a machine"));
        assert_eq!(said("h1\nh2\nh1\n"), "line 3: h1 stands there already, in line 1");
        for wrong in ["h\"1", "-h", "h-", "H1", "a..b", ".", &"x".repeat(254)] {
            assert_eq!(read(wrong).unwrap_err().kind(), "name", "{wrong}");
        }
        assert_eq!(read_excluded("h1\nh2\nh1").unwrap(), ["h1", "h2"]);
        assert_eq!(read_list("a,,b").unwrap_err().kind(), "name");
    }
}
