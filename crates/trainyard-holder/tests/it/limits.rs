//! Limits and accounts: memory, processes, processor.

use trainyard_holder::protocol::{
    Answer, Cgroups, Ending, Event, Isolation, Limits, Network, PodUsage, Request,
};

use crate::bed::{Bed, PATIENCE, Who, as_each, cgroups_of, is_root, set_up, skipped, soon};

/// A yard with cgroups, or none, which has been said.
fn limited() -> Option<Bed> {
    let bed = Bed::new(Who::Me)?;
    if bed.cgroups() == Cgroups::None {
        if is_root() {
            skipped("no cgroups here");
        } else {
            eprintln!("SKIPPED: an ordinary user has no cgroups here: {:?}", bed.ready);
        }
        return None;
    }
    Some(bed)
}

const HOG: &str = "x=a; while :; do x=$x$x; done";

#[test]
fn want_of_memory_is_told_from_other_kills() {
    let Some(bed) = limited() else { return };
    bed.add("p", 1);
    let mut spec = bed.container("p", "hog", HOG);
    spec.limits.memory = Some(32 << 20);
    bed.start(spec).unwrap();
    let Some(Event::Exited { ending, oom_killed, peak_memory, .. }) = bed.event(PATIENCE) else {
        panic!("it should have been killed");
    };
    assert_eq!((ending, oom_killed), (Ending::Signal(9), true));
    assert!(peak_memory.unwrap() > 16 << 20 && peak_memory.unwrap() <= 33 << 20);

    let mut spec = bed.container("p", "killed", "kill -9 $$");
    spec.limits.memory = Some(32 << 20);
    bed.start(spec).unwrap();
    let Some(Event::Exited { ending, oom_killed, .. }) = bed.event(PATIENCE) else { panic!() };
    assert_eq!((ending, oom_killed), (Ending::Signal(9), false));
}

#[test]
fn a_limit_of_the_pod_holds_for_its_containers() {
    let Some(bed) = limited() else { return };
    let mut pod = bed.pod("p", 1);
    pod.limits = Limits { memory: Some(32 << 20), ..Limits::default() };
    bed.ask(Request::AddPod(Box::new(pod))).unwrap();
    bed.start(bed.container("p", "hog", HOG)).unwrap();
    let Some(Event::Exited { ending, oom_killed, .. }) = bed.event(PATIENCE) else { panic!() };
    assert_eq!((ending, oom_killed), (Ending::Signal(9), true));
}

#[test]
fn processes_and_processor_are_limited() {
    let Some(bed) = limited() else { return };
    bed.add("p", 1);
    let script = "for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & done; wait";
    let mut spec = bed.container("p", "many", script);
    spec.limits.pids = Some(4);
    let (text, _) = bed.run(spec);
    assert!(text.contains("fork"), "{text}");
    let mut spec = bed.container("p", "busy", "timeout 1 sh -c 'while :; do :; done'");
    spec.limits.cpu_millis = Some(200);
    bed.start(spec).unwrap();
    let Some(Event::Exited { cpu_usec, .. }) = bed.event(PATIENCE) else { panic!() };
    assert!((100_000..450_000).contains(&cpu_usec.unwrap()), "{cpu_usec:?}");
}

// Only containers had limits: many pods together could take all process ids of the machine, and all its
// memory.
#[test]
fn all_pods_together_have_limits() {
    let mut set_up = set_up(Isolation::Namespaces, Network::Bridge);
    set_up.limits = Limits { memory: Some(64 << 20), pids: Some(20), ..Limits::default() };
    let Some(bed) = Bed::with(Who::Me, set_up) else { return };
    if bed.cgroups() == Cgroups::None {
        return skipped("no cgroups here");
    }
    bed.add("p", 1);
    bed.add("q", 2);
    let script = "for i in $(seq 15); do sleep 100 & done; echo up; wait";
    let mut first = bed.start(bed.container("p", "first", script)).unwrap();
    assert_eq!(first.line(), "up");
    let (text, _) = bed.run(bed.container("q", "second", "for i in $(seq 9); do sleep 1 & done"));
    assert!(text.contains("fork"), "{text}");
    bed.remove("p");
    bed.ending("first");
    bed.start(bed.container("q", "hog", HOG)).unwrap();
    let Some(Event::Exited { ending, oom_killed, .. }) = bed.event(PATIENCE) else { panic!() };
    assert_eq!((ending, oom_killed), (Ending::Signal(9), true));
}

// Without cgroups one program could start as many processes as its user may have, to which all others
// of that user belong.
#[test]
fn without_cgroups_a_users_pods_are_bounded_apart_from_the_user() {
    let mut set_up = set_up(Isolation::Namespaces, Network::Bridge);
    (set_up.cgroups, set_up.limits.pids) = (false, Some(30));
    let who = if is_root() { Who::Nobody } else { Who::Me };
    let Some(bed) = Bed::with(who, set_up) else { return };
    bed.add("p", 1);
    bed.add("q", 2);
    let script = "(for i in $(seq 60); do sleep 100 & done) 2>&1; echo up; exec sleep 100";
    let mut bomb = bed.start(bed.container("p", "bomb", script)).unwrap();
    let refused = bomb.line();
    assert!(refused.contains("fork"), "{refused}");
    assert!((0..100).any(|_| bomb.line() == "up"));
    // The holder still starts what it is asked for.
    let (text, _) = bed.run(bed.container("q", "other", "echo starts"));
    assert_eq!(text, "starts\n");
}

// It held half of the machine's memory, where no limit of the container counted it.
#[test]
fn shared_memory_is_bounded_in_bytes_and_files() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        let mut pod = bed.pod("p", 1);
        pod.shared_memory = 1 << 20;
        bed.ask(Request::AddPod(Box::new(pod))).unwrap();
        let script = "head -c 900000 /dev/zero > /dev/shm/a && echo fits; \
            head -c 900000 /dev/zero > /dev/shm/b || echo full; \
            df --output=itotal /dev/shm | tail -1 | tr -d ' '";
        let (text, _) = bed.run(bed.container("p", "c", script));
        assert!(text.contains("fits\n") && text.contains("full\n"), "{text}");
        assert!(text.contains("\n16384\n"), "{text}");
    });
}

#[test]
fn programs_go_before_the_machines_own_where_memory_ends() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let (text, _) = bed.run(bed.container("p", "c", "cat /proc/self/oom_score_adj"));
        assert_eq!(text, "500\n");
    });
}

#[test]
fn use_is_told_with_and_without_cgroups() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        bed.add("q", 2);
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo up; sleep 100 & wait";
        let mut output = bed.start(bed.container("p", "c", busy)).unwrap();
        assert_eq!(output.line(), "up");
        let used = || -> Vec<PodUsage> {
            match bed.ask(Request::Usage) {
                Ok(Answer::Usage(pods)) => pods,
                other => panic!("{other:?}"),
            }
        };
        soon("the container's use is seen", || {
            let pods = used();
            assert_eq!(pods.len(), 2);
            assert!(pods[1].containers.is_empty());
            let container = &pods[0].containers[0];
            container.container == "c"
                && container.cpu_usec >= 10_000
                && container.memory > 50_000
                && container.pids == 2
        });
    });
}

#[test]
fn groups_go_with_their_pods_and_the_yard() {
    let Some(bed) = limited() else { return };
    bed.add("p", 1);
    bed.start(bed.container("p", "c", "sleep 100")).unwrap();
    let folders = cgroups_of(&bed.yard);
    assert!(folders.iter().any(|folder| folder.join("p/c").exists()), "{folders:?}");
    bed.remove("p");
    bed.ending("c");
    assert!(cgroups_of(&bed.yard).iter().all(|folder| !folder.join("p").exists()));
    let yard = bed.yard.clone();
    bed.holder.end();
    assert_eq!(cgroups_of(&yard), Vec::<std::path::PathBuf>::new());
}
