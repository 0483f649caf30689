//! The operator stops after any write of any pass, and the story ends the same.

use crate::{
    child::Child,
    volcano::world::{World, mnist},
};

type Story = fn(&mut World, &mut dyn FnMut(&mut World));

/// The stories; each hands the world over whenever the operator would look at it.
const STORIES: [Story; 4] = [
    |w, look| {
        look(w);
        w.admit();
        look(w);
        w.start_all();
        look(w);
        w.exit("worker-0", 0);
        look(w);
        w.exit("worker-1", 0);
        look(w);
        w.finish_deletions();
        look(w);
    },
    |w, look| {
        for _ in 0..2 {
            look(w);
            w.admit();
            look(w);
            w.start_all();
            look(w);
            w.vanish("worker-0");
            look(w);
            w.finish_deletions();
        }
        look(w);
        w.admit();
        look(w);
        w.start_all();
        look(w);
    },
    |w, look| {
        look(w);
        w.admit();
        look(w);
        w.start_all();
        look(w);
        w.command("c", "AbortJob");
        look(w);
        w.finish_deletions();
        look(w);
        w.command("d", "ResumeJob");
        look(w);
        w.admit();
        look(w);
        w.start_all();
        look(w);
    },
    |w, look| {
        w.spec["policies"] = serde_json::json!([{"event": "PodFailed", "action": "RestartPod"}]);
        look(w);
        w.admit();
        look(w);
        w.start_all();
        look(w);
        w.exit("worker-1", 1);
        look(w);
        w.start_all();
        look(w);
        w.spec["tasks"][1]["replicas"] = 1.into();
        w.spec["minAvailable"] = 2.into();
        look(w);
        w.finish_deletions();
        look(w);
    },
];

/// How a story ends when the operator stops once, after so many writes in all.
fn end(story: Story, stop_after: usize) -> (bool, serde_json::Value) {
    let (mut left, mut stopped) = (stop_after, false);
    let mut look = |w: &mut World| {
        if !stopped {
            for _ in 0..30 {
                let plan = w.plan();
                if plan.is_idle() {
                    break;
                }
                for write in plan.writes() {
                    if left == 0 {
                        stopped = true;
                        break;
                    }
                    left -= 1;
                    w.write(write);
                }
                if stopped {
                    // The operator starts again and remembers nothing.
                    w.pending_since = None;
                    break;
                }
            }
        }
        w.settle_counts();
    };
    let mut w = World::new(mnist());
    story(&mut w, &mut look);
    let status = w.typed();
    let told = serde_json::json!({
        "phase": status.state.phase, "reason": status.state.reason,
        "message": status.state.message, "version": status.version,
        "retries": status.retry_count, "visited": w.visited(),
        "running": status.running, "succeeded": status.succeeded,
        "terminating": status.terminating, "pods": w.names(Child::Pod),
        "groups": w.names(Child::PodGroup), "maps": w.names(Child::ConfigMap),
        "services": w.names(Child::Service), "commands": w.names(Child::Command),
        "creates": w.creates.len(), "deletes": w.deletes.len(), "patches": w.patches.len(),
    });
    (stopped, told)
}

#[test]
fn stopping_after_any_write_changes_nothing() {
    for (at, story) in STORIES.into_iter().enumerate() {
        let (_, whole) = end(story, usize::MAX);
        let mut stops = 0;
        loop {
            let (stopped, told) = end(story, stops);
            assert_eq!(told, whole, "story {at}, stopped after {stops} writes");
            if !stopped {
                break;
            }
            stops += 1;
        }
        assert!(stops > 15, "story {at} has {stops} writes");
    }
}
