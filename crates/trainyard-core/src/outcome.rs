//! What is told about creations and deletions once their outcome is known.
//!
//! Up to a number of objects of one group each gets its event; above that one event names the
//! range. Must not know which job kind the objects belong to.

use std::collections::BTreeMap;

use crate::plan::{Event, Write};

/// How one write ended; an error in words.
pub type Outcome = Result<(), String>;

struct Words {
    done: &'static str,
    done_text: &'static str,
    failed: &'static str,
    failed_text: &'static str,
}

/// Words, and the objects they are about.
type Told<'a> = (Words, Vec<(u32, &'a str)>);

/// The events that tell how the creations and deletions of a stage went.
#[must_use]
pub fn outcome_events(outcomes: &[(&Write, Outcome)], events_each: usize) -> Vec<Event> {
    let mut done: BTreeMap<(&str, &str), Told<'_>> = BTreeMap::new();
    let mut events = Vec::new();
    for (write, outcome) in outcomes {
        let Some((words, group, index, name)) = told(write) else {
            continue;
        };
        match outcome {
            Ok(()) => {
                let entry = done.entry((words.done, group)).or_insert((words, Vec::new()));
                entry.1.push((index, name));
            }
            Err(error) => {
                let message = format!("{}: {error}", words.failed_text);
                events.push(Event::warning(words.failed, message));
            }
        }
    }
    for (words, mut names) in done.into_values() {
        names.sort_unstable();
        let told: Vec<String> = match names.as_slice() {
            [(_, first), .., (_, last)] if names.len() > events_each => {
                vec![format!("{} .. {} ({} in all)", first, last, names.len())]
            }
            _ => names.iter().map(|(_, name)| (*name).to_owned()).collect(),
        };
        for name in told {
            events.push(Event::normal(words.done, format!("{}: {name}", words.done_text)));
        }
    }
    events
}

fn told(write: &Write) -> Option<(Words, &str, u32, &str)> {
    let words =
        |done, done_text, failed, failed_text| Words { done, done_text, failed, failed_text };
    let create = "Error creating";
    let delete = "Error deleting";
    match write {
        Write::CreatePod(c) => Some((
            words("SuccessfulCreatePod", "Created pod", "FailedCreatePod", create),
            c.group,
            c.index,
            &c.name,
        )),
        Write::CreateService(c) => Some((
            words("SuccessfulCreateService", "Created service", "FailedCreateService", create),
            c.group,
            c.index,
            &c.name,
        )),
        Write::DeletePod(d) => Some((
            words("SuccessfulDeletePod", "Deleted pod", "FailedDeletePod", delete),
            d.group,
            d.index,
            &d.name,
        )),
        Write::DeleteService(d) => Some((
            words("SuccessfulDeleteService", "Deleted service", "FailedDeleteService", delete),
            d.group,
            d.index,
            &d.name,
        )),
        Write::DeleteJob(d) => Some((
            words("SuccessfulDeleteJob", "Deleted job", "FailedDeleteJob", delete),
            d.group,
            d.index,
            &d.name,
        )),
        Write::PatchStatus { .. } => None,
    }
}
