//! Roots: what is visible inside, what can be written, and what cannot be mounted.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use trainyard_holder::protocol::{
    ContainerSpec, Ending, Isolation, MemoryVolume, Mount, Network, RefusalKind, Request,
};

use crate::bed::{Bed, NOBODY, Who, as_each, set_up};

fn bind(source: PathBuf, target: &str, read_only: bool) -> Mount {
    Mount::Bind { source, target: target.into(), read_only }
}

#[test]
fn nothing_of_the_host_is_seen_but_what_is_mounted() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let (text, _) = bed.run(bed.container("p", "c", "ls / | tr '\\n' ' '; ls /dev | tr '\\n' ' '; echo; ls -d /home /root /etc/shadow /sys 2>/dev/null; ls /proc | grep -c '^[0-9]'; cat /proc/1/comm"));
        let system: Vec<&str> = text.lines().next().unwrap().split(' ').collect();
        for name in ["home", "root", "etc", "sys", "var", "mnt"] {
            assert!(!system.contains(&name), "{name} is visible: {text}");
        }
        let devices = "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero";
        assert!(text.contains(devices), "{text}");
        // Init, the shell, and what it runs: nobody else.
        let seen: usize = text.lines().rev().nth(1).unwrap().parse().unwrap();
        assert!(seen <= 4, "{text}");
    });
}

#[test]
fn mounts_are_made_in_order_and_read_only_means_it() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let (open, closed) = (bed.make("open"), bed.make("closed"));
        fs::write(closed.join("file"), "kept\n").unwrap();
        if who == Who::Nobody {
            std::os::unix::fs::chown(closed.join("file"), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        let mut spec = bed.container("p", "c", "echo x >/data/open/file && cat /data/closed/file /etc/hosts /one/file; echo y >/data/closed/file; echo z >/one/file; cat /lower/file && echo changed >/lower/file && cat /lower/file; readlink /link; stat -c %a /made /made/file; mount 2>/dev/null | grep -c proc >/dev/null; df -k /mem | tail -1 | { read a b c; echo $b; }");
        let changes = bed.make("changes");
        spec.mounts.extend([
            bind(open.clone(), "/data/open", false),
            bind(closed.clone(), "/data/closed", true),
            bind(closed.join("file"), "/one/file", true),
            Mount::File { target: "/etc/hosts".into(), content: "hosts\n".into(), mode: 0o644 },
            Mount::Symlink { target: "/link".into(), to: "/data/open".into() },
            Mount::Directory { target: "/made".into(), mode: 0o1777 },
            Mount::File { target: "/made/file".into(), content: String::new(), mode: 0o600 },
            Mount::Tmpfs { target: "/mem".into(), size: Some(1 << 20), mode: 0o700 },
            Mount::Overlay { lower: closed.clone(), target: "/lower".into(), changes },
        ]);
        let (text, _) = bed.run(spec);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            &lines[..8],
            ["kept", "hosts", "kept", "kept", "changed", "/data/open", "1777", "600"],
            "{text}"
        );
        assert_eq!(lines[8], "1024", "{text}");
        let refused = text.matches("Read-only file system").count();
        assert_eq!(refused, 2, "{text}");
        assert_eq!(fs::read_to_string(open.join("file")).unwrap(), "x\n");
        assert_eq!(fs::read_to_string(closed.join("file")).unwrap(), "kept\n");
    });
}

#[test]
fn mount_points_never_lie_outside_the_root() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let (source, outside) = (bed.make("source"), bed.make("outside"));
        let mut spec = bed.container("p", "c", "true");
        spec.mounts = std::mem::take(&mut spec.base);
        symlink(&outside, spec.scratch.join("out")).unwrap();
        symlink("../../../../../../../..", spec.scratch.join("up")).unwrap();
        for target in ["/out/file", "/up/../../etc", "relative"] {
            let mut spec = spec.clone();
            spec.mounts.push(bind(source.clone(), target, false));
            let refused = bed.start(spec).err().unwrap();
            assert_eq!(refused.kind, RefusalKind::Mount, "{refused}");
            // Each try left its links in the scratch folder; the next needs a clean one.
            for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
                let _ = fs::remove_file(bed.folder.join("pod-p/root-c").join(name));
            }
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        // Inside, the top is the root.
        spec.mounts.push(bind(source, "/up/inner", false));
        assert_eq!(bed.run(spec).1, Ending::Code(0));
    });
}

/// A container whose root begins with a bit of everything.
fn beginning(bed: &Bed, name: &str, script: &str) -> ContainerSpec {
    let given = bed.make("given");
    fs::write(given.join("file"), "host\n").unwrap();
    fs::set_permissions(given.join("file"), PermissionsExt::from_mode(0o604)).unwrap();
    let mut spec = bed.container("p", name, script);
    fs::set_permissions(&spec.scratch, PermissionsExt::from_mode(0o1755)).unwrap();
    let copy = |target: &str, stamp: &str| Mount::Copy {
        source: given.join("file"),
        target: target.into(),
        stamp: stamp.to_owned(),
    };
    spec.base.extend([
        Mount::Directory { target: "/etc".into(), mode: 0o755 },
        Mount::Directory { target: "/open".into(), mode: 0o1777 },
        Mount::File { target: "/etc/word".into(), content: "first\n".into(), mode: 0o600 },
        Mount::Symlink { target: "/etc/link".into(), to: "word".into() },
        copy("/etc/copy", "1"),
        bind(given.clone(), "/given", true),
        bind(given.join("file"), "/etc/bound", true),
    ]);
    spec
}

const SHOW: &str = "cat /etc/link /etc/copy /etc/bound /given/file; stat -c '%n %a' / /etc /open /etc/word /etc/copy; ls -A /etc /open | tr '\\n' ' '; echo";
const SHOWN: &str = "first\nhost\nhost\nhost\n/ 1755\n/etc 755\n/open 1777\n/etc/word 600\n/etc/copy 604\n/etc: bound copy link word  /open: \n";

#[test]
fn what_roots_begin_with_is_shared_and_its_changes_are_not() {
    as_each(|who| {
        for shared in [true, false] {
            let mut set_up = set_up(Isolation::Namespaces, Network::Bridge);
            set_up.bases = set_up.bases.filter(|_| shared);
            let Some(bed) = Bed::with(who, set_up) else { return };
            bed.add("p", 1);
            let more = bed.make("more");
            let change = "echo second >/etc/word && echo mine >>/etc/copy && rm /etc/link && mkdir -p /new/deep && echo x >/open/x && mv /etc/copy /etc/moved && cat /etc/word /etc/moved && ls -d /new/deep /etc/more && echo y >/etc/bound; echo z >/given/z";
            let mut first = beginning(&bed, "a", &format!("{SHOW}; {change}"));
            first.mounts.push(bind(more.clone(), "/etc/more", false));
            let (text, _) = bed.run(first);
            let shown = SHOWN.replace("link word", "link more word");
            let words: Vec<&str> = text.split_whitespace().collect();
            let begin: Vec<&str> = shown.split_whitespace().collect();
            assert!(words.starts_with(&begin), "{text}");
            assert!(text.contains("second\nhost\nmine\n"), "{text}");
            assert!(text.contains("/etc/more\n/new/deep\n"), "{text}");
            assert_eq!(text.matches("Read-only file system").count(), 2, "{text}");
            let (text, _) = bed.run(beginning(&bed, "b", SHOW));
            let words: Vec<&str> = text.split_whitespace().collect();
            let expected: Vec<&str> = SHOWN.split_whitespace().collect();
            assert!(words.starts_with(&expected), "{text}");
            assert_eq!(fs::read_to_string(bed.make("given").join("file")).unwrap(), "host\n");
            // The changes are on the disk, not in memory.
            let found = if shared { "root-a/upper" } else { "root-a" };
            let word = bed.folder.join("pod-p").join(found).join("etc/word");
            assert_eq!(fs::read_to_string(word).unwrap(), "second\n");
        }
    });
}

#[test]
fn files_in_memory_are_the_containers_own_and_come_in_order() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let note = |target: &str, content: &str| Mount::MemoryFile {
            target: target.into(),
            content: content.to_owned(),
            mode: 0o640,
        };
        let with_notes = |name: &str, script: &str| {
            let mut spec = bed.container("p", name, script);
            spec.privileges.read_only_root = true;
            let words = Mount::File { target: "/a/one".into(), content: String::new(), mode: 0 };
            spec.base.push(words);
            spec.mounts.extend([note("/a/one", "one\n"), note("/b/two", "two\n")]);
            spec
        };
        let script = "cat /a/one /b/two; stat -c %a /a/one; echo more >>/b/two; cat /b/two; ls -A /dev | grep file; echo x >/a/x";
        let (text, _) = bed.run(with_notes("c", script));
        let expected = "one\ntwo\n640\ntwo\nmore\n";
        assert!(text.starts_with(expected) && text.contains("Read-only file system"), "{text}");
        // What is mounted later lies above.
        let (covering, open) = (bed.make("covering"), bed.make("open"));
        let mut spec = with_notes("d", "ls -A /a /b | tr '\\n' ' '; cat /b/three");
        spec.mounts.extend([
            bind(covering.clone(), "/a", false),
            bind(open.clone(), "/b", false),
            note("/b/three", "three\n"),
        ]);
        assert_eq!(bed.run(spec).0, "/a:  /b: three three\n");
        assert_eq!(fs::read_dir(covering).unwrap().count(), 0);
        let mut spec = with_notes("e", "true");
        spec.base.push(note("/c", ""));
        assert_eq!(bed.start(spec).err().unwrap().kind, RefusalKind::BadRequest);
        // The system's own places are never another's.
        let mut spec = with_notes("f", "test -c /dev/null && test -d /proc/1 && echo own");
        spec.mounts.extend([bind(open.clone(), "/dev", false), bind(open, "/proc", false)]);
        assert_eq!(bed.run(spec).0, "own\n");
    });
}

#[test]
fn a_changed_file_is_copied_anew() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let source = bed.make("given").join("file");
        let copied = |name: &str, stamp: &str| {
            let mut spec = bed.container("p", name, "cat /copy");
            let (source, target) = (source.clone(), "/copy".into());
            spec.base.push(Mount::Copy { source, target, stamp: stamp.to_owned() });
            bed.start(spec).map(|output| (output.text(), bed.ending(name)).0)
        };
        fs::write(&source, "one").unwrap();
        assert_eq!(copied("a", "1").unwrap(), "one");
        fs::write(&source, "two").unwrap();
        assert_eq!(copied("b", "2").unwrap(), "two");
        fs::remove_file(&source).unwrap();
        let refused = copied("c", "3").unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Mount);
        let said = format!("copying {} to /copy: no such file or directory", source.display());
        assert_eq!(refused.to_string(), said);
        assert_eq!(copied("d", "2").unwrap(), "two");
    });
}

#[test]
fn few_of_what_nobody_uses_are_kept() {
    let Some(bed) = Bed::new(Who::Me) else { return };
    bed.add("p", 1);
    let wordy = |name: &str, script: &str| {
        let mut spec = bed.container("p", name, script);
        let (target, content) = ("/word".into(), format!("{name}\n"));
        spec.base.push(Mount::File { target, content, mode: 0o644 });
        spec
    };
    let mut used = bed.start(wordy("used", "echo up; sleep 100")).unwrap();
    assert_eq!(used.line(), "up");
    for number in 0..40 {
        let name = format!("c{number}");
        let (text, _) = bed.run(wordy(&name, "cat /word"));
        assert_eq!(text, format!("{name}\n"));
    }
    let text = bed.exec("used", "e", "cat /word").unwrap().text();
    assert_eq!((text.as_str(), bed.ending("e")), ("used\n", Ending::Code(0)));
    let inside = format!("/proc/{}/root{}/bases", bed.holder.pid(), bed.kept.display());
    let entries = fs::read_dir(inside).unwrap().map(|entry| entry.unwrap().file_name());
    // Others are hidden.
    let kept = entries.filter(|name| !name.as_encoded_bytes().starts_with(b".")).count();
    // Thirty-two and those in use.
    assert!((2..=36).contains(&kept), "{kept}");
    assert_eq!(fs::read_dir(bed.kept.join("bases")).unwrap().count(), 0, "on the host's disk");
}

#[test]
fn what_cannot_be_mounted_is_named() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let mut spec = bed.container("p", "c", "true");
        spec.mounts.push(bind("/no/such/place".into(), "/data", false));
        let refused = bed.start(spec).err().unwrap();
        assert_eq!(refused.kind, RefusalKind::Mount);
        assert_eq!(
            refused.to_string(),
            "mounting /no/such/place at /data: no such file or directory"
        );
        let mut spec = bed.container("p", "d", "true");
        spec.mounts.push(bind(bed.make("source"), "/usr/not-there", false));
        let refused = bed.start(spec).err().unwrap();
        assert_eq!(
            refused.to_string(),
            "making the mount point /usr/not-there: read-only file system"
        );
    });
}

#[test]
fn a_read_only_root_can_be_written_only_in_its_mounts() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let data = bed.make("data");
        let script = "echo a >/tmp/a && echo b >/data/b && echo c >/c; echo d >/etc/d";
        let mut spec = bed.container("p", "c", script);
        spec.privileges.read_only_root = true;
        spec.mounts.push(bind(data.clone(), "/data", false));
        let (text, _) = bed.run(spec);
        assert!(text.contains("/c: Read-only file system"), "{text}");
        assert!(data.join("b").exists());
    });
}

#[test]
fn memory_and_shared_memory_are_the_whole_pods() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        let mut pod = bed.pod("p", 1);
        let memory = bed.make("pod-p/volumes/memory");
        pod.memory_volumes = vec![MemoryVolume { path: memory.clone(), size: Some(1 << 20) }];
        bed.ask(Request::AddPod(Box::new(pod))).unwrap();
        let mut first = bed.container("p", "a", "echo m >/m/file; echo s >/dev/shm/file; head -c 2000000 /dev/zero >/m/big; echo up; sleep 100");
        first.mounts.push(bind(memory.clone(), "/m", false));
        let mut output = bed.start(first).unwrap();
        assert_eq!(output.line(), "up");
        let mut second = bed.container("p", "b", "cat /m/file /dev/shm/file");
        second.mounts.push(bind(memory.clone(), "/m", true));
        let (text, ending) = bed.run(second);
        assert_eq!((text.as_str(), ending), ("m\ns\n", Ending::Code(0)));
        // Not on the disk, and not in the host's view.
        assert_eq!(fs::read_dir(&memory).unwrap().count(), 0);
        bed.remove("p");
        bed.ending("a");
        assert!(!memory.exists());
    });
}

#[test]
fn shared_processes_are_seen_and_others_are_not() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        let mut pod = bed.pod("p", 1);
        pod.share_processes = true;
        bed.ask(Request::AddPod(Box::new(pod))).unwrap();
        let mut output = bed.start(bed.container("p", "a", "echo up; exec sleep 12345")).unwrap();
        assert_eq!(output.line(), "up");
        let see = "cat /proc/*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 12345'";
        let (text, _) = bed.run(bed.container("p", "b", see));
        assert_ne!(text, "0\n");
        bed.add("q", 2);
        let (text, _) = bed.run(bed.container("q", "c", "ls /proc | grep -c '^[0-9]'"));
        assert!(text.trim().parse::<u32>().unwrap() <= 4, "{text}");
        // One container is ended, its daemons too; the other stays.
        let mark = format!("3000{}", std::process::id());
        let script = format!("setsid sh -c 'setsid sleep {mark} &'; echo up; sleep {mark}");
        let mut daemons = bed.start(bed.container("p", "d", &script)).unwrap();
        assert_eq!(daemons.line(), "up");
        bed.signal("d", 9, trainyard_holder::protocol::Reach::All);
        assert_eq!(bed.ending("d"), Ending::Signal(9));
        assert_eq!(crate::bed::processes_with(&mark), Vec::<String>::new());
        assert_eq!(bed.event(std::time::Duration::from_millis(100)), None);
        bed.remove("p");
        assert_eq!(bed.ending("a"), Ending::Signal(9));
    });
}

#[test]
fn devices_are_given_by_name() {
    let Some(bed) = Bed::new(Who::Me) else { return };
    bed.add("p", 1);
    let mut spec = bed.container("p", "c", "test -c /dev/ptmx && test -c /dev/kmsg && echo given");
    spec.devices = vec!["/dev/kmsg".into()];
    if !std::path::Path::new("/dev/kmsg").exists() {
        return;
    }
    assert_eq!(bed.run(spec).0, "given\n");
    let mut spec = bed.container("p", "d", "true");
    spec.devices = vec!["/dev/no-such-device".into()];
    assert_eq!(bed.start(spec).err().unwrap().kind, RefusalKind::Mount);
}

#[test]
fn what_is_mounted_below_dev_is_not_covered_by_it() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let (log, memory) = (bed.make("log").join("file"), bed.make("shared"));
        fs::write(&log, "").unwrap();
        fs::set_permissions(&log, PermissionsExt::from_mode(0o666)).unwrap();
        fs::set_permissions(&memory, PermissionsExt::from_mode(0o777)).unwrap();
        let script = "echo last >/dev/termination-log; echo more >/dev/shm/file; test -c /dev/null";
        let mut spec = bed.container("p", "c", script);
        spec.mounts.extend([
            bind(log.clone(), "/dev/termination-log", false),
            bind(memory.clone(), "/dev/shm", false),
        ]);
        assert_eq!(bed.run(spec).1, Ending::Code(0));
        assert_eq!(fs::read_to_string(log).unwrap(), "last\n");
        assert_eq!(fs::read_to_string(memory.join("file")).unwrap(), "more\n");
    });
}
