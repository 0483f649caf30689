//! What all pods of an agent together may take of the machine, so that the machine itself goes on
//! answering. Pure.

use trainyard_holder::protocol::Limits;

use super::machine::Machine;
use super::resources::Sharing;

/// Of the process ids, pods leave so much to the machine: one in four.
const PIDS_LEFT: u64 = 4;
/// Of the memory one in twenty, within these bounds.
const MEMORY_LEFT: u64 = 20;
const LEAST_LEFT: u64 = 100 << 20;
const MOST_LEFT: u64 = 1 << 30;

/// The limits of all pods together: what their nodes can allot, and not all that the machine has.
pub(crate) fn of_all_pods(machine: &Machine, sharing: &Sharing) -> Limits {
    let nodes = u64::try_from(sharing.nodes.len()).unwrap_or(u64::MAX);
    let allotted = sharing.memory.map_or(machine.memory, |each| each.saturating_mul(nodes));
    let left = (machine.memory / MEMORY_LEFT).clamp(LEAST_LEFT, MOST_LEFT);
    let memory = allotted.min(machine.memory.saturating_sub(left)).max(LEAST_LEFT);
    let pids = machine.pids - machine.pids / PIDS_LEFT;
    Limits { memory: Some(memory), pids: Some(pids), ..Limits::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::machine::tests::example;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_machine_keeps_room_for_itself() {
        let sharing = |memory| Sharing {
            nodes: vec!["a".to_owned(), "b".to_owned()],
            cpu_millis: None,
            memory,
            resources: Vec::new(),
            gpus: 0,
            pods: 110,
        };
        let limits = |memory, told| {
            of_all_pods(&Machine { memory, pids: 32_768, ..example() }, &sharing(told))
        };
        let whole = limits(64 * GIB, None);
        assert_eq!((whole.memory, whole.pids), (Some(63 * GIB), Some(24_576)));
        assert_eq!(limits(4 * GIB, None).memory, Some(4 * GIB - 4 * GIB / 20));
        assert_eq!(limits(GIB, None).memory, Some(GIB - (100 << 20)));
        assert_eq!(limits(64 * GIB, Some(2 * GIB)).memory, Some(4 * GIB));
        // Shares that are told may be beyond the machine; what pods hold may not.
        assert_eq!(limits(64 * GIB, Some(60 * GIB)).memory, Some(63 * GIB));
        assert_eq!(limits(50 << 20, None).memory, Some(100 << 20));
    }
}
