//! What is alike: pods of one shape fit the same nodes, so a node is looked at once for all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::affinity::Required;
use crate::peer::Peers;
use crate::pod::Port;
use crate::storage::Disk;
use crate::taint::Toleration;
use crate::vector::{Ask, Resources};
use crate::{Amounts, Pod};

/// Everything of a pod that decides where it fits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spec {
    pub(crate) asks: Amounts,
    pub(crate) ports: Vec<Port>,
    pub(crate) required: Required,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) peers: Peers,
    pub(crate) features: Vec<&'static str>,
    pub(crate) disks: Vec<Disk>,
    /// Namespace and names of claims; nothing for most pods.
    pub(crate) claims: Option<(String, Vec<String>)>,
}

/// A shape.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) spec: Arc<Spec>,
    pub(crate) ask: Ask,
    /// Devices among what is asked for.
    pub(crate) devices: Vec<usize>,
    /// Rare things first: a pod with devices has the fewest places to go.
    pub(crate) size: (i64, i64, i64),
    /// Whether it asks for nothing but a place.
    pub(crate) is_best_effort: bool,
}

/// All shapes in use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shapes(BTreeMap<Arc<Spec>, Arc<Shape>>);

impl Shapes {
    pub(crate) fn of(&mut self, pod: &Pod, resources: &mut Resources) -> Arc<Shape> {
        let spec = Spec {
            asks: pod.asks.clone(),
            ports: pod.ports.clone(),
            required: pod.required.clone(),
            tolerations: pod.tolerations.clone(),
            peers: pod.peers.clone(),
            features: pod.features.clone(),
            disks: pod.disks.clone(),
            claims: (!pod.claims.is_empty())
                .then(|| (pod.key.namespace.clone(), pod.claims.clone())),
        };
        if let Some(shape) = self.0.get(&spec) {
            return shape.clone();
        }
        let spec = Arc::new(spec);
        let ask = resources.ask(&spec.asks);
        let is_device = |(index, _): &&(usize, i64)| resources.name(*index).contains('/');
        let devices: Vec<usize> = ask.0.iter().filter(is_device).map(|(index, _)| *index).collect();
        let count = devices.iter().map(|index| ask.of(*index)).sum();
        let shape = Arc::new(Shape {
            is_best_effort: ask.0.iter().all(|(index, _)| resources.is_pods(*index)),
            size: (count, spec.asks.get("memory"), spec.asks.get("cpu")),
            devices,
            ask,
            spec: spec.clone(),
        });
        self.0.insert(spec, shape.clone());
        shape
    }

    /// Forgets a shape that nobody has any more.
    pub(crate) fn release(&mut self, shape: Arc<Shape>) {
        let spec = shape.spec.clone();
        drop(shape);
        if self.0.get(&spec).is_some_and(|shape| Arc::strong_count(shape) == 1) {
            self.0.remove(&spec);
        }
    }
}
