//! Amounts, lengths of time and counts as people read them. Pure.

use std::time::Duration;

use trainyard_sched::Amounts;

/// An amount of a resource: processor in thousandths, memory and storage in bytes, others in units.
pub(crate) fn amount(resource: &str, number: i64) -> String {
    match resource {
        "cpu" => tenths(number.saturating_mul(10) / 1000),
        name if name == "memory" || name.contains("storage") || name.starts_with("hugepages-") => {
            bytes(u64::try_from(number).unwrap_or_default())
        }
        _ => number.to_string(),
    }
}

/// The same as a manifest has it, rounded down.
pub(crate) fn written(resource: &str, number: i64) -> String {
    trainyard_sched::written(resource, Amounts::rounded(resource, number))
}

fn tenths(number: i64) -> String {
    format!("{}.{}", number / 10, number % 10)
}

/// `640 Mi`, `1.9 Gi`.
pub(crate) fn bytes(number: u64) -> String {
    const KI: u64 = 1 << 10;
    const MI: u64 = 1 << 20;
    const GI: u64 = 1 << 30;
    match number {
        0..KI => format!("{number} B"),
        KI..MI => format!("{} Ki", number / KI),
        MI..GI => format!("{} Mi", number / MI),
        _ => format!("{}.{} Gi", number / GI, (number % GI) * 10 / GI),
    }
}

/// `0.4s`, `34.1s`, `2m05s`, `1h02m`.
pub(crate) fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{}.{}s", seconds, time.subsec_millis() / 100),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `1 worker`, `2 workers`.
pub(crate) fn counted(number: usize, word: &str) -> String {
    let plural = if number == 1 || word == "ps" { "" } else { "s" };
    format!("{number} {word}{plural}")
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The same with so many named at most: `a, b and 3 more`.
pub(crate) fn some(words: &[String], most: usize) -> String {
    // One more takes no more room than saying so.
    if words.len() <= most + 1 {
        return listed(words);
    }
    let (named, rest) = words.split_at(most);
    format!("{} and {} more", named.join(", "), rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_by_resource() {
        assert_eq!(amount("cpu", 1500), "1.5");
        assert_eq!(amount("memory", 2 << 30), "2.0 Gi");
        assert_eq!(amount("memory", 400 << 20), "400 Mi");
        assert_eq!(amount("nvidia.com/gpu", 3), "3");
        assert_eq!(written("cpu", 2000), "2");
        assert_eq!(written("cpu", 750), "750m");
        assert_eq!(written("memory", 3 << 29), "1536Mi");
        assert_eq!(written("memory", (8 << 30) + 5), "8Gi");
        assert_eq!(bytes(12), "12 B");
    }

    #[test]
    fn lengths_of_time() {
        for (millis, text) in
            [(40, "0.0s"), (34_190, "34.1s"), (125_000, "2m05s"), (3_720_000, "1h02m")]
        {
            assert_eq!(length(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn lists_and_counts() {
        assert_eq!(counted(2, "worker"), "2 workers");
        assert_eq!(counted(2, "ps"), "2 ps");
        let words = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(listed(&words), "a, b and c");
        assert_eq!(listed(&words[..1]), "a");
        assert_eq!(some(&words, 2), "a, b and c");
        assert_eq!(some(&words, 1), "a and 2 more");
    }
}
