//! What is said of pods that do not fit.

use std::collections::BTreeMap;

/// `0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient memory.`
pub(crate) fn unavailable(nodes: usize, reasons: &BTreeMap<String, usize>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    // Go sorts the finished phrases as texts.
    let mut phrases: Vec<String> =
        reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    phrases.sort_unstable();
    format!("0/{nodes} nodes are available: {}.", phrases.join(", "))
}

/// What is added for a pod that waits for its gang.
pub(crate) fn with_gang(message: &str, gang: &str, members: usize) -> String {
    let message = message.trim_end_matches('.');
    format!("{message}. The {members} pods of {gang:?} start all together or not at all.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted() {
        let reasons = [("Insufficient memory", 2), ("Insufficient cpu", 1)];
        let reasons = reasons.map(|(reason, count)| (reason.to_owned(), count)).into();
        assert_eq!(
            unavailable(2, &reasons),
            "0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient memory."
        );
        assert_eq!(unavailable(0, &BTreeMap::new()), "no nodes available to schedule pods");
    }
}
