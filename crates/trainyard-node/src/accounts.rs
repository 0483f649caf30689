//! By whom an agent is known to the API server: one account for all its nodes, or each node by its own,
//! with a kubelet's rights.
//!
//! Owns which client asks for which node. Must not know how accounts are come by.

use std::collections::BTreeMap;

use kube::Client;

/// The clients of an agent.
#[derive(Clone)]
pub struct Accounts {
    any: Client,
    own: BTreeMap<String, Client>,
}

impl From<Client> for Accounts {
    fn from(any: Client) -> Self {
        Self { any, own: BTreeMap::new() }
    }
}

impl Accounts {
    /// Has a node ask by a client of its own.
    #[must_use]
    pub fn with(mut self, node: &str, client: Client) -> Self {
        self.own.insert(node.to_owned(), client);
        self
    }

    /// For what is not about a node: services, events, the cluster itself.
    pub(crate) const fn any(&self) -> &Client {
        &self.any
    }

    /// For a node's own object and its pods.
    pub(crate) fn of(&self, node: &str) -> &Client {
        self.own.get(node).unwrap_or(&self.any)
    }
}
