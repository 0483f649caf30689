//! One look at one object: finds out how its owners stand and carries out the verdict.
//!
//! Every write carries the UID or the revision of what was seen, so that it fails when that has
//! changed, and the object is looked at again.

use std::sync::Arc;

use serde_json::{Value, json};

use super::graph::{FOREGROUND, Life, Node, ORPHAN, Uid, reaches};
use super::verdict::{Standing, Verdict, verdict};
use super::{Collector, held};
use crate::controllers::calls::{METADATA, delete_options};
use crate::controllers::error::{Error, unless_missing};
use crate::controllers::events::{About, Weight};
use crate::controllers::queue::Next;
use crate::controllers::resources::Resource;
use crate::controllers::view::{Bare, Meta, Owner};

impl Collector {
    pub(super) async fn attend(&self, uid: &Uid) -> Result<Next, Error> {
        let Some(node) = held(&self.graph).node(uid).cloned() else { return Ok(Next::Rest) };
        match node.life {
            Life::Going => Ok(Next::Rest),
            Life::Orphaning => self.set_free(uid, &node).await,
            Life::WaitingForDependents => self.wait_for_dependents(uid, &node).await,
            Life::Alive => self.judge(uid, &node).await,
        }
    }

    fn path(&self, node: &Node) -> Option<String> {
        let kinds = held(&self.kinds);
        let kind = kinds.get(usize::try_from(node.kind).ok()?)?;
        Some(kind.path(&node.namespace, &node.name))
    }

    /// The object as it is now; `None` when it is gone, or another has its name.
    async fn live(&self, uid: &Uid, node: &Node) -> Result<Option<(String, Meta)>, Error> {
        let Some(path) = self.path(node) else { return Ok(None) };
        let found: Option<Bare> = unless_missing(self.calls.read(&path, METADATA).await)?;
        if let Some(found) = found.filter(|found| *found.metadata.uid == **uid) {
            return Ok(Some((path, found.metadata)));
        }
        self.absent.add(Arc::clone(uid));
        let look = held(&self.graph).gone(uid);
        self.queue.add_all(look);
        Ok(None)
    }

    async fn judge(&self, uid: &Uid, node: &Node) -> Result<Next, Error> {
        if !held(&self.graph).doubts(node) {
            return Ok(Next::Rest);
        }
        let Some((path, meta)) = self.live(uid, node).await? else { return Ok(Next::Rest) };
        if meta.is_deleting() {
            return Ok(Next::Rest);
        }
        let mut owners = Vec::new();
        for owner in &meta.owner_references {
            owners.push((owner.clone(), self.standing(owner, node, uid).await?));
        }
        let dependents = {
            let graph = held(&self.graph);
            let mut waiting = graph.dependents(uid).map(|(_, node)| node.life);
            let waits = waiting.any(|life| life == Life::WaitingForDependents);
            (graph.dependents(uid).count(), waits)
        };
        match verdict(&meta, &owners, dependents) {
            Verdict::Keep => {}
            Verdict::Trim(left) => self.write_owners(&path, &meta, &left).await?,
            Verdict::Delete { propagation, unblock } => {
                let mut options = delete_options(propagation, Some(uid));
                if unblock {
                    let free = |owner: &Owner| Owner {
                        block_owner_deletion: owner.block_owner_deletion.map(|_| false),
                        ..owner.clone()
                    };
                    let free: Vec<Owner> = meta.owner_references.iter().map(free).collect();
                    self.write_owners(&path, &meta, &free).await?;
                } else {
                    // Whoever gets an owner in the meantime is looked at once more.
                    options["preconditions"]["resourceVersion"] = json!(meta.resource_version);
                }
                unless_missing(self.calls.delete(&path, &options).await)?;
            }
        }
        Ok(Next::Rest)
    }

    /// How an owner stands; asked of the API server where the graph does not know it.
    async fn standing(&self, owner: &Owner, node: &Node, uid: &Uid) -> Result<Standing, Error> {
        {
            let graph = held(&self.graph);
            if let Some(known) = graph.node(&owner.uid).filter(|known| reaches(known, node)) {
                let waits = known.life == Life::WaitingForDependents;
                return Ok(if waits { Standing::Waiting } else { Standing::Solid });
            }
        }
        if self.absent.contains(&owner.uid) {
            return Ok(Standing::Absent);
        }
        let resources = Arc::clone(&held(&self.resources));
        let Some(kind) = resources.named(&owner.api_version, &owner.kind) else {
            // Nobody can tell; when the kind appears, it is asked again.
            return Ok(Standing::Solid);
        };
        if kind.namespaced && node.namespace.is_empty() {
            self.complain(owner, node, uid).await;
            return Ok(Standing::Solid);
        }
        let found = self.find_owner(kind, owner, node).await?;
        let Some(found) = found.filter(|found| found.uid == owner.uid) else {
            if held(&self.graph).node(&owner.uid).is_some() {
                self.complain(owner, node, uid).await;
            } else {
                self.absent.add(owner.uid.as_str().into());
            }
            return Ok(Standing::Absent);
        };
        let waits = found.is_deleting() && found.has_finalizer(FOREGROUND);
        Ok(if waits { Standing::Waiting } else { Standing::Solid })
    }

    async fn find_owner(
        &self,
        kind: &Resource,
        owner: &Owner,
        node: &Node,
    ) -> Result<Option<Meta>, Error> {
        let namespace = if kind.namespaced { &*node.namespace } else { "" };
        let path = kind.path(namespace, &owner.name);
        let found: Option<Bare> = unless_missing(self.calls.read(&path, METADATA).await)?;
        Ok(found.map(|found| found.metadata))
    }

    /// Says that an owner is named that cannot be one: it lives in another namespace.
    async fn complain(&self, owner: &Owner, node: &Node, uid: &Uid) {
        let kind = {
            let kinds = held(&self.kinds);
            let Some(kind) = usize::try_from(node.kind).ok().and_then(|at| kinds.get(at)) else {
                return;
            };
            (kind.api_version(), kind.kind.clone())
        };
        let about = About {
            api_version: kind.0.into(),
            kind: kind.1.into(),
            namespace: node.namespace.to_string(),
            name: node.name.to_string(),
            uid: uid.to_string(),
        };
        let message = format!(
            "ownerRef [{}/{}, namespace: {}, name: {}, uid: {}] does not exist in namespace {:?}",
            owner.api_version, owner.kind, node.namespace, owner.name, owner.uid, node.namespace
        );
        self.recorder.record(&about, Weight::Warning, "OwnerRefInvalidNamespace", &message).await;
    }

    async fn write_owners(&self, path: &str, meta: &Meta, owners: &[Owner]) -> Result<(), Error> {
        let owners = if owners.is_empty() { Value::Null } else { json!(owners) };
        let edit = json!({"metadata": {
            "uid": meta.uid, "resourceVersion": meta.resource_version, "ownerReferences": owners,
        }});
        unless_missing(self.calls.merge(path, &edit).await).map(|_| ())
    }

    async fn drop_finalizer(&self, uid: &Uid, node: &Node, finalizer: &str) -> Result<(), Error> {
        let Some((path, meta)) = self.live(uid, node).await? else { return Ok(()) };
        if !meta.has_finalizer(finalizer) {
            return Ok(());
        }
        let left: Vec<&String> = meta.finalizers.iter().filter(|name| *name != finalizer).collect();
        let edit = json!({"metadata": {
            "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": left,
        }});
        unless_missing(self.calls.merge(&path, &edit).await).map(|_| ())
    }

    async fn wait_for_dependents(&self, uid: &Uid, node: &Node) -> Result<Next, Error> {
        let blocking: Vec<(Uid, Life)> = {
            let graph = held(&self.graph);
            graph.blocking(uid).map(|(uid, node)| (Arc::clone(uid), node.life)).collect()
        };
        if blocking.is_empty() {
            self.drop_finalizer(uid, node, FOREGROUND).await?;
        }
        for (dependent, life) in blocking {
            if life == Life::Alive {
                self.queue.add(dependent);
            }
        }
        Ok(Next::Rest)
    }

    async fn set_free(&self, uid: &Uid, node: &Node) -> Result<Next, Error> {
        let dependents: Vec<(Uid, Node)> = {
            let graph = held(&self.graph);
            graph.dependents(uid).map(|(uid, node)| (Arc::clone(uid), node.clone())).collect()
        };
        for (dependent, seen) in dependents {
            let Some((path, meta)) = self.live(&dependent, &seen).await? else { continue };
            let owners = meta.owner_references.iter();
            let left: Vec<Owner> = owners.filter(|owner| *owner.uid != **uid).cloned().collect();
            if left.len() < meta.owner_references.len() {
                self.write_owners(&path, &meta, &left).await?;
            }
        }
        self.drop_finalizer(uid, node, ORPHAN).await?;
        Ok(Next::Rest)
    }
}
