//! The probe state machine in tables.

use std::time::Duration;

use super::*;
use crate::probes::plan::Action;

fn plan(kind: Kind) -> Plan {
    Plan {
        kind,
        action: Action::Tcp { host: None, port: 1 },
        initial_delay: Duration::ZERO,
        period: Duration::from_secs(10),
        timeout: Duration::from_secs(1),
        success_threshold: 1,
        failure_threshold: 3,
        grace: None,
    }
}

fn outcome(letter: char) -> Outcome {
    match letter {
        's' => Outcome::Success,
        'w' => Outcome::Warning("w".to_owned()),
        'f' => Outcome::Failure("f".to_owned()),
        _ => Outcome::Errored("e".to_owned()),
    }
}

/// Feeds results and writes down what each changed: `.` nothing, `S` started, `R` ready, `N` not ready,
/// `U` unhealthy.
fn history(plan: Plan, results: &str) -> String {
    let began = Instant::now();
    let mut state = ProbeState::new(plan, began);
    results
        .chars()
        .map(|letter| {
            state.begin(began);
            match state.record(&outcome(letter), began) {
                None => '.',
                Some(Change::Started) => 'S',
                Some(Change::Ready) => 'R',
                Some(Change::NotReady) => 'N',
                Some(Change::Unhealthy(_)) => 'U',
            }
        })
        .collect()
}

#[test]
fn readiness_goes_both_ways() {
    let twice = Plan { success_threshold: 2, ..plan(Kind::Readiness) };
    for (plan, results, changes) in [
        (plan(Kind::Readiness), "sss", "R.."),
        (plan(Kind::Readiness), "fff", "..."),
        (plan(Kind::Readiness), "sffs", "R..."),
        (plan(Kind::Readiness), "sfffs", "R..NR"),
        (plan(Kind::Readiness), "w", "R"),
        (plan(Kind::Readiness), "sffefs", "R...NR"),
        (plan(Kind::Readiness), "eee", "..."),
        (twice.clone(), "sfss", "...R"),
        (twice, "sesfff", "..R..N"),
    ] {
        assert_eq!(history(plan, results), changes, "{results}");
    }
}

#[test]
fn liveness_fails_once_and_is_over() {
    for (results, changes) in [
        ("sss", "..."),
        ("fff", "..U"),
        ("ffsfff", ".....U"),
        ("fffsfff", "..U...."),
        ("ffef", "...U"),
    ] {
        assert_eq!(history(plan(Kind::Liveness), results), changes, "{results}");
    }
    let at_once = Plan { failure_threshold: 1, ..plan(Kind::Liveness) };
    assert_eq!(history(at_once, "sf"), ".U");
}

#[test]
fn startup_ends_with_its_first_verdict() {
    for (results, changes) in
        [("s", "S"), ("ffs", "..S"), ("fff", "..U"), ("fffs", "..U."), ("ssff", "S...")]
    {
        assert_eq!(history(plan(Kind::Startup), results), changes, "{results}");
    }
}

#[test]
fn when_a_probe_is_due() {
    let began = Instant::now();
    let at = |seconds: u64| began + Duration::from_secs(seconds);
    let delayed = Plan { initial_delay: Duration::from_secs(5), ..plan(Kind::Readiness) };
    let mut state = ProbeState::new(delayed, began);
    assert_eq!(state.next_at(), Some(at(5)));
    state.begin(at(6));
    assert_eq!(state.next_at(), None);
    // The period counts from beginning to beginning.
    state.record(&Outcome::Success, at(9));
    assert_eq!(state.next_at(), Some(at(16)));
    // A probe that took longer than its period is made again at once, not twice.
    state.begin(at(16));
    state.record(&Outcome::Success, at(40));
    assert_eq!(state.next_at(), Some(at(40)));
}

#[test]
fn a_container_without_probes_is_started_and_ready() {
    let probes = ContainerProbes::new(Vec::new(), Instant::now());
    assert!(probes.started() && probes.ready() && probes.is_idle());
    assert_eq!(probes.next_at(), None);
}

#[test]
fn startup_holds_the_others_back() {
    let began = Instant::now();
    let at = |seconds: u64| began + Duration::from_secs(seconds);
    let plans = vec![plan(Kind::Startup), plan(Kind::Liveness), plan(Kind::Readiness)];
    let mut probes = ContainerProbes::new(plans, began);
    assert!(!probes.started() && !probes.ready() && !probes.is_idle());
    let kinds = |plans: Vec<Plan>| plans.iter().map(|plan| plan.kind).collect::<Vec<_>>();
    assert_eq!(kinds(probes.begin_due(at(0))), [Kind::Startup]);
    assert_eq!(probes.next_at(), None);
    assert_eq!(probes.record(Kind::Startup, &outcome('f'), at(1)), None);
    assert_eq!(probes.next_at(), Some(at(10)));
    assert!(probes.begin_due(at(9)).is_empty());
    assert_eq!(kinds(probes.begin_due(at(10))), [Kind::Startup]);
    assert_eq!(probes.record(Kind::Startup, &outcome('s'), at(11)), Some(Change::Started));
    assert!(probes.started() && !probes.ready());
    assert_eq!(kinds(probes.begin_due(at(11))), [Kind::Liveness, Kind::Readiness]);
    assert!(probes.begin_due(at(11)).is_empty());
    assert_eq!(probes.record(Kind::Readiness, &outcome('s'), at(11)), Some(Change::Ready));
    assert!(probes.ready());
    assert_eq!(probes.record(Kind::Liveness, &outcome('s'), at(12)), None);
    assert_eq!(probes.next_at(), Some(at(21)));
}

#[test]
fn a_startup_probe_that_fails_kills() {
    let began = Instant::now();
    let one = Plan { failure_threshold: 1, ..plan(Kind::Startup) };
    let mut probes = ContainerProbes::new(vec![one], began);
    probes.begin_due(began);
    let change = probes.record(Kind::Startup, &outcome('f'), began).unwrap();
    assert_eq!(change, Change::Unhealthy(Kind::Startup));
    assert!(!probes.started() && probes.is_idle());
    assert_eq!(
        change.killing("tensorflow", true).unwrap(),
        "Container tensorflow failed startup probe, will be restarted"
    );
    assert_eq!(
        Change::Unhealthy(Kind::Liveness).killing("c", false).unwrap(),
        "Container c failed liveness probe"
    );
    assert_eq!(Change::Ready.killing("c", true), None);
}

#[test]
fn results_of_unknown_probes_change_nothing() {
    let mut probes = ContainerProbes::new(Vec::new(), Instant::now());
    assert_eq!(probes.record(Kind::Liveness, &outcome('f'), Instant::now()), None);
}
