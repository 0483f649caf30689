//! What programs may do: users, capabilities, seccomp, no new privileges.

use trainyard_holder::protocol::{Ending, RefusalKind, User};

use crate::bed::{Bed, Who, as_each, is_root};

const STATUS: &str = "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp):' /proc/self/status; grep ^Cap /proc/self/status";

#[test]
fn capabilities_are_dropped_to_the_list() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let (text, _) = bed.run(bed.container("p", "none", STATUS));
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert!(text.contains(&format!("{set}:\t0000000000000000")), "{text}");
        }
        assert!(text.contains("NoNewPrivs:\t1") && text.contains("Seccomp:\t2"), "{text}");
        let mut spec = bed.container("p", "some", STATUS);
        spec.privileges.capabilities = ["CAP_CHOWN", "CAP_NET_RAW"].map(str::to_owned).to_vec();
        let (text, _) = bed.run(spec);
        for set in ["CapPrm", "CapEff", "CapBnd"] {
            assert!(text.contains(&format!("{set}:\t0000000000002001")), "{text}");
        }
        assert!(text.contains("CapInh:\t0000000000000000"), "{text}");
        let mut spec = bed.container("p", "unknown", "true");
        spec.privileges.capabilities = vec!["CAP_FLY".to_owned()];
        assert_eq!(bed.start(spec).err().unwrap().kind, RefusalKind::BadRequest);
    });
}

#[test]
fn the_filter_denies_what_reaches_the_machine_and_only_if_it_is_on() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let script = "unshare -U true; unshare -m true; mount -t tmpfs none /tmp; sh -c 'echo still fine'; dmesg";
        let (text, _) = bed.run(bed.container("p", "on", script));
        assert!(text.contains("still fine"), "{text}");
        assert_eq!(text.matches("Operation not permitted").count(), 3, "{text}");
        let mut spec = bed.container("p", "off", "unshare -U echo made");
        spec.privileges.seccomp = false;
        let (text, _) = bed.run(spec);
        assert!(text.contains("made"), "{text}");
    });
}

#[test]
fn a_filter_without_no_new_privileges_can_be_had() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let mut spec = bed.container("p", "c", STATUS);
        spec.privileges.no_new_privileges = false;
        let (text, _) = bed.run(spec);
        assert!(text.contains("NoNewPrivs:\t0") && text.contains("Seccomp:\t2"), "{text}");
    });
}

// The init had all capabilities and no filter: a program with CAP_SYS_PTRACE took it over, opened
// files of the machine by their handles and made devices.
#[test]
fn the_first_processes_of_a_pod_keep_nothing_that_reaches_the_machine() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let mut shared = bed.pod("shared", 2);
        shared.share_processes = true;
        bed.ask(trainyard_holder::protocol::Request::AddPod(Box::new(shared))).unwrap();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
            line.split_once(":\t").unwrap().1.to_owned()
        };
        let script = "grep -E '^(Cap|Seccomp)' /proc/1/status";
        for (pod, kept) in [("p", true), ("shared", false)] {
            let mut spec = bed.container(pod, &format!("c-{pod}"), script);
            spec.privileges.capabilities = vec!["CAP_SYS_PTRACE".to_owned()];
            let (text, _) = bed.run(spec);
            assert_eq!(field(&text, "Seccomp"), "2", "{text}");
            for set in ["CapPrm", "CapEff", "CapBnd"] {
                let bits = u64::from_str_radix(&field(&text, set), 16).unwrap();
                // DAC_READ_SEARCH, SYS_MODULE, SYS_RAWIO, SYS_CHROOT, SYS_ADMIN, SYS_BOOT, MKNOD.
                for bit in [2, 16, 17, 18, 21, 22, 27] {
                    assert_eq!(bits >> bit & 1, 0, "bit {bit} of {set}: {text}");
                }
                // KILL, without which nothing of another user could be ended.
                assert_eq!(bits >> 5 & 1 == 1, kept, "{set}: {text}");
            }
        }
    });
}

#[test]
fn another_user_is_who_it_says() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let data = bed.make("data");
        let mut spec = bed.container("p", "c", &format!("id -u; id -g; touch /tmp/mine && stat -c '%u %g' /tmp/mine; {STATUS}; echo up; sleep 100"));
        spec.user = User { uid: 1000, gid: 2000, groups: Vec::new() };
        spec.privileges.capabilities = vec!["CAP_CHOWN".to_owned()];
        spec.mounts.push(trainyard_holder::protocol::Mount::Bind {
            source: data,
            target: "/data".into(),
            read_only: false,
        });
        let mut output = bed.start(spec).unwrap();
        let lines: Vec<String> = (0..3).map(|_| output.line()).collect();
        assert_eq!(lines, ["1000", "2000", "1000 2000"]);
        let mut line = String::new();
        while line != "up" {
            line = output.line();
            assert!(!line.starts_with("CapEff") || line.ends_with("\t0000000000000000"), "{line}");
            assert!(!line.starts_with("CapPrm") || line.ends_with("\t0000000000000000"), "{line}");
        }
        // One more program as the same user shares its rights, and may signal it.
        let (descriptors, output) = crate::bed::pipes();
        let spec = trainyard_holder::protocol::ExecSpec {
            exec: "e".to_owned(),
            container: "c".to_owned(),
            argv: ["sh", "-c", "id -u; cat /tmp/mine && pkill sleep || kill -9 2"]
                .map(str::to_owned)
                .to_vec(),
            env: Vec::new(),
            cwd: "/".into(),
            user: User { uid: 1000, gid: 2000, groups: Vec::new() },
            privileges: crate::bed::privileges(),
            tty: false,
        };
        let exec = trainyard_holder::protocol::Request::Exec(Box::new(spec));
        bed.holder.ask(exec, descriptors).unwrap();
        assert!(output.text().starts_with("1000\n"));
        let mut ended = vec![bed.event(crate::bed::PATIENCE).unwrap()];
        ended.push(bed.event(crate::bed::PATIENCE).unwrap());
        assert_eq!(ended.len(), 2);
    });
}

#[test]
fn more_groups_are_given_by_root_and_refused_without() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let mut spec = bed.container("p", "c", "id -G");
        spec.user = User { uid: 1000, gid: 2000, groups: vec![3000, 4000] };
        if is_root() && who == Who::Me {
            let (text, ending) = bed.run(spec);
            assert_eq!((text.as_str(), ending), ("2000 3000 4000\n", Ending::Code(0)));
        } else {
            let refused = bed.start(spec).err().unwrap();
            assert_eq!(refused.kind, RefusalKind::NotPermitted);
            assert!(refused.to_string().contains("3000"), "{refused}");
        }
        let mut spec = bed.container("p", "d", "true");
        spec.user.uid = u32::MAX;
        assert!(bed.start(spec).is_err());
    });
}

#[test]
fn settings_of_the_machine_cannot_be_changed_through_proc() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        // Not every kernel has all of these.
        let script = "echo 1 >/proc/sys/vm/drop_caches; test -e /proc/sysrq-trigger && echo h >/proc/sysrq-trigger; for f in kcore keys timer_list; do test ! -e /proc/$f || head -c 1 /proc/$f; done; echo nothing; ls /proc/scsi 2>/dev/null | wc -l";
        let (text, _) = bed.run(bed.container("p", "c", script));
        let trigger = usize::from(std::path::Path::new("/proc/sysrq-trigger").exists());
        assert_eq!(text.matches("Read-only file system").count(), 1 + trigger, "{text}");
        assert!(text.starts_with("nothing\n0\n"), "{text}");
    });
}
