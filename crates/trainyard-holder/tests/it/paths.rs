//! Paths that a pod can have a hand in, followed by processes with more rights than it has: mount points,
//! working directories, `/proc`; and what the mounts of a container tell of the machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use trainyard_holder::protocol::{ContainerSpec, Mount, Reach, RefusalKind, Request};

use crate::bed::{Bed, Output, Who, as_each, is_root};

/// Makes the first path of the arguments a folder and a link in turns, without pause: `renameat2` with
/// the second, for which no program of every Debian has an option.
const EXCHANGE: &str = r#"
    my $call = `uname -m` =~ /aarch64/ ? 276 : 316;
    my ($a, $b) = @ARGV;
    $| = 1; print "up\n";
    while (1) { syscall($call, -100, $a, -100, $b, 2) == 0 or die "$!" }
"#;

fn bound(source: &Path, target: &str) -> Mount {
    Mount::Bind { source: source.to_owned(), target: target.into(), read_only: false }
}

/// Starts such a container in a pod, on a volume that it sees at `/volume`.
fn attack(bed: &Bed, pod: &str, volume: &Path) -> Output {
    let mut attacker = bed.container(pod, "exchange", "");
    let names = ["/volume/a", "/volume/b"];
    attacker.argv =
        ["perl", "-e", EXCHANGE].iter().chain(&names).map(|&word| word.into()).collect();
    attacker.mounts.push(bound(volume, "/volume"));
    let mut output = bed.start(attacker).unwrap();
    assert_eq!(output.line(), "up", "the attack does not run");
    output
}

fn ended(bed: &Bed) {
    bed.signal("exchange", 9, Reach::All);
    bed.ending("exchange");
}

// Where the holder changed to the working directory by its name, some of these programs began in the
// machine's root, by the root of the first process that the pod's containers share.
#[test]
fn no_working_directory_leads_by_another_process_out_of_the_root() {
    const STARTS: usize = 300;
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        let volume = bed.make("volume");
        bed.make("volume/a");
        symlink("/proc/1/root", volume.join("b")).unwrap();
        fs::write(bed.make("outside").join("secret"), "of the host\n").unwrap();
        let mut pod = bed.pod("p", 1);
        pod.share_processes = true;
        bed.ask(Request::AddPod(Box::new(pod))).unwrap();
        let secret = bed.folder.join("outside/secret");
        let script = format!("cat .{}; echo began", secret.display());
        let spec = |number: usize, cwd: &str| -> ContainerSpec {
            let mut spec = bed.container("p", &format!("c{number}"), &script);
            spec.cwd = cwd.into();
            spec.mounts.push(bound(&volume, "/volume"));
            spec
        };
        for (number, cwd) in ["/proc/1/root", "/volume/b", "/proc/self/fd/3"].iter().enumerate() {
            assert!(bed.start(spec(STARTS + number, cwd)).is_err(), "{cwd}");
        }
        let attack = attack(&bed, "p", &volume);
        let mut began = 0;
        for number in 0..STARTS {
            let Ok(output) = bed.start(spec(number, "/volume/a")) else { continue };
            let text = output.text();
            assert!(!text.contains("of the host"), "start {number} was in the machine's root");
            began += usize::from(text.contains("began"));
            bed.ending(&format!("c{number}"));
        }
        assert!(began > STARTS / 20, "only {began} of {STARTS} programs began");
        ended(&bed);
        drop(attack);
    });
}

// Where that process kept the root it was born with, a program that could look into others read the
// machine's files by it.
#[test]
fn the_first_process_of_shared_ones_has_an_empty_root() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        let mut pod = bed.pod("p", 1);
        pod.share_processes = true;
        bed.ask(Request::AddPod(Box::new(pod))).unwrap();
        let mut spec = bed.container("p", "c", "ls -A /proc/1/root/ && echo empty");
        // A right that no pod is given.
        spec.privileges.capabilities = vec!["CAP_SYS_PTRACE".to_owned()];
        let expected = match who {
            Who::Me if is_root() => "empty\n",
            // Nor is it let in there.
            _ => "ls: cannot access '/proc/1/root/': Permission denied\n",
        };
        assert_eq!(bed.run(spec).0, expected);
    });
}

// A volume's link to `/proc` made what lies over it the holder's list of processes.
#[test]
fn a_mount_point_that_is_a_link_covers_nothing_that_the_holder_relies_on() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        let (volume, other) = (bed.make("volume"), bed.make("other"));
        for (target, link) in [("/proc", "p"), ("/dev", "d"), ("/etc", "e")] {
            symlink(target, volume.join(link)).unwrap();
        }
        bed.add("p", 1);
        let spec = |name: &str| {
            let mut spec = bed.container("p", name, "ls /etc");
            spec.mounts.push(bound(&volume, "/volume"));
            spec.mounts.push(bound(&other, &format!("/volume/{name}")));
            spec
        };
        for name in ["p", "d"] {
            let refused = bed.start(spec(name)).err().unwrap();
            assert_eq!(refused.kind, RefusalKind::Mount, "{refused}");
            assert!(refused.to_string().ends_with("a mount lies over it"), "{refused}");
        }
        fs::write(other.join("inside"), "").unwrap();
        fs::create_dir(volume.join("etc")).unwrap();
        let mut spec = spec("e");
        spec.mounts.insert(0, Mount::Directory { target: "/etc".into(), mode: 0o755 });
        assert_eq!(bed.run(spec).0, "inside\n", "the link leads to the container's own /etc");
    });
}

#[test]
fn a_mount_point_that_is_exchanged_for_a_link_is_made_nowhere_else() {
    const STARTS: usize = 300;
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        let (volume, other) = (bed.make("volume"), bed.make("other"));
        let outside = bed.make("outside");
        bed.make("volume/a");
        symlink(&outside, volume.join("b")).unwrap();
        fs::write(other.join("inside"), "").unwrap();
        bed.add("attacker", 1);
        bed.add("victim", 2);
        let attack = attack(&bed, "attacker", &volume);
        let mut began = 0;
        for number in 0..STARTS {
            let name = format!("c{number}");
            let mut spec = bed.container("victim", &name, "ls /volume/*/new*");
            spec.mounts.push(bound(&volume, "/volume"));
            spec.mounts.push(bound(&other, &format!("/volume/a/new{number}/er")));
            let file = format!("/volume/a/file{number}");
            spec.mounts.push(bound(&other.join("inside"), &file));
            let Ok(output) = bed.start(spec) else { continue };
            began += usize::from(output.text().contains("er"));
            bed.ending(&name);
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "something was made outside");
        assert!(began > STARTS / 20, "only {began} of {STARTS} programs began");
        ended(&bed);
        drop(attack);
    });
}

// The folders of overlays stood in their options, and the data folder with them.
#[test]
fn a_containers_mounts_do_not_name_the_folders_of_the_machine() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let mut spec =
            bed.container("p", "c", "cat /proc/self/mounts; echo; cat /proc/self/mountinfo");
        let (lower, changes) = (bed.make("lower"), bed.make("pod-p/changes"));
        spec.mounts.push(Mount::Overlay { lower, target: "/packages".into(), changes });
        spec.mounts.push(bound(&bed.make("volume"), "/volume"));
        let (text, _) = bed.run(spec);
        let (mounts, info) = text.split_once("\n\n").unwrap();
        for point in [" / ", " /packages ", " /volume ", " /proc "] {
            assert!(mounts.contains(point), "{point} in {mounts}");
        }
        // A view says in its fourth field which part of a disk it shows, to whoever sees it.
        let told = |line: &str| {
            let fields: Vec<&str> = line.split(' ').collect();
            [&fields[..3], &fields[4..]].concat().join(" ")
        };
        let info: Vec<String> = info.trim().lines().map(told).collect();
        let machine = bed.folder.parent().unwrap().display().to_string();
        assert!(!mounts.contains(&machine), "{mounts}");
        assert!(!info.concat().contains(&machine), "{info:#?}");
    });
}

/// Makes folders and links to the first argument, and moves them about, without pause.
const STIR: &str = r#"
    my $outside = shift @ARGV;
    chdir "/volume" or die; $| = 1; print "up\n";
    while (1) {
        mkdir "a"; mkdir "a/b"; mkdir "a/b/c"; mkdir "a/b/c/d"; symlink $outside, "a/b/c/l";
        symlink $outside, "l"; rename "a/b/c", "c"; rename "l", "a/b"; rename "a/b", "b";
        chmod 0, "c"; rename "c", "a/c"; rename "b", "c/b";
    }
"#;

// A container of another pod may hold on to what is in a volume after that volume's pod.
#[test]
fn a_pods_folder_goes_while_others_change_it_and_nothing_else_does() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        let outside = bed.make("outside");
        fs::write(outside.join("kept"), "").unwrap();
        bed.make("pod-next/a/b");
        let before = fs::metadata(&outside).unwrap().permissions();
        bed.add("attacker", 1);
        for number in 0..15 {
            let (pod, name) = (format!("p{number}"), format!("stir{number}"));
            bed.add(&pod, 2);
            let volume = bed.make(&format!("pod-{pod}/volumes/v"));
            let mut attacker = bed.container("attacker", &name, "");
            attacker.argv = ["perl", "-e", STIR].map(str::to_owned).to_vec();
            attacker.argv.push(outside.display().to_string());
            attacker.mounts.push(bound(&volume, "/volume"));
            let mut output = bed.start(attacker).unwrap();
            assert_eq!(output.line(), "up", "the attack does not run");
            // What is being made all the time may be left, which is said then.
            let removed = bed.ask(Request::RemovePod { pod });
            if let Err(refused) = &removed {
                assert_eq!(refused.kind, RefusalKind::Machine, "{refused}");
            }
            bed.signal(&name, 9, Reach::All);
            bed.ending(&name);
            assert!(removed.is_err() || !volume.exists(), "{number}");
        }
        assert!(outside.join("kept").exists() && bed.folder.join("pod-next/a/b").exists());
        assert_eq!(fs::metadata(&outside).unwrap().permissions(), before);
    });
}
