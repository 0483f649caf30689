//! `trainyard run`: jobs from manifests or a command line, in a yard of their own, to their end.
//!
//! Owns flags, the order of the steps, signals and the exit code; the steps are `crate::run`'s.

mod flags;
mod input;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use trainyard_image::Images;
use trainyard_node::{Options, Window};

pub(crate) use flags::Flags;

use super::signals::{HANGUP, Signals};
use super::up::CONTEXT;
use super::{logs, up};
use crate::cluster::{Cluster, Kinds, Query};
use crate::failure::{CLOSED_PIPE, Failure, INTERRUPTED};
use crate::output;
use crate::run::board::{Board, Notice, Weight};
use crate::run::bundle::Bundle;
use crate::run::conduct::{Conductor, Limits};
use crate::run::finish::{self, Ending};
use crate::run::host_paths::{self, HostPath};
use crate::run::places::{self, Places};
use crate::run::prepare::{self, Wanted};
use crate::run::room::{self, Room};
use crate::run::stage::{self, Staged};
use crate::run::voice::{Form, Header, Voice};
use crate::run::{kinds, restarts, summary};
use crate::yard::residents::Lines;
use crate::yard::{Plan, Yard, kubeconfig};

/// How long a second signal is listened for while the yard ends, at most.
const CLOSING: Duration = Duration::from_mins(1);

/// Runs jobs to their end.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let began = Instant::now();
    let manifests = input::manifests(flags)?;
    if flags.dry_run {
        return input::print(&manifests, flags.output);
    }
    if flags.output == Form::Yaml {
        return Err(Failure::usage("-o yaml prints the job and does not run it: add --dry-run"));
    }
    let bundle = Bundle::sort(manifests, flags.namespace(), &flags.without)?;
    input::check_replica(&bundle, flags.exit_code_from.as_deref())?;
    let host_paths = host_paths::all(&bundle);
    if flags.no_host_paths {
        host_paths::refuse(&host_paths)?;
    }
    let places = Places::open(&places::root(flags.data_dir.as_deref())?, &bundle.name())?;
    if flags.fresh {
        places.forget()?;
    }
    let lines = Lines::default();
    let log = std::fs::File::create(places.folder.log())
        .map_err(|error| Failure::other("opening the run's own log", &error))?;
    logs::start_in_file(log, "info", ("trainyard_operator", lines.clone()));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other("starting the runtime", &error))?;
    let node = flags.node(&places.folder)?;
    let images = Images::new(node.images.clone()).map_err(Failure::usage)?;
    let run = Run { flags, bundle, host_paths, places, began, node, images };
    let code = runtime.block_on(run.play(lines));
    // A thread that still reads a slow disk must not keep us.
    runtime.shutdown_background();
    match code {
        Ok(0) => Ok(()),
        Ok(code) => Err(Failure::told(code)),
        // Whoever read has left, and the jobs were stopped: that is no success.
        Err(failure) if failure.is_closed_pipe() => Err(Failure::told(CLOSED_PIPE)),
        Err(failure) => Err(failure),
    }
}

struct Run<'a> {
    flags: &'a Flags,
    bundle: Bundle,
    /// What it mounts of this machine.
    host_paths: Vec<HostPath>,
    places: Places,
    began: Instant,
    /// The node's settings.
    node: Options,
    /// What images mean here.
    images: Images,
}

impl Run<'_> {
    /// Everything, with the exit code.
    async fn play(&self, lines: Lines) -> Result<u8, Failure> {
        let mut signals = Signals::catch()?.with_hangup()?;
        let mut voice = Voice::new(self.flags.output, self.flags.manner());
        let window = Window::default();
        let mut yard = tokio::select! {
            yard = self.open(lines, &window) => yard?,
            _ = signals.next() => return Ok(INTERRUPTED),
        };
        let played = self.perform(&mut yard, &mut signals, &mut voice, &window).await;
        if !matches!(played, Ok((_, true))) {
            tokio::select! {
                () = yard.stop() => {}
                _ = signals.next() => {}
                () = tokio::time::sleep(CLOSING) => {}
            }
        }
        let _ = std::fs::remove_file(self.places.folder.kubeconfig());
        match played {
            Ok((code, _)) => voice.end(code).map(|()| code),
            Err(failure) => {
                voice.fail(&failure)?;
                Err(failure)
            }
        }
    }

    /// The yard; its node comes up meanwhile.
    async fn open(&self, operator_lines: Lines, window: &Window) -> Result<Yard, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .map_err(|error| Failure::other("listening on loopback", &error))?;
        let mut node = self.node.clone();
        node.window = window.clone();
        node.opened = Some(self.images.clone());
        let folder = self.places.folder.clone();
        let plan = Plan {
            folder,
            durable: false,
            listener,
            node: Some(node),
            api_only: false,
            // Who looks into a yard that stays may want any kind.
            volcano_jobs: self.flags.keep || self.bundle.is_volcanos(),
            operator_lines,
        };
        Yard::start(plan).await
    }

    /// Looks, applies, follows, tells. The exit code, and whether it was told to end at once.
    async fn perform(
        &self,
        yard: &mut Yard,
        signals: &mut Signals,
        voice: &mut Voice,
        window: &Window,
    ) -> Result<(u8, bool), Failure> {
        let namespace = self.flags.namespace().to_owned();
        let cluster = Cluster::own(yard.client(), yard.url(), namespace);
        let kinds = Kinds::of(&cluster).await?;
        // What is wrong with the files is told before anything else.
        stage::check(&cluster, &kinds, &self.bundle).await?;
        let nodes = self.flags.nodes()?;
        tokio::select! {
            () = yard.appear(&nodes) => {}
            broken = yard.broken() => return Err(broken),
            _ = signals.next() => return Ok((INTERRUPTED, false)),
        }
        let (wanted, headers) = self.examine(&cluster, &kinds).await?;
        headers.iter().try_for_each(|header| voice.header(header))?;
        self.name_host_paths(voice)?;
        let Some(told) = self.prepare(&wanted, yard, signals, voice).await? else {
            return Ok((INTERRUPTED, false));
        };
        let access = yard.issuer().access(&self.places.folder)?;
        kubeconfig::add(&self.places.folder.kubeconfig(), CONTEXT, &access)?;
        let staged = stage::stage(&cluster, &kinds, &self.bundle, &self.places).await?;
        let mut board = Self::board(&staged);
        voice.expect(&board.labels());
        self.warn(voice, &board)?;
        let restarts = self.bundle.jobs.iter();
        let restarts = restarts.map(|job| restarts::bound(job, self.flags.max_restarts)).collect();
        let limits = Limits { began: self.began, restarts, told };
        let mut conductor = Conductor::new(&cluster, &kinds, &staged, &mut board, voice, limits)?;
        let timeout = self.flags.timeout;
        let ended = conductor.run(yard, signals, window, timeout).await?;
        let now = self.began.elapsed();
        for (number, one) in staged.iter().enumerate() {
            let logs = self.places.logs(&one.job.namespace, one.name());
            let claims = self.places.claims();
            let claims = claims.is_dir().then_some(claims);
            if let Some(summary) = summary::of(&board, number, ended.ending, now, logs, claims) {
                voice.summary(&summary)?;
            }
        }
        let code = finish::code(&board, ended.ending, self.flags.exit_code_from.as_deref());
        if self.flags.keep && ended.ending == Ending::Finished {
            self.stay(yard, signals, voice, &board).await?;
        }
        Ok((code, ended.at_once))
    }

    /// The images that are wanted, and what is said of each job; a failure that names all that keeps them
    /// from running here.
    async fn examine(
        &self,
        cluster: &Cluster,
        kinds: &Kinds,
    ) -> Result<(Vec<Wanted>, Vec<Header>), Failure> {
        match (self.possible(), self.look(cluster, kinds).await) {
            (Ok(wanted), Ok(headers)) => Ok((wanted, headers)),
            (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => Err(failure),
            (Err(first), Err(second)) => Err(first.and(second)),
        }
    }

    /// The images that are wanted; a failure where a job could never start here, whatever is made ready.
    fn possible(&self) -> Result<Vec<Wanted>, Failure> {
        if let Some((problem, hint)) = self.bundle.jobs.iter().find_map(restarts::never_starts) {
            return Err(Failure::invalid(vec![problem]).hint(hint));
        }
        let wanted = prepare::wanted(&self.bundle);
        prepare::check(&self.images, &wanted)?;
        Ok(wanted)
    }

    /// Makes ready what stands for the images; what was told of it, or nothing after a signal.
    async fn prepare(
        &self,
        wanted: &[Wanted],
        yard: &mut Yard,
        signals: &mut Signals,
        voice: &mut Voice,
    ) -> Result<Option<BTreeSet<String>>, Failure> {
        let since = (self.began, self.node.images.offline);
        let time_is_up = async {
            match self.flags.timeout {
                Some(timeout) => tokio::time::sleep_until(self.began + timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            told = prepare::ready(&self.images, wanted, voice, since) => told.map(Some),
            broken = yard.broken() => Err(broken),
            () = time_is_up => Err(Failure::deadline(
                "the time of --timeout is over, and what stands for the images is not ready",
            )),
            signal = signals.next() => {
                if signal == HANGUP {
                    output::forgive_loss();
                }
                Ok(None)
            }
        }
    }

    /// What is asked for, where it fits; a failure where it does not.
    async fn look(&self, cluster: &Cluster, kinds: &Kinds) -> Result<Vec<Header>, Failure> {
        let mut nodes = cluster.objects(kinds.known("nodes")?, None, &Query::default()).await?;
        for node in &mut nodes {
            // It comes up; what it has is the question.
            let taints = node.pointer_mut("/spec/taints").and_then(Value::as_array_mut);
            if let Some(taints) = taints {
                taints.retain(|taint| taint["key"] != crate::yard::NOT_READY);
            }
        }
        let mut headers = Vec::new();
        for job in &self.bundle.jobs {
            match room::look(job, &nodes) {
                Room::Short { problems, hint } => {
                    return Err(Failure::unschedulable(problems).hint(hint));
                }
                Room::Fits { asked, has } => {
                    let all = ["cpu", "memory"].into_iter();
                    let devices =
                        asked.iter().map(|(name, _)| name).filter(|name| name.contains('/'));
                    let room = all
                        .chain(devices)
                        .map(|name| (name.to_owned(), asked.get(name), has.get(name)))
                        .collect();
                    let members = (job.row.members)(&job.object);
                    headers.push(Header {
                        job: job.name.clone(),
                        namespace: job.namespace.clone(),
                        kind: job.row.title,
                        replicas: counted(&members),
                        beside: (job.row.beside)(&job.object),
                        room,
                        logs: self.places.logs(&job.namespace, &job.name),
                    });
                }
            }
        }
        Ok(headers)
    }

    fn board(staged: &[Staged]) -> Board {
        let mut board = Board::default();
        for one in staged {
            let place = (one.job.namespace.as_str(), one.name(), one.uid.as_str());
            board.add(one.job.row, place, (one.job.row.known)(&one.job.object));
        }
        board
    }

    /// Names what pods get of this machine, before anything of them runs. A command's own folder is no news.
    fn name_host_paths(&self, voice: &mut Voice) -> Result<(), Failure> {
        let own = if self.flags.command.is_empty() { &self.host_paths[..] } else { &[] };
        for path in own {
            let weight = if path.is_writable { Weight::Warning } else { Weight::Normal };
            voice.notice(&Board::default(), &Notice::new(weight, "HostPath", path.words()))?;
        }
        Ok(())
    }

    /// What is to be known before it starts.
    fn warn(&self, voice: &mut Voice, board: &Board) -> Result<(), Failure> {
        for (namespace, name) in &self.bundle.claims_made_up {
            let folder = self.places.claim(namespace, name)?;
            let words = format!(
                "claim {name:?} is in no file: the folder {} stands for it",
                folder.display()
            );
            voice.notice(board, &Notice::new(Weight::Normal, "ClaimMadeUp", words))?;
        }
        for (number, job) in self.bundle.jobs.iter().enumerate() {
            for words in room::little_memory(job) {
                let notice = Notice::new(Weight::Warning, "MemoryLimitTooSmall", words);
                voice.notice(board, &notice.about(number, None))?;
            }
        }
        if self.flags.verbose || self.flags.keep {
            let file = self.places.folder.kubeconfig();
            let words = format!("kubectl --kubeconfig {} get pods", file.display());
            voice.notice(board, &Notice::new(Weight::Normal, "Kubeconfig", words))?;
        }
        Ok(())
    }

    /// Keeps the yard until a signal comes.
    async fn stay(
        &self,
        yard: &mut Yard,
        signals: &mut Signals,
        voice: &mut Voice,
        board: &Board,
    ) -> Result<(), Failure> {
        let file = self.places.folder.kubeconfig();
        let words = format!(
            "the yard stays until Ctrl-C: export KUBECONFIG={}   (API at {})",
            file.display(),
            yard.url()
        );
        voice.notice(board, &Notice::new(Weight::Normal, "Kept", words))?;
        // What was said when it came up is far above by now.
        for (number, name, address) in board.addresses() {
            let notice = Notice::new(Weight::Normal, "Address", format!("is at {address}"));
            voice.notice(board, &notice.about(number, Some(name)))?;
        }
        tokio::select! {
            _ = signals.next() => Ok(()),
            broken = yard.broken() => Err(broken),
        }
    }
}

/// How many of each role, in their order.
fn counted(members: &[kinds::Member<'_>]) -> Vec<(String, usize)> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for member in members {
        let role = member.role.to_lowercase();
        match counts.iter_mut().find(|(known, _)| *known == role) {
            Some((_, count)) => *count += 1,
            None => counts.push((role, 1)),
        }
    }
    counts
}

/// The names of the nodes that were asked for.
fn node_names(text: &str) -> Result<Vec<String>, Failure> {
    let names = up::flags::names(text, &trainyard_node::machine_name())?;
    if names.is_empty() {
        return Err(Failure::usage("a run needs a node: --nodes must be at least 1"));
    }
    Ok(names)
}

/// Prints objects as YAML or JSON.
fn print_objects(objects: &[Value], form: Form) -> Result<(), Failure> {
    match form {
        Form::Json => {
            for object in objects {
                let text = serde_json::to_string_pretty(object)
                    .map_err(|error| Failure::other("writing the job", &error))?;
                output::print_json(&format!("{text}\n"))?;
            }
            Ok(())
        }
        Form::Yaml | Form::Text => output::print(&crate::yaml::to_string(objects)),
    }
}
