//! `operator` without a cluster: how it starts, answers probes and ends.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::process::{command, run};

/// A kubeconfig that leads to a port where nobody listens.
fn kubeconfig(folder: &Path) -> String {
    let path = folder.join("kubeconfig");
    let text = "
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
";
    std::fs::write(&path, text).expect("the kubeconfig can be written");
    path.to_str().expect("the path is text").to_owned()
}

/// An operator that runs, ended with this value.
struct Running {
    child: Child,
    log: BufReader<std::process::ChildStderr>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(kubeconfig: &str, more: &[&str]) -> Self {
        let mut args = vec!["operator", "--kubeconfig", kubeconfig, "--log-format=json"];
        args.extend(["--metrics-bind-address=127.0.0.1:0", "-health-probe-bind-address=0"]);
        args.extend(more);
        let mut child = command(&args).stderr(Stdio::piped()).spawn().expect("the operator starts");
        let log = BufReader::new(child.stderr.take().expect("standard error is piped"));
        Self { child, log }
    }

    /// Reads the log up to the line that has this message.
    fn line(&mut self, message: &str) -> serde_json::Value {
        self.log
            .by_ref()
            .lines()
            .map(|line| line.expect("the log can be read"))
            .map(|line| serde_json::from_str(&line).expect("every line is JSON"))
            .find(|line: &serde_json::Value| line["message"] == message)
            .expect(message)
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process has an id"), signal).expect("the process lives");
    }

    /// Waits for the end, within reason.
    fn code(&mut self) -> Option<i32> {
        let patience = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                return status.code();
            }
            assert!(Instant::now() < patience, "the operator does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("the socket is open");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .expect("the request goes out");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the answer comes");
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (code, answer)
}

#[test]
fn it_waits_for_the_api_server_and_ends_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["-gang-scheduler-name=volcano", "-monitoring-port=1"];
    let mut operator = Running::start(&kubeconfig(folder.path()), &flags);
    operator.line("--monitoring-port has no effect: metrics are served at --metrics-bind-address");
    let line = operator.line("serving metrics");
    let address = line["address"].as_str().expect("an address").to_owned();
    assert_eq!(get(&address, "/healthz").0, 200);
    assert_eq!(get(&address, "/readyz").0, 503, "nothing could be read yet");
    let (code, metrics) = get(&address, "/metrics");
    assert_eq!(code, 200);
    assert!(metrics.contains("# TYPE "), "{metrics}");
    operator.signal(Signal::TERM);
    assert_eq!(operator.code(), Some(0));
}

#[test]
fn an_interrupt_ends_it_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut operator = Running::start(&kubeconfig(folder.path()), &["--leader-elect"]);
    operator.line("operator starts");
    operator.signal(Signal::INT);
    assert_eq!(operator.code(), Some(0));
}

#[test]
fn what_it_cannot_start_with_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing");
    let ended = run(&["operator", "--kubeconfig", missing.to_str().expect("text")]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("error: reading the kubeconfig "), "{}", ended.err);

    let kubeconfig = kubeconfig(folder.path());
    let ended = run(&["operator", "--kubeconfig", &kubeconfig, "--master=nowhere"]);
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("\nhint: write it like https://"), "{}", ended.err);

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("its address").to_string();
    let flag = format!("--metrics-bind-address={address}");
    let ended = run(&["operator", "--kubeconfig", &kubeconfig, &flag]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("error: listening for metrics: "), "{}", ended.err);
    assert!(ended.err.contains("hint: --metrics-bind-address says where"), "{}", ended.err);
}
