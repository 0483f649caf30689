//! What is told about creations and deletions once their outcome is known.
//!
//! Up to a number of objects of one group each gets its event; above that one event names the
//! range. Must not know which job kind the objects belong to.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::child::Child;
use crate::plan::{Event, Write};

/// How one write ended; an error in words.
pub type Outcome = Result<(), String>;

/// In whose words creations and deletions are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tongue {
    /// As the reference operator for TFJobs says it: every object is told of.
    Kubeflow,
    /// As Volcano says it: failures, and of what went well only pods.
    Volcano,
}

/// Reason and first words of the events about one kind of write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Words {
    done: Cow<'static, str>,
    done_text: String,
}

/// The events that tell how the creations and deletions of a stage went.
#[must_use]
pub fn outcome_events(
    outcomes: &[(&Write, Outcome)],
    events_each: usize,
    tongue: Tongue,
) -> Vec<Event> {
    let mut done: BTreeMap<(Words, &str), Vec<(u32, &str)>> = BTreeMap::new();
    let mut events = Vec::new();
    for (write, outcome) in outcomes {
        let Some(told) = told(write) else {
            continue;
        };
        match outcome {
            Ok(()) if told.is_shown(tongue) => {
                done.entry((told.words(), told.group)).or_default().push((told.index, told.name));
            }
            Ok(()) => {}
            Err(error) => events.push(told.failure(error, tongue)),
        }
    }
    for ((words, _), mut names) in done {
        names.sort_unstable();
        let told: Vec<String> = match names.as_slice() {
            [(_, first), .., (_, last)] if names.len() > events_each => {
                vec![format!("{} .. {} ({} in all)", first, last, names.len())]
            }
            _ => names.iter().map(|(_, name)| (*name).to_owned()).collect(),
        };
        for name in told {
            let message = format!("{}: {name}", words.done_text);
            events.push(Event { reason: words.done.clone(), ..Event::normal("", message) });
        }
    }
    events
}

/// A write that is told of.
struct Told<'w> {
    deed: Deed,
    /// None for the job itself.
    child: Option<Child>,
    group: &'w str,
    index: u32,
    name: &'w str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    Create,
    Patch,
    Delete,
}

impl Told<'_> {
    fn is_shown(&self, tongue: Tongue) -> bool {
        match tongue {
            Tongue::Kubeflow => self.deed != Deed::Patch,
            Tongue::Volcano => self.deed != Deed::Patch && self.child == Some(Child::Pod),
        }
    }

    fn kind(&self) -> &'static str {
        self.child.map_or("Job", Child::kind)
    }

    fn words(&self) -> Words {
        let word = self.child.map_or("job", Child::word);
        let (verb, past) = match self.deed {
            Deed::Create => ("Create", "Created"),
            Deed::Patch => ("Update", "Updated"),
            Deed::Delete => ("Delete", "Deleted"),
        };
        Words {
            done: format!("Successful{verb}{}", self.kind()).into(),
            done_text: format!("{past} {word}"),
        }
    }

    fn failure(&self, error: &str, tongue: Tongue) -> Event {
        let (verb, doing) = match self.deed {
            Deed::Create => ("Create", "creating"),
            Deed::Patch => ("Update", "updating"),
            Deed::Delete => ("Delete", "deleting"),
        };
        match (tongue, self.child) {
            (Tongue::Volcano, Some(Child::PodGroup)) if self.deed != Deed::Delete => {
                let message = format!("Failed to {} PodGroup, err: {error}", verb.to_lowercase());
                Event::warning("PodGroupError", message)
            }
            (Tongue::Volcano, Some(Child::Claim)) => {
                Event::warning("PVCError", format!("Failed to create PVC, err: {error}"))
            }
            (Tongue::Volcano, Some(Child::ConfigMap | Child::Service | Child::NetworkPolicy)) => {
                let message = format!("Execute plugin when job add failed, err: {error}");
                Event::warning("PluginError", message)
            }
            (Tongue::Volcano, _) => {
                let message = format!("Error {doing} pods: {error}");
                Event::warning(format!("Failed{verb}"), message)
            }
            (Tongue::Kubeflow, _) => {
                let reason = format!("Failed{verb}{}", self.kind());
                Event::warning(reason, format!("Error {doing}: {error}"))
            }
        }
    }
}

fn told(write: &Write) -> Option<Told<'_>> {
    match write {
        Write::Create(child, create) => Some(Told {
            deed: Deed::Create,
            child: Some(*child),
            group: &create.group,
            index: create.index,
            name: &create.name,
        }),
        Write::Patch(child, patch) => Some(Told {
            deed: Deed::Patch,
            child: Some(*child),
            group: "",
            index: 0,
            name: &patch.name,
        }),
        Write::Delete(child, delete) => Some(Told {
            deed: Deed::Delete,
            child: Some(*child),
            group: &delete.group,
            index: delete.index,
            name: &delete.name,
        }),
        Write::DeleteJob(delete) => Some(Told {
            deed: Deed::Delete,
            child: None,
            group: &delete.group,
            index: delete.index,
            name: &delete.name,
        }),
        Write::PatchStatus { .. } => None,
    }
}
