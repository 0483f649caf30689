//! Programs: arguments, environment, output, terminals, exit codes, signals, refusals, and one more
//! program in a running container.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use trainyard_holder::protocol::{Ending, Reach, Refusal, RefusalKind, Request};

use crate::bed::{Bed, Who, as_each, pipes};

#[test]
fn a_program_runs_and_its_output_and_code_come_back() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let script = "echo \"$0 $1 $A $(pwd) $(hostname)\"; echo wrong >&2; exit 7";
        let mut spec = bed.container("p", "c", script);
        spec.argv.extend(["zero", "one two"].map(str::to_owned));
        spec.env.push(("A".to_owned(), "b=c".to_owned()));
        spec.cwd = "/some/where".into();
        let (text, ending) = bed.run(spec);
        assert_eq!(text, "zero one two b=c /some/where host-p\nwrong\n");
        assert_eq!(ending, Ending::Code(7));
        bed.remove("p");
        assert!(!bed.folder.join("pod-p").exists());
    });
}

#[test]
fn input_is_read_and_only_three_descriptors_and_the_environment_are_inherited() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let (reader, mut writer) = std::io::pipe().unwrap();
        let (mut descriptors, output) = pipes();
        descriptors[0] = reader.into();
        // The fourth is the folder that `ls` reads.
        let script = "read line; echo \"got $line\"; ls -m /proc/self/fd; tr '\\0' ' ' </proc/$$/environ; umask; ulimit -c; grep SigIgn /proc/$$/status";
        let spec = bed.container("p", "c", script);
        bed.holder.ask(Request::Start(Box::new(spec)), descriptors).unwrap();
        writer.write_all(b"a line\n").unwrap();
        drop(writer);
        let text = output.text();
        assert_eq!(bed.ending("c"), Ending::Code(0));
        let expected =
            "got a line\n0, 1, 2, 3\nPATH=/usr/bin:/bin 0022\n0\nSigIgn:\t0000000000000000\n";
        assert_eq!(text, expected);
    });
}

#[test]
fn what_cannot_be_run_is_refused_and_leaves_nothing() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let refused = |argv: &[&str]| -> Refusal {
            let mut spec = bed.container("p", "c", "");
            spec.argv = argv.iter().map(|&text| text.to_owned()).collect();
            bed.start(spec).err().unwrap()
        };
        let missing = refused(&["no-such-program"]);
        assert_eq!(missing.kind, RefusalKind::NoSuchProgram);
        let said = "exec: \"no-such-program\": executable file not found in $PATH (";
        assert!(missing.to_string().starts_with(said), "{missing}");
        let missing = refused(&["/no/such/program"]);
        let said =
            "exec: \"/no/such/program\": no such file or directory; there is no folder /no/such";
        assert_eq!(missing.to_string(), said);
        assert_eq!(refused(&["/usr"]).reason, "permission denied");
        assert_eq!(refused(&[]).kind, RefusalKind::BadRequest);
        assert_eq!(refused(&[""]).kind, RefusalKind::BadRequest);
        assert_eq!(refused(&["sh", "a\0b"]).kind, RefusalKind::BadRequest);
        let not_one = refused(&["/usr/share/common-licenses/GPL-3"]);
        assert_eq!(not_one.kind, RefusalKind::NotExecutable);
        // The name is free again, and no event came.
        assert_eq!(bed.run(bed.container("p", "c", "true")).1, Ending::Code(0));
    });
}

#[test]
fn bad_requests_are_refused_in_words() {
    let Some(bed) = Bed::new(Who::Me) else { return };
    bed.add("p", 1);
    let kind = |request: Request| bed.ask(request).unwrap_err().kind;
    assert_eq!(kind(Request::AddPod(Box::new(bed.pod("p", 9)))), RefusalKind::BadRequest);
    let refused = bed.ask(Request::AddPod(Box::new(bed.pod("q", 1)))).unwrap_err();
    assert!(refused.to_string().contains("pod p has the address 10.77.1.1"), "{refused}");
    assert_eq!(kind(Request::AddPod(Box::new(bed.pod("a_b", 2)))), RefusalKind::BadRequest);
    let mut elsewhere = bed.pod("q", 2);
    elsewhere.address = Some([192, 168, 0, 1].into());
    assert_eq!(kind(Request::AddPod(Box::new(elsewhere))), RefusalKind::BadRequest);
    let mut nowhere = bed.pod("q", 2);
    (nowhere.address, nowhere.node) = (None, "none".to_owned());
    assert_eq!(kind(Request::AddPod(Box::new(nowhere))), RefusalKind::BadRequest);
    let orphan = bed.container("nobody", "c", "true");
    assert_eq!(bed.start(orphan).err().unwrap().kind, RefusalKind::BadRequest);
    let bare = Request::Start(Box::new(bed.container("p", "c", "true")));
    assert_eq!(kind(bare), RefusalKind::BadRequest);
    assert_eq!(bed.exec("c", "e", "true").err().unwrap().kind, RefusalKind::BadRequest);
    let signal = Request::Signal { target: "c".to_owned(), signal: 99, reach: Reach::All };
    assert_eq!(kind(signal), RefusalKind::BadRequest);
    bed.signal("not-there", libc_term(), Reach::All);
    bed.remove("not-there");
    let again = Request::SetUp(crate::bed::set_up(
        trainyard_holder::protocol::Isolation::Namespaces,
        trainyard_holder::protocol::Network::Bridge,
    ));
    assert_eq!(kind(again), RefusalKind::BadRequest);
}

fn libc_term() -> i32 {
    rustix::process::Signal::TERM.as_raw()
}

#[test]
fn signals_reach_the_first_program_or_all() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let mut output = bed.start(bed.container("p", "plain", "echo up; sleep 100")).unwrap();
        assert_eq!(output.line(), "up");
        bed.signal("plain", libc_term(), Reach::First);
        assert_eq!(bed.ending("plain"), Ending::Signal(15));

        // It ignores the first signal; its child does not.
        let script = "trap 'echo caught' TERM; sh -c 'echo up; sleep 100'; wait; echo after; sleep 100 & wait; exit 3";
        let mut output = bed.start(bed.container("p", "all", script)).unwrap();
        assert_eq!(output.line(), "up");
        bed.signal("all", libc_term(), Reach::All);
        assert_eq!((output.line(), output.line()), ("caught".to_owned(), "after".to_owned()));
        bed.signal("all", 9, Reach::All);
        assert_eq!(bed.ending("all"), Ending::Signal(9));
    });
}

#[test]
fn what_ignores_sigterm_is_gone_after_sigkill_with_all_it_started() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let mark = format!("1000{}", std::process::id());
        let script = format!(
            "trap '' TERM; setsid sh -c 'setsid sleep {mark} & setsid sleep {mark} &' ; sleep {mark} & echo up; while :; do sleep {mark}; done"
        );
        let mut output = bed.start(bed.container("p", "c", &script)).unwrap();
        assert_eq!(output.line(), "up");
        bed.signal("c", libc_term(), Reach::First);
        assert_eq!(bed.event(Duration::from_millis(300)), None);
        assert!(!crate::bed::processes_with(&mark).is_empty());
        let since = Instant::now();
        bed.signal("c", 9, Reach::All);
        assert_eq!(bed.ending("c"), Ending::Signal(9));
        assert_eq!(crate::bed::processes_with(&mark), Vec::<String>::new());
        assert!(since.elapsed() < Duration::from_secs(5));
    });
}

#[test]
fn daemons_do_not_outlive_the_program_that_started_them() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let mark = format!("2000{}", std::process::id());
        let script = format!(
            "for i in 1 2 3 4 5; do setsid sh -c 'trap \"\" TERM HUP; setsid sleep {mark} </dev/null >/dev/null 2>&1 &' ; done; exit 4"
        );
        let (_, ending) = bed.run(bed.container("p", "c", &script));
        assert_eq!(ending, Ending::Code(4));
        assert_eq!(crate::bed::processes_with(&mark), Vec::<String>::new());
    });
}

#[test]
fn one_more_program_sees_the_container_and_ends_with_it() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let mut output =
            bed.start(bed.container("p", "c", "echo secret >/tmp/s; echo up; sleep 100")).unwrap();
        assert_eq!(output.line(), "up");
        let script = "cat /tmp/s; hostname; cat /proc/1/comm >/dev/null && ps_count=$(ls /proc | grep -c '^[0-9]'); test $ps_count -ge 3 && echo seen; exit 5";
        let text = bed.exec("c", "e1", script).unwrap().text();
        assert_eq!(bed.ending("e1"), Ending::Code(5));
        assert_eq!(text, "secret\nhost-p\nseen\n");

        let refused = bed.exec("c", "e2", "true");
        assert!(refused.is_ok());
        assert_eq!(bed.ending("e2"), Ending::Code(0));
        bed.exec("c", "e3", "sleep 100").unwrap();
        bed.signal("e3", libc_term(), Reach::First);
        assert_eq!(bed.ending("e3"), Ending::Signal(15));
        bed.exec("c", "e4", "sleep 100").unwrap();
        bed.signal("c", 9, Reach::All);
        assert_eq!(bed.ending("e4"), Ending::Signal(9));
        assert_eq!(bed.ending("c"), Ending::Signal(9));
        assert_eq!(bed.exec("c", "e5", "true").err().unwrap().kind, RefusalKind::BadRequest);
    });
}

#[test]
fn a_missing_program_of_exec_is_refused_and_the_container_goes_on() {
    let Some(bed) = Bed::new(Who::Me) else { return };
    bed.add("p", 1);
    let mut output = bed.start(bed.container("p", "c", "echo up; sleep 100")).unwrap();
    assert_eq!(output.line(), "up");
    let (descriptors, _output) = pipes();
    let spec = trainyard_holder::protocol::ExecSpec {
        exec: "e".to_owned(),
        container: "c".to_owned(),
        argv: vec!["nope".to_owned()],
        env: Vec::new(),
        cwd: "/".into(),
        user: trainyard_holder::protocol::User::default(),
        privileges: crate::bed::privileges(),
        tty: false,
    };
    let refused = bed.holder.ask(Request::Exec(Box::new(spec)), descriptors).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::NoSuchProgram);
    let text = bed.exec("c", "again", "echo fine").unwrap().text();
    assert_eq!((text.as_str(), bed.ending("again")), ("fine\n", Ending::Code(0)));
}

/// Reads from a terminal's other side until this has come.
fn read_until(terminal: &mut std::fs::File, mark: &str) -> String {
    let mut text = String::new();
    let mut bytes = [0; 1000];
    while !text.contains(mark) {
        // The end of a terminal is an error.
        let length = terminal.read(&mut bytes).unwrap_or(0);
        assert!(length > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..length]));
    }
    text
}

const LOOK: &str = "tty; test -t 0 && test -t 2 && echo terminal; echo own >/dev/tty; echo name >$(tty); ls /dev/pts | tr '\\n' ' '; echo; echo end";

#[test]
fn a_terminal_is_the_containers_own_and_the_controlling_one() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        for uid in [0, 1000] {
            let id = format!("c{uid}");
            let mut spec = bed.container("p", &id, LOOK);
            (spec.tty, spec.user.uid, spec.user.gid) = (true, uid, uid);
            let (_, terminal) = bed.holder.ask(Request::Start(Box::new(spec)), Vec::new()).unwrap();
            let mut terminal = std::fs::File::from(terminal.into_iter().next().unwrap());
            let text = read_until(&mut terminal, "end");
            assert_eq!(bed.ending(&id), Ending::Code(0));
            let expected = "/dev/pts/0\r\nterminal\r\nown\r\nname\r\n0 ptmx \r\nend";
            assert!(text.starts_with(expected), "{text}");
        }
    });
}

#[test]
fn one_more_program_gets_a_terminal_that_can_be_resized_and_hung_up() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let mut output = bed.start(bed.container("p", "c", "echo up; sleep 100")).unwrap();
        assert_eq!(output.line(), "up");
        let script = format!(
            "trap 'stty size; echo resized' WINCH; {LOOK}; until read line && test \"$line\"; do :; done; echo got $line; sleep 100"
        );
        let on_terminal = |exec: &str, script: &str| {
            let mut spec = Bed::exec_spec("c", exec, script);
            spec.tty = true;
            let (_, terminal) = bed.holder.ask(Request::Exec(Box::new(spec)), Vec::new()).unwrap();
            std::fs::File::from(terminal.into_iter().next().unwrap())
        };
        let mut first = on_terminal("e1", &script);
        let text = read_until(&mut first, "end");
        assert!(text.starts_with("/dev/pts/0\r\nterminal\r\nown\r\nname\r\n0 ptmx"), "{text}");
        let size = |rows: u16, columns: u16| rustix::termios::Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&first, size(33, 77)).unwrap();
        let text = read_until(&mut first, "resized");
        assert!(text.contains("33 77\r\n"), "{text}");
        first.write_all(b"a line\n").unwrap();
        read_until(&mut first, "got a line");
        let mut second = on_terminal("e2", "tty; echo end; sleep 100");
        assert!(read_until(&mut second, "end").starts_with("/dev/pts/1\r\n"));
        // Whoever sat there has gone: nobody else holds this side.
        drop(first);
        assert_eq!(bed.ending("e1"), Ending::Signal(1));
        drop(second);
        assert_eq!(bed.ending("e2"), Ending::Signal(1));
    });
}

#[test]
fn the_containers_way_to_its_terminals_is_not_followed() {
    let Some(bed) = Bed::new(Who::Me) else { return };
    bed.add("p", 1);
    let script = "rm /dev/ptmx && mkfifo /dev/ptmx && echo up; sleep 100";
    let mut output = bed.start(bed.container("p", "c", script)).unwrap();
    assert_eq!(output.line(), "up");
    let mut spec = Bed::exec_spec("c", "e", "tty; echo end");
    spec.tty = true;
    let (_, terminal) = bed.holder.ask(Request::Exec(Box::new(spec)), Vec::new()).unwrap();
    let mut terminal = std::fs::File::from(terminal.into_iter().next().unwrap());
    assert!(read_until(&mut terminal, "end").starts_with("/dev/pts/0\r\n"));
    assert_eq!(bed.ending("e"), Ending::Code(0));
    // Descriptors are for those without a terminal.
    let mut spec = Bed::exec_spec("c", "f", "true");
    spec.tty = true;
    let refused = bed.holder.ask(Request::Exec(Box::new(spec)), pipes().0).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::BadRequest);
}
