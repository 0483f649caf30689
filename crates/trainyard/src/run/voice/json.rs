//! A run for programs: one JSON object per line. `docs/json-output.md` tells of every field.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Header, Manner, Who};
use crate::commands::job_logs::source::Line;
use crate::failure::Failure;
use crate::output;
use crate::run::board::{Board, Notice, State, Weight};
use crate::run::names;
use crate::run::summary::{Row, Summary};

#[derive(Debug)]
pub(crate) struct Json {
    manner: Manner,
}

impl Json {
    pub(super) const fn new(manner: Manner) -> Self {
        Self { manner }
    }

    fn say(kind: &str, mut object: Value) -> Result<(), Failure> {
        object["type"] = kind.into();
        if object["time"].is_null() {
            object["time"] = Timestamp::now().to_string().into();
        }
        output::print_json(&format!("{object}\n"))
    }

    pub(super) fn header(header: &Header) -> Result<(), Failure> {
        let replicas: Value =
            header.replicas.iter().map(|(role, count)| (role.clone(), json!(count))).collect();
        let amounts = |read: fn(&(String, i64, i64)) -> i64| -> Value {
            header.room.iter().map(|row| (row.0.clone(), json!(read(row)))).collect()
        };
        let object = json!({
            "job": header.job, "namespace": header.namespace, "kind": header.kind,
            "replicas": replicas, "asked": amounts(|row| row.1), "available": amounts(|row| row.2),
            "logs": header.logs,
        });
        Self::say("start", object)
    }

    pub(super) fn line(&self, who: Who<'_>, line: &Line, noise: bool) -> Result<(), Failure> {
        if self.manner.quiet || (noise && !self.manner.verbose) {
            return Ok(());
        }
        let time = line.time.unwrap_or_else(Timestamp::now).to_string();
        let text = String::from_utf8_lossy(&line.text);
        Self::say(
            "log",
            json!({"time": time, "job": who.job, "replica": who.replica, "line": text}),
        )
    }

    pub(super) fn notice(board: &Board, notice: &Notice) -> Result<(), Failure> {
        let weight = match notice.weight {
            Weight::Normal => "normal",
            Weight::Warning => "warning",
        };
        let mut object = json!({"weight": weight, "reason": notice.reason, "text": notice.text});
        if let Some(job) = notice.job.and_then(|job| board.jobs.get(job)) {
            object["job"] = job.name.clone().into();
        }
        if let Some(replica) = &notice.replica {
            object["replica"] = replica.clone().into();
        }
        Self::say("notice", object)
    }

    pub(super) fn state(board: &Board, job: usize, name: &str) -> Result<(), Failure> {
        let Some(on_board) = board.jobs.get(job) else { return Ok(()) };
        let Some(replica) = on_board.replicas.get(name) else { return Ok(()) };
        let mut object = json!({
            "job": on_board.name, "replica": name, "state": replica.state.word(),
            "restarts": replica.restarts,
        });
        if let State::Failed(code) = replica.state {
            object["exitCode"] = code.into();
        }
        Self::say("state", object)
    }

    pub(super) fn summary(summary: &Summary) -> Result<(), Failure> {
        let replicas: Vec<Value> = summary.replicas.iter().map(row).collect();
        let mut object = json!({
            "job": summary.job, "namespace": summary.namespace, "result": summary.outcome.word(),
            "seconds": summary.took.as_secs_f64(), "restarts": summary.restarts,
            "replicas": replicas, "logs": summary.logs,
        });
        if let Some(claims) = &summary.claims {
            object["claims"] = json!(claims);
        }
        if !summary.message.is_empty() {
            object["message"] = summary.message.clone().into();
        }
        if let Some(blame) = &summary.blame {
            let end = &blame.end;
            object["failure"] = json!({
                "replica": blame.replica, "exitCode": end.code, "signal": names::signal(end.code),
                "reason": end.meaning(), "lastLines": blame.last_words,
                "hint": blame.hint, "because": blame.because, "also": blame.also,
            });
        }
        Self::say("summary", object)
    }

    pub(super) fn end(code: u8) -> Result<(), Failure> {
        Self::say("end", json!({"exitCode": code}))
    }
}

fn row(row: &Row) -> Value {
    let mut object = json!({
        "replica": row.name, "state": row.state, "restarts": row.restarts,
        "peakMemoryBytes": row.peak,
    });
    if let Some(code) = row.code {
        object["exitCode"] = code.into();
        if let Some(signal) = names::signal(code) {
            object["signal"] = signal.into();
        }
    }
    object
}
