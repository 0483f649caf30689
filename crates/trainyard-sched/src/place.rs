//! Finds nodes for the members of a group, all of them or none.
//!
//! The largest member first, on the fullest node where it fits: what is packed leaves whole nodes
//! free for others. Nodes that hold members already come first, for they talk to each other.

use std::collections::BTreeMap;

use crate::fit::{Taken, obstacles};
use crate::{Node, Pod};

/// What is taken of each node.
pub(crate) type Usage = BTreeMap<String, Taken>;

/// The pod that does not fit, and why, node by node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stuck<'p> {
    pub(crate) pod: &'p Pod,
    pub(crate) reasons: BTreeMap<String, usize>,
}

/// A node for every pod, in addition to what is taken. `usage` is changed only if all fit.
pub(crate) fn place<'p>(
    waiting: &[&'p Pod],
    nodes: &BTreeMap<String, Node>,
    usage: &mut Usage,
) -> Result<Vec<(&'p Pod, String)>, Stuck<'p>> {
    let mut order: Vec<&Pod> = waiting.to_vec();
    order.sort_by(|one, other| size(other).cmp(&size(one)).then_with(|| one.key.cmp(&other.key)));
    let mut trial = usage.clone();
    let mut placed: Vec<(&Pod, String)> = Vec::new();
    for pod in order {
        let node = best(pod, nodes, &trial, &placed)?;
        trial.entry(node.clone()).or_default().add(pod);
        placed.push((pod, node));
    }
    *usage = trial;
    Ok(placed)
}

/// Rare things first: a pod with devices has the fewest places to go.
fn size(pod: &Pod) -> (i64, i64, i64) {
    let devices: i64 =
        pod.asks.iter().filter(|(name, _)| name.contains('/')).map(|(_, amount)| amount).sum();
    (devices, pod.asks.get("memory"), pod.asks.get("cpu"))
}

fn best<'p>(
    pod: &'p Pod,
    nodes: &BTreeMap<String, Node>,
    usage: &Usage,
    placed: &[(&Pod, String)],
) -> Result<String, Stuck<'p>> {
    let empty = Taken::default();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut best: Option<((usize, i64), &String)> = None;
    for (name, node) in nodes {
        let taken = usage.get(name).unwrap_or(&empty);
        let obstacles = obstacles(pod, node, taken);
        if obstacles.is_empty() {
            let companions = placed.iter().filter(|(_, at)| at == name).count();
            let score = (companions, fullness(node, taken));
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, name));
            }
        }
        for reason in obstacles {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    best.map(|(_, name)| name.clone()).ok_or(Stuck { pod, reasons })
}

/// How full a node is, in thousandths of its scarcest resource.
fn fullness(node: &Node, taken: &Taken) -> i64 {
    let shares = node.has.iter().filter(|(name, has)| *name != "pods" && *has > 0);
    let shares = shares.map(|(name, has)| {
        i64::try_from(i128::from(taken.amount(name)) * 1000 / i128::from(has)).unwrap_or(i64::MAX)
    });
    shares.max().unwrap_or(0)
}
