//! Every restart policy with programs that end in every way.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::check::{contains, equal, fields};
use crate::harness::{Case, cases};
use crate::real_kubelet::jobs::{ending, worker};
use crate::real_kubelet::scene::condition;
use crate::real_kubelet::site::Scene;
use crate::seen::text;

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["policies":
        never_fails_a_job_with_any_code_and_restarts_nothing,
        never_lets_a_job_succeed,
        on_failure_restarts_in_place_up_to_the_backoff_limit,
        on_failure_lets_a_program_succeed_at_once,
        on_failure_lets_a_program_succeed_after_a_restart_in_place,
        always_restarts_a_program_with_any_code,
        exit_code_fails_a_job_at_once_with_permanent_codes,
        exit_code_restarts_by_another_pod_with_retryable_codes,
        exit_code_lets_a_job_succeed_after_a_retryable_code,
        program_out_of_memory_is_told_as_such,
        program_killed_by_a_signal_is_restarted_under_exit_code,
        last_lines_of_the_log_are_in_the_failure,
    ]
}

/// Submits one job for each code and waits for their ends; gives them with their codes.
async fn ends_of(
    scene: &Scene,
    policy: &str,
    codes: &[i32],
    wanted: &str,
) -> Result<Vec<(i32, serde_json::Value)>> {
    for code in codes {
        let job = ending(&format!("exit-{code}"), policy, *code).run_policy("backoffLimit", 1);
        scene.create(job).await?;
    }
    let mut ended = Vec::new();
    for code in codes {
        ended.push((*code, scene.ends(&format!("exit-{code}"), wanted).await?));
    }
    Ok(ended)
}

async fn never_fails_a_job_with_any_code_and_restarts_nothing(scene: &Scene) -> Result<()> {
    for (code, job) in ends_of(scene, "Never", &[1, 2, 130, 137, 138, 143], "Failed").await? {
        let name = format!("exit-{code}");
        let failure = [
            ("/status/failure/pod", json!(format!("{name}-worker-0"))),
            ("/status/failure/exitCode", json!(code)),
            ("/status/failure/container", json!("tensorflow")),
            ("/status/restarts", json!(null)),
        ];
        fields(&name, &job, &failure)?;
        let message = text(&condition(&job, "Failed")["message"]);
        contains("message", message, &[&format!("{name}-worker-0"), &code.to_string()])?;
        equal("pods", scene.pods(&name).await?, [format!("{name}-worker-0 Failed")])?;
        let log = scene.log(&format!("{name}-worker-0")).await?;
        equal("log", log, format!("ends with {code}\n"))?;
    }
    Ok(())
}

async fn never_lets_a_job_succeed(scene: &Scene) -> Result<()> {
    let ended = ends_of(scene, "Never", &[0], "Succeeded").await?;
    let wanted = [("/status/replicaStatuses/Worker/succeeded", json!(1))];
    fields("job", &ended[0].1, &wanted)?;
    let table = scene.ok(&["get", "tfjob", "exit-0"]).await?;
    let row: Vec<&str> = table.lines().last().unwrap_or_default().split_whitespace().collect();
    equal("row", &row[..2], ["exit-0", "Succeeded"])
}

async fn on_failure_restarts_in_place_up_to_the_backoff_limit(scene: &Scene) -> Result<()> {
    let codes = [1, 2, 130, 137, 138, 143];
    for (code, job) in ends_of(scene, "OnFailure", &codes, "Failed").await? {
        let name = format!("exit-{code}");
        fields(&name, &job, &[("/status/restarts", json!(1))])?;
        let message = text(&condition(&job, "Failed")["message"]);
        contains("message", message, &["backoff"])?;
    }
    Ok(())
}

async fn on_failure_lets_a_program_succeed_at_once(scene: &Scene) -> Result<()> {
    let ended = ends_of(scene, "OnFailure", &[0], "Succeeded").await?;
    fields("job", &ended[0].1, &[("/status/restarts", json!(null))])
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

async fn always_restarts_a_program_with_any_code(scene: &Scene) -> Result<()> {
    for (code, job) in ends_of(scene, "Always", &[0, 1, 137, 143], "Failed").await? {
        fields(&format!("exit-{code}"), &job, &[("/status/restarts", json!(1))])?;
    }
    Ok(())
}

async fn exit_code_fails_a_job_at_once_with_permanent_codes(scene: &Scene) -> Result<()> {
    for (code, job) in ends_of(scene, "ExitCode", &[1, 2, 126, 127, 128, 139], "Failed").await? {
        let name = format!("exit-{code}");
        let wanted = [("/status/restarts", json!(null)), ("/status/failure/exitCode", json!(code))];
        fields(&name, &job, &wanted)?;
        equal("pods", scene.pods(&name).await?, [format!("{name}-worker-0 Failed")])?;
    }
    Ok(())
}

async fn exit_code_restarts_by_another_pod_with_retryable_codes(scene: &Scene) -> Result<()> {
    for (code, job) in ends_of(scene, "ExitCode", &[130, 137, 138, 143], "Failed").await? {
        let name = format!("exit-{code}");
        fields(&name, &job, &[("/status/restarts", json!(1))])?;
        equal("restarts in place", scene.life(&format!("{name}-worker-0")).await?.1, 0)?;
        scene.told(&format!("tfjob/{name}"), &["TFJobRestarting"]).await?;
    }
    Ok(())
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
