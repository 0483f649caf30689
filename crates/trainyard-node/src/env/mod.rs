//! The environment and the command of a container, as a kubelet makes them from a pod.
//!
//! Owns references to fields, resources, config maps and secrets, and `$(NAME)`. Must not know
//! sandboxes, images' contents or how a pod is run.

mod argv;
mod error;
mod expansion;
mod fields;
mod quote;
mod resources;
mod variables;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use trainyard_api::quantity::Quantity;

pub(crate) use argv::argv;
pub(crate) use error::EnvError;
pub(crate) use expansion::expand;
pub(crate) use fields::metadata_field;
pub(crate) use resources::resource_value;
pub(crate) use variables::{Environment, environment};

/// What a pod may ask about where it runs.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// The pod's address; none while it has none.
    pub(crate) pod_ip: Option<Ipv4Addr>,
    /// The node's address.
    pub(crate) host_ip: Ipv4Addr,
    /// The node's name.
    pub(crate) node_name: String,
    /// What the node has to give, by resource: what a container without a limit can reach.
    pub(crate) allocatable: BTreeMap<String, Quantity>,
}
