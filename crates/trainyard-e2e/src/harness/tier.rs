//! A tier: reads the command line of a test program, runs the phases, and sums up.

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use libtest_mimic::{Arguments, Trial};
use rustix::process::Signal;
use tokio::runtime::{Handle, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::phase::{Phase, Width};
use super::second::Second;
use super::slow::Slow;
use super::{Case, Fixture, Ground};

/// As of the ordinary test harness.
const FAILED: u8 = 101;
/// How long what runs in the background may take to end with the tier.
const ENDING: Duration = Duration::from_secs(5);

/// A tier that is being run.
pub(crate) struct Tier {
    arguments: Arguments,
    second: Arc<Second>,
    slow: Arc<Slow>,
    filtered_out: bool,
    failed: bool,
}

/// Where fixtures in real time run.
pub(crate) struct RealTime {
    runtime: Handle,
    interrupted: CancellationToken,
}

impl RealTime {
    /// A fixture that all cases share; it starts when it is needed.
    pub(crate) fn fixture<F: Clone + Send + Sync + 'static>(
        &self,
        start: impl AsyncFn() -> Result<F> + Clone + Send + Sync + 'static,
    ) -> Arc<Fixture<F>> {
        Fixture::new(self.runtime.clone(), self.interrupted.clone(), start)
    }
}

impl Tier {
    /// Runs a tier in real time. `prepare` says why it cannot run here, if so.
    pub(crate) fn in_real_time(
        prepare: impl Future<Output = Result<Option<String>>>,
        play: impl FnOnce(&mut Self, &RealTime) -> Result<()>,
    ) -> ExitCode {
        let mut tier = Self::new();
        let runtime = match Runtime::new().context("starting the async runtime") {
            Ok(runtime) => runtime,
            Err(error) => return problem(&error),
        };
        let interrupted = CancellationToken::new();
        if !tier.arguments.list {
            // Cargo, which has started it, may be killed without a word.
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
            runtime.spawn(listen(interrupted.clone()));
            let prepared = runtime.block_on(async {
                tokio::select! {
                    prepared = prepare => prepared,
                    () = interrupted.cancelled() => Err(anyhow::anyhow!("interrupted")),
                }
            });
            match prepared {
                Ok(None) => {}
                Ok(Some(obstacle)) => return skipped(&obstacle),
                Err(error) => return problem(&error),
            }
        }
        let played = play(&mut tier, &RealTime { runtime: runtime.handle().clone(), interrupted });
        runtime.shutdown_timeout(ENDING);
        if let Err(error) = played {
            return problem(&error);
        }
        if !tier.arguments.list {
            tier.sum_up();
        }
        tier.exit_code()
    }

    /// Runs a tier whose cases do not depend on how fast the machine is.
    pub(crate) fn in_paused_time(play: impl FnOnce(&mut Self)) -> ExitCode {
        let mut tier = Self::new();
        play(&mut tier);
        tier.exit_code()
    }

    fn new() -> Self {
        let arguments = Arguments::from_args();
        let (second, slow) = (Arc::default(), Arc::default());
        Self { arguments, second, slow, filtered_out: false, failed: false }
    }

    /// Whether one of these cases is to run, so that what takes long for it can be begun in time.
    pub(crate) fn wants<F>(&self, cases: &[Case<F>]) -> bool {
        let trial = |case: &Case<F>| Trial::test(case.name.clone(), || Ok(()));
        let wanted = |case: &Case<F>| !self.arguments.is_filtered_out(&trial(case));
        !self.arguments.list && cases.iter().any(wanted)
    }

    /// Runs the cases of a phase that are wanted.
    pub(crate) fn run<F: 'static>(&mut self, phase: Phase<F>) {
        let width = phase.width;
        let trials = phase.trials(&self.second, &self.slow);
        let wanted = |trial: &Trial| !self.arguments.is_filtered_out(trial);
        let count = trials.iter().filter(|trial| wanted(trial)).count();
        self.filtered_out |= count < trials.len();
        if count > 0 {
            let threads = width.threads(self.arguments.test_threads);
            let arguments = Arguments { test_threads: threads, ..self.arguments.clone() };
            self.conclude(&arguments, trials);
        }
    }

    /// Verdicts on what has run so far, one after the other. They are given whatever the command line asks
    /// for, if their fixture was started at all.
    pub(crate) fn judge<F: 'static>(&mut self, ground: &Arc<impl Ground<F>>, cases: Vec<Case<F>>) {
        let verdicts = Phase::new(ground, cases).verdicts(None);
        self.conclude_verdicts(ground.is_started(), verdicts);
    }

    /// The same for such as can only be given when everything before them has run.
    pub(crate) fn judge_all<F: 'static>(
        &mut self,
        ground: &Arc<impl Ground<F>>,
        cases: Vec<Case<F>>,
    ) {
        let obstacle = self.filtered_out.then_some("not everything has run");
        let verdicts = Phase::new(ground, cases).verdicts(obstacle);
        self.conclude_verdicts(ground.is_started(), verdicts);
    }

    fn conclude_verdicts(&mut self, is_started: bool, verdicts: Vec<Trial>) {
        let threads = Width::One.threads(None);
        let mut arguments = Arguments { test_threads: threads, ..self.arguments.clone() };
        if is_started && !arguments.list {
            (arguments.filter, arguments.skip, arguments.ignored) = (None, Vec::new(), false);
        }
        if verdicts.iter().any(|verdict| !arguments.is_filtered_out(verdict)) {
            self.conclude(&arguments, verdicts);
        }
    }

    fn conclude(&mut self, arguments: &Arguments, trials: Vec<Trial>) {
        self.failed |= libtest_mimic::run(arguments, trials).has_failed();
        // Earlier, they would stand in the middle of the harness' own lines.
        for line in self.second.take_lines() {
            say(&line);
        }
    }

    fn sum_up(&mut self) {
        for line in self.slow.lines().into_iter().chain(self.slow.line()) {
            say(&line);
        }
        let count = self.second.passed();
        if let Some(complaint) = self.second.complaint() {
            say(&format!("FAILED: {complaint}"));
            self.failed = true;
        }
        say(&format!("{count} passed at a second try"));
    }

    fn exit_code(&self) -> ExitCode {
        if self.failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
    }
}

/// Cancels when the program is told to end, so that what it has started ends in order.
async fn listen(interrupted: CancellationToken) {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hang_up)) =
        (signal(kinds[0]), signal(kinds[1]), signal(kinds[2]))
    else {
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    interrupted.cancel();
}

/// The tier cannot run here; in continuous integration that is a failure.
fn skipped(obstacle: &str) -> ExitCode {
    say(&format!("SKIPPED: {}", obstacle.replace('\n', " ")));
    let ci = std::env::var("CI").unwrap_or_default();
    let is_ci = !matches!(ci.to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off");
    if is_ci { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn problem(error: &anyhow::Error) -> ExitCode {
    note(format_args!("error: {error:#}"));
    ExitCode::FAILURE
}

fn say(line: &str) {
    // A closed terminal is no reason to stop.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Tells something beside the harness' own lines, which are on standard output.
pub(crate) fn note(words: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{words}");
}
