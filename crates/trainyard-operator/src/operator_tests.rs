//! The whole operator, in paused time, against a server in memory on which things go wrong.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::{
    LeaderOptions,
    fake::{Asked, Fake, Reply},
    toy::{Blocks, Fault, Server, Toys, pass_time, pod},
};

/// An operator that runs until dropped.
pub(super) struct Running {
    pub(super) fake: Fake,
    pub(super) metrics: Arc<Metrics>,
    pub(super) health: Arc<Health>,
    pub(super) stop: CancellationToken,
    pub(super) run: JoinSet<Result<(), Error>>,
}

impl Running {
    pub(super) fn start(server: &Server) -> Self {
        Self::start_with(server, Options::default())
    }

    pub(super) fn start_with(server: &Server, options: Options) -> Self {
        let fake = server.fake();
        let options = Options { time: crate::Time::OfRuntime, ..options };
        let operator = Operator::new(fake.client(), options);
        let (metrics, health) = (operator.metrics(), operator.health());
        let stop = CancellationToken::new();
        let mut run = JoinSet::new();
        run.spawn(operator.work::<Toys, Blocks>(stop.clone()));
        Self { fake, metrics, health, stop, run }
    }

    /// Writes to the API server so far, events and leases left out.
    pub(super) fn writes(&self) -> Vec<String> {
        let is_counted = |line: &String| !line.contains("/events") && !line.contains("/leases");
        self.fake.writes().into_iter().filter(is_counted).collect()
    }

    pub(super) fn passes(&self) -> u64 {
        let text = self.metrics.encode();
        let line = text.lines().find(|line| line.starts_with("trainyard_reconcile_seconds_count"));
        line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
    }

    pub(super) fn counts(&self, what: &str) -> u64 {
        let text = self.metrics.encode();
        let name = format!("training_operator_jobs_{what}_total{{");
        let line = text.lines().find(|line| line.starts_with(&name));
        line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    }
}

const CREATE: &str = "POST /api/v1/namespaces/default/pods";
const STATUS: &str = "PATCH /apis/toys.dev/v1/namespaces/default/toys/a/status";

fn spec(pods: u32) -> Value {
    json!({"pods": pods})
}

fn only_first(
    mut fault: impl FnMut() -> Fault + Send,
    is: impl Fn(&Asked) -> bool + Send,
) -> impl FnMut(&Asked) -> Option<Fault> + Send {
    let mut left = 1;
    move |asked| {
        (left > 0 && is(asked)).then(|| {
            left -= 1;
            fault()
        })
    }
}

fn is_create(asked: &Asked) -> bool {
    asked.line() == CREATE
}

fn is_status(asked: &Asked) -> bool {
    asked.line() == STATUS
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_to_its_end_with_the_fewest_writes() {
    let server = Server::default();
    server.submit("a", &spec(3));
    let running = Running::start(&server);
    pass_time(100).await;
    assert_eq!(running.writes(), [STATUS, CREATE, CREATE, CREATE]);
    assert!(running.health.is_ready() && running.health.is_acting());
    for index in 0..3 {
        server.pod_phase(&format!("a-{index}"), "Succeeded");
    }
    pass_time(100).await;
    assert_eq!(running.writes()[4..], [STATUS]);
    assert_eq!(server.get("toys", "a").unwrap()["status"]["phase"], "Done");
    let mut events = server.events();
    events.sort();
    assert_eq!(
        events,
        [
            "Created pod: a-0",
            "Created pod: a-1",
            "Created pod: a-2",
            "Toy is created.",
            "Toy is done."
        ]
    );
    assert_eq!((running.counts("created"), running.counts("successful")), (1, 1));
    server.delete("toys", "a");
    pass_time(100).await;
    assert_eq!(running.counts("deleted"), 1);
    assert_eq!(running.writes().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_costs_no_pass() {
    let server = Server::default();
    server.submit("a", &spec(1));
    let running = Running::start(&server);
    pass_time(100).await;
    server.pod_phase("a-0", "Succeeded");
    pass_time(100).await;
    let passes = running.passes();
    for phase in ["Failed", "Running", "Succeeded"] {
        server.pod_phase("a-0", phase);
        pass_time(100).await;
    }
    server.delete("pods", "a-0");
    pass_time(3_600_000).await;
    assert_eq!(running.passes(), passes);
    server.change("toys", "a", |job| job["metadata"]["labels"] = json!({"x": "y"}));
    pass_time(100).await;
    assert_eq!(running.passes(), passes + 1);
}

#[tokio::test(start_paused = true)]
async fn the_echo_of_an_own_write_costs_no_pass() {
    let server = Server::default();
    server.submit("a", &spec(5));
    let running = Running::start(&server);
    pass_time(1000).await;
    assert!(running.passes() <= 3, "{} passes", running.passes());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_followed_by_its_successor_at_once() {
    let server = Server::default();
    server.submit("a", &spec(1));
    let running = Running::start(&server);
    pass_time(100).await;
    let first = server.get("pods", "a-0").unwrap()["metadata"]["uid"].clone();
    server.pod_phase("a-0", "Failed");
    pass_time(100).await;
    assert_ne!(server.get("pods", "a-0").unwrap()["metadata"]["uid"], first);
    let delete = "DELETE /api/v1/namespaces/default/pods/a-0";
    assert_eq!(running.writes(), [STATUS, CREATE, delete, CREATE]);
}

/// Every write of a job's life, not done, done with a lost answer, or never answered: the end is
/// the same and nothing is done twice.
#[tokio::test(start_paused = true)]
async fn whatever_is_lost_nothing_is_done_twice() {
    for nth in 0..5 {
        for lost in 0..4 {
            let server = Server::default();
            let mut writes = 0;
            server.faults(move |asked| {
                if !is_create(asked) && !is_status(asked) {
                    return None;
                }
                writes += 1;
                let fault = || match lost {
                    0 => Fault::Before(Reply::Broken),
                    1 => Fault::After(Reply::Broken),
                    2 => Fault::After(Reply::Silence),
                    _ => Fault::After(Reply::Json(503, json!({"message": "etcd is away"}))),
                };
                (writes == nth + 1).then(fault)
            });
            server.submit("a", &spec(3));
            let running = Running::start(&server);
            pass_time(40_000).await;
            for index in 0..3 {
                server.pod_phase(&format!("a-{index}"), "Succeeded");
            }
            pass_time(40_000).await;
            let case = format!("write {nth}, loss {lost}");
            assert_eq!(server.names("pods"), ["a-0", "a-1", "a-2"], "{case}");
            assert_eq!(server.get("toys", "a").unwrap()["status"]["phase"], "Done", "{case}");
            assert_eq!(running.counts("created"), 1, "{case}");
            assert_eq!(running.counts("successful"), 1, "{case}");
            assert!(running.writes().len() <= 9, "{case}: {:?}", running.writes());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_changes_meanwhile_is_planned_again() {
    let server = Server::default();
    server.submit("a", &spec(1));
    let user = server.clone();
    let mut once = true;
    server.faults(move |asked| {
        if !is_status(asked) || !std::mem::take(&mut once) {
            return None;
        }
        // A user was faster; the lock of the server is held here, so the change comes later.
        let user = user.clone();
        tokio::spawn(async move {
            user.change("toys", "a", |job| job["spec"] = json!({"pods": 2}));
        });
        Some(Fault::Before(Reply::refuse(409, "Conflict", "a")))
    });
    let running = Running::start(&server);
    pass_time(1000).await;
    assert_eq!(server.names("pods"), ["a-0", "a-1"]);
    assert_eq!(running.counts("created"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_status_parks_the_job_until_its_specification_changes() {
    let server = Server::default();
    server.submit("a", &spec(1));
    server.submit("b", &spec(1));
    server.faults(|asked| {
        (is_status(asked) && asked.body["status"]["phase"] == "Created")
            .then(|| Fault::Before(Reply::refuse(422, "Invalid", "a")))
    });
    let running = Running::start(&server);
    pass_time(3_600_000).await;
    let tried = |running: &Running| running.writes().iter().filter(|line| *line == STATUS).count();
    assert_eq!(tried(&running), 1);
    assert_eq!(server.names("pods"), ["b-0"], "the other job goes on");
    server.change("toys", "a", |job| job["metadata"]["labels"] = json!({"x": "y"}));
    pass_time(1000).await;
    assert_eq!(tried(&running), 1);
    server.faults(|_| None);
    server.change("toys", "a", |job| job["metadata"]["generation"] = json!(2));
    pass_time(1000).await;
    assert_eq!(tried(&running), 2);
    assert_eq!(server.names("pods"), ["a-0", "b-0"]);
}

#[tokio::test(start_paused = true)]
async fn the_servers_wish_to_wait_is_honoured() {
    let server = Server::default();
    server.submit("a", &spec(1));
    server.faults(only_first(|| Fault::Before(Reply::Later(429, 7)), is_create));
    let running = Running::start(&server);
    pass_time(6900).await;
    assert_eq!(running.writes().iter().filter(|line| *line == CREATE).count(), 1);
    pass_time(200).await;
    assert_eq!(running.writes().iter().filter(|line| *line == CREATE).count(), 2);
    assert_eq!(server.names("pods"), ["a-0"]);
}

#[tokio::test(start_paused = true)]
async fn a_strangers_pod_is_named_and_waited_for() {
    let server = Server::default();
    let stranger = json!({"metadata": {"name": "a-0", "labels": {"by": "toys"}, "ownerReferences": [
        {"kind": "ReplicaSet", "name": "web", "uid": "r", "controller": true}]}});
    server.make_pod(stranger);
    server.submit("a", &spec(2));
    let running = Running::start(&server);
    pass_time(1000).await;
    assert!(server.names("pods").contains(&"a-1".to_owned()), "the others are made");
    let told = "Error creating: pods \"a-0\" already exists and is controlled by ReplicaSet/web; \
                waiting for it to go away";
    assert_eq!(server.events().iter().filter(|event| *event == told).count(), 1);
    server.delete("pods", "a-0");
    pass_time(61_000).await;
    let owner = &server.get("pods", "a-0").unwrap()["metadata"]["ownerReferences"][0]["kind"];
    assert_eq!(owner, "Toy");
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn our_own_pod_from_an_earlier_life_counts_as_made() {
    let server = Server::default();
    server.submit("a", &spec(1));
    let uid = server.get("toys", "a").unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let running = Running::start(&server);
    // The watch is blind to it, as after a lost connection.
    server.faults(move |asked| {
        (asked.line() == CREATE).then(|| Fault::Before(Reply::refuse(409, "AlreadyExists", "a-0")))
    });
    server.make_pod(pod("a-0", &uid));
    pass_time(1000).await;
    assert_eq!(server.names("pods"), ["a-0"]);
    assert!(running.writes().len() <= 2);
}

#[tokio::test(start_paused = true)]
async fn a_timer_fires_without_any_event() {
    let server = Server::default();
    server.submit("a", &json!({"pods": 0, "deadline": 3600}));
    let running = Running::start(&server);
    pass_time(3_590_000).await;
    assert_eq!(server.get("toys", "a").unwrap()["status"]["phase"], "Created");
    let passes = running.passes();
    pass_time(20_000).await;
    assert_eq!(server.get("toys", "a").unwrap()["status"]["phase"], "Done");
    assert_eq!(running.passes(), passes + 2, "nothing in between");
    assert_eq!(running.counts("failed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_malformed_job_stops_nobody() {
    let server = Server::default();
    server.submit("bad", &json!({"pods": "many"}));
    server.submit("a", &spec(1));
    let running = Running::start(&server);
    pass_time(1000).await;
    assert_eq!(server.names("pods"), ["a-0"]);
    server.change("toys", "bad", |job| job["spec"] = json!({"pods": 1}));
    pass_time(1000).await;
    assert_eq!(server.names("pods"), ["a-0", "bad-0"]);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_failing_job_does_not_block_others() {
    let server = Server::default();
    for index in 0..40 {
        server.submit(&format!("bad{index}"), &spec(1));
    }
    server.submit("a", &spec(1));
    server.faults(|asked| {
        let name = asked.body["metadata"]["name"].as_str().unwrap_or_default();
        (is_create(asked) && name.starts_with("bad"))
            .then(|| Fault::Before(Reply::refuse(403, "Forbidden", "quota")))
    });
    let running = Running::start_with(&server, Options { passes: 2, ..Options::default() });
    pass_time(200).await;
    assert_eq!(server.names("pods"), ["a-0"]);
    pass_time(600_000).await;
    let per_job = running.writes().len() / 40;
    assert!(per_job < 40, "{per_job} writes per failing job in ten minutes");
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_forgotten_when_it_is_not_asked_for_any_more() {
    let server = Server::default();
    server.submit("a", &spec(1));
    let running = Running::start(&server);
    pass_time(100).await;
    let refused = |server: &Server| -> i64 {
        let all = server.names("events").into_iter().filter_map(|name| server.get("events", &name));
        let told = all.filter(|event| event["reason"] == "Refused");
        told.map(|event| event["count"].as_i64().unwrap_or(1)).sum()
    };
    server.faults(|asked| {
        is_create(asked).then(|| Fault::Before(Reply::refuse(403, "Forbidden", "quota")))
    });
    server.change("toys", "a", |job| job["spec"] = spec(2));
    pass_time(10_000).await;
    assert_eq!(refused(&server), 1);
    server.change("toys", "a", |job| job["spec"] = spec(1));
    pass_time(10_000).await;
    server.faults(|_| None);
    server.change("toys", "a", |job| job["spec"] = spec(2));
    pass_time(10_000).await;
    assert_eq!(server.names("pods"), ["a-0", "a-1"]);
    assert_eq!(refused(&server), 1, "the second time nothing was refused");
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn stopping_finishes_the_writes_under_way_and_begins_no_others() {
    let server = Server::default();
    server.submit("a", &spec(3));
    let slow = AtomicUsize::new(0);
    server.faults(move |asked| {
        (is_status(asked) && slow.fetch_add(1, Ordering::SeqCst) == 0)
            .then(|| Fault::Before(Reply::After(Duration::from_secs(2), Box::new(Reply::Broken))))
    });
    let mut running = Running::start(&server);
    pass_time(1000).await;
    running.stop.cancel();
    let begin = Instant::now();
    running.run.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(begin.elapsed().as_secs(), 1, "the slow write was awaited");
    assert_eq!(running.writes(), [STATUS]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_operator_leaves_nothing_running() {
    let server = Server::default();
    let running = Running::start(&server);
    pass_time(1000).await;
    let fake = running.fake.clone();
    drop(running);
    pass_time(1000).await;
    let asked = fake.asked().len();
    server.submit("a", &spec(3));
    pass_time(600_000).await;
    assert_eq!(fake.asked().len(), asked);
}

#[tokio::test(start_paused = true)]
async fn of_two_operators_one_acts_and_the_other_takes_over() {
    let server = Server::default();
    let options = |identity: &str| Options {
        leader: Some(LeaderOptions::new("default", "yard", identity)),
        ..Options::default()
    };
    let first = Running::start_with(&server, options("first"));
    pass_time(100).await;
    let mut second = Running::start_with(&server, options("second"));
    server.submit("a", &spec(1));
    pass_time(60_000).await;
    assert_eq!(first.writes(), [STATUS, CREATE]);
    assert!(second.writes().is_empty() && second.health.is_ready());
    assert!(!second.health.is_acting());
    drop(first);
    server.submit("b", &spec(1));
    pass_time(20_000).await;
    assert_eq!(server.names("pods"), ["a-0", "b-0"]);
    second.stop.cancel();
    second.run.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(server.get("leases", "yard").unwrap()["spec"]["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_loses_its_lease_ends() {
    let server = Server::default();
    let leader = Some(LeaderOptions::new("default", "yard", "first"));
    let mut running = Running::start_with(&server, Options { leader, ..Options::default() });
    pass_time(1000).await;
    server.faults(|asked| asked.path.contains("/leases").then(|| Fault::Before(Reply::Silence)));
    let begin = Instant::now();
    let end = running.run.join_next().await.unwrap().unwrap();
    assert!(matches!(end, Err(Error::LeadershipLost { .. })));
    assert!(begin.elapsed() <= Duration::from_secs(13));
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_work_are_refused() {
    let bad = |options: Options| async {
        let fake = Server::default().fake();
        let operator = Operator::new(fake.client(), options);
        operator.run(CancellationToken::new()).await.unwrap_err().to_string()
    };
    let namespace = Some("Team A".to_owned());
    let error = bad(Options { namespace, ..Options::default() }).await;
    assert_eq!(error, "namespace \"Team A\" is no name of a namespace; use a-z, 0-9 and -");
    let mut leader = LeaderOptions::new("ns", "lease", "me");
    leader.renew_deadline = leader.lease_duration;
    let error = bad(Options { leader: Some(leader), ..Options::default() }).await;
    assert!(error.contains("renew deadline < lease duration"), "{error}");
}
