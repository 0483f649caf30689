//! How a run speaks: to people in a terminal or a pipe, or to programs in JSON.
//!
//! Owns standard output while a run lasts. Must not know how jobs are followed.

mod json;
mod people;
mod status;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::board::{Board, Notice, Weight};
use super::summary::Summary;
use crate::commands::job_logs::source::Line;
use crate::failure::Failure;
use crate::present::paint::When;
pub(crate) use json::Json;
pub(crate) use people::People;

/// What is said of a job before it starts.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) job: String,
    pub(crate) namespace: String,
    pub(crate) kind: &'static str,
    /// How many of each role.
    pub(crate) replicas: Vec<(String, usize)>,
    /// What it has beside them.
    pub(crate) beside: Vec<String>,
    /// What it asks for and what there is: resource, asked, there.
    pub(crate) room: Vec<(String, i64, i64)>,
    pub(crate) logs: PathBuf,
}

/// Who says something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who<'a> {
    pub(crate) job: &'a str,
    pub(crate) replica: &'a str,
    /// Both, where there are several jobs.
    pub(crate) label: &'a str,
}

/// What is wanted of a voice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) colour: When,
    /// Everything, TensorFlow's own messages too.
    pub(crate) verbose: bool,
    /// Only what came of it.
    pub(crate) quiet: bool,
    pub(crate) timestamps: bool,
}

/// How a run speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
    /// With --dry-run: the job as a manifest.
    Yaml,
}

/// One that speaks.
#[derive(Debug)]
pub(crate) enum Voice {
    People(Box<People>),
    Json(Json),
}

impl Voice {
    pub(crate) fn new(form: Form, manner: Manner) -> Self {
        match form {
            Form::Json => Self::Json(Json::new(manner)),
            Form::Text | Form::Yaml => Self::People(Box::new(People::new(manner))),
        }
    }

    pub(crate) fn header(&mut self, header: &Header) -> Result<(), Failure> {
        match self {
            Self::People(people) => people.header(header),
            Self::Json(_) => Json::header(header),
        }
    }

    /// Says who may speak.
    pub(crate) fn expect(&mut self, labels: &[String]) {
        if let Self::People(people) = self {
            people.expect(labels);
        }
    }

    pub(crate) fn line(&mut self, who: Who<'_>, line: &Line, noise: bool) -> Result<(), Failure> {
        match self {
            Self::People(people) => people.line(who, line, noise),
            Self::Json(json) => json.line(who, line, noise),
        }
    }

    pub(crate) fn notice(&mut self, board: &Board, notice: &Notice) -> Result<(), Failure> {
        match self {
            Self::People(people) => people.notice(board, notice),
            Self::Json(_) => Json::notice(board, notice),
        }
    }

    /// A replica is in another state than before.
    pub(crate) fn state(&mut self, board: &Board, job: usize, name: &str) -> Result<(), Failure> {
        match self {
            Self::People(_) => Ok(()),
            Self::Json(_) => Json::state(board, job, name),
        }
    }

    /// Some time has passed.
    pub(crate) fn tick(&mut self, board: &Board, now: Duration) -> Result<(), Failure> {
        match self {
            Self::People(people) => people.tick(board, now),
            Self::Json(_) => Ok(()),
        }
    }

    /// A step of what is done before replicas run, as making an environment.
    pub(crate) fn progress(
        &mut self,
        board: &Board,
        notice: &Notice,
        now: Duration,
    ) -> Result<(), Failure> {
        match self {
            Self::People(people) => people.progress(board, notice, now),
            Self::Json(_) => Json::notice(board, notice),
        }
    }

    /// It is done.
    pub(crate) fn progress_ends(&mut self) {
        if let Self::People(people) = self {
            people.progress_ends();
        }
    }

    pub(crate) fn summary(&mut self, summary: &Summary) -> Result<(), Failure> {
        match self {
            Self::People(people) => people.summary(summary),
            Self::Json(_) => Json::summary(summary),
        }
    }

    /// The run ends before its jobs do. People are told on standard error, by whoever is told of it.
    pub(crate) fn fail(&mut self, failure: &Failure) -> Result<(), Failure> {
        match self {
            Self::People(people) => people.clear(),
            Self::Json(_) if failure.is_closed_pipe() || failure.is_told() => Ok(()),
            Self::Json(_) => {
                let notice = Notice::new(Weight::Warning, "CannotRun", failure.words());
                Json::notice(&Board::default(), &notice)?;
                Json::end(failure.exit_code())
            }
        }
    }

    /// The last word.
    pub(crate) fn end(&mut self, code: u8) -> Result<(), Failure> {
        match self {
            Self::People(people) => people.clear(),
            Self::Json(_) => Json::end(code),
        }
    }
}
