//! One decision about everything that waits: what is looked at, in which order, and what comes out.
//!
//! Owns the order of the steps. How one group is tried is `serve`'s, how room is kept `hold`'s, how
//! it is made `press`'s, what is said `report`'s.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::bundle::Bundle;
use crate::facts::{Account, Facts, Group};
use crate::gang::{Missing, Standing};
use crate::hold::Hold;
use crate::muster::Muster;
use crate::place::{Placed, Stuck};
use crate::room::Board;
use crate::serve::Likeness;
use crate::shares::{Share, Sharer, shares};
use crate::shortage::FreeFor;
use crate::slots::Id;
use crate::vector::Vector;
use crate::{Amounts, Cause, Decision, GroupKey, Queue, ReleaseClaim, queue};

/// A queue while a decision is made.
#[derive(Debug)]
pub(crate) struct Line<'f> {
    pub(crate) name: &'f str,
    /// Nothing when nobody has made the queue.
    pub(crate) queue: Option<&'f Queue>,
    pub(crate) share: Share,
    /// What it uses, with what has been decided so far.
    pub(crate) used: Vector,
    pub(crate) leaving: Vector,
    /// What of its limit is kept for groups that have waited long.
    pub(crate) kept: Vector,
    /// What of its share is kept for groups that have waited long.
    pub(crate) kept_share: Vector,
    /// Who holds up everybody behind, in a queue that is served in order.
    pub(crate) stopped_by: Option<usize>,
}

/// What came of trying a group.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    /// It cannot be tried.
    Blocked(Block),
    /// Its queue's limit is in the way, for this resource.
    Limit(usize),
    /// It would be more than its queue's share, of this resource.
    Share(usize),
    /// It has its nodes and waits for its volumes.
    Volumes,
    /// It fits when those that are leaving have left.
    Soon(Placed),
    /// It fits nowhere.
    Room(Stuck),
    /// What waited has got its nodes.
    Placed,
}

/// Why a group cannot be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Block {
    NoGroup,
    NoQueue,
    Closed,
    /// Its minimum asks for more of a resource than its queue may ever use: so much, instead of so
    /// much.
    LargerThanQueue {
        resource: String,
        asked: i64,
        limit: i64,
    },
    Missing(Missing),
    Beyond(&'static str),
    /// A claim of a member, in words.
    Claim(String),
    Behind(usize),
}

/// A group with members that wait.
#[derive(Debug)]
pub(crate) struct Unit<'f> {
    pub(crate) key: &'f GroupKey,
    pub(crate) group: &'f Group,
    pub(crate) line: usize,
    pub(crate) priority: i64,
    pub(crate) created: i64,
    /// Since when members wait.
    pub(crate) since: i64,
    /// Its members as they were counted before.
    pub(crate) muster: &'f Muster,
    /// How it stands, with what has been decided so far.
    pub(crate) standing: Cow<'f, Standing>,
    /// Members beyond the minimum that found no room.
    pub(crate) left_out: Vec<Id>,
    /// Members that cannot be tried, and why; the others go on without them.
    pub(crate) aside: Vec<(Id, Block)>,
    /// What makes the group ready without those, and what that asks for.
    pub(crate) own_minimum: Option<(Vec<Id>, Vector)>,
    /// What it uses, with what has been decided so far.
    pub(crate) used: Vector,
    pub(crate) verdict: Option<Verdict>,
    /// What is said of it, once everything is decided.
    pub(crate) said: OnceCell<Arc<str>>,
    /// Whether it has been tried in this pass.
    pub(crate) is_tried: bool,
    /// Whether room was to be made for it already.
    pub(crate) is_pressed: bool,
}

/// The work of one decision.
#[derive(Debug)]
pub(crate) struct Cycle<'f> {
    pub(crate) facts: &'f Facts,
    pub(crate) board: &'f mut Board,
    pub(crate) now: i64,
    pub(crate) lines: Vec<Line<'f>>,
    pub(crate) units: Vec<Unit<'f>>,
    pub(crate) holds: Vec<Hold>,
    /// Who keeps everybody behind out of the nodes that it could use.
    pub(crate) blockade: Option<usize>,
    pub(crate) bundles: Option<Vec<Arc<Bundle<'f>>>>,
    /// In which queues and below which priorities somebody could go.
    pub(crate) lower: BTreeMap<(usize, i64), bool>,
    /// What has found no room, how many, and on which board.
    pub(crate) failures: BTreeMap<Likeness, (u64, usize, Stuck)>,
    /// What is free for whom, added up.
    pub(crate) free_for: FreeFor,
    pub(crate) bound: Placed,
    pub(crate) evicted: BTreeMap<Id, Cause>,
    pub(crate) promised: Placed,
    /// Pods that have their nodes and wait for volumes, their own or those of their group.
    pub(crate) reserved: Placed,
    /// Claims that are taken from the nodes that they name.
    pub(crate) released: Vec<ReleaseClaim>,
}

impl<'f> Cycle<'f> {
    pub(crate) fn new(facts: &'f Facts, board: &'f mut Board, now: i64) -> Self {
        let lines = lines(facts, board);
        let mut cycle = Self {
            facts,
            board,
            now,
            lines,
            units: Vec::new(),
            holds: Vec::new(),
            blockade: None,
            bundles: None,
            lower: BTreeMap::new(),
            failures: BTreeMap::new(),
            free_for: FreeFor::default(),
            bound: Placed::new(),
            evicted: BTreeMap::new(),
            promised: Placed::new(),
            reserved: Placed::new(),
            released: Vec::new(),
        };
        cycle.units = facts.waiting.iter().filter_map(|key| cycle.unit(key)).collect();
        cycle.units.sort_by(|one, other| one.seniority().cmp(&other.seniority()));
        cycle
    }

    fn unit(&self, key: &'f GroupKey) -> Option<Unit<'f>> {
        let facts = self.facts;
        let group = facts.groups.get(facts.groups.id(key)?)?;
        let name = facts.queue_of(group);
        let line = self.lines.iter().position(|line| line.name == name)?;
        let muster = facts.muster(key, group);
        let mut unit = Unit {
            key,
            group,
            line,
            priority: facts.priority_of(key, group),
            created: facts.created_of(group),
            since: muster.since?,
            muster,
            standing: Cow::Borrowed(&muster.standing),
            left_out: Vec::new(),
            aside: Vec::new(),
            own_minimum: None,
            used: muster.used.clone(),
            verdict: None,
            said: OnceCell::new(),
            is_tried: false,
            is_pressed: false,
        };
        self.set_aside(&mut unit);
        Some(unit)
    }

    /// Decides, and leaves the board as it was.
    pub(crate) fn run(mut self, touched: &BTreeSet<GroupKey>) -> Vec<Decision> {
        let mark = self.board.mark();
        self.settle();
        let decisions = self.decisions(touched);
        self.board.undo(mark);
        self.unblock();
        decisions
    }

    /// Tries everything that waits, in order.
    pub(crate) fn settle(&mut self) {
        self.keep_promises();
        self.overdue();
        for may_borrow in [false, true] {
            self.lines.iter_mut().for_each(|line| line.stopped_by = None);
            self.aged(may_borrow);
            self.serve(may_borrow);
            self.press_all(may_borrow);
        }
        self.undo_partial();
        self.release_claims();
    }

    /// Everything, oldest first: what the keeping of room goes by.
    pub(crate) fn by_age(&self, least: i64) -> Vec<usize> {
        let waited = |unit: &Unit<'_>| self.now.saturating_sub(unit.since) >= least;
        let aged = self.units.iter().enumerate().filter(|(_, unit)| waited(unit));
        aged.map(|(index, _)| index).collect()
    }

    /// Members of a gang that was never whole go back, rather than sit on what others need.
    fn undo_partial(&mut self) {
        for unit in &self.units {
            // Members that are still to be made, or room that is being made, is worth waiting for.
            let is_hopeful = match &unit.verdict {
                Some(Verdict::Blocked(block)) => matches!(block, Block::Missing(_)),
                Some(Verdict::Placed | Verdict::Soon(_) | Verdict::Volumes) | None => true,
                Some(_) => false,
            };
            let standing = &unit.standing;
            if !is_hopeful && standing.is_partial() && !standing.is_started {
                for id in &standing.bound {
                    self.evicted.entry(*id).or_insert(Cause::Incomplete);
                }
            }
        }
    }
}

impl<'f> Unit<'f> {
    /// Members that make a group ready that is not, and what they ask for. As long as it is not
    /// ready nobody of it has got a node in this decision: it is as it was counted.
    pub(crate) fn minimum(&self) -> (Cow<'f, [Id]>, Cow<'f, Vector>) {
        if let Some((chosen, ask)) = &self.own_minimum {
            return (Cow::Owned(chosen.clone()), Cow::Owned(ask.clone()));
        }
        let chosen = self.muster.chosen.as_deref().unwrap_or_default();
        (Cow::Borrowed(chosen), Cow::Borrowed(&self.muster.ask))
    }

    /// Whether these are just those.
    pub(crate) fn is_minimum(&self, pods: &[Id]) -> bool {
        self.muster.chosen.as_deref().is_some_and(|chosen| std::ptr::eq(chosen, pods))
    }

    /// The order of those that have waited long, and of everything that has no other.
    pub(crate) fn seniority(&self) -> (i64, i64, &GroupKey) {
        (-self.priority, self.created, self.key)
    }

    /// The next member of a group that has its minimum.
    pub(crate) fn further(&self) -> Option<Id> {
        self.standing.waiting.first().copied().filter(|_| self.standing.is_ready())
    }
}

/// The queues with their shares.
fn lines<'f>(facts: &'f Facts, board: &Board) -> Vec<Line<'f>> {
    static PLAIN: std::sync::LazyLock<Queue> =
        std::sync::LazyLock::new(|| Queue::plain(queue::DEFAULT));
    let mut lines = Vec::new();
    let mut sharers = Vec::new();
    let root = facts.accounts.get(queue::ROOT).and_then(|account| account.object.as_ref());
    let mut accounts: BTreeMap<&str, Account> = BTreeMap::new();
    accounts.insert(queue::DEFAULT, Account::default());
    for (name, account) in &facts.accounts {
        accounts.insert(name, account.clone());
    }
    for (name, account) in accounts {
        let known = facts.accounts.get(name).and_then(|account| account.object.as_ref());
        let queue = known.or_else(|| (name == queue::DEFAULT).then(|| &*PLAIN));
        let mut request = account.used.clone();
        request.plus(&account.wanted, 1);
        if let Some(queue) = queue {
            sharers.push(Sharer { queue, request });
        }
        lines.push(Line {
            name,
            queue,
            share: Share::default(),
            used: account.used,
            leaving: account.leaving,
            kept: Vector::default(),
            kept_share: Vector::default(),
            stopped_by: None,
        });
    }
    let limit = root.map_or_else(Amounts::default, |root| root.capability.clone());
    let known = lines.iter_mut().filter(|line| line.queue.is_some());
    for (line, share) in known.zip(shares(&board.total, &limit, &sharers, &facts.resources)) {
        line.share = share;
    }
    lines
}
