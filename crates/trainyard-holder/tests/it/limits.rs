//! Limits and accounts: memory, processes, processor.

use trainyard_holder::protocol::{Answer, Cgroups, Ending, Event, Limits, PodUsage, Request};

use crate::bed::{Bed, PATIENCE, Who, as_each, cgroups_of, is_root, skipped, soon};

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
