//! A yard to test in: a holder of its own, a temporary folder, and short ways to ask.

use std::io::Read;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use trainyard_holder::client::Holder;
use trainyard_holder::protocol::{
    Answer, Cgroups, ContainerSpec, Ending, Event, ExecSpec, Isolation, Limits, Mount, Network,
    NodeNetwork, PodSpec, Privileges, Reach, Refusal, Request, SetUp, User,
};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The user that nobody is.
pub(crate) const NOBODY: u32 = 65534;

/// Whom a holder is started as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Whoever runs the tests.
    Me,
    /// An ordinary user; only root can start one.
    Nobody,
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a test as whoever runs the tests and, if that is root, as an ordinary user too.
pub(crate) fn as_each(test: impl Fn(Who)) {
    test(Who::Me);
    if is_root() {
        eprintln!("again as user {NOBODY}");
        test(Who::Nobody);
    }
}

pub(crate) struct Bed {
    pub(crate) holder: Holder,
    pub(crate) folder: PathBuf,
    /// What is not a pod's.
    pub(crate) kept: PathBuf,
    pub(crate) ready: Answer,
    pub(crate) yard: String,
    pub(crate) who: Who,
    events: Mutex<Receiver<Event>>,
    ended: Mutex<Receiver<()>>,
    _temporary: tempfile::TempDir,
}

/// Whether namespaces can be had, as another program finds it.
fn namespaces_work(who: Who) -> bool {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "true"]);
    if who == Who::Nobody {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.current_dir("/").status().is_ok_and(|status| status.success())
}

/// Says loudly that a test could not be done; where nothing may be left out, it fails.
pub(crate) fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "this machine must be able to: {why}");
    eprintln!("SKIPPED: {why}");
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The folder of bases is put where the yard's user can make it.
pub(crate) fn set_up(isolation: Isolation, network: Network) -> SetUp {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    SetUp {
        yard: format!("test-{}-{number}", std::process::id()),
        isolation,
        network,
        cgroups: true,
        limits: Limits::default(),
        gateway: Ipv4Addr::new(10, 77, 0, 1),
        prefix: 16,
        nodes: vec![
            NodeNetwork { name: "a".to_owned(), address: Ipv4Addr::new(10, 77, 0, 2) },
            NodeNetwork { name: "b".to_owned(), address: Ipv4Addr::new(10, 77, 0, 3) },
        ],
        bases: Some("bases".into()),
    }
}

/// A folder that everybody may enter, with the holder's program in it.
pub(crate) fn temporary() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = folder.path().join("holder");
    std::fs::copy(env!("CARGO_BIN_EXE_trainyard-holder-test"), &program).unwrap();
    folder
}

pub(crate) fn command(folder: &Path, who: Who) -> Command {
    let mut command = Command::new(folder.join("holder"));
    if who == Who::Nobody {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

pub(crate) fn spawned(folder: &Path, who: Who) -> (Holder, Receiver<Event>, Receiver<()>) {
    loop {
        let (event, events) = channel();
        let (end, ended) = channel();
        let on_event = move |one| drop(event.send(one));
        match Holder::spawn(command(folder, who), on_event, move || end.send(()).unwrap_or(())) {
            Ok(holder) => return (holder, events, ended),
            // Another test forked while the program was being copied, and has it open for writing
            // until it executes its own.
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

impl Bed {
    /// The best level, or none, which has been said.
    pub(crate) fn new(who: Who) -> Option<Self> {
        Self::with(who, set_up(Isolation::Namespaces, Network::Bridge))
    }

    pub(crate) fn with(who: Who, set_up: SetUp) -> Option<Self> {
        match Self::try_with(who, set_up) {
            Ok(bed) => Some(bed),
            Err(refusal) => {
                assert!(!namespaces_work(who), "{refusal}");
                skipped(&refusal.to_string());
                None
            }
        }
    }

    pub(crate) fn try_with(who: Who, set_up: SetUp) -> Result<Self, Refusal> {
        let temporary = temporary();
        let folder = temporary.path().join("yard");
        std::fs::create_dir(&folder).unwrap();
        let kept = temporary.path().join("kept");
        std::fs::create_dir(&kept).unwrap();
        if who == Who::Nobody {
            for folder in [&folder, &kept] {
                std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let mut set_up = set_up;
        set_up.bases = set_up.bases.map(|name| kept.join(name));
        let (holder, events, ended) = spawned(temporary.path(), who);
        let yard = set_up.yard.clone();
        let (ready, _) = holder.ask(Request::SetUp(set_up), Vec::new())?;
        let (events, ended) = (Mutex::new(events), Mutex::new(ended));
        Ok(Self { holder, folder, kept, ready, yard, who, events, ended, _temporary: temporary })
    }

    pub(crate) fn ask(&self, request: Request) -> Result<Answer, Refusal> {
        self.holder.ask(request, Vec::new()).map(|(answer, _)| answer)
    }

    pub(crate) fn cgroups(&self) -> Cgroups {
        match self.ready {
            Answer::Ready { cgroups, .. } => cgroups,
            _ => panic!("not ready: {:?}", self.ready),
        }
    }

    /// A folder of the yard, made by the user who runs it.
    pub(crate) fn make(&self, name: &str) -> PathBuf {
        let mut path = self.folder.clone();
        for part in name.split('/') {
            path.push(part);
            std::fs::create_dir_all(&path).unwrap();
            if self.who == Who::Nobody {
                std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        path
    }

    pub(crate) fn pod(&self, pod: &str, last: u8) -> PodSpec {
        PodSpec {
            pod: pod.to_owned(),
            node: "a".to_owned(),
            hostname: format!("host-{pod}"),
            address: Some(Ipv4Addr::new(10, 77, 1, last)),
            share_processes: false,
            ephemeral: self.make(&format!("pod-{pod}")),
            memory_volumes: Vec::new(),
            shared_memory: 64 << 20,
            limits: Limits::default(),
        }
    }

    pub(crate) fn add(&self, pod: &str, last: u8) {
        self.ask(Request::AddPod(Box::new(self.pod(pod, last)))).unwrap();
    }

    pub(crate) fn remove(&self, pod: &str) {
        let answer = self.ask(Request::RemovePod { pod: pod.to_owned() });
        assert_eq!(answer, Ok(Answer::Done));
    }

    pub(crate) fn container(&self, pod: &str, container: &str, script: &str) -> ContainerSpec {
        ContainerSpec {
            container: container.to_owned(),
            pod: pod.to_owned(),
            argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
            env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            cwd: "/".into(),
            scratch: self.make(&format!("pod-{pod}/root-{container}")),
            base: system(),
            mounts: Vec::new(),
            devices: Vec::new(),
            user: User::default(),
            privileges: privileges(),
            limits: Limits::default(),
            tty: false,
        }
    }

    /// Starts it with empty input, and pipes for output and error.
    pub(crate) fn start(&self, spec: ContainerSpec) -> Result<Output, Refusal> {
        let (descriptors, output) = pipes();
        self.holder.ask(Request::Start(Box::new(spec)), descriptors).map(|_| output)
    }

    /// Runs a script in a container of its own to its end: what it wrote, and how it ended.
    pub(crate) fn run(&self, spec: ContainerSpec) -> (String, Ending) {
        let id = spec.container.clone();
        let output = self.start(spec).unwrap();
        let text = output.text();
        (text, self.ending(&id))
    }

    pub(crate) fn exec(
        &self,
        container: &str,
        exec: &str,
        script: &str,
    ) -> Result<Output, Refusal> {
        let (descriptors, output) = pipes();
        let spec = Self::exec_spec(container, exec, script);
        self.holder.ask(Request::Exec(Box::new(spec)), descriptors).map(|_| output)
    }

    pub(crate) fn exec_spec(container: &str, exec: &str, script: &str) -> ExecSpec {
        ExecSpec {
            exec: exec.to_owned(),
            container: container.to_owned(),
            argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
            env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            cwd: "/".into(),
            user: User::default(),
            privileges: privileges(),
            tty: false,
        }
    }

    pub(crate) fn signal(&self, target: &str, signal: i32, reach: Reach) {
        let request = Request::Signal { target: target.to_owned(), signal, reach };
        assert_eq!(self.ask(request), Ok(Answer::Done));
    }

    pub(crate) fn event(&self, patience: Duration) -> Option<Event> {
        match self.events.lock().unwrap().recv_timeout(patience) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("the holder is gone"),
        }
    }

    /// Waits for the next event, which must be this one's end.
    pub(crate) fn ending(&self, id: &str) -> Ending {
        match self.event(PATIENCE) {
            Some(Event::Exited { target, ending, .. }) if target == id => ending,
            other => panic!("{id} should have ended: {other:?}"),
        }
    }

    pub(crate) fn wait_for_end(&self) {
        self.ended.lock().unwrap().recv_timeout(PATIENCE).unwrap();
    }
}

/// As it must be where nothing can be mounted.
pub(crate) fn without_mounts(mut spec: ContainerSpec) -> ContainerSpec {
    (spec.base, spec.mounts) = (Vec::new(), Vec::new());
    spec
}

/// Where a program writes.
pub(crate) struct Output {
    pub(crate) stdout: std::io::PipeReader,
    pub(crate) stderr: std::io::PipeReader,
}

impl Output {
    /// All it writes, to both, until the end.
    pub(crate) fn text(mut self) -> String {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).unwrap();
        self.stderr.read_to_string(&mut text).unwrap();
        text
    }

    /// One line.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while self.stdout.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }
}

pub(crate) fn pipes() -> (Vec<OwnedFd>, Output) {
    let null = std::fs::File::open("/dev/null").unwrap();
    let (stdout, out) = std::io::pipe().unwrap();
    let (stderr, err) = std::io::pipe().unwrap();
    (vec![null.into(), out.into(), err.into()], Output { stdout, stderr })
}

pub(crate) fn privileges() -> Privileges {
    Privileges {
        capabilities: Vec::new(),
        no_new_privileges: true,
        seccomp: true,
        read_only_root: false,
    }
}

/// The host's programs, read-only, and a place to write.
pub(crate) fn system() -> Vec<Mount> {
    let mut mounts =
        vec![Mount::Bind { source: "/usr".into(), target: "/usr".into(), read_only: true }];
    for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
        let path = Path::new("/").join(name);
        if let Ok(to) = std::fs::read_link(&path) {
            mounts.push(Mount::Symlink { target: path, to });
        } else if path.is_dir() {
            mounts.push(Mount::Bind { source: path.clone(), target: path, read_only: true });
        }
    }
    mounts.push(Mount::Tmpfs { target: "/tmp".into(), size: None, mode: 0o1777 });
    mounts
}

/// A whole volume that can be written to.
pub(crate) fn volume_at(place: &Path, target: &str) -> Mount {
    Mount::Volume {
        name: "v".to_owned(),
        place: place.to_owned(),
        part: PathBuf::new(),
        target: target.into(),
        read_only: false,
    }
}

/// Waits until something is so.
pub(crate) fn soon(what: &str, mut is: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is() {
        assert!(since.elapsed() < PATIENCE, "not so after all the time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes of the machine whose command line holds this text.
pub(crate) fn processes_with(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if name.parse::<u32>().is_ok() && String::from_utf8_lossy(&line).contains(mark) {
            found.push(name);
        }
    }
    found
}

/// Cgroup folders of a yard.
pub(crate) fn cgroups_of(yard: &str) -> Vec<PathBuf> {
    let hierarchies = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
    let folders = hierarchies.map(|entry| entry.path().join("trainyard").join(yard));
    folders.filter(|folder| folder.exists()).collect()
}
