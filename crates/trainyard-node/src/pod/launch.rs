//! Makes a container's run ready and starts it: image, environment, root, log, devices.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use trainyard_holder::protocol::{ContainerSpec, Isolation, Refusal, RefusalKind};
use trainyard_holder::sweep::sweep;
use trainyard_image::{Image, PullPolicy};

use super::container::Obstacle;
use super::root::{self, Hosts, PodFiles, Root};
use super::{Context, Live, Run, limits, loopback, message, security, views};
use crate::env;
use crate::events::Weight;
use crate::logs::{self, LogFile, LogSource, Lost, PodPlace};
use crate::net::hosts;
use crate::node::{Allotment, gpus_asked};
use crate::shared::{Shared, lock, run_folder};
use crate::yard::{Begun, Exit, Exited};

/// Lines and bytes of a log that stand in for a termination message.
const LAST_LINES: u64 = 80;
const LAST_BYTES: usize = 2048;
/// A log may lag behind the end of what wrote it by this much.
const LOG_LAG: Duration = Duration::from_secs(2);
/// Annotation with further Python packages.
const REQUIREMENTS: &str = "trainyard.dev/requirements";
const NOT_TAKEN: &str = "annotation trainyard.dev/requirements: this node installs no packages that pods ask for; \
     remove the annotation, or have whoever runs the node start it with --allow-requirements \
     (allow-requirements = true in trainyard.toml)";

/// A run that can be started.
pub(crate) struct Prepared {
    spec: ContainerSpec,
    /// What is to be told of the image. Words are written while nothing waits for them: before the
    /// start they would be in its way.
    pulled: String,
    log: LogFile,
    log_path: PathBuf,
    termination: PathBuf,
    image_id: String,
}

impl Prepared {
    /// The run's id.
    pub(crate) fn id(&self) -> &str {
        &self.spec.container
    }
}

/// A run that was started.
pub(crate) struct Launched {
    pub(crate) id: String,
    exited: Mutex<Option<Exited>>,
    log_path: PathBuf,
    pump: JoinHandle<Lost>,
    termination: PathBuf,
    folder: PathBuf,
}

/// Makes a run ready; what hinders it is said as a waiting reason.
pub(crate) async fn prepare(
    context: &Context<'_>,
    container: &Container,
) -> Result<Prepared, Obstacle> {
    let live = context.live;
    let pod = live.pod();
    let (image, pulled) = resolve(context, container, &pod).await?;
    let (id, log_path) = next_run(context.shared, live, &container.name);
    let composed = compose(context, container, &pod, &image, &id).await;
    let opened = composed.and_then(|(spec, termination)| {
        let log = LogFile::open(&log_path, logs::Bounds::default());
        Ok((spec, termination, log.map_err(|error| machine(&error))?))
    });
    match opened {
        Ok((spec, termination, log)) => {
            let image_id = image.id.clone();
            Ok(Prepared { spec, pulled, log, log_path, termination, image_id })
        }
        Err(obstacle) => {
            context.tell(container, Weight::Normal, "Pulled", pulled);
            context.shared.release_devices(&id);
            Err(obstacle)
        }
    }
}

/// The id of a container's next run, and where it is logged.
fn next_run(shared: &Shared, live: &Live, container: &str) -> (String, PathBuf) {
    let restarts = live
        .record()
        .find(container)
        .map_or(0, |record| record.restarts + i32::from(record.last_run().is_some()));
    let id = format!("{}-{container}-{restarts}", live.uid);
    let restart = u32::try_from(restarts).unwrap_or_default();
    (id, PodPlace::of(&live.pod().metadata).log(&shared.places.logs, container, restart))
}

/// Begins to make the folders and files of the runs that a pod begins with, while its sandbox and
/// volumes are still being made. To be waited for: the pod's folder must not be removed meanwhile.
pub(crate) fn make_ahead(shared: &Shared, live: &Live, spec: &PodSpec) -> JoinHandle<()> {
    let first = spec.init_containers.iter().flatten().take(1);
    let all = spec.containers.iter().filter(|_| spec.init_containers.is_none());
    let ephemeral = shared.folders(&live.uid).ephemeral;
    let runs: Vec<_> = first
        .chain(all)
        .map(|container| next_run(shared, live, &container.name))
        .map(|(id, log)| (run_folder(&ephemeral, &id), log))
        .collect();
    tokio::task::spawn_blocking(move || {
        for (folder, log) in runs {
            // What cannot be made is told when it is needed.
            let _ = files_of_run(&folder);
            let _ = LogFile::open(&log, logs::Bounds::default());
        }
    })
}

/// Everything the holder must know, and where the termination message will be.
async fn compose(
    context: &Context<'_>,
    container: &Container,
    pod: &Pod,
    image: &Image,
    id: &str,
) -> Result<(ContainerSpec, PathBuf), Obstacle> {
    // It decides what the container is told of names and proxies.
    context.shared.network.outbound.opened().await;
    let image_user = image.user.as_deref().and_then(|user| user.parse().ok());
    let (user, privileges) =
        security::context(pod, container, image_user).map_err(|error| misconfigured(&error))?;
    let devices = devices(context, container, pod, id)?;
    let env = environment(context, container, pod, image, &devices).await?;
    let argv = env::argv(container, &image.entrypoint, &image.cmd, &env)
        .map_err(|error| bad_env(&error))?;
    let volumes = context.volumes.mounts(container, &env).map_err(|error| misconfigured(&error))?;
    let folder = run_folder(&context.shared.folders(&context.live.uid).ephemeral, id);
    let made = made(context, pod, &folder, user.uid)
        .map_err(|error| machine(&located(&folder, &error)))?;
    let path = container.termination_message_path.as_deref().unwrap_or("/dev/termination-log");
    let termination = (made.termination.as_path(), Path::new(path));
    let changes = folder.join("changes");
    let mut views = image.root.clone();
    // Plain processes see the machine's files where they lie.
    if context.shared.isolation == Isolation::Namespaces {
        views = views::resolved(&views, &context.shared.written).map_err(|e| machine(&e))?;
    }
    let root = root::root(&views, &user, made.files, termination, &changes, volumes);
    let Root { base, mounts } = loopback::possible(context.shared, root);
    for changes in root::overlay_folders(&mounts) {
        fs::create_dir_all(changes).map_err(|error| machine(&located(changes, &error)))?;
    }
    let own_cwd = container.working_dir.as_deref().map(PathBuf::from);
    let spec = ContainerSpec {
        container: id.to_owned(),
        pod: context.live.uid.clone(),
        argv,
        env: env.into_variables(),
        cwd: own_cwd.unwrap_or_else(|| image.working_dir.clone()),
        scratch: made.root,
        base,
        mounts,
        devices: existing(devices.device_paths()),
        user,
        privileges,
        limits: limits::limits(container),
        tty: container.tty == Some(true),
    };
    warn_of_little_memory(context, container, image, spec.limits.memory);
    Ok((spec, made.termination))
}

async fn environment(
    context: &Context<'_>,
    container: &Container,
    pod: &Pod,
    image: &Image,
    devices: &Allotment,
) -> Result<env::Environment, Obstacle> {
    let mut image_env = image.env.clone();
    image_env.extend(context.shared.network.outbound.variables().iter().cloned());
    image_env.push(("HOSTNAME".to_owned(), context.identity.kernel_name.clone()));
    image_env.extend(devices.environment());
    image_env.extend(loopback::variables(context));
    let links = pod.spec.as_ref().is_some_and(|spec| spec.enable_service_links != Some(false));
    let names = &context.shared.names;
    let mut services = names.service_variables(&context.live.namespace, links);
    services.extend(loopback::api_server(context));
    let objects = &context.shared.objects_of(pod);
    env::environment(pod, container, &image_env, &services, context.facts, objects)
        .await
        .map_err(|error| bad_env(&error))
}

fn devices(
    context: &Context<'_>,
    container: &Container,
    pod: &Pod,
    id: &str,
) -> Result<Allotment, Obstacle> {
    let Some(node) = context.shared.node_of(pod) else { return Ok(Allotment::default()) };
    lock(&node.devices)
        .take(id, gpus_asked(container))
        .map_err(|error| Obstacle { reason: error.kind().to_owned(), message: error.to_string() })
}

/// A machine has only some of the device nodes that drivers may bring.
fn existing(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.into_iter().filter(|path| path.exists()).collect()
}

fn bad_env(error: &env::EnvError) -> Obstacle {
    Obstacle { reason: error.kind().to_owned(), message: error.to_string() }
}

fn misconfigured(error: &dyn std::error::Error) -> Obstacle {
    Obstacle { reason: "CreateContainerConfigError".to_owned(), message: error.to_string() }
}

fn machine(error: &dyn std::error::Error) -> Obstacle {
    Obstacle { reason: "CreateContainerError".to_owned(), message: error.to_string() }
}

/// The image, with events that say what is done, and what is to be told of it when it is there.
async fn resolve(
    context: &Context<'_>,
    container: &Container,
    pod: &Pod,
) -> Result<(Arc<Image>, String), Obstacle> {
    let reference = container.image.as_deref().unwrap_or_default();
    let policy = match container.image_pull_policy.as_deref() {
        Some("Always") => PullPolicy::Always,
        Some("Never") => PullPolicy::Never,
        _ => PullPolicy::IfNotPresent,
    };
    let annotations = pod.metadata.annotations.as_ref();
    let requirements = annotations.and_then(|annotations| annotations.get(REQUIREMENTS));
    let requirements: Vec<String> =
        requirements.into_iter().flat_map(|text| text.lines()).map(str::to_owned).collect();
    if !requirements.is_empty() && !context.shared.takes_requirements {
        let (reason, message) = ("CreateContainerConfigError".to_owned(), NOT_TAKEN.to_owned());
        return Err(Obstacle { reason, message });
    }
    let pulled = AtomicBool::new(false);
    let began = Instant::now();
    let progress = |progress: trainyard_image::Progress| {
        if !pulled.swap(true, Ordering::Relaxed) {
            let words = format!("Pulling image \"{reference}\"");
            context.tell(container, Weight::Normal, "Pulling", words);
        }
        let words = match progress.percent {
            Some(percent) => format!("[{percent}%] {}", progress.words),
            None => progress.words,
        };
        context.tell(container, Weight::Normal, "Pulling", words);
    };
    let image = context.shared.images.resolve(reference, &requirements, policy, progress).await;
    let image = image.map_err(|error| Obstacle {
        reason: error.kind().to_owned(),
        message: error.to_string(),
    })?;
    let words = if pulled.load(Ordering::Relaxed) {
        let seconds = began.elapsed().as_secs_f64();
        format!("Successfully pulled image \"{reference}\" in {seconds:.3}s: {}", image.note)
    } else {
        format!("Container image \"{reference}\" already present on machine: {}", image.note)
    };
    Ok((image, words))
}

fn warn_of_little_memory(
    context: &Context<'_>,
    container: &Container,
    image: &Image,
    memory: Option<u64>,
) {
    if let Some(memory) = memory
        && memory < limits::TENSORFLOW_NEEDS
        && image.id.contains("tensorflow")
    {
        let words = format!(
            "a memory limit of {} MiB is too little for TensorFlow, which needs about 400 MiB to \
             load: it will be very slow or be killed; raise resources.limits.memory",
            memory >> 20
        );
        context.tell(container, Weight::Warning, "MemoryLimitTooSmall", words);
    }
}

struct Made {
    root: PathBuf,
    files: PodFiles,
    termination: PathBuf,
}

/// An error of the file system that says where.
fn located(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("making files in {}: {error}", path.display()))
}

/// The scratch folder of a run and the file for its last words.
pub(crate) fn files_of_run(folder: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let root = folder.join("root");
    fs::create_dir_all(&root)?;
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755))?;
    let termination = folder.join("termination-log");
    fs::File::create(&termination)?;
    // Whoever the container runs as may leave a message.
    fs::set_permissions(&termination, fs::Permissions::from_mode(0o666))?;
    Ok((root, termination))
}

/// Folders and files of one run.
fn made(context: &Context<'_>, pod: &Pod, folder: &Path, uid: u32) -> io::Result<Made> {
    let (root, termination) = files_of_run(folder)?;
    let identity = context.identity;
    let address = context.facts.pod_ip.unwrap_or(context.facts.host_ip);
    let resolv = match context.shared.network.resolver() {
        Some(resolver) => {
            let resolv = resolver.resolv_conf(pod);
            for warning in resolv.warnings {
                context.shared.events.pod(pod, None, Weight::Warning, "DNSConfigForming", warning);
            }
            resolv.text
        }
        None => fs::read_to_string("/etc/resolv.conf").unwrap_or_default(),
    };
    let files = PodFiles {
        hosts: match context.shared.shim {
            Some(_) => Hosts::File(loopback::write_hosts(context, pod)?),
            None => Hosts::Text(hosts::hosts_file(pod, address, identity)),
        },
        resolv,
        hostname: format!("{}\n", identity.kernel_name),
    };
    if uid != 0 && rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&root, Some(uid), None)?;
    }
    Ok(Made { root, files, termination })
}

/// Starts a run.
pub(crate) async fn start(
    context: &Context<'_>,
    container: &Container,
    prepared: Prepared,
) -> Result<Launched, Refusal> {
    let Prepared { spec, pulled, log, log_path, termination, image_id } = prepared;
    let run = Run {
        id: spec.container.clone(),
        env: spec.env.clone(),
        cwd: spec.cwd.clone(),
        user: spec.user.clone(),
        privileges: spec.privileges.clone(),
        log: LogSource { path: log_path.clone(), live: Some(log.live()) },
    };
    let id = spec.container.clone();
    let folder = run_folder(&context.shared.folders(&context.live.uid).ephemeral, &id);
    let begun = begin(context, spec, log).await;
    context.tell(container, Weight::Normal, "Pulled", pulled);
    match begun {
        Ok((exited, pump)) => {
            context.change(container, |record| record.image_id = image_id);
            context.live.set_run(&container.name, run);
            let exited = Mutex::new(Some(exited));
            Ok(Launched { id, exited, log_path, pump, termination, folder })
        }
        Err(refusal) => {
            context.shared.release_devices(&id);
            Err(refusal)
        }
    }
}

async fn begin(
    context: &Context<'_>,
    spec: ContainerSpec,
    log: LogFile,
) -> Result<(Exited, JoinHandle<Lost>), Refusal> {
    let broken = |reason: String| Refusal {
        step: "making the container's pipes".to_owned(),
        reason,
        kind: RefusalKind::Machine,
    };
    if spec.tty {
        let Begun { exited, terminal } = context.shared.yard.start_container(spec, None).await?;
        let terminal = terminal.ok_or_else(|| broken("the holder gave no terminal".to_owned()))?;
        let pump = logs::pump(terminal, None, log).map_err(|error| broken(error.to_string()))?;
        return Ok((exited, pump));
    }
    let (inside, out, err) = stdio().map_err(|error| broken(error.to_string()))?;
    let pump = logs::pump(out, Some(err), log).map_err(|error| broken(error.to_string()))?;
    let begun = context.shared.yard.start_container(spec, Some(inside)).await?;
    Ok((begun.exited, pump))
}

/// The container's three descriptors, and our ends of its output and errors.
pub(crate) fn stdio() -> io::Result<([OwnedFd; 3], OwnedFd, OwnedFd)> {
    let null = fs::File::open("/dev/null")?;
    let (out, out_inside) = io::pipe()?;
    let (err, err_inside) = io::pipe()?;
    Ok(([null.into(), out_inside.into(), err_inside.into()], out.into(), err.into()))
}

impl Launched {
    /// Waits for the end of the run; none if the holder ended.
    pub(crate) async fn exited(&self) -> Option<Exit> {
        let mut exited = self.exited.lock().await;
        match exited.as_mut() {
            Some(waiting) => {
                let exit = waiting.await.ok();
                *exited = None;
                exit
            }
            None => None,
        }
    }

    /// What the run left to be said of it, once its log is complete.
    pub(crate) async fn last_words(
        self,
        context: &Context<'_>,
        container: &Container,
        exit_code: i32,
    ) -> String {
        match tokio::time::timeout(LOG_LAG, self.pump).await {
            Ok(Ok(lost)) if lost.bytes > 0 => {
                let reason = lost.reason.unwrap_or_default();
                let words = format!("{} bytes of the log could not be kept: {reason}", lost.bytes);
                context.tell(container, Weight::Warning, "LogLost", words);
            }
            Ok(_) => {}
            Err(_) => {
                tracing::warn!(container = self.id, "its log was still open after it had ended");
            }
        }
        let mut message = message::left(&self.termination);
        let falls_back =
            container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
        if message.is_empty() && falls_back && exit_code != 0 {
            let words = logs::last_words(self.log_path, LAST_LINES, LAST_BYTES).await;
            message = words.unwrap_or_default();
        }
        // The next run gets a folder of its own; what this one wrote is gone, as in any container.
        let folder = self.folder;
        let removed = tokio::task::spawn_blocking(move || sweep(&folder)).await;
        if let Ok(Err(error)) = removed {
            tracing::debug!(%error, "a run's folder is left to its pod's end");
        }
        message
    }
}
