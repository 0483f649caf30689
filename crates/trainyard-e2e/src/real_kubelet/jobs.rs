//! TFJobs of busybox, for stories.

use serde_json::json;
use trainyard_testbed::cluster::image;

use crate::manifest::{Manifest, tfjob};

/// Runs until it is told how to end, by a file in its container.
pub(super) const TOLD: &str = "trap 'exit 143' TERM; echo up; \
    while [ ! -e /tmp/end ]; do sleep 0.5; done; echo told; exit $(cat /tmp/end)";

/// A job whose replicas each run a shell script: type, count, script.
pub(super) fn job(name: &str, replicas: &[(&str, i64, &str)]) -> Manifest {
    replicas.iter().fold(tfjob(name), |job, (kind, count, script)| {
        job.replicas(kind, *count).edit(kind, |replica| {
            replica["template"]["spec"] = json!({
                "terminationGracePeriodSeconds": 3,
                "containers": [{
                    "name": "tensorflow", "image": image::BUSYBOX,
                    "command": ["sh", "-c", script],
                }],
            });
        })
    })
}

/// One worker that runs a shell script under a restart policy.
pub(super) fn worker(name: &str, policy: &str, script: &str) -> Manifest {
    job(name, &[("Worker", 1, script)]).restart(policy)
}

/// One worker that writes a line and ends with a code.
pub(super) fn ending(name: &str, policy: &str, code: i32) -> Manifest {
    worker(name, policy, &format!("echo ends with {code}; exit {code}"))
}
