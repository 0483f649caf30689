//! How the machine is shared among its (virtual) nodes: `--node-cpu`, `--node-memory`, `--resource`.
//! Pure. Processors, memory and disk are split evenly and rounded down; counted things (GPUs and
//! other `--resource`s) are dealt out one by one, so that none is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use trainyard_api::quantity::{self, Quantity};

use super::devices::GPU_RESOURCE;
use super::error::NodeError;
use super::machine::Machine;

const RESOURCE: &str = "--resource";

/// Names and amounts, as a Node's status has them.
pub(crate) type Amounts = BTreeMap<String, Written>;

/// One `--resource [NODE:]NAME=COUNT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceArg {
    /// The only node that has it; none: all nodes share it.
    pub(crate) node: Option<String>,
    pub(crate) name: String,
    pub(crate) count: u64,
}

impl FromStr for ResourceArg {
    type Err = NodeError;

    fn from_str(given: &str) -> Result<Self, NodeError> {
        let wrong = |problem: String| NodeError::Resource {
            option: RESOURCE,
            given: format!("{given:?}"),
            problem,
        };
        let (name, count) = given
            .split_once('=')
            .ok_or_else(|| wrong("write NAME=COUNT, as nvidia.com/gpu=2".to_owned()))?;
        let (node, name) = match name.split_once(':') {
            Some((node, name)) => (Some(node.to_owned()), name),
            None => (None, name),
        };
        if let Some(problem) = name_problem(name) {
            return Err(wrong(problem));
        }
        let count: u32 = count.parse().map_err(|_| {
            wrong(format!("{count:?} is no count; write a whole number, 0 or more"))
        })?;
        Ok(Self { node, name: name.to_owned(), count: u64::from(count) })
    }
}

/// Why a name is not that of an extended resource.
fn name_problem(name: &str) -> Option<String> {
    match name {
        "cpu" => return Some("processors are shared by --node-cpu".to_owned()),
        "memory" => return Some("memory is shared by --node-memory".to_owned()),
        "pods" | "ephemeral-storage" => return Some(format!("{name} is set by the node itself")),
        _ => {}
    }
    let Some((domain, base)) = name.split_once('/') else {
        return Some(format!("{name:?} has no domain; write DOMAIN/NAME, as nvidia.com/gpu"));
    };
    if name.contains("kubernetes.io/") {
        return Some("names below kubernetes.io belong to Kubernetes".to_owned());
    }
    if domain.starts_with("requests.") {
        return Some("names that begin with `requests.` belong to quotas".to_owned());
    }
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = |text: &str| {
        text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
            && text.bytes().last().is_some_and(|byte| byte.is_ascii_alphanumeric())
    };
    let domain_good = domain.len() <= 244
        && domain.split('.').all(|label| {
            ends(label)
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        });
    let base_good = base.len() <= 63 && ends(base) && base.bytes().all(inner);
    (!domain_good || !base_good)
        .then(|| format!("{name:?} is no resource name; write DOMAIN/NAME, as nvidia.com/gpu"))
}

/// `--node-cpu`: thousandths of a core.
pub(crate) fn node_cpu(given: &str) -> Result<u64, NodeError> {
    amount("--node-cpu", given, "write cores, as 4, 1.5 or 500m", Quantity::millis)
}

/// `--node-memory`: bytes.
pub(crate) fn node_memory(given: &str) -> Result<u64, NodeError> {
    amount("--node-memory", given, "write bytes, as 8Gi or 500M", Quantity::value)
}

fn amount(
    option: &'static str,
    given: &str,
    remedy: &str,
    read: fn(Quantity) -> i64,
) -> Result<u64, NodeError> {
    let wrong = |problem: String| NodeError::Resource {
        option,
        given: format!("{given:?}"),
        problem: format!("{problem}; {remedy}"),
    };
    let parsed = quantity::parse(given).map_err(|error| wrong(error.to_string()))?;
    u64::try_from(read(parsed))
        .ok()
        .filter(|value| *value > 0)
        .ok_or_else(|| wrong("it must be more than nothing".to_owned()))
}

/// How the machine is to be shared.
#[derive(Debug, Clone)]
pub(crate) struct Sharing {
    /// Names of the nodes, in order.
    pub(crate) nodes: Vec<String>,
    /// Thousandths of a core of each; none: an even share.
    pub(crate) cpu_millis: Option<u64>,
    /// Bytes of each; none: an even share.
    pub(crate) memory: Option<u64>,
    pub(crate) resources: Vec<ResourceArg>,
    /// GPUs of the machine: shown unless `resources` say something about GPUs.
    pub(crate) gpus: u64,
    /// Pods that each node takes.
    pub(crate) pods: u64,
}

/// The capacity of each node, in the order of [`Sharing::nodes`].
pub(crate) fn share(machine: &Machine, sharing: &Sharing) -> Result<Vec<Amounts>, NodeError> {
    let nodes = u64::try_from(sharing.nodes.len()).unwrap_or(u64::MAX).max(1);
    let cpu = sharing.cpu_millis.unwrap_or(machine.cpu_millis / nodes);
    let memory = sharing.memory.unwrap_or(machine.memory / nodes);
    let counted = dealt(sharing)?;
    Ok(counted
        .into_iter()
        .map(|counts| {
            let mut amounts = Amounts::new();
            let mut set = |name: &str, amount: Quantity| {
                amounts.insert(name.to_owned(), Written(amount.to_string()));
            };
            set("cpu", Quantity::from_millis(signed(cpu)));
            set("memory", whole_kib(memory));
            set("ephemeral-storage", whole_kib(machine.disk / nodes));
            set("pods", Quantity::from_value(signed(sharing.pods)));
            for (name, count) in counts {
                set(&name, Quantity::from_value(signed(count)));
            }
            amounts
        })
        .collect())
}

/// Counted resources of each node.
fn dealt(sharing: &Sharing) -> Result<Vec<BTreeMap<String, u64>>, NodeError> {
    let mut shares = vec![BTreeMap::new(); sharing.nodes.len()];
    let mut asked = sharing.resources.clone();
    if sharing.gpus > 0 && !asked.iter().any(|one| one.name == GPU_RESOURCE) {
        asked.push(ResourceArg { node: None, name: GPU_RESOURCE.to_owned(), count: sharing.gpus });
    }
    let mut seen = BTreeSet::new();
    for one in &asked {
        let wrong = |problem: String| NodeError::Resource {
            option: RESOURCE,
            given: format!("{}={}", one.name, one.count),
            problem,
        };
        if !seen.insert((&one.name, &one.node)) {
            return Err(wrong("it is given twice; give it once, with the whole count".to_owned()));
        }
        if let Some(node) = &one.node {
            let place = sharing.nodes.iter().position(|name| name == node).ok_or_else(|| {
                wrong(format!(
                    "there is no node {node:?}; the nodes are {}",
                    sharing.nodes.join(", ")
                ))
            })?;
            *shares[place].entry(one.name.clone()).or_default() += one.count;
        } else {
            let nodes = u64::try_from(shares.len()).unwrap_or(u64::MAX).max(1);
            for (place, share) in (0_u64..).zip(&mut shares) {
                let extra = u64::from(place < one.count % nodes);
                *share.entry(one.name.clone()).or_default() += one.count / nodes + extra;
            }
        }
    }
    Ok(shares)
}

fn whole_kib(bytes: u64) -> Quantity {
    Quantity::from_bytes(signed(bytes / 1024 * 1024))
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::machine::tests::example;

    fn sharing(nodes: &[&str], resources: &[&str]) -> Sharing {
        Sharing {
            nodes: nodes.iter().map(|name| (*name).to_owned()).collect(),
            cpu_millis: None,
            memory: None,
            resources: resources.iter().map(|given| given.parse().unwrap()).collect(),
            gpus: 0,
            pods: 110,
        }
    }

    fn shown(amounts: &Amounts) -> Vec<(&str, &str)> {
        amounts.iter().map(|(name, amount)| (name.as_str(), amount.0.as_str())).collect()
    }

    #[test]
    fn one_node_has_everything() {
        let shares = share(&example(), &sharing(&["a"], &["nvidia.com/gpu=2"])).unwrap();
        assert_eq!(
            shown(&shares[0]),
            [
                ("cpu", "8"),
                ("ephemeral-storage", "100Gi"),
                ("memory", "16Gi"),
                ("nvidia.com/gpu", "2"),
                ("pods", "110")
            ]
        );
    }

    #[test]
    fn three_nodes_share_evenly_and_no_device_is_lost() {
        let shares =
            share(&example(), &sharing(&["a", "b", "c"], &["nvidia.com/gpu=2", "b:x.dev/fpga=1"]))
                .unwrap();
        let gpus: Vec<_> = shares.iter().map(|one| one[GPU_RESOURCE].0.as_str()).collect();
        assert_eq!(gpus, ["1", "1", "0"]);
        assert_eq!(shares[0]["cpu"].0, "2666m");
        assert_eq!(shares[0]["memory"].0, "5592405Ki");
        assert_eq!(shares[1]["x.dev/fpga"].0, "1");
        assert!(!shares[0].contains_key("x.dev/fpga"));
    }

    #[test]
    fn told_shares_win_even_beyond_the_machine() {
        let told = Sharing {
            cpu_millis: Some(node_cpu("12").unwrap()),
            memory: Some(node_memory("64Gi").unwrap()),
            ..sharing(&["a", "b"], &[])
        };
        let shares = share(&example(), &told).unwrap();
        assert_eq!((shares[1]["cpu"].0.as_str(), shares[1]["memory"].0.as_str()), ("12", "64Gi"));
    }

    #[test]
    fn gpus_found_are_shown_unless_told_otherwise() {
        let found = Sharing { gpus: 3, ..sharing(&["a", "b"], &[]) };
        let shares = share(&example(), &found).unwrap();
        assert_eq!(
            (shares[0][GPU_RESOURCE].0.as_str(), shares[1][GPU_RESOURCE].0.as_str()),
            ("2", "1")
        );
        let hidden = Sharing { gpus: 3, ..sharing(&["a"], &["nvidia.com/gpu=0"]) };
        assert_eq!(share(&example(), &hidden).unwrap()[0][GPU_RESOURCE].0, "0");
    }

    #[test]
    fn bad_resources_are_refused_with_a_remedy() {
        for (given, says) in [
            ("", "write NAME=COUNT"),
            ("nvidia.com/gpu", "write NAME=COUNT"),
            ("gpu=1", "has no domain"),
            ("=1", "has no domain"),
            ("cpu=4", "--node-cpu"),
            ("memory=4Gi", "--node-memory"),
            ("pods=4", "set by the node itself"),
            ("kubernetes.io/x=1", "belong to Kubernetes"),
            ("requests.nvidia.com/gpu=1", "belong to quotas"),
            ("nvidia.com/=1", "no resource name"),
            ("NVIDIA.com/gpu=1", "no resource name"),
            ("nvidia..com/gpu=1", "no resource name"),
            ("nvidia.com/gpu/x=1", "no resource name"),
            ("nvidia.com/gpu=two", "is no count"),
            ("nvidia.com/gpu=-1", "is no count"),
            ("nvidia.com/gpu=1.5", "is no count"),
            ("nvidia.com/gpu=99999999999", "is no count"),
            ("nvidia.com/gpu=", "is no count"),
        ] {
            let error = given.parse::<ResourceArg>().unwrap_err();
            assert!(error.to_string().contains(says), "{given:?}: {error}");
            assert_eq!(error.kind(), "Resource");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let twice = sharing(&["a"], &["x.dev/y=1", "x.dev/y=2"]);
        assert!(share(&example(), &twice).unwrap_err().to_string().contains("given twice"));
        let nowhere = sharing(&["a", "b"], &["c:x.dev/y=1"]);
        let error = share(&example(), &nowhere).unwrap_err().to_string();
        assert!(error.contains("no node \"c\"; the nodes are a, b"), "{error}");
    }

    #[test]
    fn bad_amounts_are_refused() {
        for given in ["", "0", "-1", "x", "1Q"] {
            assert!(node_cpu(given).unwrap_err().to_string().contains("--node-cpu"), "{given:?}");
            assert!(node_memory(given).unwrap_err().to_string().contains("8Gi"), "{given:?}");
        }
        assert_eq!(node_cpu("1.5").unwrap(), 1500);
        assert_eq!(node_memory("500M").unwrap(), 500_000_000);
    }
}
