//! Host ports: two pods cannot have the same one on the same address.

use k8s_openapi::api::core::v1::{ContainerPort, Pod};

use super::requests::keeps_running;

const EVERY_ADDRESS: &str = "0.0.0.0";

/// Whether a host port of `pod` is taken by one of `others`.
pub(super) fn clash(pod: &Pod, others: &[&Pod]) -> bool {
    host_ports(pod)
        .any(|wanted| others.iter().any(|other| host_ports(other).any(|held| held.meets(wanted))))
}

#[derive(Debug, Clone, Copy)]
struct HostPort<'a> {
    address: &'a str,
    protocol: &'a str,
    port: i32,
}

impl HostPort<'_> {
    fn meets(self, other: HostPort<'_>) -> bool {
        (self.protocol, self.port) == (other.protocol, other.port)
            && (self.address == other.address
                || self.address == EVERY_ADDRESS
                || other.address == EVERY_ADDRESS)
    }
}

/// The host ports of containers that run as long as the pod does.
fn host_ports(pod: &Pod) -> impl Iterator<Item = HostPort<'_>> {
    let lasting = pod
        .spec
        .iter()
        .flat_map(|spec| spec.init_containers.iter().flatten())
        .filter(|container| keeps_running(container));
    let main = pod.spec.iter().flat_map(|spec| &spec.containers);
    lasting.chain(main).flat_map(|container| container.ports.iter().flatten()).filter_map(host_port)
}

fn host_port(port: &ContainerPort) -> Option<HostPort<'_>> {
    let given = |text: &'_ Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    Some(HostPort {
        address: port.host_ip.as_deref().filter(|_| given(&port.host_ip)).unwrap_or(EVERY_ADDRESS),
        protocol: port.protocol.as_deref().filter(|_| given(&port.protocol)).unwrap_or("TCP"),
        port: port.host_port.filter(|port| *port > 0)?,
    })
}
