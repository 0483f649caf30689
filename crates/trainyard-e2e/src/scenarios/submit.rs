//! A job is submitted: which objects appear, under which names, with which fields.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Scenario, scenarios};
use crate::check::{equal, has_line, no_line};
use crate::manifest::tfjob;
use crate::rest::Resource;
use crate::world::World;

pub(super) fn all() -> Vec<Scenario> {
    scenarios!["submit":
        pods_services_and_conditions,
        labels_owner_and_service,
        chief_plays_the_master,
        the_template_survives,
        a_sidecar_is_left_alone,
        ports_of_the_template,
        one_replica,
        running_when_all_pods_run,
        a_very_fast_job,
        old_versions,
        replica_keys_in_any_case,
        restart_policy_of_the_template,
        restart_policy_of_the_replica_wins,
        last_words_are_kept,
        the_stored_specification_stays,
        thirty_jobs_at_once,
        deletion_takes_everything_along,
    ]
}

async fn pods_services_and_conditions(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(2).ps(1)).await?;
    let names = ["a-ps-0", "a-worker-0", "a-worker-1"];
    world.wait_pods(&names).await?;
    world.wait_services(&names).await?;
    let seen = world.wait_conditions("a", &["Created=True"]).await?;
    equal(
        "conditions",
        seen.condition_lines("a"),
        ["Created=True TFJobCreated: TFJob a is created."],
    )?;
    ensure!(seen.status("a")["startTime"].is_string(), "no startTime: {}", seen.status("a"));
    ensure!(seen.status("a")["completionTime"].is_null(), "completionTime of a new job");
    world.kubelet.start_all(&names).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    equal(
        "conditions",
        &seen.condition_lines("a")[1..],
        ["Running=True TFJobRunning: TFJob a is running."],
    )?;
    world
        .wait_until("all replicas are counted", |seen| {
            seen.counts("a", "Worker") == [2, 0, 0] && seen.counts("a", "PS") == [1, 0, 0]
        })
        .await?;
    Ok(())
}

fn labels(job: &str, kind: &str, index: &str) -> Value {
    json!({
        "training.kubeflow.org/operator-name": "tfjob-controller",
        "training.kubeflow.org/job-name": job,
        "training.kubeflow.org/replica-type": kind,
        "training.kubeflow.org/replica-index": index,
    })
}

async fn labels_owner_and_service(world: World) -> Result<()> {
    let job = world.submit(tfjob("a").workers(2)).await?;
    let names = ["a-worker-0", "a-worker-1"];
    world.wait_services(&names).await?;
    let seen = world.wait_pods(&names).await?;
    let owner = json!([{
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "a",
        "uid": job["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    let mut master = labels("a", "worker", "0");
    master["training.kubeflow.org/job-role"] = "master".into();
    equal("labels of worker 0", &seen.pod("a-worker-0")["metadata"]["labels"], &master)?;
    let plain = labels("a", "worker", "1");
    equal("labels of worker 1", &seen.pod("a-worker-1")["metadata"]["labels"], &plain)?;
    let service = seen.service("a-worker-1");
    equal("labels of the service", &service["metadata"]["labels"], &plain)?;
    equal("selector of the service", &service["spec"]["selector"], &plain)?;
    equal("address of the service", &service["spec"]["clusterIP"], "None")?;
    equal(
        "ports of the service",
        &service["spec"]["ports"],
        &json!([{"name": "tfjob-port", "port": 2222, "protocol": "TCP", "targetPort": 2222}]),
    )?;
    equal("names before readiness", &service["spec"]["publishNotReadyAddresses"], true)?;
    for name in names {
        let (pod, service) = (seen.pod(name), seen.service(name));
        equal("owner of the pod", &pod["metadata"]["ownerReferences"], &owner)?;
        equal("owner of the service", &service["metadata"]["ownerReferences"], &owner)?;
        equal("port", &seen.container(name)["ports"][0]["containerPort"], 2222)?;
        equal("port name", &seen.container(name)["ports"][0]["name"], "tfjob-port")?;
        equal("pod policy", &pod["spec"]["restartPolicy"], "Never")?;
    }
    Ok(())
}

async fn chief_plays_the_master(world: World) -> Result<()> {
    world.submit(tfjob("a").chief().workers(1)).await?;
    world.submit(tfjob("b").replicas("Master", 1).workers(1)).await?;
    let seen = world.wait_pods(&["a-chief-0", "a-worker-0", "b-master-0", "b-worker-0"]).await?;
    for (pod, role) in
        [("a-chief-0", true), ("a-worker-0", false), ("b-master-0", true), ("b-worker-0", false)]
    {
        let label = &seen.pod(pod)["metadata"]["labels"]["training.kubeflow.org/job-role"];
        equal(pod, label == "master", role)?;
    }
    Ok(())
}

async fn the_template_survives(world: World) -> Result<()> {
    let job = tfjob("a").workers(1).edit("Worker", |spec| {
        spec["template"] = json!({
            "metadata": {
                "labels": {"team": "vision", "training.kubeflow.org/job-name": "mine"},
                "annotations": {"sidecar.istio.io/inject": "false"},
                "creationTimestamp": null,
            },
            "spec": {
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
                "schedulerName": "another",
                "terminationGracePeriodSeconds": 7,
                "initContainers": [{"name": "fetch", "image": "example.com/fetch:2"}],
                "containers": [{
                    "name": "tensorflow", "image": "example.com/train:1",
                    "command": ["python", "train.py"], "args": ["--steps=10"],
                    "env": [{"name": "A", "value": "1"}],
                    "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}},
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }],
                "volumes": [{"name": "data", "emptyDir": {}}],
            },
        });
    });
    world.submit(job).await?;
    let seen = world.wait_pods(&["a-worker-0"]).await?;
    let pod = seen.pod("a-worker-0");
    equal("own label", &pod["metadata"]["labels"]["team"], "vision")?;
    let job_label = &pod["metadata"]["labels"]["training.kubeflow.org/job-name"];
    equal("our label wins", job_label, "a")?;
    let annotations = &pod["metadata"]["annotations"];
    equal("annotations", annotations, &json!({"sidecar.istio.io/inject": "false"}))?;
    let spec = &pod["spec"];
    equal("node selector", &spec["nodeSelector"], &json!({"disk": "ssd"}))?;
    equal("toleration", &spec["tolerations"][0]["key"], "gpu")?;
    equal("scheduler", &spec["schedulerName"], "another")?;
    equal("grace", &spec["terminationGracePeriodSeconds"], 7)?;
    equal("init container", &spec["initContainers"][0]["image"], "example.com/fetch:2")?;
    equal("volume", &spec["volumes"][0], &json!({"name": "data", "emptyDir": {}}))?;
    let container = seen.container("a-worker-0");
    equal("command", &container["command"], &json!(["python", "train.py"]))?;
    equal("args", &container["args"], &json!(["--steps=10"]))?;
    equal("env", &container["env"], &json!([{"name": "A", "value": "1"}]))?;
    equal("limits", &container["resources"]["limits"]["nvidia.com/gpu"], "1")?;
    Ok(())
}

async fn a_sidecar_is_left_alone(world: World) -> Result<()> {
    let job = tfjob("a").workers(2).edit("Worker", |spec| {
        let containers = spec["template"]["spec"]["containers"].as_array_mut();
        if let Some(containers) = containers {
            containers.insert(0, json!({"name": "proxy", "image": "example.com/proxy:3",
                "ports": [{"name": "admin", "containerPort": 15000}]}));
        }
    });
    world.submit(job).await?;
    world.wait_services(&["a-worker-0", "a-worker-1"]).await?;
    let seen = world.wait_pods(&["a-worker-0", "a-worker-1"]).await?;
    let proxy = &seen.pod("a-worker-0")["spec"]["containers"][0];
    equal("order of containers", &proxy["name"], "proxy")?;
    ensure!(proxy["env"].is_null(), "the sidecar got an environment: {}", proxy["env"]);
    equal("ports of the sidecar", proxy["ports"].as_array().map(Vec::len), Some(1))?;
    ensure!(seen.env("a-worker-0", "TF_CONFIG").is_some(), "no TF_CONFIG for tensorflow");
    let ports = &seen.service("a-worker-0")["spec"]["ports"];
    equal("only the training container's ports", ports.as_array().map(Vec::len), Some(1))?;
    Ok(())
}

async fn ports_of_the_template(world: World) -> Result<()> {
    let job = tfjob("a").workers(1).ps(1).container("Worker", |container| {
        container["ports"] = json!([
            {"name": "profiler", "containerPort": 6009},
            {"name": "tfjob-port", "containerPort": 3333},
        ]);
    });
    world.submit(job).await?;
    let seen = world.wait_services(&["a-ps-0", "a-worker-0"]).await?;
    let mut ports: Vec<_> = seen.service("a-worker-0")["spec"]["ports"]
        .as_array()
        .map_or(&[][..], Vec::as_slice)
        .iter()
        .map(|port| (port["name"].to_string(), port["port"].as_i64()))
        .collect();
    ports.sort();
    equal(
        "ports of the service",
        ports,
        [("\"profiler\"".to_owned(), Some(6009)), ("\"tfjob-port\"".to_owned(), Some(3333))],
    )?;
    let seen = world.wait_pods(&["a-ps-0", "a-worker-0"]).await?;
    let ports = seen.container("a-worker-0")["ports"].as_array().map(Vec::len);
    equal("no port is added", ports, Some(2))?;
    let config = seen.env("a-ps-0", "TF_CONFIG").unwrap_or_default();
    ensure!(config.contains("a-worker-0.") && config.contains(".svc:3333"), "{config}");
    Ok(())
}

async fn one_replica(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_services(&["a-worker-0"]).await?;
    let seen = world.wait_pods(&["a-worker-0"]).await?;
    equal("TF_CONFIG of a lone replica", seen.env("a-worker-0", "TF_CONFIG"), None)?;
    Ok(())
}

async fn running_when_all_pods_run(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(2).ps(1)).await?;
    world.wait_pods(&["a-ps-0", "a-worker-0", "a-worker-1"]).await?;
    world.kubelet.start("a-worker-0").await?;
    world.kubelet.start("a-worker-1").await?;
    let seen = world
        .wait_until("two workers are counted", |seen| seen.counts("a", "Worker") == [2, 0, 0])
        .await?;
    equal("not yet running", seen.conditions("a"), ["Created=True"])?;
    world.never_within(200, "running without PS", |seen| seen.is("a", "Running")).await?;
    world.kubelet.start("a-ps-0").await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    // It stays true while single replicas come and go by themselves.
    world.kubelet.exit("a-worker-1", 0).await?;
    let seen = world
        .wait_until("its success is counted", |seen| seen.counts("a", "Worker") == [1, 1, 0])
        .await?;
    equal("still running", seen.conditions("a"), ["Created=True", "Running=True"])?;
    Ok(())
}

async fn a_very_fast_job(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    world.kubelet.bind("a-worker-0", "node-1").await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Succeeded=True"]).await?;
    ensure!(seen.status("a")["completionTime"].is_string(), "no completionTime");
    Ok(())
}

async fn old_versions(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    for version in ["v1beta2", "v1beta1", "v1alpha2"] {
        world.submit(tfjob(version).workers(1).version(&format!("kubeflow.org/{version}"))).await?;
        world.wait_conditions(version, &["Created=True", "Running=True"]).await?;
        let pod = format!("{version}-worker-0");
        world.kubelet.exit(&pod, 0).await?;
        let seen = world
            .wait_until("the job succeeds", |seen| seen.is(version, "Succeeded"))
            .await?;
        equal("stored version", &seen.job(version)["apiVersion"], "kubeflow.org/v1")?;
    }
    Ok(())
}

async fn replica_keys_in_any_case(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").replicas("MASTER", 1).replicas("worker", 2).replicas("ps", 1)).await?;
    let names = ["a-master-0", "a-ps-0", "a-worker-0", "a-worker-1"];
    let seen = world.wait_pods(&names).await?;
    let ns = &world.namespace;
    let want = format!(
        "{{\"cluster\":{{\"master\":[\"a-master-0.{ns}.svc:2222\"],\
         \"ps\":[\"a-ps-0.{ns}.svc:2222\"],\
         \"worker\":[\"a-worker-0.{ns}.svc:2222\",\"a-worker-1.{ns}.svc:2222\"]}},\
         \"task\":{{\"type\":\"worker\",\"index\":0}},\"environment\":\"cloud\"}}"
    );
    equal("TF_CONFIG", seen.env("a-worker-0", "TF_CONFIG"), Some(want.as_str()))?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world
        .wait_until("status names the types in one spelling", |seen| {
            seen.counts("a", "Master") == [1, 0, 0] && seen.counts("a", "Worker") == [2, 0, 0]
        })
        .await?;
    world.kubelet.exit("a-master-0", 0).await?;
    world.wait_until("the master decides", |seen| seen.is("a", "Succeeded")).await?;
    Ok(())
}

async fn restart_policy_of_the_template(world: World) -> Result<()> {
    let job = tfjob("a")
        .workers(1)
        .edit("Worker", |spec| spec["template"]["spec"]["restartPolicy"] = "OnFailure".into());
    world.submit(job).await?;
    let seen = world.wait_pods(&["a-worker-0"]).await?;
    equal("pod policy", &seen.pod("a-worker-0")["spec"]["restartPolicy"], "OnFailure")?;
    let seen = world
        .wait_until("creation is told", |seen| seen.told("a", "Normal SuccessfulCreatePod"))
        .await?;
    no_line("nothing is overwritten", &seen.events("a"), "Warning SettedPodTemplate")?;
    Ok(())
}

async fn restart_policy_of_the_replica_wins(world: World) -> Result<()> {
    let job = tfjob("a")
        .workers(1)
        .restart("Always")
        .edit("Worker", |spec| spec["template"]["spec"]["restartPolicy"] = "OnFailure".into());
    world.submit(job).await?;
    let seen = world.wait_pods(&["a-worker-0"]).await?;
    equal("pod policy", &seen.pod("a-worker-0")["spec"]["restartPolicy"], "Always")?;
    let seen = world
        .wait_until("creation is told", |seen| {
            seen.told("a", "Normal SuccessfulCreatePod") && seen.told("a", "Warning")
        })
        .await?;
    has_line(
        "what was overwritten is told",
        &seen.events("a"),
        "Warning SettedPodTemplateRestartPolicy Restart policy in pod template will be \
         overwritten by restart policy in replica spec",
    )?;
    Ok(())
}

async fn last_words_are_kept(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1)).await?;
    let job = tfjob("b").workers(1).container("Worker", |container| {
        container["terminationMessagePolicy"] = "File".into();
    });
    world.submit(job).await?;
    let seen = world.wait_pods(&["a-worker-0", "b-worker-0"]).await?;
    let policy = |pod| seen.container(pod)["terminationMessagePolicy"].clone();
    equal("left unset", policy("a-worker-0"), "FallbackToLogsOnError")?;
    equal("set", policy("b-worker-0"), "File")?;
    Ok(())
}

async fn the_stored_specification_stays(world: World) -> Result<()> {
    let created = world.submit(tfjob("a").replicas("WORKER", 1)).await?;
    world.wait_conditions("a", &["Created=True"]).await?;
    let job = world.rest.get(Resource::Jobs, "a").await?;
    equal("specification", &job["spec"], &created["spec"])?;
    equal("generation", &job["metadata"]["generation"], 1)?;
    ensure!(job["metadata"]["finalizers"].is_null(), "the operator set a finalizer");
    Ok(())
}

async fn thirty_jobs_at_once(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let names: Vec<String> = (0..30).map(|number| format!("job-{number}")).collect();
    for name in &names {
        world.submit(tfjob(name).workers(2)).await?;
    }
    world
        .wait_until("all jobs run", |seen| names.iter().all(|name| seen.is(name, "Running")))
        .await?;
    for name in &names {
        world.kubelet.exit(&format!("{name}-worker-0"), 0).await?;
    }
    world
        .wait_until("all jobs succeed", |seen| names.iter().all(|name| seen.is(name, "Succeeded")))
        .await?;
    Ok(())
}

async fn deletion_takes_everything_along(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).ps(1)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.delete("a").await?;
    world
        .wait_until("job, pods and services are gone", |seen| {
            seen.job("a").is_null() && seen.pods().is_empty() && seen.services().is_empty()
        })
        .await?;
    world.never_within(300, "a pod comes back", |seen| !seen.pods().is_empty()).await?;
    Ok(())
}
