//! Which exit codes are final and which are tried again under the policy `ExitCode`.

use anyhow::Result;

use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::seen::text;
use crate::world::World;

const PERMANENT: [i64; 8] = [1, 2, 3, 100, 126, 127, 128, 139];
const RETRYABLE: [i64; 7] = [129, 130, 134, 137, 138, 143, 255];

pub(super) fn all() -> Vec<Case<World>> {
    let mut all = cases!["exit_codes":
        zero_completes,
        out_of_memory_is_tried_again,
        no_known_code_is_tried_again,
    ];
    for code in PERMANENT {
        let name = format!("exit_codes/{code}_is_final");
        all.push(Case::new(name, move |world| is_final(world, code)));
    }
    for code in RETRYABLE {
        let name = format!("exit_codes/{code}_is_tried_again");
        all.push(Case::new(name, move |world| is_tried_again(world, code)));
    }
    all
}

async fn is_final(world: World, code: i64) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).restart("ExitCode")).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-1", code).await?;
    let seen =
        world.wait_conditions("a", &["Created=True", "Running=False", "Failed=True"]).await?;
    let failure = &seen.status("a")["failure"];
    equal("kind", &failure["kind"], "ReplicaFailed")?;
    equal("pod", &failure["pod"], "a-worker-1")?;
    equal("container", &failure["container"], "tensorflow")?;
    equal("code", &failure["exitCode"], code)?;
    let signal = if code == 139 { "SIGSEGV" } else { "" };
    equal("signal", text(&failure["signal"]), signal)?;
    equal("no restart", seen.restarts("a"), 0)?;
    let message = text(&seen.condition("a", "Failed")["message"]).to_owned();
    contains("message", &message, &["a-worker-1", &code.to_string()])
}

async fn is_tried_again(world: World, code: i64) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).restart("ExitCode")).await?;
    let before = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-1", code).await?;
    world.wait_successor("a-worker-1", &before.uid("a-worker-1")).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    equal("one restart", seen.restarts("a"), 1)
}

async fn zero_completes(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).restart("ExitCode")).await?;
    let before = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-1", 0).await?;
    let seen = world
        .wait_until("success is counted", |seen| seen.counts("a", "Worker") == [1, 1, 0])
        .await?;
    equal("not run again", seen.uid("a-worker-1"), before.uid("a-worker-1"))?;
    equal("no restart", seen.restarts("a"), 0)
}

async fn out_of_memory_is_tried_again(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).restart("ExitCode")).await?;
    let before = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.oom("a-worker-0").await?;
    let seen = world.wait_successor("a-worker-0", &before.uid("a-worker-0")).await?;
    equal("a program's own fault counts", seen.restarts("a"), 1)
}

async fn no_known_code_is_tried_again(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1).restart("ExitCode")).await?;
    let before = world.wait_pods(&["a-worker-0"]).await?;
    let message = "Node didn't have enough resource: cpu";
    world.kubelet.reject("a-worker-0", "OutOfcpu", message).await?;
    let seen = world.wait_successor("a-worker-0", &before.uid("a-worker-0")).await?;
    equal("nobody's fault does not count", seen.restarts("a"), 0)
}
