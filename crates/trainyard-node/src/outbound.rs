//! The program that carries pods' packets to other machines: chosen, started beside the yard, watched. When
//! it ends, the proxy takes its place for pods that start from then on.
//!
//! Owns the choice and its reasons. Must not know what pods are told of it.

mod proof;

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use ipnet::Ipv4Net;
use tokio::io::AsyncReadExt as _;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};
use trainyard_holder::client::Holder;
use trainyard_holder::protocol::{Ending, Event, Refusal, Request, Tether};

use crate::error::AgentError;
use crate::net::outbound::{State, Tool, Way, kept_from};
use crate::net::proxy::own_addresses;
use crate::options::{Options, Outbound as Wish};
use crate::start::{Started, holder_command};
use crate::yard::{self, Yard};
use proof::Proof;

/// How long a program may take to put its link into the yard's network.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(5);
/// One that ends as soon as this after its first start cannot work here.
const TRIAL: Duration = Duration::from_millis(300);
/// How often the machine's own addresses are read again.
const AGAIN: Duration = Duration::from_secs(5);
/// How much of what a program says is kept.
const LAST_WORDS: usize = 2048;

/// The way out that was found.
pub(crate) struct Found {
    /// What is in use.
    pub(crate) now: watch::Receiver<State>,
    /// Why it is not what would be better, in words; empty when it is that, or was asked for.
    pub(crate) reasons: Vec<String>,
    /// Keeps it; comes back never.
    pub(crate) keeping: Option<Keeping>,
}

/// Finds a way out of a yard with a bridge: the first that works, or the one that is asked for. One that
/// has worked before is opened while the node goes on.
pub(crate) async fn find(
    options: &Options,
    started: &Started,
    cluster: Ipv4Net,
) -> Result<Found, AgentError> {
    let wanted = match options.outbound {
        Wish::Auto => Tool::ALL.to_vec(),
        Wish::Slirp4netns => vec![Tool::Slirp4netns],
        Wish::Pasta => vec![Tool::Pasta],
        Wish::Proxy => return Ok(fixed(Way::Proxy, Vec::new())),
        Wish::None => return Ok(fixed(Way::Nothing, Vec::new())),
    };
    let yard = &started.yard;
    let mut reasons = Vec::new();
    for tool in wanted {
        let auto = options.outbound == Wish::Auto;
        if auto && proof_of(tool, options).is_some_and(|proof| proof.holds()) {
            let (tell, now) = watch::channel(State::opening(Way::Tool(tool)));
            let running = Begun::Opens { tool, options: Box::new(options.clone()) };
            let keeping = Some(Keeping { tell, running, yard: yard.clone(), cluster });
            return Ok(Found { now, reasons: Vec::new(), keeping });
        }
        match attach(tool, options, yard, cluster).await {
            Ok(running) => {
                let (tell, now) = watch::channel(State::open(Way::Tool(tool)));
                let running = Begun::Runs(running);
                let keeping = Some(Keeping { tell, running, yard: yard.clone(), cluster });
                return Ok(Found { now, reasons: Vec::new(), keeping });
            }
            Err(reason) if auto => reasons.push(format!("{}: {reason}", tool.name())),
            Err(reason) => return Err(AgentError::Level { wanted: tool.flag(), reason }),
        }
    }
    Ok(fixed(Way::Proxy, reasons))
}

/// Pods on the machine's own network have its way out, and no other.
pub(crate) fn on_the_machine(options: &Options) -> Result<Way, AgentError> {
    let wanted = match options.outbound {
        Wish::Auto => return Ok(Way::Machine),
        Wish::Slirp4netns => Tool::Slirp4netns.flag(),
        Wish::Pasta => Tool::Pasta.flag(),
        Wish::Proxy => "--outbound=proxy",
        Wish::None => "--outbound=none",
    };
    let reason = "without --network=bridge pods use the machine's own network".to_owned();
    Err(AgentError::Level { wanted, reason })
}

/// What is remembered of a program, where there is one.
fn proof_of(tool: Tool, options: &Options) -> Option<Proof> {
    let program = tool.find(std::env::var_os("PATH").as_deref()).ok()?;
    Some(Proof::of(&options.state, &program))
}

fn fixed(way: Way, reasons: Vec<String>) -> Found {
    Found { now: watch::channel(State::open(way)).1, reasons, keeping: None }
}

/// A program that runs.
struct Running {
    tool: Tool,
    /// Ends it when it is dropped.
    _tether: Holder,
    proof: Proof,
    exited: oneshot::Receiver<Ending>,
    said: oneshot::Receiver<String>,
}

/// Starts a program and opens the way to it, or says why not.
async fn attach(
    tool: Tool,
    options: &Options,
    yard: &Yard,
    cluster: Ipv4Net,
) -> Result<Running, String> {
    let program = tool.find(std::env::var_os("PATH").as_deref())?;
    // Before there is a way, so that nobody is quicker.
    keep(yard, cluster).await?;
    let holder = yard.pid();
    let tether = Tether { holder, argv: tool.argv(&program) };
    let proof = Proof::of(&options.state, &program);
    let mut running = start(tool, options, tether, proof).await?;
    let since = Instant::now();
    let linked = loop {
        tokio::select! {
            ending = &mut running.exited => return Err(running.last_words(ending.ok()).await),
            () = tokio::time::sleep(LOOK) => {}
        }
        match yard.uplink(tool.uplink()).await {
            Ok(()) => break Ok(()),
            Err(refusal) if since.elapsed() > PATIENCE => break Err(refusal),
            Err(refusal) if refusal.reason != NOT_THERE => break Err(refusal),
            Err(_) => {}
        }
    };
    linked.map_err(|refusal| refusal.to_string())?;
    if running.proof.holds() {
        return Ok(running);
    }
    if let Ok(ending) = tokio::time::timeout(TRIAL, &mut running.exited).await {
        return Err(running.last_words(ending.ok()).await);
    }
    running.proof.keep();
    Ok(running)
}

/// What the yard says of a link that has not come yet.
const NOT_THERE: &str = "no such device";

async fn start(
    tool: Tool,
    options: &Options,
    tether: Tether,
    proof: Proof,
) -> Result<Running, String> {
    let words = |error: io::Error| error.to_string();
    let (reader, writer) = io::pipe().map_err(words)?;
    let output = tokio::net::unix::pipe::Receiver::from_owned_fd(reader.into()).map_err(words)?;
    let (tell, exited) = oneshot::channel();
    let tell = std::sync::Mutex::new(Some(tell));
    let on_event = move |event| {
        let Event::Exited { ending, .. } = event;
        if let Some(tell) = crate::shared::lock(&tell).take() {
            // Nobody may be waiting any more.
            let _ = tell.send(ending);
        }
    };
    let holder = Holder::spawn(holder_command(&options.holder), on_event, || ()).map_err(words)?;
    yard::ask(&holder, Request::Tether(tether), vec![writer.into()])
        .await
        .map_err(|refusal| refusal.to_string())?;
    let (say, said) = oneshot::channel();
    tokio::spawn(async move {
        let text = listen(tool, output).await;
        // It is asked for only when the program has failed.
        let _ = say.send(text);
    });
    Ok(Running { tool, _tether: holder, proof, exited, said })
}

/// Reads what a program says until it is gone, and keeps the end of it.
async fn listen(tool: Tool, mut output: tokio::net::unix::pipe::Receiver) -> String {
    let mut last: Vec<u8> = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(length @ 1..) = output.read(&mut buffer).await {
        let text = String::from_utf8_lossy(&buffer[..length]);
        tracing::debug!(program = tool.name(), text = text.trim(), "the pods' way out says");
        last.extend_from_slice(&buffer[..length]);
        let surplus = last.len().saturating_sub(LAST_WORDS);
        last.drain(..surplus);
    }
    String::from_utf8_lossy(&last).into_owned()
}

impl Running {
    /// How it ended and what it said last.
    async fn last_words(&mut self, ending: Option<Ending>) -> String {
        let ended = match ending {
            Some(Ending::Code(code)) => format!("it ended with exit code {code}"),
            Some(Ending::Signal(signal)) => format!("it was ended by signal {signal}"),
            None => "it was ended with its tether".to_owned(),
        };
        let said = tokio::time::timeout(Duration::from_secs(1), &mut self.said).await;
        let said = said.ok().and_then(Result::ok).unwrap_or_default();
        let lines = said.lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| !Tool::is_noise(line)).collect();
        let last = lines[lines.len().saturating_sub(3)..].join("; ");
        if last.is_empty() { ended } else { format!("{ended}: {last}") }
    }
}

/// How far a program is that is kept.
enum Begun {
    Runs(Running),
    /// It has worked before, and is to be started.
    Opens {
        tool: Tool,
        options: Box<Options>,
    },
}

/// What keeps a way out as it must be.
pub(crate) struct Keeping {
    tell: watch::Sender<State>,
    running: Begun,
    yard: Yard,
    cluster: Ipv4Net,
}

impl Keeping {
    /// Keeps pods from the machine's own addresses as they change; when the program ends, or that cannot
    /// be done any more, the proxy is the way. Comes back never.
    pub(crate) async fn run(self) {
        let Self { tell, running, yard, cluster } = self;
        let (tool, reason) = match running {
            Begun::Runs(running) => (running.tool, carry(running, &yard, cluster).await),
            Begun::Opens { tool, options } => {
                let reason = match attach(tool, &options, &yard, cluster).await {
                    Ok(running) => {
                        tell.send_modify(|state| state.is_open = true);
                        carry(running, &yard, cluster).await
                    }
                    Err(reason) => {
                        // It has worked before and does not any more.
                        if let Some(proof) = proof_of(tool, &options) {
                            proof.forget();
                        }
                        reason
                    }
                };
                (tool, reason)
            }
        };
        let tool = tool.name();
        // With its holder everything ends, and that is told elsewhere.
        if !yard.has_ended() {
            tracing::warn!(
                program = tool,
                reason,
                "the pods' way out ended; pods that start from now on use {}",
                Way::Proxy.words()
            );
            tell.send_replace(State::open(Way::Proxy));
        }
        // Whoever follows it goes on doing so.
        let _tell = tell;
        std::future::pending::<()>().await;
    }
}

/// Lets a program carry packets for as long as it can; comes back with the reason why it cannot go on.
async fn carry(mut running: Running, yard: &Yard, cluster: Ipv4Net) -> String {
    let reason = tokio::select! {
        ending = &mut running.exited => running.last_words(ending.ok()).await,
        reason = keep_on(yard, cluster) => reason,
    };
    running.proof.forget();
    reason
}

/// Comes back with the reason why it cannot go on.
async fn keep_on(yard: &Yard, cluster: Ipv4Net) -> String {
    let mut ticks = tokio::time::interval(AGAIN);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(reason) = keep(yard, cluster).await {
            return reason;
        }
    }
}

/// Keeps pods from the addresses that the machine has now.
async fn keep(yard: &Yard, cluster: Ipv4Net) -> Result<(), String> {
    let own: Vec<Ipv4Addr> = own_addresses().map_err(|error| {
        format!("the machine's own addresses cannot be read and kept from pods: {error}")
    })?;
    let told = yard.keep_from(kept_from(&own, cluster)).await;
    told.map_err(|refusal: Refusal| refusal.to_string())
}
