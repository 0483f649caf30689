//! Servers for cases, one for each thread of the test harness: a runtime whose time is paused and an
//! embedded server in it, used for one case after the other.
//!
//! Threads share nothing: time that is paused passes whenever a thread has nothing to do, so a wait for
//! another thread would take for ever.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::Embedded;
use crate::harness::{Case, Ground};
use crate::kubelet::presence;
use crate::rest::Rest;
use crate::stage::Stage;
use crate::suite::install;

/// Makes a runtime of one thread whose time is paused.
pub type NewRuntime = fn() -> io::Result<Runtime>;

/// What there is beside the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An operator that looks after all namespaces.
    WithOperator,
    /// Nothing.
    Plain,
    /// Definitions without rules in place of the usual ones.
    WithoutRules,
}

/// The homes that no case is using.
pub(super) struct Homes {
    runtime: NewRuntime,
    kind: Kind,
    free: Mutex<Vec<Home>>,
    is_started: AtomicBool,
}

struct Home {
    inside: Inside,
    // Last, since all that is inside ends with it.
    runtime: Runtime,
}

struct Inside {
    stage: Arc<Stage>,
    beats: JoinSet<Result<()>>,
    _embedded: Embedded,
}

impl Homes {
    pub(super) fn new(runtime: NewRuntime, kind: Kind) -> Arc<Self> {
        let (free, is_started) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Self { runtime, kind, free, is_started })
    }

    fn with_free<T>(&self, action: impl FnOnce(&mut Vec<Home>) -> T) -> T {
        action(&mut self.free.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Ground<Arc<Stage>> for Homes {
    fn play(&self, case: &Case<Arc<Stage>>) -> Result<()> {
        self.is_started.store(true, Ordering::Relaxed);
        let mut home = match self.with_free(Vec::pop) {
            Some(home) => home,
            None => Home::open(self.runtime, self.kind).context("starting the embedded server")?,
        };
        let result = home.play(case);
        self.with_free(|free| free.push(home));
        result
    }

    fn is_started(&self) -> bool {
        self.is_started.load(Ordering::Relaxed)
    }
}

impl Home {
    fn open(runtime: NewRuntime, kind: Kind) -> Result<Self> {
        let runtime = runtime()?;
        let inside = runtime.block_on(Inside::open(kind))?;
        Ok(Self { inside, runtime })
    }

    fn play(&mut self, case: &Case<Arc<Stage>>) -> Result<()> {
        let Inside { stage, beats, .. } = &mut self.inside;
        self.runtime.block_on(async {
            tokio::select! {
                result = case.play(Arc::clone(stage)) => result,
                ended = beats.join_next() => bail!("the node's heart has stopped: {ended:?}"),
            }
        })
    }
}

impl Inside {
    async fn open(kind: Kind) -> Result<Self> {
        let embedded = Embedded::start().await?;
        if kind == Kind::WithoutRules {
            for definition in install::definitions_without_rules()? {
                embedded.define(&definition).await?;
            }
        }
        let clients = embedded.clients();
        let rest = Rest::new(clients.kubelet.clone(), "default");
        presence::register(&rest).await?;
        let mut beats = JoinSet::new();
        beats.spawn(async move { presence::beat(&rest).await });
        let mut stage = Stage::new(clients);
        if kind == Kind::WithOperator {
            stage = stage.with_operator().await?;
        }
        Ok(Self { stage: Arc::new(stage), beats, _embedded: embedded })
    }
}
