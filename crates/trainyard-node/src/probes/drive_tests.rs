//! Whole histories of a container's probes, in paused time.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;

use serde_json::json;
use tokio::net::TcpStream;

use super::*;
use crate::probes::plan::Plan;

/// Commands end as their script says: a code, or never.
#[derive(Default)]
struct Script(Mutex<VecDeque<(String, Option<i32>)>>, Mutex<Vec<(String, u64)>>, Option<Instant>);

impl Script {
    fn new(lines: &[(&str, Option<i32>)]) -> Self {
        let lines = lines.iter().map(|(name, code)| ((*name).to_owned(), *code)).collect();
        Self(Mutex::new(lines), Mutex::default(), Some(Instant::now()))
    }

    /// The next ending of this command; its last one is for ever.
    fn ending(&self, name: &str) -> Option<i32> {
        let mut lines = self.0.lock().unwrap();
        let place = lines.iter().position(|(one, _)| one == name).unwrap();
        let last = lines.iter().filter(|(one, _)| one == name).count() == 1;
        if last { lines[place].1 } else { lines.remove(place).unwrap().1 }
    }

    fn log(&self) -> Vec<(String, u64)> {
        self.1.lock().unwrap().clone()
    }
}

impl Target for Script {
    fn address(&self) -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }

    async fn connect(&self, _host: &str, _port: u16) -> io::Result<TcpStream> {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn exec(&self, command: &[String]) -> Result<(i32, Vec<u8>), String> {
        let at = self.2.unwrap().elapsed().as_secs();
        self.1.lock().unwrap().push((command[0].clone(), at));
        match self.ending(&command[0]) {
            Some(code) => Ok((code, b"no".to_vec())),
            None => std::future::pending().await,
        }
    }
}

fn probes(container: &serde_json::Value) -> ContainerProbes {
    let plans = Plan::of(&serde_json::from_value(container.clone()).unwrap());
    ContainerProbes::new(plans, Instant::now())
}

fn command(name: &str, more: &serde_json::Value) -> serde_json::Value {
    let mut probe = more.clone();
    probe["exec"] = json!({ "command": [name] });
    probe
}

async fn next(reports: &mut mpsc::Receiver<Report>) -> Report {
    reports.recv().await.unwrap()
}

fn failed(word: &str) -> Report {
    Report::Event { reason: "Unhealthy", message: format!("{word} probe failed: no") }
}

#[tokio::test(start_paused = true)]
async fn startup_then_ready_then_killed() {
    let container = json!({
        "name": "c",
        "startupProbe": command("start", &json!({ "periodSeconds": 2, "failureThreshold": 30 })),
        "readinessProbe": command("ready", &json!({ "periodSeconds": 5 })),
        "livenessProbe": command("live", &json!({ "periodSeconds": 3, "failureThreshold": 2 })),
    });
    let script = Script::new(&[
        ("start", Some(1)),
        ("start", Some(0)),
        ("ready", Some(0)),
        ("live", Some(0)),
        ("live", Some(1)),
    ]);
    let (tell, mut reports) = mpsc::channel(8);
    let probes = probes(&container);
    let listen = async {
        assert_eq!(next(&mut reports).await, failed("Startup"));
        let started = Report::Change { change: Change::Started, started: true, ready: false };
        assert_eq!(next(&mut reports).await, started);
        let ready = Report::Change { change: Change::Ready, started: true, ready: true };
        assert_eq!(next(&mut reports).await, ready);
        assert_eq!(next(&mut reports).await, failed("Liveness"));
        assert_eq!(next(&mut reports).await, failed("Liveness"));
        let change = Change::Unhealthy(Kind::Liveness);
        assert_eq!(next(&mut reports).await, Report::Change { change, started: true, ready: true });
        assert!(reports.recv().await.is_none());
    };
    tokio::join!(drive(probes, &script, tell), listen);
    let log = script.log();
    let times = |name: &str| -> Vec<u64> {
        log.iter().filter(|(one, _)| one == name).map(|(_, at)| *at).collect()
    };
    assert_eq!(times("start"), [0, 2]);
    assert_eq!(times("live"), [2, 5, 8]);
    assert_eq!(times("ready"), [2, 7]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_probe_does_not_hold_up_the_others() {
    let container = json!({
        "name": "c",
        "readinessProbe": command("ready", &json!({ "periodSeconds": 1, "timeoutSeconds": 1 })),
        "livenessProbe": command("live", &json!({ "timeoutSeconds": 60, "failureThreshold": 1 })),
    });
    let script = Script::new(&[("ready", Some(1)), ("ready", Some(0)), ("live", None)]);
    let (tell, mut reports) = mpsc::channel(8);
    let probes = probes(&container);
    let began = Instant::now();
    let listen = async {
        assert_eq!(next(&mut reports).await, failed("Readiness"));
        let ready = Report::Change { change: Change::Ready, started: true, ready: true };
        assert_eq!(next(&mut reports).await, ready);
        assert_eq!(began.elapsed().as_secs(), 1);
        let Report::Event { message, .. } = next(&mut reports).await else { panic!("no event") };
        assert_eq!(
            message,
            "Liveness probe failed: command timed out: \"live\" timed out after 60s"
        );
        assert_eq!(began.elapsed().as_secs(), 60);
        let change = Change::Unhealthy(Kind::Liveness);
        assert_eq!(next(&mut reports).await, Report::Change { change, started: true, ready: true });
    };
    tokio::join!(drive(probes, &script, tell), listen);
}

#[tokio::test(start_paused = true)]
async fn it_ends_without_probes_and_without_listeners() {
    let (tell, reports) = mpsc::channel(1);
    drive(probes(&json!({ "name": "c" })), &Script::default(), tell.clone()).await;
    drop(reports);
    let container = json!({ "name": "c", "readinessProbe": command("ready", &json!({})) });
    drive(probes(&container), &Script::new(&[("ready", Some(0))]), tell).await;
}
