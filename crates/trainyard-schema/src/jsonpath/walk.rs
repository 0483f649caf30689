//! Follows paths into objects.
//!
//! Must not know how paths are written.

use serde_json::Value;

use super::{PathError, Slice, Step, compare};

/// How many places one path may lead to or pass.
const MOST: usize = 100_000;

type Found<'a> = Result<Vec<&'a Value>, PathError>;

/// One walk, which counts what it passes.
#[derive(Default)]
pub(super) struct Walk {
    passed: usize,
}

impl Walk {
    pub(super) fn steps<'a>(&mut self, from: Vec<&'a Value>, steps: &'a [Step]) -> Found<'a> {
        steps.iter().try_fold(from, |at, step| self.step(&at, step))
    }

    fn step<'a>(&mut self, from: &[&'a Value], step: &'a Step) -> Found<'a> {
        self.count(from.len())?;
        let found = match step {
            Step::Field(name) => from.iter().filter_map(|value| value.get(name)).collect(),
            Step::Wildcard => from.iter().flat_map(|value| inside(value)).collect(),
            Step::Recursive => {
                let mut found = Vec::new();
                for value in from {
                    self.descend(value, &mut found)?;
                }
                found
            }
            Step::Slice(slice) => sliced(from, slice)?,
            Step::Filter { left, operator, right } => self.filtered(from, left, operator, right)?,
            Step::Union(parts) => {
                let mut found = Vec::new();
                for part in parts {
                    found.extend(self.steps(from.to_vec(), part)?);
                }
                found
            }
            // A text stands once, numbers and truth values for each value there is.
            Step::Literal(text @ Value::String(_)) => vec![text],
            Step::Literal(value) => vec![value; from.len()],
            Step::Word(word) => {
                return Err(PathError::mismatch(format!("unrecognized identifier {word}")));
            }
        };
        self.count(found.len())?;
        Ok(found)
    }

    fn count(&mut self, more: usize) -> Result<(), PathError> {
        self.passed = self.passed.saturating_add(more);
        if self.passed > MOST { Err(PathError::TooMany { most: MOST }) } else { Ok(()) }
    }

    /// A value that holds others (texts hold letters), and all of those below it that do.
    fn descend<'a>(
        &mut self,
        value: &'a Value,
        found: &mut Vec<&'a Value>,
    ) -> Result<(), PathError> {
        let mut below = inside(value).peekable();
        if below.peek().is_none() && value.as_str().is_none_or(str::is_empty) {
            return Ok(());
        }
        self.count(1)?;
        found.push(value);
        for item in below {
            self.descend(item, found)?;
        }
        Ok(())
    }

    fn filtered<'a>(
        &mut self,
        from: &[&'a Value],
        left: &'a [Step],
        operator: &str,
        right: &'a [Step],
    ) -> Found<'a> {
        let mut found = Vec::new();
        for value in from {
            let items = value.as_array().ok_or_else(|| {
                let shown = crate::golang::print(value);
                PathError::mismatch(format!("{shown} is not array or slice and cannot be filtered"))
            })?;
            for item in items {
                let lefts = self.steps(vec![item], left);
                let passes = match (operator, lefts) {
                    // A path that goes wrong halfway has led somewhere.
                    ("exists", Err(PathError::Mismatch { .. })) => true,
                    ("exists", Ok(lefts)) => !lefts.is_empty(),
                    (_, lefts) => match (single(&lefts?)?, self.steps(vec![item], right)) {
                        (None, _) => false,
                        (Some(left), rights) => match single(&rights?)? {
                            None => false,
                            Some(right) => compare::holds(left, operator, right)?,
                        },
                    },
                };
                if passes {
                    found.push(item);
                }
            }
        }
        Ok(found)
    }
}

fn single<'a>(values: &[&'a Value]) -> Result<Option<&'a Value>, PathError> {
    match values {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(PathError::mismatch("can only compare one element at a time")),
    }
}

/// What a value holds.
fn inside(value: &Value) -> impl Iterator<Item = &Value> {
    let (members, items) = match value {
        Value::Object(members) => (Some(members.values()), None),
        Value::Array(items) => (None, Some(items.iter())),
        _ => (None, None),
    };
    members.into_iter().flatten().chain(items.into_iter().flatten())
}

fn sliced<'a>(from: &[&'a Value], slice: &Slice) -> Found<'a> {
    let mut found = Vec::new();
    for value in from {
        let items = match value {
            Value::Null => continue,
            Value::Array(items) => items,
            other => {
                let name = crate::golang::type_name(other);
                return Err(PathError::mismatch(format!("{name} is not array or slice")));
            }
        };
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let mut start = slice.from.unwrap_or(0);
        if start < 0 {
            start += length;
        }
        let mut end = slice.to.unwrap_or(length);
        if end < 0 || (end == 0 && slice.single) {
            end += length;
        }
        if start == end {
            return Ok(found);
        }
        let outside = |index: i64| {
            PathError::mismatch(format!(
                "array index out of bounds: index {index}, length {length}"
            ))
        };
        if start >= length || start < 0 {
            return Err(outside(start));
        }
        if end > length || end < 0 {
            return Err(outside(end.saturating_sub(1)));
        }
        if start > end {
            return Err(PathError::mismatch(format!(
                "starting index {start} is greater than ending index {end}"
            )));
        }
        let step = slice.step.unwrap_or(1);
        let step = usize::try_from(step).ok().filter(|step| *step > 0);
        let step = step.ok_or_else(|| PathError::mismatch("step must be > 0"))?;
        let bounds = usize::try_from(start).unwrap_or(0)..usize::try_from(end).unwrap_or(0);
        found.extend(items.get(bounds).unwrap_or_default().iter().step_by(step));
    }
    Ok(found)
}
