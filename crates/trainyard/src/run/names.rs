//! Exit codes and signals by name, in words. Pure.

/// The name of a signal, by the exit code of a process that it ended.
pub(crate) fn signal(code: i64) -> Option<&'static str> {
    Some(match code.checked_sub(128)? {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return None,
    })
}

/// The kubelet's word for a program that could not be started.
const START_ERROR: &str = "StartError";

/// What an exit code and the kubelet's word for it mean.
pub(crate) fn meaning(code: i64, reason: &str) -> String {
    match (reason, code) {
        (START_ERROR, 126) => "its command is there and cannot be executed".into(),
        (START_ERROR, _) => "its command was not found".into(),
        ("OOMKilled", _) => "it used more memory than its limit and was killed".into(),
        ("DeadlineExceeded", _) => "its pod's time was over".into(),
        ("Evicted", _) => "it was evicted from its node".into(),
        (_, 0) => "it ended well".into(),
        (_, 1) => "the program ended with an error".into(),
        (_, 126) => "its command cannot be executed".into(),
        (_, 127) => "its command was not found".into(),
        (_, 137) => "it was killed".into(),
        (_, 139) => "the program crashed".into(),
        (_, 134) => "the program gave up by itself".into(),
        (_, 143) => "it was told to end".into(),
        (_, code) => match signal(code) {
            Some(name) => format!("it was ended by {name}"),
            None => "the program ended with an error".into(),
        },
    }
}

/// `exit code 137 (SIGKILL, OOMKilled)`.
pub(crate) fn code(code: i64, reason: &str) -> String {
    let odd = Some(reason).filter(|reason| !["", "Error", "Completed"].contains(reason));
    let parts: Vec<&str> = [signal(code), odd].into_iter().flatten().collect();
    if parts.is_empty() {
        format!("exit code {code}")
    } else {
        format!("exit code {code} ({})", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names_and_meanings() {
        for (number, reason, shown, means) in [
            (1, "Error", "exit code 1", "the program ended with an error"),
            (137, "OOMKilled", "exit code 137 (SIGKILL, OOMKilled)", "it used more memory"),
            (137, "Error", "exit code 137 (SIGKILL)", "it was killed"),
            (139, "Error", "exit code 139 (SIGSEGV)", "the program crashed"),
            (127, "Error", "exit code 127", "its command was not found"),
            (136, "", "exit code 136 (SIGFPE)", "it was ended by SIGFPE"),
            (200, "", "exit code 200", "the program ended with an error"),
        ] {
            assert_eq!(code(number, reason), shown);
            assert!(meaning(number, reason).starts_with(means), "{number}");
        }
        assert_eq!(signal(3), None);
    }
}
