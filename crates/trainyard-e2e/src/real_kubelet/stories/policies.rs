//! Every restart policy with programs that end in every way.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::check::{contains, equal, fields};
use crate::harness::{Case, cases};
use crate::real_kubelet::jobs::{ending, worker};
use crate::real_kubelet::scene::{condition, state};
use crate::real_kubelet::site::Scene;
use crate::seen::text;

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["policies":
        never_ends_a_job_with_every_code_and_restarts_nothing,
        on_failure_restarts_in_place_after_every_code_but_0,
        always_restarts_in_place_after_every_code,
        exit_code_judges_every_code,
        on_failure_lets_a_program_succeed_after_a_restart_in_place,
        exit_code_lets_a_job_succeed_after_a_retryable_code,
        program_out_of_memory_is_told_as_such,
        program_killed_by_a_signal_is_restarted_under_exit_code,
        last_lines_of_the_log_are_in_the_failure,
    ]
}

/// Ends of programs: success, failures of any kind, shells that cannot run a program, and signals, of which some
/// policies make more than others. Every policy has all of them.
const CODES: [i32; 11] = [0, 1, 2, 126, 127, 128, 130, 137, 138, 139, 143];

/// Those after which `ExitCode` runs a program again.
const RETRYABLE: [i32; 4] = [130, 137, 138, 143];

/// Submits one job for each code, with one restart to spare, and waits until all have ended; gives each code with
/// its job and the job's name.
async fn ends_under(scene: &Scene, policy: &str) -> Result<Vec<(i32, String, Value)>> {
    let job = |code: i32| ending(&format!("exit-{code}"), policy, code);
    let jobs = CODES.map(|code| job(code).run_policy("backoffLimit", 1).json());
    scene.create(json!({"apiVersion": "v1", "kind": "List", "items": jobs})).await?;
    scene.all_end().await?;
    let mut ended = Vec::new();
    for code in CODES {
        let name = format!("exit-{code}");
        let job = scene.get(&format!("tfjob/{name}")).await?;
        ended.push((code, name, job));
    }
    Ok(ended)
}

/// The state of a job whose program's end is the job's.
fn after(code: i32) -> &'static str {
    if code == 0 { "Succeeded" } else { "Failed" }
}

/// A job that has ended with its only pod, which is still there with its log.
async fn ended_at_once(scene: &Scene, code: i32, name: &str, job: &Value) -> Result<()> {
    equal(name, state(job), after(code))?;
    let pod = format!("{name}-worker-0");
    fields(name, job, &[("/status/restarts", json!(null))])?;
    if code != 0 {
        let failure = [
            ("/status/failure/pod", json!(pod)),
            ("/status/failure/exitCode", json!(code)),
            ("/status/failure/container", json!("tensorflow")),
        ];
        fields(name, job, &failure)?;
        let message = text(&condition(job, "Failed")["message"]);
        contains("message", message, &[&pod, &code.to_string()])?;
    }
    equal("pods", scene.pods(name).await?, [format!("{pod} {}", after(code))])?;
    equal("restarts in place", scene.life(&pod).await?.1, 0)?;
    equal("log", scene.log(&pod).await?, format!("ends with {code}\n"))
}

/// A job that has used up its only restart, by another pod.
fn ended_after_a_restart(name: &str, job: &Value) -> Result<()> {
    fields(name, job, &[("/status/restarts", json!(1))])?;
    ended_at_the_limit(name, job, 1)
}

/// A job whose restarts in place have reached the limit. A kubelet may start a program once more before the operator
/// has heard of the end before.
pub(super) fn ended_at_the_limit(name: &str, job: &Value, limit: u64) -> Result<()> {
    equal(name, state(job), "Failed")?;
    let restarts = job["status"]["restarts"].as_u64().unwrap_or(0);
    ensure!((limit..=limit + 1).contains(&restarts), "{name}: {restarts} restarts of {limit}");
    contains("message", text(&condition(job, "Failed")["message"]), &["backoff"])
}

async fn never_ends_a_job_with_every_code_and_restarts_nothing(scene: &Scene) -> Result<()> {
    for (code, name, job) in ends_under(scene, "Never").await? {
        ended_at_once(scene, code, &name, &job).await?;
    }
    let succeeded = [("/status/replicaStatuses/Worker/succeeded", json!(1))];
    fields("job", &scene.get("tfjob/exit-0").await?, &succeeded)?;
    let table = scene.ok(&["get", "tfjob", "exit-0"]).await?;
    let row: Vec<&str> = table.lines().last().unwrap_or_default().split_whitespace().collect();
    equal("row", &row[..2], ["exit-0", "Succeeded"])
}

async fn on_failure_restarts_in_place_after_every_code_but_0(scene: &Scene) -> Result<()> {
    for (code, name, job) in ends_under(scene, "OnFailure").await? {
        match code {
            0 => ended_at_once(scene, code, &name, &job).await?,
            _ => ended_at_the_limit(&name, &job, 1)?,
        }
    }
    Ok(())
}

async fn always_restarts_in_place_after_every_code(scene: &Scene) -> Result<()> {
    for (_, name, job) in ends_under(scene, "Always").await? {
        ended_at_the_limit(&name, &job, 1)?;
    }
    Ok(())
}

async fn exit_code_judges_every_code(scene: &Scene) -> Result<()> {
    for (code, name, job) in ends_under(scene, "ExitCode").await? {
        if !RETRYABLE.contains(&code) {
            ended_at_once(scene, code, &name, &job).await?;
            continue;
        }
        ended_after_a_restart(&name, &job)?;
        // By another pod.
        equal("restarts in place", scene.life(&format!("{name}-worker-0")).await?.1, 0)?;
        scene.told(&format!("tfjob/{name}"), &["TFJobRestarting"]).await?;
    }
    Ok(())
}

async fn on_failure_lets_a_program_succeed_after_a_restart_in_place(scene: &Scene) -> Result<()> {
    let script = "if [ -e /keep/was ]; then echo second; exit 0; fi; touch /keep/was; exit 1";
    let job = worker("again", "OnFailure", script).edit("Worker", |replica| {
        let spec = &mut replica["template"]["spec"];
        spec["volumes"] = json!([{"name": "keep", "emptyDir": {}}]);
        spec["containers"][0]["volumeMounts"] = json!([{"name": "keep", "mountPath": "/keep"}]);
    });
    scene.create(job).await?;
    let job = scene.ends("again", "Succeeded").await?;
    fields("job", &job, &[("/status/restarts", json!(1))])?;
    equal("restarts in place", scene.life("again-worker-0").await?.1, 1)?;
    equal("log", scene.log("again-worker-0").await?.as_str(), "second\n")
}

async fn exit_code_lets_a_job_succeed_after_a_retryable_code(scene: &Scene) -> Result<()> {
    let folder = scene.site.folder(&scene.namespace)?;
    let script = "if [ -e /keep/was ]; then echo second; exit 0; fi; touch /keep/was; exit 138";
    let job = worker("again", "ExitCode", script).edit("Worker", |replica| {
        let spec = &mut replica["template"]["spec"];
        spec["volumes"] = json!([{"name": "keep", "hostPath": {"path": folder}}]);
        spec["containers"][0]["volumeMounts"] = json!([{"name": "keep", "mountPath": "/keep"}]);
    });
    scene.create(job).await?;
    let job = scene.ends("again", "Succeeded").await?;
    fields("job", &job, &[("/status/restarts", json!(1))])?;
    equal("log", scene.log("again-worker-0").await?.as_str(), "second\n")
}

async fn program_out_of_memory_is_told_as_such(scene: &Scene) -> Result<()> {
    let limits = json!({"limits": {"memory": "32Mi"}});
    let job = worker("hungry", "Never", "tail /dev/zero")
        .container("Worker", |container| container["resources"] = limits);
    scene.create(job).await?;
    let job = scene.ends("hungry", "Failed").await?;
    let wanted =
        [("/status/failure/exitCode", json!(137)), ("/status/failure/reason", json!("OOMKilled"))];
    fields("job", &job, &wanted)?;
    contains("message", text(&condition(&job, "Failed")["message"]), &["OOMKilled"])
}

async fn program_killed_by_a_signal_is_restarted_under_exit_code(scene: &Scene) -> Result<()> {
    // Process 1 takes no signal that it has not asked for; its child does, and it ends as that child. A
    // kubelet makes one sign of two.
    let script = "sh -c 'kill -USR1 $$$$; sleep 9'; exit $?";
    let job = worker("killed", "ExitCode", script).run_policy("backoffLimit", 1);
    scene.create(job).await?;
    let job = scene.ends("killed", "Failed").await?;
    let wanted = [("/status/restarts", json!(1)), ("/status/failure/exitCode", json!(138))];
    fields("job", &job, &wanted)
}

async fn last_lines_of_the_log_are_in_the_failure(scene: &Scene) -> Result<()> {
    let script = "echo starts; echo 'ValueError: no such layer' >&2; exit 1";
    scene.create(worker("wrong", "Never", script)).await?;
    let job = scene.ends("wrong", "Failed").await?;
    let message = text(&condition(&job, "Failed")["message"]);
    contains("message", message, &["ValueError: no such layer"])?;
    ensure!(message.contains("wrong-worker-0"), "{message}");
    Ok(())
}
