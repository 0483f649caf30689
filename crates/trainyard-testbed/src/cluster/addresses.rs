//! Names and addresses within a cluster. They are seen in its network namespaces only, so that all clusters have
//! the same. Pure.

/// Where kube-apiserver listens.
pub(super) const API_PORT: u16 = 6443;
/// The name server of pods, on node 0.
pub(super) const DNS: &str = "10.89.0.10";
/// The name server's port that tells that it is ready.
pub(super) const DNS_READY_PORT: u16 = 8181;
/// Addresses of all pods.
pub(super) const PODS: &str = "10.90.0.0/16";
/// Addresses of Services.
pub(super) const SERVICES: &str = "10.96.0.0/16";
/// More would come into conflict with the name server's address.
pub(super) const MOST_NODES: usize = 8;

/// A node's name.
pub(super) fn name(index: usize) -> String {
    format!("node{index}")
}

/// A node's address.
pub(super) fn node(index: usize) -> String {
    format!("10.89.0.{}", index + 1)
}

/// Addresses of a node's pods.
pub(super) fn pods(index: usize) -> String {
    format!("10.90.{index}.0/24")
}

/// Where kube-apiserver is found inside.
pub(super) fn api_url() -> String {
    format!("https://{}:{API_PORT}", node(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_node_has_the_address_of_the_name_server() {
        assert!((0..MOST_NODES).all(|index| node(index) != DNS));
    }
}
