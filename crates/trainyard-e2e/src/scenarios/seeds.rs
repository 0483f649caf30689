//! The manifests and command lines of the tutorials that people learnt TFJob from, unchanged, with
//! the real kubectl.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::kubectl::Kubectl;
use crate::rest::Resource;
use crate::world::World;

const MNIST: &str = include_str!("../../seeds/mnist.yaml");
const GENERATED_NAME: &str = include_str!("../../seeds/generated-name.yaml");
const SECRET: &str = include_str!("../../seeds/secret.yaml");
const SMOKE_GPU: &str = include_str!("../../seeds/tf-smoke-gpu.yaml");
const MODULE6: &str = include_str!("../../seeds/module6-ex1-gpu.yaml");
const MODULE6_AGAIN: &str = include_str!("../../seeds/module6-ex1-gpu-4.yaml");
const EXAMPLE: &str = include_str!("../../seeds/example-tfjob.yaml");
const AZURE: &str = include_str!("../../seeds/module6-ex2-gpu.yaml");

pub(super) fn all() -> Vec<Case<(World, Kubectl)>> {
    cases!["seeds":
        mnist_from_submission_to_deletion,
        generated_names,
        secrets_reach_the_pods,
        smoke_test_with_gpus,
        master_in_capitals,
        the_same_manifest_of_another_tutorial,
        example_tfjob,
        a_share_is_mounted,
        overwritten_restart_policies,
    ]
}

/// Lines of a table with their words joined by single spaces.
fn words(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Event lines of `kubectl describe` without their age.
fn events(described: &str) -> Vec<String> {
    let (_, table) = described.rsplit_once("Events:").unwrap_or_default();
    words(table)
        .iter()
        .filter_map(|line| {
            let (head, tail) = line.split_once(" tf-operator ")?;
            let mut head = head.split(' ');
            Some(format!("{} {} {tail}", head.next()?, head.next()?))
        })
        .collect()
}

async fn ok(kubectl: &Kubectl, words: &[&str]) -> Result<String> {
    kubectl.run(words).await?.stdout_of_success()
}

async fn feed(kubectl: &Kubectl, words: &[&str], yaml: &str) -> Result<String> {
    kubectl.run_with_input(words, yaml).await?.stdout_of_success()
}

async fn mnist_from_submission_to_deletion(world: World, kubectl: Kubectl) -> Result<()> {
    let world = world.next_door("kubeflow").await?;
    let _auto = world.kubelet.auto();
    let said = feed(&kubectl, &["apply", "-f", "-"], MNIST).await?;
    equal("apply", said.trim(), "tfjob.kubeflow.org/mnist created")?;
    ok(
        &kubectl,
        &["-n", "kubeflow", "wait", "--for=condition=Running", "--timeout=60s", "tfjob/mnist"],
    )
    .await?;
    let yaml = ok(&kubectl, &["-n", "kubeflow", "get", "-o", "yaml", "tfjobs", "mnist"]).await?;
    contains(
        "get -o yaml",
        &yaml,
        &[
            "message: TFJob mnist is created.",
            "reason: TFJobCreated",
            "message: TFJob mnist is running.",
            "reason: TFJobRunning",
            "startTime:",
            "cleanPodPolicy: None",
        ],
    )?;
    let table = words(&ok(&kubectl, &["-n", "kubeflow", "get", "tfjob", "mnist"]).await?);
    equal("columns", table[0].as_str(), "NAME STATE AGE")?;
    ensure!(table[1].starts_with("mnist Running"), "row: {}", table[1]);
    let pods = ok(&kubectl, &["-n", "kubeflow", "get", "pod"]).await?;
    contains("get pod", &pods, &["mnist-worker-0", "Running"])?;
    let described = described(&world, &kubectl, "mnist", 2).await?;
    for line in [
        "Normal SuccessfulCreatePod Created pod: mnist-worker-0",
        "Normal SuccessfulCreateService Created service: mnist-worker-0",
    ] {
        ensure!(events(&described).iter().any(|event| event == line), "{line}: {described}");
    }
    contains(
        "describe",
        &described,
        &["Clean Pod Policy:  None", "TFJob mnist is created.", "TFJob mnist is running."],
    )?;
    world.kubelet.exit("mnist-worker-0", 0).await?;
    ok(
        &kubectl,
        &["-n", "kubeflow", "wait", "--for=condition=Succeeded", "--timeout=60s", "tfjob/mnist"],
    )
    .await?;
    let pods = ok(&kubectl, &["-n", "kubeflow", "get", "pod", "mnist-worker-0"]).await?;
    contains("the pod stays for its logs", &pods, &["Completed"])?;
    let said = ok(&kubectl, &["-n", "kubeflow", "delete", "tfjob", "mnist"]).await?;
    contains("delete", &said, &["tfjob.kubeflow.org \"mnist\" deleted"])?;
    world.wait_until("its pod goes along", |seen| seen.pod("mnist-worker-0").is_null()).await?;
    Ok(())
}

/// `kubectl describe`, once that many events are there.
async fn described(world: &World, kubectl: &Kubectl, job: &str, count: usize) -> Result<String> {
    world.wait_until("events are there", |seen| seen.events(job).len() >= count).await?;
    ok(kubectl, &["-n", &world.namespace, "describe", "tfjobs", job]).await
}

async fn generated_names(world: World, kubectl: Kubectl) -> Result<()> {
    let world = world.next_door("kubeflow").await?;
    let said = feed(&kubectl, &["create", "-o", "name", "-f", "-"], GENERATED_NAME).await?;
    let name = said.trim().rsplit('/').next().context("a name")?.to_owned();
    ensure!(name.starts_with("tfjob") && name.len() > 5, "{said}");
    let pods: Vec<String> = ["ps-0", "worker-0", "worker-1", "worker-2"]
        .iter()
        .map(|tail| format!("{name}-{tail}"))
        .collect();
    let seen = world
        .wait_until("one PS and three workers", |seen| {
            pods.iter().all(|pod| !seen.pod(pod).is_null() && !seen.service(pod).is_null())
        })
        .await?;
    for pod in &pods {
        equal("policy", &seen.pod(pod)["spec"]["restartPolicy"], "OnFailure")?;
        contains("TF_CONFIG", seen.env(pod, "TF_CONFIG").unwrap_or_default(), &["kubeflow.svc"])?;
    }
    Ok(())
}

async fn secrets_reach_the_pods(world: World, kubectl: Kubectl) -> Result<()> {
    let world = world.next_door("kubeflow").await?;
    let said = feed(&kubectl, &["create", "-o", "name", "-f", "-"], SECRET).await?;
    let pod = format!("{}-worker-0", said.trim().rsplit('/').next().context("a name")?);
    let seen = world.wait_until("the worker is there", |seen| !seen.pod(&pod).is_null()).await?;
    equal(
        "environment",
        seen.env(&pod, "GOOGLE_APPLICATION_CREDENTIALS"),
        Some("/etc/secrets/user-gcp-sa.json"),
    )?;
    let volume = &seen.pod(&pod)["spec"]["volumes"][0];
    equal("volume", &volume["secret"]["secretName"], "user-gcp-sa")
}

async fn smoke_test_with_gpus(world: World, kubectl: Kubectl) -> Result<()> {
    let _auto = world.kubelet.auto();
    let ns = world.namespace.clone();
    feed(&kubectl, &["-n", &ns, "apply", "-f", "-"], SMOKE_GPU).await?;
    let seen = world.wait_conditions("tf-smoke-gpu", &["Created=True", "Running=True"]).await?;
    equal("pods", seen.pods(), ["tf-smoke-gpu-ps-0", "tf-smoke-gpu-worker-0"])?;
    for pod in seen.pods() {
        equal("the template's policy", &seen.pod(pod)["spec"]["restartPolicy"], "OnFailure")?;
    }
    let gpus = &seen.container("tf-smoke-gpu-worker-0")["resources"]["limits"]["nvidia.com/gpu"];
    equal("GPUs", gpus, "1")?;
    // Applying the same file again changes nothing.
    feed(&kubectl, &["-n", &ns, "apply", "-f", "-"], SMOKE_GPU).await?;
    let again = world.rest.get(Resource::Jobs, "tf-smoke-gpu").await?;
    equal("generation", &again["metadata"]["generation"], 1)
}

async fn master(world: &World, kubectl: &Kubectl, yaml: &str, name: &str) -> Result<()> {
    let _auto = world.kubelet.auto();
    let ns = &world.namespace;
    let said = feed(kubectl, &["-n", ns, "create", "-f", "-"], yaml).await?;
    equal("create", said.trim(), format!("tfjob.kubeflow.org/{name} created"))?;
    let table = ok(kubectl, &["-n", ns, "get", "tfjob"]).await?;
    contains("get tfjob", &table, &[name])?;
    let pod = format!("{name}-master-0");
    world.wait_conditions(name, &["Created=True", "Running=True"]).await?;
    let pods = ok(kubectl, &["-n", ns, "get", "pod"]).await?;
    contains("get pod", &pods, &[&pod, "1/1", "Running"])?;
    let seen = world.seen();
    equal("one pod", seen.pods(), [pod.as_str()])?;
    equal("policy", &seen.pod(&pod)["spec"]["restartPolicy"], "OnFailure")?;
    equal("a lone replica", seen.env(&pod, "TF_CONFIG"), None)?;
    world.kubelet.restart_in_place(&pod, 1).await?;
    world.kubelet.exit(&pod, 0).await?;
    world.wait_until("the master decides", |seen| seen.is(name, "Succeeded")).await?;
    Ok(())
}

async fn master_in_capitals(world: World, kubectl: Kubectl) -> Result<()> {
    master(&world, &kubectl, MODULE6, "module6-ex1-gpu").await
}

async fn the_same_manifest_of_another_tutorial(world: World, kubectl: Kubectl) -> Result<()> {
    master(&world, &kubectl, MODULE6_AGAIN, "module6-ex1-gpu").await
}

async fn example_tfjob(world: World, kubectl: Kubectl) -> Result<()> {
    master(&world, &kubectl, EXAMPLE, "example-tfjob").await
}

async fn a_share_is_mounted(world: World, kubectl: Kubectl) -> Result<()> {
    feed(&kubectl, &["-n", &world.namespace, "create", "-f", "-"], AZURE).await?;
    let seen = world.wait_pods(&["module6-ex2-gpu-master-0"]).await?;
    let pod = seen.pod("module6-ex2-gpu-master-0");
    let claim = &pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"];
    equal("claim", claim, "azurefile")?;
    let mount = &seen.container("module6-ex2-gpu-master-0")["volumeMounts"][0];
    equal("folder of the share", &mount["subPath"], "module6-ex2-gpu")
}

async fn overwritten_restart_policies(world: World, kubectl: Kubectl) -> Result<()> {
    let on_failure = |spec: &mut Value| {
        spec["template"]["spec"]["restartPolicy"] = "OnFailure".into();
    };
    let job = crate::manifest::tfjob("tfjob2")
        .workers(1)
        .ps(1)
        .restart("Always")
        .edit("Worker", on_failure)
        .edit("PS", on_failure);
    let job = job
        .edit("Worker", |spec| spec["template"]["spec"]["restartPolicy"] = "OnFailure".into())
        .edit("PS", |spec| spec["template"]["spec"]["restartPolicy"] = "OnFailure".into());
    feed(&kubectl, &["-n", &world.namespace, "create", "-f", "-"], &job.json().to_string()).await?;
    let described = described(&world, &kubectl, "tfjob2", 5).await?;
    let events = events(&described);
    for line in [
        "Warning SettedPodTemplateRestartPolicy Restart policy in pod template will be \
         overwritten by restart policy in replica spec",
        "Normal SuccessfulCreatePod Created pod: tfjob2-worker-0",
        "Normal SuccessfulCreateService Created service: tfjob2-worker-0",
        "Normal SuccessfulCreatePod Created pod: tfjob2-ps-0",
        "Normal SuccessfulCreateService Created service: tfjob2-ps-0",
    ] {
        ensure!(events.iter().any(|event| event == line), "{line:?} is missing: {events:#?}");
    }
    Ok(())
}
