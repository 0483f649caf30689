//! The order of versions: `v10` before `v2`, `v2` before `v2beta1`, that before `v2alpha1`, and all
//! of them before names of another form.

use std::cmp::{Ordering, Reverse};

/// How mature a version is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Alpha,
    Beta,
    Stable,
}

fn parsed(name: &str) -> Option<(Stage, u64, u64)> {
    let rest = name.strip_prefix('v')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at_checked(end)?;
    let whole = |digits: &str| digits.parse().ok().filter(|_| !digits.starts_with('0'));
    let major: u64 = whole(major)?;
    if rest.is_empty() {
        return Some((Stage::Stable, major, 0));
    }
    let (stage, minor) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
        (Some(minor), _) => (Stage::Beta, minor),
        (None, Some(minor)) => (Stage::Alpha, minor),
        (None, None) => return None,
    };
    Some((stage, major, whole(minor)?))
}

/// How two versions are ordered: the preferred one is the greater.
pub(super) fn compare(one: &str, other: &str) -> Ordering {
    match (parsed(one), parsed(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => Reverse(one).cmp(&Reverse(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mature_and_late_versions_come_first() {
        let mut names =
            ["foo1", "v1alpha2", "v2beta1", "v10", "v1", "v11beta2", "foo10", "v2", "v1beta3"];
        names.sort_by(|one, other| compare(other, one));
        assert_eq!(
            names,
            ["v10", "v2", "v1", "v11beta2", "v2beta1", "v1beta3", "v1alpha2", "foo1", "foo10"]
        );
    }
}
