//! What real kubelets, and the controllers around them, publish of a pod, held to what was recorded of them.
//! `TRAINYARD_WRITE_RECORDED=1` writes the recordings anew.

use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use trainyard_testbed::cluster::image;

use super::lost::power_cut;
use crate::harness::{Case, cases};
use crate::kubelet::sequence::{self, Recorder};
use crate::real_kubelet::jobs::TOLD;
use crate::real_kubelet::site::{NODES, OUT_OF_SERVICE, Scene};
use crate::rest::Resource;
use crate::seen::text;

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["recorded":
        success,
        failure,
        restart_in_place,
        crash_loop,
        init_container,
        failed_init_container,
        image_that_cannot_be_pulled,
        rejection_at_admission,
        deletion_with_grace,
        deletion_before_the_start,
        eviction_by_the_api,
        eviction_by_the_kubelet,
        preemption,
    ]
}

/// Those that lose a node.
pub(super) fn alone() -> Vec<Case<Arc<Scene>>> {
    cases!["recorded": node_loss, node_reboot, node_reboot_without_restart]
}

/// A pod of one container that runs a shell script.
fn pod(policy: &str, script: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {
            "terminationGracePeriodSeconds": 5, "restartPolicy": policy,
            "volumes": [{"name": "keep", "emptyDir": {}}],
            "containers": [{
                "name": "tensorflow", "image": image::BUSYBOX, "command": ["sh", "-c", script],
                "volumeMounts": [{"name": "keep", "mountPath": "/keep"}],
            }],
        },
    })
}

async fn record(scene: &Scene, pod: Value) -> Result<Recorder> {
    let recorder = Recorder::start(&scene.site.rest(&scene.namespace).await?, "p").await?;
    scene.create(pod).await?;
    Ok(recorder)
}

/// What was seen by the time that nothing more comes.
async fn settle(name: &str, recorder: Recorder) -> Result<()> {
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    sequence::settle(name, &recorder.states())
}

async fn success(scene: &Scene) -> Result<()> {
    let recorder = record(scene, pod("Never", "sleep 2")).await?;
    scene.wait("pod/p", "jsonpath={.status.phase}=Succeeded").await?;
    settle("success", recorder).await
}

async fn failure(scene: &Scene) -> Result<()> {
    let recorder = record(scene, pod("Never", "sleep 2; exit 3")).await?;
    scene.wait("pod/p", "jsonpath={.status.phase}=Failed").await?;
    settle("failure", recorder).await
}

async fn restart_in_place(scene: &Scene) -> Result<()> {
    let script =
        format!("if [ ! -e /keep/was ]; then touch /keep/was; sleep 2; exit 1; fi; {TOLD}");
    let recorder = record(scene, pod("OnFailure", &script)).await?;
    let again = |told: &str| told == "1 true";
    let path = "-o=jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}";
    scene.until(&["get", "pod", "p", path], "its next run", again).await?;
    settle("restart_in_place", recorder).await
}

/// It waits for a few seconds only.
async fn crash_loop(scene: &Scene) -> Result<()> {
    let recorder = record(scene, pod("OnFailure", "sleep 2; exit 1")).await?;
    recorder.until("terminated 1 Error restarts=1").await?;
    // It says that it waits when it looks at the pod once more, be it because somebody has written something.
    let look = json!({"metadata": {"annotations": {"example.com/look": "again"}}});
    scene.site.rest(&scene.namespace).await?.merge(Resource::Pods, "p", &look).await?;
    let states = recorder.until("waiting CrashLoopBackOff restarts=1").await?;
    sequence::settle("crash_loop", &states)
}

/// A pod with an init container that runs a shell script.
fn with_init(script: &str) -> Value {
    let mut pod = pod("Never", TOLD);
    pod["spec"]["initContainers"] = json!([{
        "name": "fetch", "image": image::BUSYBOX, "command": ["sh", "-c", script],
    }]);
    pod
}

async fn init_container(scene: &Scene) -> Result<()> {
    let recorder = record(scene, with_init("sleep 2")).await?;
    scene.wait("pod/p", "condition=Ready").await?;
    settle("init_container", recorder).await
}

async fn failed_init_container(scene: &Scene) -> Result<()> {
    let recorder = record(scene, with_init("sleep 2; exit 4")).await?;
    scene.wait("pod/p", "jsonpath={.status.phase}=Failed").await?;
    settle("failed_init_container", recorder).await
}

/// Makes a pod whose image cannot be pulled and waits until its kubelet waits before the next try.
async fn unpulled(scene: &Scene) -> Result<Recorder> {
    let mut pod = pod("Never", TOLD);
    pod["spec"]["containers"][0]["image"] = "127.0.0.1:9/nobody/knows:1".into();
    let recorder = record(scene, pod).await?;
    let path = "-o=jsonpath={.status.containerStatuses[0].state.waiting.reason}";
    let waits = |told: &str| told == "ImagePullBackOff";
    scene.until(&["get", "pod", "p", path], "the back-off", waits).await?;
    Ok(recorder)
}

async fn image_that_cannot_be_pulled(scene: &Scene) -> Result<()> {
    let recorder = unpulled(scene).await?;
    settle("image_that_cannot_be_pulled", recorder).await
}

async fn deletion_before_the_start(scene: &Scene) -> Result<()> {
    let recorder = unpulled(scene).await?;
    scene.ok(&["delete", "pod", "p"]).await?;
    settle("deletion_before_the_start", recorder).await
}

/// No scheduler has looked whether the node has so much.
async fn rejection_at_admission(scene: &Scene) -> Result<()> {
    let mut pod = pod("Never", TOLD);
    pod["spec"]["nodeName"] = NODES[0].into();
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "640"}});
    let recorder = record(scene, pod).await?;
    scene.wait("pod/p", "jsonpath={.status.phase}=Failed").await?;
    settle("rejection_at_admission", recorder).await
}

async fn deletion_with_grace(scene: &Scene) -> Result<()> {
    let recorder = record(scene, pod("Never", TOLD)).await?;
    scene.wait("pod/p", "condition=Ready").await?;
    scene.ok(&["delete", "pod", "p"]).await?;
    settle("deletion_with_grace", recorder).await
}

async fn eviction_by_the_api(scene: &Scene) -> Result<()> {
    let recorder = record(scene, pod("Never", TOLD)).await?;
    scene.wait("pod/p", "condition=Ready").await?;
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": "p", "namespace": scene.namespace},
    });
    let path = format!("/api/v1/namespaces/{}/pods/p/eviction", scene.namespace);
    scene.site.feed(&["create", "--raw", &path, "-f", "-"], &eviction.to_string()).await?;
    scene.wait("pod/p", "delete").await?;
    settle("eviction_by_the_api", recorder).await
}

/// The pod writes more than its volume may hold.
async fn eviction_by_the_kubelet(scene: &Scene) -> Result<()> {
    let script = format!("dd if=/dev/zero of=/keep/much bs=1M count=8; {TOLD}");
    let mut pod = pod("Never", &script);
    pod["spec"]["volumes"][0]["emptyDir"] = json!({"sizeLimit": "1Mi"});
    let recorder = record(scene, pod).await?;
    scene.wait("pod/p", "jsonpath={.status.phase}=Failed").await?;
    // That may be said before the program has ended.
    let code = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}";
    scene.wait("pod/p", code).await?;
    // A kubelet that looks late finds no container any more.
    let ended = &scene.get("pod/p").await?["status"]["containerStatuses"][0]["state"]["terminated"];
    let name = match text(&ended["reason"]) {
        "ContainerStatusUnknown" => "eviction_whose_end_nobody_saw",
        _ => "eviction_by_the_kubelet",
    };
    settle(name, recorder).await
}

async fn preemption(scene: &Scene) -> Result<()> {
    let device = format!("example.com/{}", scene.namespace);
    let capacity = json!({"status": {"capacity": {&device: "1"}}}).to_string();
    let words =
        ["patch", "node", NODES[0], "--subresource=status", "--type=merge", "-p", &capacity];
    scene.site.ok(&words).await?;
    let path = format!("-o=jsonpath={{.status.allocatable.{}}}", device.replace('.', "\\."));
    let words = ["get", "node", NODES[0], &path];
    scene.site.until(&words, "the device", |told| told == "1").await?;
    let class = format!("{}-high", scene.namespace);
    scene.site.ok(&["create", "priorityclass", &class, "--value=900"]).await?;
    let mut low = pod("Never", TOLD);
    low["spec"]["containers"][0]["resources"] = json!({"limits": {&device: "1"}});
    let mut high = low.clone();
    let recorder = record(scene, low).await?;
    scene.wait("pod/p", "condition=Ready").await?;
    high["metadata"]["name"] = "high".into();
    high["spec"]["priorityClassName"] = class.as_str().into();
    scene.create(high).await?;
    scene.wait("pod/high", "condition=Ready").await?;
    scene.site.ok(&["delete", "priorityclass", &class]).await?;
    settle("preemption", recorder).await
}

async fn node_loss(scene: &Scene) -> Result<()> {
    let mut pod = pod("Never", TOLD);
    pod["spec"]["nodeName"] = NODES[1].into();
    let patience = |key: &str| {
        json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists",
               "effect": "NoExecute", "tolerationSeconds": 2})
    };
    pod["spec"]["tolerations"] = json!([patience("unreachable"), patience("not-ready")]);
    let recorder = record(scene, pod).await?;
    scene.wait("pod/p", "condition=Ready").await?;
    scene.site.stop_node(1).await?;
    let deleted = |told: &str| !told.is_empty();
    let path = "-o=jsonpath={.metadata.deletionTimestamp}";
    scene.until(&["get", "pod", "p", path], "its deletion", deleted).await?;
    let seen = settle("node_loss", recorder).await;
    scene.site.start_node(1).await?;
    seen
}

/// A pod on a node that loses its power and gets it back, after the cluster has missed it.
async fn rebooted(scene: &Scene, policy: &str) -> Result<Recorder> {
    let mut pod = pod(policy, TOLD);
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": NODES[1]});
    // Another story says that the node is off.
    pod["spec"]["tolerations"] = json!([{"key": OUT_OF_SERVICE, "operator": "Exists"}]);
    let recorder = record(scene, pod).await?;
    scene.wait("pod/p", "condition=Ready").await?;
    power_cut(scene).await?;
    scene.wait("pod/p", "condition=Ready=False").await?;
    scene.site.start_node(1).await?;
    Ok(recorder)
}

async fn node_reboot(scene: &Scene) -> Result<()> {
    let recorder = rebooted(scene, "OnFailure").await?;
    recorder.until("running ready restarts=1").await?;
    settle("node_reboot", recorder).await
}

async fn node_reboot_without_restart(scene: &Scene) -> Result<()> {
    let recorder = rebooted(scene, "Never").await?;
    scene.wait("pod/p", "jsonpath={.status.phase}=Failed").await?;
    settle("node_reboot_without_restart", recorder).await
}
