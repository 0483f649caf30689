//! An explanation in words: what is asked, what binds, what is short and by how much, who has it, the
//! place in the queue, what nodes say, and the smallest change that fits.
//!
//! Pure: data in, text out.

use std::fmt::Write as _;
use std::time::Duration;

use trainyard_sched::{Constraint, Explanation, GroupKey, Holder, Remedy};

use crate::run::words::{counted, length, listed, written};

/// Where the words of a line begin.
const COLUMN: usize = 11;
/// Reasons of nodes that are told one by one.
const REASONS: usize = 12;

/// What is said of one group. `subject` is the job or what it is that waits, `now` in seconds.
pub(super) fn told(subject: &str, why: &Explanation, now: i64) -> String {
    let mut sheet = Sheet(String::new());
    sheet.0 = format!("{subject}: {}\n", headline(why));
    sheet.line("asks", &asks(why));
    if why.position > 0 {
        sheet.line("queue", &queue(why, now));
    }
    sheet.line("because", &because(why));
    for short in &why.shortages {
        sheet.line("short", &short.to_string());
    }
    for holder in &why.holders {
        sheet.line("held by", &held(holder));
    }
    let reasons = why.reasons.iter().take(REASONS);
    for (reason, count) in reasons {
        sheet.line("nodes", &format!("{count} of {}: {reason}", why.nodes));
    }
    let ways: Vec<String> = why.remedies.iter().map(remedy).collect();
    if !ways.is_empty() {
        sheet.line("would fit", &ways.join(", or "));
    }
    for note in &why.notes {
        sheet.line("note", note);
    }
    sheet.0
}

/// Lines that begin with the name of what they tell.
pub(super) struct Sheet(pub(super) String);

impl Sheet {
    pub(super) fn line(&mut self, name: &str, words: &str) {
        if words.is_empty() {
            return;
        }
        for (at, line) in words.lines().enumerate() {
            let name = if at == 0 { name } else { "" };
            let _ = writeln!(self.0, "  {name:COLUMN$}{line}");
        }
    }
}

/// Whether it is not let into its queue: it has no pods before.
fn is_outside(why: &Explanation) -> bool {
    why.waiting == 0 && !matches!(why.constraint, Constraint::None | Constraint::Members)
}

fn headline(why: &Explanation) -> String {
    match why.waiting {
        0 if why.constraint == Constraint::None => "does not wait".to_owned(),
        0 if why.constraint == Constraint::Members => "waits for its pods to be made".to_owned(),
        0 => "waits to be let into its queue; its pods are made then".to_owned(),
        waiting => format!("{} no node", counted(waiting, "pod") + has(waiting)),
    }
}

const fn has(count: usize) -> &'static str {
    if count == 1 { " has" } else { " have" }
}

fn asks(why: &Explanation) -> String {
    let Explanation { minimum, ready, waiting, .. } = why;
    match minimum {
        0 | 1 if is_outside(why) => counted(1, "pod"),
        _ if is_outside(why) => format!("{minimum} pods together or none"),
        0 | 1 => format!("{ready} placed, {waiting} waiting"),
        _ => format!("{minimum} pods together or none; {ready} placed, {waiting} waiting"),
    }
}

fn queue(why: &Explanation, now: i64) -> String {
    let since = u64::try_from(now.saturating_sub(why.since)).unwrap_or_default();
    let mut words = format!("{}, place {} of {}", why.queue, why.position, why.of);
    if why.priority != 0 {
        let _ = write!(words, ", priority {}", why.priority);
    }
    if why.since > 0 {
        let _ = write!(words, ", waiting for {}", length(Duration::from_secs(since)));
    }
    words
}

/// What binds, in one sentence, and in the scheduler's words.
fn because(why: &Explanation) -> String {
    let queue = &why.queue;
    let words = match why.constraint {
        Constraint::None if why.waiting == 0 => "all that is asked for has its nodes".to_owned(),
        Constraint::None => "nothing holds it: it gets its nodes now".to_owned(),
        Constraint::PodGroup => "its PodGroup does not exist".to_owned(),
        Constraint::Queue => format!("there is no queue {queue:?}"),
        Constraint::QueueClosed => format!("queue {queue:?} is not open"),
        Constraint::QueueOrder => format!("another job is ahead of it in queue {queue:?}"),
        Constraint::QueueLimit => format!("queue {queue:?} may not use more"),
        Constraint::Members => "not all of its pods are there yet".to_owned(),
        Constraint::Unsupported => "it asks for something that is not supported".to_owned(),
        Constraint::Claim => "a claim that it mounts does not exist or has no volume".to_owned(),
        Constraint::Volumes => "it has its nodes, and its volumes are being bound".to_owned(),
        Constraint::Releasing => "room is being made for it: others are leaving".to_owned(),
        Constraint::TooLarge | Constraint::Room if why.nodes == 0 => {
            "there are no nodes".to_owned()
        }
        Constraint::TooLarge => {
            "it would not fit even if everything scheduled here ended".to_owned()
        }
        Constraint::Room => "there is no room for it at present".to_owned(),
    };
    if why.message.is_empty() { words } else { format!("{words}\n{}", why.message) }
}

fn held(holder: &Holder) -> String {
    let has: Vec<String> = holder
        .has
        .iter()
        .map(|(name, amount)| format!("{} {name}", written(name, amount)))
        .collect();
    let pods = counted(holder.pods, "pod");
    match &holder.group {
        GroupKey::Pod { .. } => format!("{}: {}", name(&holder.group), listed(&has)),
        _ => format!("{}: {} in {pods}", name(&holder.group), listed(&has)),
    }
}

/// What a group is called: a job's group is called after the job.
fn name(group: &GroupKey) -> String {
    let place = format!("{}/{}", group.namespace(), group.name());
    match group {
        GroupKey::PodGroup { .. } => format!("pod group {place}"),
        GroupKey::Gang { .. } => place,
        GroupKey::Pod { .. } => format!("pod {place}"),
    }
}

fn remedy(remedy: &Remedy) -> String {
    match remedy {
        Remedy::FewerMembers { from, to } => format!("{} instead of {from}", counted(*to, "pod")),
        Remedy::SmallerMembers { resource, from, to } => {
            let (from, to) = (written(resource, *from), written(resource, *to));
            format!("{resource} {to} instead of {from} in each pod")
        }
        Remedy::RaiseLimit { queue, resource, by } => {
            format!("{} {resource} more for queue {queue:?}", written(resource, *by))
        }
    }
}

#[cfg(test)]
mod tests {
    use trainyard_sched::{Amounts, Shortage};

    use super::*;

    fn group(name: &str) -> GroupKey {
        GroupKey::PodGroup { namespace: "team".to_owned(), name: name.to_owned() }
    }

    fn waiting() -> Explanation {
        Explanation {
            group: group("mnist"),
            queue: "vision".to_owned(),
            priority: 100,
            minimum: 3,
            ready: 0,
            waiting: 3,
            position: 2,
            of: 4,
            since: 1_000,
            constraint: Constraint::Room,
            message: "3/3 tasks in gang unschedulable".to_owned(),
            nodes: 5,
            reasons: [("Insufficient cpu".to_owned(), 4), ("it is cordoned".to_owned(), 1)].into(),
            shortages: vec![
                Shortage {
                    resource: "cpu".to_owned(),
                    asked: 3_000,
                    free: 1_500,
                    most_on_one_node: 1_000,
                    per_member: 1_000,
                },
                Shortage {
                    resource: "memory".to_owned(),
                    asked: 3 << 30,
                    free: 4 << 30,
                    most_on_one_node: 1 << 29,
                    per_member: 1 << 30,
                },
            ],
            holders: vec![Holder {
                group: group("other"),
                pods: 2,
                has: Amounts::from([("cpu", 2_500)]),
            }],
            remedies: vec![
                Remedy::FewerMembers { from: 3, to: 1 },
                Remedy::SmallerMembers { resource: "cpu".to_owned(), from: 1_000, to: 500 },
            ],
            notes: vec!["priority class \"x\" does not exist".to_owned()],
        }
    }

    #[test]
    fn everything_is_said() {
        let text = told("tfjob.kubeflow.org/mnist", &waiting(), 1_125);
        let expected = "\
tfjob.kubeflow.org/mnist: 3 pods have no node
  asks       3 pods together or none; 0 placed, 3 waiting
  queue      vision, place 2 of 4, priority 100, waiting for 2m05s
  because    there is no room for it at present
             3/3 tasks in gang unschedulable
  short      cpu: 3 asked for, 1500m free: 1500m too little
  short      memory: 1Gi asked for in one pod, no node has more than 512Mi free: 512Mi too little
  held by    pod group team/other: 2500m cpu in 2 pods
  nodes      4 of 5: Insufficient cpu
  nodes      1 of 5: it is cordoned
  would fit  1 pod instead of 3, or cpu 500m instead of 1 in each pod
  note       priority class \"x\" does not exist
";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_does_not_wait_is_said_shortly() {
        let why = Explanation {
            waiting: 0,
            ready: 3,
            position: 0,
            constraint: Constraint::None,
            message: String::new(),
            reasons: std::collections::BTreeMap::new(),
            shortages: Vec::new(),
            holders: Vec::new(),
            remedies: Vec::new(),
            notes: Vec::new(),
            ..waiting()
        };
        let expected = "\
job.batch.volcano.sh/vj: does not wait
  asks       3 pods together or none; 3 placed, 0 waiting
  because    all that is asked for has its nodes
";
        assert_eq!(told("job.batch.volcano.sh/vj", &why, 0), expected);
        let before = Explanation { ready: 0, constraint: Constraint::Room, ..why };
        let text = told("job.batch.volcano.sh/vj", &before, 0);
        assert!(text.starts_with("job.batch.volcano.sh/vj: waits to be let into"), "{text}");
    }

    #[test]
    fn who_is_not_let_in_is_told_as_much() {
        let why = Explanation {
            waiting: 0,
            priority: 0,
            constraint: Constraint::TooLarge,
            message: "resource in cluster is overused: overused cpu".to_owned(),
            reasons: [("Insufficient cpu".to_owned(), 5)].into(),
            shortages: waiting().shortages.into_iter().take(1).collect(),
            notes: vec!["its pods are not made yet".to_owned()],
            ..waiting()
        };
        let expected = "\
job.batch.volcano.sh/vj: waits to be let into its queue; its pods are made then
  asks       3 pods together or none
  queue      vision, place 2 of 4, waiting for 2m05s
  because    it would not fit even if everything scheduled here ended
             resource in cluster is overused: overused cpu
  short      cpu: 3 asked for, 1500m free: 1500m too little
  held by    pod group team/other: 2500m cpu in 2 pods
  nodes      5 of 5: Insufficient cpu
  would fit  1 pod instead of 3, or cpu 500m instead of 1 in each pod
  note       its pods are not made yet
";
        assert_eq!(told("job.batch.volcano.sh/vj", &why, 1_125), expected);
    }

    #[test]
    fn every_constraint_has_its_words() {
        for (constraint, words) in [
            (Constraint::Queue, "there is no queue \"vision\""),
            (Constraint::QueueClosed, "queue \"vision\" is not open"),
            (Constraint::QueueLimit, "queue \"vision\" may not use more"),
            (Constraint::TooLarge, "it would not fit even if everything"),
            (Constraint::Releasing, "others are leaving"),
        ] {
            let text = told("x", &Explanation { constraint, ..waiting() }, 1_000);
            assert!(text.contains(words), "{text}");
        }
        let nowhere = Explanation { constraint: Constraint::TooLarge, nodes: 0, ..waiting() };
        assert!(told("x", &nowhere, 1_000).contains("because    there are no nodes\n"));
        let raise = Remedy::RaiseLimit {
            queue: "vision".to_owned(),
            resource: "nvidia.com/gpu".to_owned(),
            by: 2,
        };
        assert_eq!(remedy(&raise), "2 nvidia.com/gpu more for queue \"vision\"");
    }
}
