//! The live line at the foot of a terminal. Pure.

use std::time::Duration;

use crate::run::board::{Board, Replica};
use crate::run::words::{amount, bytes, counted, length};

/// The line, no wider than the terminal.
pub(super) fn line(board: &Board, doing: &str, now: Duration, width: usize) -> String {
    let mut parts = Vec::new();
    let several = board.jobs.len() > 1;
    for job in &board.jobs {
        let mut groups: Vec<(String, usize)> = Vec::new();
        for (name, replica) in &job.replicas {
            let role = name.rsplit_once('-').map_or(name.as_str(), |(role, _)| role);
            let word = replica.state.word();
            let key = format!("{role} {word}");
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, count)) => *count += 1,
                None => groups.push((key, 1)),
            }
        }
        let words: Vec<String> =
            groups.into_iter().map(|(key, count)| grouped(&key, count)).collect();
        let prefix = if several { format!("{}: ", job.name) } else { String::new() };
        parts.push(format!("{prefix}{}", words.join(" · ")));
    }
    let all = || board.jobs.iter().flat_map(|job| job.replicas.values());
    let sum = |read: fn(&Replica) -> u64| all().map(read).sum::<u64>();
    let (cpu, memory) = (sum(|one| one.cpu_millis), sum(|one| one.memory));
    if memory > 0 {
        let cpu = amount("cpu", i64::try_from(cpu).unwrap_or(i64::MAX));
        parts.push(format!("cpu {cpu} · {}", bytes(memory)));
    }
    if !doing.is_empty() {
        parts.insert(0, progress(doing));
    }
    let text = format!("{} · {}", length(now), parts.join(" · "));
    cut(&text, width)
}

/// The percent that a text begins with, and the rest: `[42%] downloading`.
pub(super) fn percent(text: &str) -> Option<(u8, &str)> {
    let (number, rest) = text.strip_prefix('[')?.split_once("%] ")?;
    number.parse().ok().filter(|percent| *percent <= 100).map(|percent| (percent, rest))
}

/// A bar of so many cells, in eighths, and what it is about.
fn progress(doing: &str) -> String {
    const CELLS: usize = 20;
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let Some((percent, words)) = percent(doing) else { return doing.to_owned() };
    let filled = CELLS * 8 * usize::from(percent) / 100;
    let last = EIGHTHS.get(filled % 8).copied().unwrap_or_default();
    let bar = format!("{}{last}", "█".repeat(filled / 8));
    format!("▕{bar:CELLS$}▏ {percent}% {words}")
}

fn grouped(key: &str, count: usize) -> String {
    match key.split_once(' ') {
        Some((role, word)) if count > 1 => format!("{} {word}", counted(count, role)),
        _ => key.to_owned(),
    }
}

/// So many letters at most; the last column stays free, or some terminals begin a new line.
fn cut(text: &str, width: usize) -> String {
    let room = width.saturating_sub(1);
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(1)).chain(std::iter::once('…')).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run::board::tests::{board, pod};

    #[test]
    fn replicas_are_counted_by_role_and_state() {
        let mut board = board(&["chief-0", "worker-0", "worker-1"]);
        let running = json!({"name": "tensorflow", "state": {"running": {}}});
        for name in ["worker-0", "worker-1"] {
            board.see_pod(0, &pod(name, name, "Running", &running), false);
        }
        board.see_use("worker-0", 0, 3 << 20, Duration::from_secs(1));
        let now = Duration::from_millis(12_300);
        assert_eq!(
            line(&board, "", now, 80),
            "12.3s · chief waiting · 2 workers running · cpu 0.0 · 3 Mi"
        );
        assert_eq!(line(&board, "", now, 12), "12.3s · ch…");
        assert!(line(&board, "downloading", now, 80).starts_with("12.3s · downloading · chief"));
        let bar = line(&board, "[42%] downloading numpy (15 MB)", now, 80);
        assert!(bar.starts_with("12.3s · ▕████████▍           ▏ 42% downloading numpy"), "{bar}");
        assert!(
            line(&board, "[100%] x", now, 80).contains(&format!("▕{}▏ 100% x", "█".repeat(20)))
        );
        assert!(line(&board, "[0%] x", now, 80).contains(&format!("▕{}▏ 0% x", " ".repeat(20))));
        for odd in ["[x%] y", "[101%] y", "[1% y", "[%] y"] {
            assert_eq!(percent(odd), None, "{odd}");
        }
    }
}
