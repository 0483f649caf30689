//! Devices that nobody else asks for, so that stories side by side do not take each other's room.

use anyhow::Result;
use serde_json::json;

use super::site::{NODES, Scene};

/// Gives each node so many devices of the story's own, and returns their name. That is what a kubelet writes for
/// its device plugins; it keeps what it finds.
pub(super) async fn devices(scene: &Scene, counts: [u32; 2]) -> Result<String> {
    let device = format!("example.com/{}", scene.namespace);
    let all = NODES.into_iter().zip(counts);
    let given = all.map(|(node, count)| offer(scene, node, &device, count));
    futures::future::try_join_all(given).await?;
    Ok(device)
}

/// Has a node offer so many devices of a name.
pub(super) async fn offer(scene: &Scene, node: &str, device: &str, count: u32) -> Result<()> {
    let devices = json!({device: count.to_string()});
    let patch = json!({"status": {"capacity": devices, "allocatable": devices}}).to_string();
    let words = ["patch", "node", node, "--subresource=status", "--type=merge", "-p", &patch];
    scene.site.ok(&words).await?;
    // A kubelet that wrote at the same moment has it in its next turn.
    let escaped = device.replace('.', "\\.");
    let words = ["get", "node", node, &format!("-o=jsonpath={{.status.allocatable.{escaped}}}")];
    scene.site.until(&words, "the devices", |told| told == count.to_string()).await.map(drop)
}
