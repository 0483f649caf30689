//! Plain processes, for machines without namespaces; and finding out which level a machine has.

use trainyard_holder::client::levels;
use trainyard_holder::protocol::{
    ContainerSpec, Ending, Isolation, MemoryVolume, Mount, Network, Reach, RefusalKind, Request,
    User,
};

use crate::bed::{Bed, Who, as_each, command, processes_with, set_up, temporary, without_mounts};

fn plain(who: Who) -> Bed {
    Bed::try_with(who, set_up(Isolation::Processes, Network::Loopback)).unwrap()
}

fn container(bed: &Bed, name: &str, script: &str) -> ContainerSpec {
    without_mounts(bed.container("p", name, script))
}

#[test]
fn programs_run_and_end_with_all_they_started() {
    as_each(|who| {
        let bed = plain(who);
        bed.add("p", 1);
        let (text, ending) = bed.run(container(&bed, "c", "echo hello $A; exit 7"));
        assert_eq!((text.as_str(), ending), ("hello\n", Ending::Code(7)));
        let mark = format!("5000{}", std::process::id());
        let script = format!(
            "trap '' TERM; for i in 1 2 3; do setsid sh -c 'trap \"\" TERM; setsid sleep {mark} </dev/null >/dev/null 2>&1 &'; done; echo up; while :; do sleep {mark}; done"
        );
        let mut output = bed.start(container(&bed, "d", &script)).unwrap();
        assert_eq!(output.line(), "up");
        bed.signal("d", 15, Reach::First);
        let text = bed.exec("d", "e", "echo inside; exit 2").unwrap().text();
        assert_eq!((text.as_str(), bed.ending("e")), ("inside\n", Ending::Code(2)));
        bed.signal("d", 9, Reach::All);
        assert_eq!(bed.ending("d"), Ending::Signal(9));
        assert_eq!(processes_with(&mark), Vec::<String>::new());

        let script = format!("setsid sh -c 'setsid sleep {mark} >/dev/null 2>&1 &'; exit 1");
        assert_eq!(bed.run(container(&bed, "f", &script)).1, Ending::Code(1));
        assert_eq!(processes_with(&mark), Vec::<String>::new());
        bed.remove("p");
        assert!(!bed.folder.join("pod-p").exists());
    });
}

#[test]
fn a_storm_of_forks_is_ended() {
    as_each(|who| {
        let bed = plain(who);
        bed.add("p", 1);
        let mark = format!("6000{}", std::process::id());
        // Every shell starts its like and goes, for as long as anybody lets it.
        let script = format!(
            "f() {{ sh -c 'sleep {mark} & exec sleep 0.01'; }}; echo up; while :; do f & f; done"
        );
        let mut output = bed.start(container(&bed, "c", &script)).unwrap();
        assert_eq!(output.line(), "up");
        std::thread::sleep(std::time::Duration::from_millis(200));
        bed.signal("c", 9, Reach::All);
        bed.ending("c");
        assert_eq!(processes_with(&mark), Vec::<String>::new());
    });
}

#[test]
fn what_needs_namespaces_is_refused() {
    as_each(|who| {
        let bed = plain(who);
        let mut pod = bed.pod("q", 2);
        let path = bed.make("pod-q/memory");
        pod.memory_volumes = vec![MemoryVolume { path, size: None }];
        let refused = bed.ask(Request::AddPod(Box::new(pod))).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Mount);
        bed.add("p", 1);
        let mut spec = container(&bed, "c", "true");
        spec.mounts = vec![
            Mount::Bind { source: "/usr".into(), target: "/usr".into(), read_only: true },
            Mount::Bind { source: "/usr".into(), target: "/data".into(), read_only: true },
        ];
        let refused = bed.start(spec.clone()).err().unwrap();
        assert_eq!(refused.kind, RefusalKind::Mount);
        assert!(refused.to_string().contains("/data"), "{refused}");
        spec.mounts.pop();
        assert_eq!(bed.run(spec).1, Ending::Code(0));
        if who == Who::Nobody {
            let mut spec = container(&bed, "d", "true");
            spec.user = User { uid: 1000, gid: 1000, groups: Vec::new() };
            assert_eq!(bed.start(spec).err().unwrap().kind, RefusalKind::NotPermitted);
        }
    });
}

#[test]
fn plain_programs_have_no_more_rights_than_asked() {
    as_each(|who| {
        let bed = plain(who);
        bed.add("p", 1);
        let script = "grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status; unshare -U true";
        let (text, _) = bed.run(container(&bed, "c", script));
        assert!(
            text.starts_with("CapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"),
            "{text}"
        );
        assert!(text.contains("Operation not permitted"), "{text}");
    });
}

#[test]
fn the_best_level_is_found_and_the_rest_explained() {
    as_each(|who| {
        let folder = temporary();
        let yard = format!("probe-{}-{who:?}", std::process::id());
        std::thread::sleep(std::time::Duration::from_millis(50));
        let found = levels(|| command(folder.path(), who), &yard).unwrap();
        eprintln!("{found:?}");
        assert_eq!(found.rootless, who == Who::Nobody || !crate::bed::is_root());
        if found.best.isolation == Isolation::Namespaces && found.best.network == Network::Bridge {
            assert!(found.refused.is_empty());
        } else {
            crate::bed::skipped(&format!("{:?}", found.refused));
        }
        assert!(crate::bed::cgroups_of(&yard).is_empty());
    });
}

#[test]
fn where_namespaces_are_forbidden_plain_processes_are_left_and_the_reason_is_told() {
    // In a user namespace that allows no further ones, without rights in it.
    let forbidden = "echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all \"$0\"";
    let folder = temporary();
    let holder = || {
        let mut command = std::process::Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", forbidden]);
        command.arg(folder.path().join("holder"));
        command
    };
    let tried = std::process::Command::new("unshare").args(["--user", "true"]).status();
    if !tried.is_ok_and(|status| status.success()) {
        return crate::bed::skipped("no user namespace to forbid others in");
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    let found = levels(holder, &format!("forbidden-{}", std::process::id())).unwrap();
    assert_eq!(
        (found.best.isolation, found.best.network),
        (Isolation::Processes, Network::Loopback)
    );
    assert!(found.rootless);
    assert_eq!(found.refused.len(), 2);
    for (_, refusal) in &found.refused {
        assert_eq!(refusal.kind, RefusalKind::NotPermitted);
        let said = "making a user namespace: no space left on device: /proc/sys/user/max_user_namespaces allows 0";
        assert_eq!(refusal.to_string(), said);
    }
}

const SERVER: &str = "
import socket, sys
kept = []
for family, any in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):
    s = socket.socket(family)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((any, int(sys.argv[1]) + (family == socket.AF_INET6)))
    s.listen()
    kept.append(s)
    print(s.getsockname()[0], flush=True)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(('', 0))
print(u.getsockname()[0], flush=True)
only = socket.socket(socket.AF_INET6)
only.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
try:
    only.bind(('::', 0))
except OSError as error:
    print(error.strerror, flush=True)
sys.stdin.read()
";

const CLIENT: &str = "
import socket, sys
print(sorted({a[4][0] for a in socket.getaddrinfo('Worker-0.default.svc.', 2222, socket.AF_INET)}))
print(socket.getaddrinfo('worker-0.default.svc', 2222, flags=socket.AI_CANONNAME)[0][3])
print(socket.gethostbyname('worker-1'), socket.gethostbyname_ex('both')[2])
print(socket.gethostbyname('localhost'))
for name in ('worker-0.default.svc', 'worker-1'):
    socket.create_connection((name, int(sys.argv[1]))).close()
try:
    socket.getaddrinfo('not-there.invalid', 1)
except socket.gaierror:
    print('unknown')
";

#[test]
fn the_shim_gives_each_pod_ports_and_names_of_its_own() {
    let python = "/usr/bin/python3";
    if !std::path::Path::new(python).exists() {
        return crate::bed::skipped("no python3 to test the shim with");
    }
    as_each(|who| {
        let bed = plain(who);
        bed.add("p", 1);
        let folder = bed.make("shim");
        let (shim, hosts) = (folder.join("shim.so"), folder.join("hosts"));
        std::fs::write(&shim, trainyard_holder::shim()).unwrap();
        let text = "127.77.9.1 worker-0 worker-0.default.svc both # both\n\nodd line\n127.77.9.2\tworker-1 both\n";
        std::fs::write(&hosts, text).unwrap();
        let free = std::net::TcpListener::bind("127.77.9.1:0").unwrap().local_addr().unwrap();
        let port = free.port().to_string();
        let spec = |name: &str, address: &str, script: &str| {
            let mut spec = container(&bed, name, "");
            spec.argv = [python, "-c", script, &port].map(str::to_owned).to_vec();
            for (key, value) in [
                ("LD_PRELOAD", shim.to_str().unwrap()),
                ("TRAINYARD_POD_IP", address),
                ("TRAINYARD_HOSTS", hosts.to_str().unwrap()),
            ] {
                spec.env.push((key.to_owned(), value.to_owned()));
            }
            spec
        };
        let mut inputs = Vec::new();
        for (name, address) in [("one", "127.77.9.1"), ("two", "127.77.9.2")] {
            let (reader, writer) = std::io::pipe().unwrap();
            let (mut descriptors, mut output) = crate::bed::pipes();
            descriptors[0] = reader.into();
            inputs.push(writer);
            let start = Request::Start(Box::new(spec(name, address, SERVER)));
            bed.holder.ask(start, descriptors).unwrap();
            let lines: Vec<String> = (0..4).map(|_| output.line()).collect();
            let mapped = format!("::ffff:{address}");
            let none = "Cannot assign requested address";
            assert_eq!(lines, [address, &mapped, "0.0.0.0", none]);
        }
        let (text, ending) = bed.run(spec("client", "127.77.9.3", CLIENT));
        let expected = "['127.77.9.1']\nworker-0.default.svc\n127.77.9.2 ['127.77.9.1', '127.77.9.2']\n127.0.0.1\nunknown\n";
        assert_eq!((text.as_str(), ending), (expected, Ending::Code(0)));
        drop(inputs);
    });
}
