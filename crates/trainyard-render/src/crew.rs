//! Which machine does what.
//!
//! Owns the choice of machines (`-N`, exclusion) and their roles (`--psn`, `--psf`, `--chief`,
//! `--evaluator`); must not know where the names come from or how they are written down.

use std::collections::BTreeSet;

use thiserror::Error;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// How many machines; all of them where nothing is said.
    pub machines: Option<usize>,
    /// Machines to leave alone.
    pub excluded: Vec<String>,
    /// The parameter servers.
    pub ps: Ps,
    /// Whether there is a chief.
    pub chief: bool,
    /// Whether there is an evaluator.
    pub evaluator: bool,
}

/// The parameter servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ps {
    /// The first so many machines.
    First(usize),
    /// These machines, in this order.
    Named(Vec<String>),
}

impl Default for Ps {
    fn default() -> Self {
        Self::First(1)
    }
}

/// The machines by role, each in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crew {
    /// Parameter servers.
    pub ps: Vec<String>,
    /// The chief, if there is one.
    pub chief: Option<String>,
    /// Workers.
    pub workers: Vec<String>,
    /// The evaluator, if there is one.
    pub evaluator: Option<String>,
}

/// Why there is no such crew.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CrewError {
    /// The same machine twice.
    #[error("the machine {0} is in the list twice")]
    DuplicateNode(String),
    /// Not so many machines.
    #[error("asked for {asked} machines; there are {there} ({excluded} excluded)")]
    TooFewMachines {
        /// How many were asked for.
        asked: usize,
        /// How many there are, those excluded counted.
        there: usize,
        /// How many of them are excluded.
        excluded: usize,
    },
    /// Nothing is left.
    #[error("no machine is left: there are {there} ({excluded} excluded)")]
    NoMachine {
        /// How many there are.
        there: usize,
        /// How many of them are excluded.
        excluded: usize,
    },
    /// A named parameter server is not there.
    #[error("the parameter server {0} is not in the cluster")]
    UnknownPs(String),
    /// A named parameter server is excluded.
    #[error("the parameter server {0} is excluded")]
    ExcludedPs(String),
    /// No machine remains for workers.
    #[error(
        "{machines} machines are not enough: {taken} are taken ({roles}), and a worker is needed"
    )]
    NoWorker {
        /// How many machines are used.
        machines: usize,
        /// How many do something else.
        taken: usize,
        /// What they do.
        roles: String,
    },
}

impl CrewError {
    /// A short name for the kind of error.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::DuplicateNode(_) => "duplicate-node",
            Self::TooFewMachines { .. } => "too-few-machines",
            Self::NoMachine { .. } => "no-machine",
            Self::UnknownPs(_) => "unknown-ps",
            Self::ExcludedPs(_) => "excluded-ps",
            Self::NoWorker { .. } => "no-worker",
        }
    }
}

impl Crew {
    /// Chooses from the machines there are, in their order.
    pub fn choose(nodes: &[String], wanted: &Wanted) -> Result<Self, CrewError> {
        let mut known = BTreeSet::new();
        if let Some(twice) = nodes.iter().find(|node| !known.insert(node.as_str())) {
            return Err(CrewError::DuplicateNode(twice.clone()));
        }
        let excluded: BTreeSet<&str> = wanted.excluded.iter().map(String::as_str).collect();
        let free: Vec<&String> =
            nodes.iter().filter(|node| !excluded.contains(node.as_str())).collect();
        let (there, excluded_count) = (nodes.len(), nodes.len() - free.len());
        let machines = wanted.machines.unwrap_or(free.len());
        if machines > free.len() {
            return Err(CrewError::TooFewMachines {
                asked: machines,
                there,
                excluded: excluded_count,
            });
        }
        if machines == 0 {
            return Err(CrewError::NoMachine { there, excluded: excluded_count });
        }
        let (ps, others) = match &wanted.ps {
            Ps::First(count) => {
                let (ps, others) = free[..machines].split_at((*count).min(machines));
                if ps.len() < *count {
                    return Err(no_worker(machines, *count, wanted));
                }
                (ps.to_vec(), others.to_vec())
            }
            Ps::Named(names) => {
                let ps = named(names, &free, &known)?;
                let taken: BTreeSet<&String> = ps.iter().copied().collect();
                let others = free.iter().copied().filter(|node| !taken.contains(node));
                let others = others.take(machines.saturating_sub(ps.len())).collect();
                (ps, others)
            }
        };
        let used = ps.len() + others.len();
        Self::fill(&ps, &others, wanted)
            .ok_or_else(|| no_worker(used.min(machines), ps.len(), wanted))
    }

    /// The chief is the first machine that is no parameter server, the evaluator the last.
    fn fill(ps: &[&String], others: &[&String], wanted: &Wanted) -> Option<Self> {
        let mut others = others.iter().map(|node| (*node).clone());
        let chief = if wanted.chief { Some(others.next()?) } else { None };
        let evaluator = if wanted.evaluator { Some(others.next_back()?) } else { None };
        let workers: Vec<_> = others.collect();
        let ps = ps.iter().map(|node| (*node).clone()).collect();
        (!workers.is_empty()).then_some(Self { ps, chief, workers, evaluator })
    }

    /// How many machines are used.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ps.len()
            + self.workers.len()
            + usize::from(self.chief.is_some())
            + usize::from(self.evaluator.is_some())
    }

    /// Never true of a crew that was chosen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Role, index within it and machine, in the order of rendering.
    pub fn members(&self) -> impl Iterator<Item = (&'static str, usize, &str)> {
        let roles = [
            ("ps", self.ps.as_slice()),
            ("chief", self.chief.as_slice()),
            ("worker", self.workers.as_slice()),
            ("evaluator", self.evaluator.as_slice()),
        ];
        roles.into_iter().flat_map(|(role, nodes)| {
            nodes.iter().enumerate().map(move |(index, node)| (role, index, node.as_str()))
        })
    }
}

fn named<'a>(
    names: &[String],
    free: &[&'a String],
    known: &BTreeSet<&str>,
) -> Result<Vec<&'a String>, CrewError> {
    let by_name: std::collections::BTreeMap<&str, &'a String> =
        free.iter().map(|node| (node.as_str(), *node)).collect();
    let mut ps = Vec::with_capacity(names.len());
    for name in names {
        match by_name.get(name.as_str()) {
            Some(node) => ps.push(*node),
            None if known.contains(name.as_str()) => {
                return Err(CrewError::ExcludedPs(name.clone()));
            }
            None => return Err(CrewError::UnknownPs(name.clone())),
        }
    }
    Ok(ps)
}

fn no_worker(machines: usize, ps: usize, wanted: &Wanted) -> CrewError {
    let mut roles = vec![format!("{ps} ps")];
    roles.extend(wanted.chief.then(|| "chief".to_owned()));
    roles.extend(wanted.evaluator.then(|| "evaluator".to_owned()));
    let taken = ps + roles.len() - 1;
    CrewError::NoWorker { machines, taken, roles: roles.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(names: &str) -> Vec<String> {
        names.split_whitespace().map(str::to_owned).collect()
    }

    fn chosen(names: &str, wanted: &Wanted) -> String {
        let crew = match Crew::choose(&nodes(names), wanted) {
            Ok(crew) => crew,
            Err(error) => return error.to_string(),
        };
        let members = crew.members().map(|(role, index, node)| format!("{role}{index}={node}"));
        members.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_first_are_parameter_servers_and_the_rest_workers() {
        let three = Wanted { machines: Some(3), ..Wanted::default() };
        assert_eq!(chosen("h10 h100 h14 h15", &three), "ps0=h10 worker0=h100 worker1=h14");
        let two = Wanted { ps: Ps::First(2), ..Wanted::default() };
        assert_eq!(chosen("a b c", &two), "ps0=a ps1=b worker0=c");
        let none = Wanted { ps: Ps::First(0), ..Wanted::default() };
        assert_eq!(chosen("a b", &none), "worker0=a worker1=b");
    }

    #[test]
    fn chief_and_evaluator_take_a_machine_each() {
        let wanted = Wanted { chief: true, evaluator: true, ..Wanted::default() };
        assert_eq!(chosen("a b c d", &wanted), "ps0=a chief0=b worker0=c evaluator0=d");
        assert_eq!(
            chosen("a b c", &wanted),
            "3 machines are not enough: 3 are taken (1 ps, chief, evaluator), and a worker is needed"
        );
    }

    #[test]
    fn excluded_machines_are_left_out_before_counting() {
        let wanted =
            Wanted { machines: Some(3), excluded: nodes("h10 h14 h99"), ..Wanted::default() };
        assert_eq!(chosen("h10 h11 h12 h13 h14", &wanted), "ps0=h11 worker0=h12 worker1=h13");
        assert_eq!(
            chosen("h10 h11 h12", &wanted),
            "asked for 3 machines; there are 3 (1 excluded)"
        );
        let all = Wanted { excluded: nodes("a b"), ..Wanted::default() };
        assert_eq!(chosen("a b", &all), "no machine is left: there are 2 (2 excluded)");
    }

    #[test]
    fn named_parameter_servers_keep_their_order_and_count() {
        let named = |names| Wanted {
            machines: Some(3),
            ps: Ps::Named(nodes(names)),
            excluded: nodes("x"),
            ..Wanted::default()
        };
        assert_eq!(chosen("a b c d", &named("d b")), "ps0=d ps1=b worker0=a");
        assert_eq!(chosen("a b c", &named("z")), "the parameter server z is not in the cluster");
        assert_eq!(chosen("a b c x", &named("x")), "the parameter server x is excluded");
        assert!(chosen("a b c d", &named("a b c")).contains("a worker is needed"));
    }

    #[test]
    fn too_many_parameter_servers_and_duplicates_are_refused() {
        let wanted = |count| Wanted { ps: Ps::First(count), ..Wanted::default() };
        assert!(chosen("a b", &wanted(2)).contains("a worker is needed"));
        assert!(chosen("a b", &wanted(7)).starts_with("2 machines are not enough: 7 are taken"));
        assert_eq!(chosen("a b a", &wanted(1)), "the machine a is in the list twice");
    }
}
