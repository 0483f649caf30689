//! The difference of two objects, line by line, with three lines around each change.
//!
//! Must not know what the objects are.

use std::fmt::Write;

use serde_json::Value;

const AROUND: usize = 3;
/// Texts with more lines are told as replaced whole: the search takes time with their square.
const MOST_LINES: usize = 2_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Same,
    Removed,
    Added,
}

/// A unified difference of the two as indented JSON.
pub(super) fn unified(old: &Value, new: &Value) -> String {
    let pretty = |value: &Value| {
        let mut text = Vec::new();
        let indent = serde_json::ser::PrettyFormatter::with_indent(b" ");
        let mut writer = serde_json::Serializer::with_formatter(&mut text, indent);
        // Writing into memory cannot fail.
        let _ = serde::Serialize::serialize(value, &mut writer);
        String::from_utf8(text).unwrap_or_default()
    };
    let (old, new) = (pretty(old), pretty(new));
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    told(&old, &new, &steps(&old, &new))
}

/// The shortest way from one to the other, removals first.
fn steps(old: &[&str], new: &[&str]) -> Vec<Step> {
    let start = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let rest = |lines: &[&str]| lines.len().saturating_sub(start);
    let end = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(rest(old).min(rest(new)))
        .take_while(|(one, other)| one == other)
        .count();
    let middle_old = old.get(start..old.len().saturating_sub(end)).unwrap_or_default();
    let middle_new = new.get(start..new.len().saturating_sub(end)).unwrap_or_default();
    let mut steps = vec![Step::Same; start];
    if middle_old.len().max(middle_new.len()) > MOST_LINES {
        steps.extend(vec![Step::Removed; middle_old.len()]);
        steps.extend(vec![Step::Added; middle_new.len()]);
    } else {
        steps.extend(shortest(middle_old, middle_new));
    }
    steps.extend(vec![Step::Same; end]);
    steps
}

fn shortest(old: &[&str], new: &[&str]) -> Vec<Step> {
    let width = new.len() + 1;
    // How many lines the ends from here on have in common.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    let at = |row: usize, column: usize| row * width + column;
    for (row, line) in old.iter().enumerate().rev() {
        for (column, other) in new.iter().enumerate().rev() {
            let best = if line == other {
                common[at(row + 1, column + 1)] + 1
            } else {
                common[at(row + 1, column)].max(common[at(row, column + 1)])
            };
            common[at(row, column)] = best;
        }
    }
    let (mut row, mut column, mut steps) = (0, 0, Vec::new());
    while row < old.len() || column < new.len() {
        let step = match (old.get(row), new.get(column)) {
            (Some(line), Some(other)) if line == other => Step::Same,
            (Some(_), None) => Step::Removed,
            (Some(_), Some(_)) if common[at(row + 1, column)] >= common[at(row, column + 1)] => {
                Step::Removed
            }
            _ => Step::Added,
        };
        row += usize::from(step != Step::Added);
        column += usize::from(step != Step::Removed);
        steps.push(step);
    }
    steps
}

fn told(old: &[&str], new: &[&str], steps: &[Step]) -> String {
    let mut text = String::new();
    let (mut row, mut column, mut at) = (0_usize, 0_usize, 0_usize);
    while let Some(next) = steps.iter().skip(at).position(|step| *step != Step::Same) {
        let quiet = next.saturating_sub(AROUND);
        (row, column, at) = (row + quiet, column + quiet, at + quiet);
        let hunk = hunk(steps.get(at..).unwrap_or_default());
        let removed = hunk.iter().filter(|step| **step != Step::Added).count();
        let added = hunk.iter().filter(|step| **step != Step::Removed).count();
        let _ = writeln!(text, "@@ -{},{removed} +{},{added} @@", row + 1, column + 1);
        for step in hunk {
            let (sign, line) = match step {
                Step::Same => (' ', old.get(row)),
                Step::Removed => ('-', old.get(row)),
                Step::Added => ('+', new.get(column)),
            };
            let _ = writeln!(text, "{sign}{}", line.unwrap_or(&""));
            row += usize::from(*step != Step::Added);
            column += usize::from(*step != Step::Removed);
        }
        at += hunk.len();
    }
    text
}

/// The steps of one hunk: it ends where nothing changes for more than two margins.
fn hunk(steps: &[Step]) -> &[Step] {
    let mut end = 0;
    let mut quiet = 0;
    for (at, step) in steps.iter().enumerate() {
        if *step == Step::Same {
            quiet += 1;
            if end > 0 && quiet > 2 * AROUND {
                break;
            }
        } else {
            quiet = 0;
            end = at + 1;
        }
    }
    steps.get(..(end + AROUND).min(steps.len())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_lines_around_changes_are_told() {
        let old = json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6});
        let mut new = old.clone();
        new["e"] = json!(7);
        assert_eq!(
            unified(&old, &new),
            "@@ -3,6 +3,6 @@\n  \"b\": 2,\n  \"c\": 3,\n  \"d\": 4,\n- \"e\": 5,\n+ \"e\": 7,\n  \"f\": 6\n }\n"
        );
        assert_eq!(unified(&old, &old), "");
    }
}
