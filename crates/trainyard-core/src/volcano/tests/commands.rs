//! Commands: suspend, resume, and that each is carried out once.

use serde_json::json;
use trainyard_api::volcano::JobPhase::{
    Aborted, Aborting, Completed, Completing, Failed, Pending, Restarting, Running, Terminated,
};

use crate::{
    child::Child,
    volcano::world::{World, mnist, task},
};

#[test]
fn suspended_and_resumed() {
    let mut w = World::running(mnist());
    w.exit("worker-0", 0);
    w.settle_counts();
    w.command("c", "AbortJob");
    w.step();
    assert_eq!((w.phase(), w.typed().terminating, w.typed().succeeded), (Aborting, 2, 1));
    assert_eq!(w.typed().state.reason, "CommandIssued");
    assert!(w.names(Child::Command).is_empty());
    assert_eq!(
        w.told("CommandIssued"),
        ["Start to execute command AbortJob, and clean it up to make sure executed not more than \
          once."]
    );
    w.settle();
    assert_eq!(w.phase(), Aborting);
    w.finish_deletions();
    w.settle_counts();
    assert_eq!((w.phase(), w.typed().terminating), (Aborted, 0));
    assert_eq!(w.names(Child::Pod), ["j-worker-0"]);
    assert!(w.names(Child::Service).is_empty() && w.names(Child::PodGroup).is_empty());
    w.pass_ms(10_000_000);
    assert!(w.plan().is_idle() && w.plan().requeue_at.is_none());
    w.command("d", "ResumeJob");
    w.step();
    assert_eq!((w.phase(), w.typed().retry_count), (Restarting, 1));
    w.run();
    assert_eq!(w.phase(), Running);
    assert_eq!((w.typed().running, w.typed().succeeded), (2, 1), "done work stays done");
    w.exit("worker-1", 0);
    w.settle();
    w.finish_deletions();
    w.settle();
    assert_eq!(w.phase(), Completed);
}

#[test]
fn resumed_while_aborting() {
    let mut w = World::running(mnist());
    w.command("c", "AbortJob");
    w.settle();
    w.command("d", "ResumeJob");
    w.settle();
    assert_eq!(w.phase(), Restarting);
    w.finish_deletions();
    w.run();
    assert_eq!((w.phase(), w.typed().running), (Running, 3));
}

#[test]
fn other_commands() {
    for (action, going, end) in [
        ("TerminateJob", trainyard_api::volcano::JobPhase::Terminating, Terminated),
        ("CompleteJob", Completing, Completed),
    ] {
        let mut w = World::running(mnist());
        w.command("c", action);
        w.settle();
        assert_eq!(w.phase(), going);
        w.finish_deletions();
        w.settle();
        assert_eq!(w.phase(), end);
        assert!(w.names(Child::Pod).is_empty());
    }
    let mut w = World::running(mnist());
    w.command("c", "RestartJob");
    w.settle();
    w.finish_deletions();
    w.run();
    assert_eq!((w.phase(), w.typed().retry_count), (Running, 1));
}

#[test]
fn a_command_is_carried_out_once_wherever_the_operator_stops() {
    for crash in 0..6 {
        let mut w = World::running(mnist());
        w.command("c", "RestartJob");
        for write in w.plan().writes().take(crash) {
            w.write(write);
        }
        w.settle();
        w.finish_deletions();
        w.run();
        assert_eq!((w.phase(), w.typed().retry_count), (Running, 1), "after {crash} writes");
        assert!(w.names(Child::Command).is_empty());
    }
}

#[test]
fn commands_are_taken_one_after_the_other() {
    let mut w = World::running(mnist());
    w.command("z", "AbortJob");
    w.command("a", "ResumeJob");
    w.settle();
    assert_eq!(w.phase(), Restarting);
    assert_eq!(w.visited(), [Pending, Running, Aborting, Restarting]);
    assert!(w.names(Child::Command).is_empty());
}

#[test]
fn a_job_that_is_being_restarted_can_be_stopped() {
    let mut w = World::running(mnist());
    w.vanish("ps-0");
    w.settle();
    assert_eq!(w.phase(), Restarting);
    w.command("c", "AbortJob");
    w.settle();
    w.finish_deletions();
    w.settle();
    assert_eq!(w.phase(), Aborted);
}

#[test]
fn what_means_nothing_is_told_and_goes() {
    let mut w = World::running(mnist());
    w.command("c", "Dance");
    w.command("d", "RestartTask");
    w.settle();
    assert_eq!(w.phase(), Running);
    assert!(w.names(Child::Command).is_empty());
    assert!(w.told("CommandIssued")[0].contains("\"Dance\", which is no action"));
}

#[test]
fn an_ended_job_takes_no_commands() {
    let mut w = World::running(json!({"tasks": [task("w", 1)]}));
    w.exit("w-0", 1);
    w.settle_counts();
    assert_eq!(w.phase(), Failed);
    w.command("c", "ResumeJob");
    w.settle();
    assert_eq!(w.phase(), Failed);
    assert!(w.names(Child::Command).is_empty());
}
