//! Programs beside a yard, which end with whoever asked for them, and the way out that they make.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::process::Command;
use std::sync::mpsc::Receiver;

use trainyard_holder::client::Holder;
use trainyard_holder::protocol::{
    Answer, Ending, Event, Place, RefusalKind, Request, TETHERED, Tether, Uplink, YARD_NETWORK,
};

use crate::bed::{Bed, PATIENCE, as_each, soon, spawned};

struct Tethered {
    holder: Holder,
    events: Receiver<Event>,
    output: std::io::PipeReader,
}

fn tether(bed: &Bed, script: &str) -> Tethered {
    let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    tether_words(bed, argv)
}

fn tether_words(bed: &Bed, argv: Vec<String>) -> Tethered {
    let (holder, events, _) = spawned(bed.folder.parent().unwrap(), bed.who);
    let (output, theirs) = std::io::pipe().unwrap();
    let request = Request::Tether(Tether { holder: bed.holder.pid(), argv });
    let answer = holder.ask(request, vec![theirs.into()]).unwrap().0;
    assert_eq!(answer, Answer::Started);
    Tethered { holder, events, output }
}

impl Tethered {
    fn ending(&self) -> Ending {
        let Event::Exited { target, ending, .. } = self.events.recv_timeout(PATIENCE).unwrap();
        assert_eq!(target, TETHERED);
        ending
    }

    fn text(&mut self) -> String {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        text
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while self.output.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }
}

#[test]
fn a_program_runs_in_the_machines_network_as_a_user_of_the_yard() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        let script = format!(
            "echo unheard; exec >&2; readlink /proc/self/ns/net /proc/self/ns/user; id -u; stat -L -c 'net:[%i]' {YARD_NETWORK}; \
             echo oops; exit 3"
        );
        let mut program = tether(&bed, &script);
        let link = |path: &str| std::fs::read_link(path).unwrap().to_str().unwrap().to_owned();
        let theirs = |name: &str| link(&format!("/proc/{}/ns/{name}", bed.holder.pid()));
        let (users, network) = (theirs("user"), theirs("net"));
        let expected = format!("{}\n{users}\n0\n{network}\noops\n", link("/proc/self/ns/net"));
        assert_eq!(program.text(), expected);
        assert_eq!(program.ending(), Ending::Code(3));
        let mut missing = tether_words(&bed, vec!["/no/such/program".to_owned()]);
        assert_eq!(missing.text(), "no such file or directory");
        assert_eq!(missing.ending(), Ending::Code(127));
    });
}

/// Says the number of a process that nobody waits for, and stays.
const DAEMON: &str = "exec >&2; trap '' TERM HUP; \
     setsid sh -c 'trap \"\" TERM HUP; read pid rest < /proc/self/stat; echo $pid; sleep 300; :' & \
     wait; sleep 300";

fn runs(pid: &str) -> bool {
    std::path::Path::new("/proc").join(pid).exists()
}

fn children(of: u32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap();
    list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn whoever_goes_takes_the_program_along() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        let mut program = tether(&bed, DAEMON);
        let pid = program.line();
        assert!(runs(&pid));
        program.holder.end();
        assert!(!runs(&pid), "it outlived the one who asked for it");

        let mut program = tether(&bed, DAEMON);
        let pid = program.line();
        kill(program.holder.pid().cast_signed());
        soon("it goes with the outer process", || !runs(&pid));

        let mut program = tether(&bed, DAEMON);
        let pid = program.line();
        let inner = children(program.holder.pid());
        assert_eq!(inner.len(), 1);
        kill(inner[0]);
        soon("it goes with the inner process", || !runs(&pid));
        soon("so does the outer one", || !runs(&program.holder.pid().to_string()));
    });
}

#[test]
fn what_cannot_be_tethered_is_refused() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        let refused = |pid: u32, argv: &[&str], output: bool| {
            let (holder, _events, _) = spawned(bed.folder.parent().unwrap(), who);
            let argv = argv.iter().map(|word| (*word).to_owned()).collect();
            let descriptors = output.then(|| std::io::pipe().unwrap().1.into());
            let request = Request::Tether(Tether { holder: pid, argv });
            holder.ask(request, descriptors.into_iter().collect()).unwrap_err()
        };
        let pid = bed.holder.pid();
        assert_eq!(refused(pid, &[], true).kind, RefusalKind::BadRequest);
        assert_eq!(refused(pid, &["a\0b"], true).kind, RefusalKind::BadRequest);
        assert_eq!(refused(pid, &["/bin/true"], false).kind, RefusalKind::BadRequest);
        let nobody = refused(u32::MAX, &["/bin/true"], true);
        assert!(nobody.to_string().contains("process 4294967295: no such file"), "{nobody}");
        let again = bed.ask(Request::Tether(Tether { holder: pid, argv: Vec::new() }));
        assert_eq!(again.unwrap_err().kind, RefusalKind::BadRequest);
    });
}

fn uplink(masquerade: bool) -> Request {
    Request::Uplink(Uplink {
        link: "out0".to_owned(),
        address: Ipv4Addr::new(169, 254, 77, 1),
        prefix: 30,
        via: Ipv4Addr::new(169, 254, 77, 2),
        masquerade,
    })
}

/// Runs `ip` in the yard's own network.
fn ip(bed: &Bed, words: &str) -> String {
    let pid = bed.holder.pid().to_string();
    let output = Command::new("nsenter")
        .args(["--target", &pid, "--net", "ip"])
        .args(words.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// How a connection from a pod to another network fails within some time. The kernel does not say no to
/// every packet; another one follows after a second.
fn failure(bed: &Bed, to: Ipv4Addr, seconds: u32) -> Option<i32> {
    let request =
        Request::Connect { place: Place::Pod("p".to_owned()), address: SocketAddrV4::new(to, 80) };
    let stream = match bed.holder.ask(request, Vec::new()) {
        Ok((_, mut sockets)) => TcpStream::from(sockets.pop().unwrap()),
        Err(refusal) => panic!("{refusal}"),
    };
    for _ in 0..seconds * 20 {
        if let Some(error) = stream.take_error().unwrap() {
            return error.raw_os_error();
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    None
}

#[test]
fn a_link_becomes_the_way_out_but_not_to_everything() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        if !crate::bed::is_root() {
            return crate::bed::skipped("only root can put a link into a yard from outside");
        }
        bed.add("p", 1);
        let early = bed.ask(uplink(true)).unwrap_err();
        assert_eq!(early.to_string(), "sending by out0: no such device");
        let net = |text: &str, bits| (text.parse().unwrap(), bits);
        let networks = vec![net("169.254.0.0", 16), net("192.0.2.7", 32)];
        bed.ask(Request::KeepFrom { networks }).unwrap();
        for masquerade in [false, true] {
            ip(&bed, "link add out0 type veth peer name far0");
            bed.ask(uplink(masquerade)).unwrap();
            assert!(ip(&bed, "route").contains("default via 169.254.77.2 dev out0"));
            for kept in [Ipv4Addr::new(192, 0, 2, 7), Ipv4Addr::new(169, 254, 169, 254)] {
                assert_eq!(failure(&bed, kept, 8), Some(libc::EHOSTUNREACH), "{kept}");
            }
            // Nobody is at the other end.
            assert_eq!(failure(&bed, Ipv4Addr::new(192, 0, 2, 8), 1), None);
            ip(&bed, "link delete out0");
        }
        bed.ask(Request::KeepFrom { networks: vec![net("192.0.2.8", 32)] }).unwrap();
        let routes = ip(&bed, "route");
        assert!(routes.contains("prohibit 192.0.2.8") && !routes.contains("192.0.2.7"), "{routes}");
    });
}
