//! The end: of the owner, of the holder, of either of its processes, at any moment. Nothing stays.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use trainyard_holder::protocol::{Isolation, Network, Reach, RefusalKind, Request, SetUp};

use crate::bed::{
    Bed, Who, as_each, cgroups_of, pipes, processes_with, set_up, soon, without_mounts,
};

fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("4{:07}{:03}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Starts what is hard to end: it ignores signals, has daemons, and leaves odd files.
fn inhabit(bed: &Bed, isolation: Isolation, mark: &str) {
    for (pod, last) in [("p", 1), ("q", 2)] {
        bed.add(pod, last);
        let script = format!(
            "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM HUP; setsid sleep {mark} &'; echo up; while :; do sleep {mark}; done"
        );
        let mut spec = bed.container(pod, &format!("{pod}-c"), &script);
        if isolation == Isolation::Processes {
            spec = without_mounts(spec);
        }
        let mut output = bed.start(spec).unwrap();
        assert_eq!(output.line(), "up");
    }
    let odd = bed.make("pod-p/odd");
    std::fs::write(odd.join("file"), "x").unwrap();
    std::fs::set_permissions(&odd, PermissionsExt::from_mode(0o000)).unwrap();
    soon("all run", || processes_with(mark).len() >= 4);
}

fn levels() -> [(Isolation, Network); 2] {
    [(Isolation::Namespaces, Network::Bridge), (Isolation::Processes, Network::Loopback)]
}

fn nothing_is_left(mark: &str, yard: &str, folder: &Path) {
    soon("all processes are gone", || processes_with(mark).is_empty());
    soon("all cgroups are gone", || cgroups_of(yard).is_empty());
    soon("the folders of pods are gone", || {
        !folder.join("pod-p").exists() && !folder.join("pod-q").exists()
    });
    let kept = folder.with_file_name("kept");
    soon("what roots began with is gone", || std::fs::read_dir(&kept).unwrap().count() == 0);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(folder.to_str().unwrap()), "{mounts}");
}

#[test]
fn closing_the_socket_ends_everything() {
    as_each(|who| {
        for (isolation, network) in levels() {
            let Some(bed) = Bed::with(who, set_up(isolation, network)) else { return };
            let mark = mark();
            inhabit(&bed, isolation, &mark);
            bed.holder.end();
            bed.wait_for_end();
            // Not soon: now.
            assert_eq!(processes_with(&mark), Vec::<String>::new());
            assert_eq!(cgroups_of(&bed.yard), Vec::<PathBuf>::new());
            nothing_is_left(&mark, &bed.yard, &bed.folder);
            let refused = bed.ask(Request::Usage).unwrap_err();
            assert_eq!(refused.kind, RefusalKind::Machine);
        }
    });
}

#[test]
fn killing_the_outer_process_ends_everything() {
    as_each(|who| {
        for (isolation, network) in levels() {
            let Some(bed) = Bed::with(who, set_up(isolation, network)) else { return };
            let mark = mark();
            inhabit(&bed, isolation, &mark);
            let (sender, answers) = channel();
            // A call that will never be answered otherwise: its start cannot end.
            let (descriptors, _output) = pipes();
            let hanging = without_mounts(bed.container("p", "late", "sleep 1"));
            bed.holder.call(Request::Start(Box::new(hanging)), descriptors, move |outcome| {
                drop(sender.send(outcome.map(|(answer, _)| answer)));
            });
            kill(bed.holder.pid());
            bed.wait_for_end();
            assert!(answers.recv_timeout(Duration::from_secs(5)).is_ok());
            nothing_is_left(&mark, &bed.yard, &bed.folder);
            assert!(bed.ask(Request::Usage).is_err());
        }
    });
}

#[test]
fn killing_the_inner_process_ends_everything() {
    as_each(|who| {
        for (isolation, network) in levels() {
            let Some(bed) = Bed::with(who, set_up(isolation, network)) else { return };
            let mark = mark();
            inhabit(&bed, isolation, &mark);
            kill(only_child(bed.holder.pid()));
            bed.wait_for_end();
            nothing_is_left(&mark, &bed.yard, &bed.folder);
        }
    });
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn children(pid: u32) -> Vec<u32> {
    let file = format!("/proc/{pid}/task/{pid}/children");
    // It may end meanwhile.
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn only_child(pid: u32) -> u32 {
    let children = children(pid);
    assert_eq!(children.len(), 1);
    children[0]
}

#[test]
fn killing_an_init_ends_its_container_alone() {
    as_each(|who| {
        for (isolation, network) in levels() {
            for share_processes in [false, true] {
                let Some(bed) = Bed::with(who, set_up(isolation, network)) else { return };
                let mut pod = bed.pod("p", 1);
                pod.share_processes = share_processes;
                bed.ask(Request::AddPod(Box::new(pod))).unwrap();
                lose_an_init(&bed, isolation);
            }
        }
    });
}

/// Whether a process whose command line holds this text descends from another.
fn is_above(pid: u32, mark: &str) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).contains(mark)
        || children(pid).into_iter().any(|child| is_above(child, mark))
}

fn lose_an_init(bed: &Bed, isolation: Isolation) {
    let mark = mark();
    let script = format!("setsid sh -c 'setsid sleep {mark} &'; echo up; sleep {mark}");
    for name in ["one", "two"] {
        let mut spec = bed.container("p", name, &script);
        if isolation == Isolation::Processes {
            spec = without_mounts(spec);
        }
        assert_eq!(bed.start(spec).unwrap().line(), "up");
        if name == "one" {
            let inits = children(only_child(bed.holder.pid()));
            kill(inits.into_iter().find(|&init| is_above(init, &mark)).unwrap());
            bed.ending("one");
            soon("its processes are gone", || processes_with(&mark).is_empty());
        }
    }
    assert_eq!(bed.event(Duration::from_millis(100)), None);
    assert!(processes_with(&mark).len() >= 2);
}

/// Not a test: the owner that the next one kills. Run by name only.
#[test]
#[ignore = "the owner of a yard, for another test to kill"]
fn owner() {
    let Ok(text) = std::env::var("TEST_OWNER") else { return };
    let (set_up, mark): (SetUp, String) = serde_json::from_str(&text).unwrap();
    let isolation = set_up.isolation;
    let Some(bed) = Bed::with(Who::Me, set_up) else { return };
    inhabit(&bed, isolation, &mark);
    println!("\nFOLDER {}", bed.folder.display());
    std::io::stdout().flush().unwrap();
    // Go on asking, so that the end comes in the middle of something.
    for number in 0_u64.. {
        let pod = format!("n{number}");
        bed.add(&pod, 3);
        let mut spec = bed.container(&pod, &format!("c{number}"), "sleep 1000");
        if isolation == Isolation::Processes {
            spec = without_mounts(spec);
        }
        drop(bed.start(spec));
        bed.remove(&pod);
        while bed.event(Duration::from_millis(1)).is_some() {}
    }
}

fn started_owner(set_up: &SetUp, mark: &str) -> (Child, PathBuf) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ending::owner", "--ignored", "--nocapture"])
        .env("TEST_OWNER", serde_json::to_string(&(set_up, mark)).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let folder = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("FOLDER ").map(PathBuf::from))
        .unwrap();
    (child, folder)
}

#[test]
fn killing_the_owner_ends_everything() {
    for (isolation, network) in levels() {
        if Bed::with(Who::Me, set_up(isolation, network)).is_none() {
            continue;
        }
        for round in 0..5 {
            let (set_up, mark) = (set_up(isolation, network), mark());
            let (mut child, folder) = started_owner(&set_up, &mark);
            std::thread::sleep(Duration::from_millis(round * 7));
            child.kill().unwrap();
            child.wait().unwrap();
            nothing_is_left(&mark, &set_up.yard, &folder);
            soon("the folders of all pods are gone", || {
                // But for one that the owner had made and not yet told of.
                let left = std::fs::read_dir(&folder).into_iter().flatten().flatten();
                let left: Vec<_> = left.map(|entry| entry.path()).collect();
                left.len() <= 1
                    && left.iter().all(|pod| std::fs::read_dir(pod).unwrap().count() == 0)
            });
            // The owner's own folder could not be removed by it.
            drop(std::fs::remove_dir_all(folder.parent().unwrap()));
        }
    }
}

#[test]
fn two_hundred_pods_leave_no_descriptor_and_no_process() {
    let Some(bed) = Bed::new(Who::Me) else { return };
    let inner = only_child(bed.holder.pid());
    let open = |pid: u32| std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    // After the first, what roots begin with is there.
    bed.add("first", 1);
    bed.run(bed.container("first", "first", "true"));
    bed.remove("first");
    soon("it is gone", || children(inner).is_empty());
    let before = (open(inner), open(bed.holder.pid()));
    let since = std::time::Instant::now();
    let mut spent = [Duration::ZERO; 2];
    for number in 0..200_u32 {
        let (pod, container) = (format!("p{number}"), format!("c{number}"));
        let adding = std::time::Instant::now();
        bed.add(&pod, 1);
        spent[0] += adding.elapsed();
        let spec = bed.container(&pod, &container, "exit 3");
        let starting = std::time::Instant::now();
        assert!(bed.start(spec).is_ok());
        spent[1] += starting.elapsed();
        if number % 2 == 0 {
            bed.ending(&container);
            bed.remove(&pod);
        } else {
            bed.remove(&pod);
            bed.ending(&container);
        }
    }
    let [adding, starting] = spent.map(|all| all / 200);
    eprintln!(
        "a pod: {adding:?} to add, {starting:?} to start, {:?} in all",
        since.elapsed() / 200
    );
    soon("none is left", || children(inner).is_empty());
    assert_eq!(before, (open(inner), open(bed.holder.pid())));
    assert_eq!(std::fs::read_dir(&bed.folder).unwrap().count(), 0);
    let mounts = std::fs::read_to_string(format!("/proc/{inner}/mountinfo")).unwrap();
    assert!(!mounts.contains(bed.folder.to_str().unwrap()), "{mounts}");
    let links = std::fs::read_to_string(format!("/proc/{inner}/net/dev")).unwrap();
    // Headings, loopback, bridge, two nodes.
    assert_eq!(links.lines().count(), 2 + 4, "{links}");
}

/// One pod after another, ended in different ways, some before they have started.
fn come_and_go(bed: &Bed, isolation: Isolation, thread: u8) {
    for number in 0..12_u8 {
        let pod = format!("t{thread}-{number}");
        bed.add(&pod, thread * 50 + number + 1);
        let containers = [0, 1].map(|which| format!("{pod}-c{which}"));
        for container in &containers {
            let script = if number % 3 == 0 { "exit 3" } else { "trap '' TERM; sleep 100" };
            let mut spec = bed.container(&pod, container, script);
            if isolation == Isolation::Processes {
                spec = without_mounts(spec);
            }
            bed.holder.call(Request::Start(Box::new(spec)), pipes().0, drop);
        }
        match (thread + number) % 4 {
            0 => {}
            1 => std::thread::sleep(Duration::from_millis(u64::from(number))),
            2 => containers.iter().for_each(|id| bed.signal(id, 9, Reach::All)),
            _ => {
                let exec = format!("{pod}-e");
                drop(bed.exec(&containers[0], &exec, "sleep 100"));
            }
        }
        bed.remove(&pod);
    }
}

#[test]
fn pods_that_come_and_go_at_once_leave_nothing() {
    as_each(|who| {
        for (isolation, network) in levels() {
            let Some(bed) = Bed::with(who, set_up(isolation, network)) else { return };
            let inner = only_child(bed.holder.pid());
            let open = || std::fs::read_dir(format!("/proc/{inner}/fd")).unwrap().count();
            if isolation == Isolation::Namespaces {
                bed.add("first", 250);
                bed.run(bed.container("first", "first", "true"));
                bed.remove("first");
            }
            soon("it is gone", || children(inner).is_empty());
            let before = open();
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let bed = &bed;
                    scope.spawn(move || come_and_go(bed, isolation, thread));
                }
            });
            soon("none is left", || children(inner).is_empty());
            assert_eq!(open(), before);
            assert_eq!(std::fs::read_dir(&bed.folder).unwrap().count(), 0);
            for folder in cgroups_of(&bed.yard) {
                let below = std::fs::read_dir(folder).unwrap().flatten();
                assert!(!below.map(|entry| entry.path()).any(|path| path.is_dir()));
            }
        }
    });
}
