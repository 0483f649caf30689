//! Volumes in a decision: whose claims are bound before its pods are, and claims that are taken from
//! a node where their pod finds no room.

use std::collections::BTreeSet;

use super::{BindClaim, BindVolume, ClaimKey, ReleaseClaim};
use crate::cycle::{Cycle, Unit, Verdict};
use crate::place::{Request, place};
use crate::room::View;
use crate::slots::Id;
use crate::{Decision, PodName};

impl<'f> Cycle<'f> {
    /// Whether some of these pods have claims that are not bound.
    pub(crate) fn await_volumes(&self, pods: &[Id]) -> bool {
        self.facts.config.knows_volumes
            && pods.iter().filter_map(|id| self.facts.record(*id)).any(|record| {
                let claims = &record.pod.claims;
                !claims.is_empty() && self.facts.storage.unbound(&record.pod).next().is_some()
            })
    }

    /// What is to be written for the volumes of pods that have their nodes but for those.
    pub(crate) fn volume_decisions(&self, decisions: &mut Vec<Decision>) {
        let facts = self.facts;
        let mut done: BTreeSet<ClaimKey> = BTreeSet::new();
        for (id, room) in &self.reserved {
            let Some(record) = facts.record(*id) else { continue };
            let Some(node) = self.board.rooms.get(*room).map(|room| &room.name) else { continue };
            let (pod, uid) = (record.pod.key.clone(), record.pod.uid.clone());
            if record.promise() != node {
                decisions.push(Decision::Promise { pod, uid, node: node.clone() });
            }
            for (key, claim) in facts.storage.claims_of(&record.pod) {
                let Some((at, volume)) = self.board.claims.get(&key) else { continue };
                if at != room || facts.storage.assumed().is_assumed(&key) || done.contains(&key) {
                    continue;
                }
                let volume = volume.as_ref().and_then(|name| facts.storage.volume_of(name));
                decisions.push(Decision::BindClaim(Box::new(BindClaim {
                    namespace: key.0.clone(),
                    name: key.1.clone(),
                    uid: claim.uid().to_owned(),
                    version: claim.version(),
                    node: node.clone(),
                    volume: volume.map(|volume| BindVolume {
                        name: volume.name().to_owned(),
                        uid: volume.uid().to_owned(),
                        version: volume.version(),
                        is_prebound: volume.claim.is_some(),
                    }),
                })));
                done.insert(key);
            }
        }
        decisions
            .extend(self.released.iter().cloned().map(|one| Decision::ReleaseClaim(Box::new(one))));
    }

    /// What is said of a pod whose volumes, or those of its group, are being bound.
    pub(crate) fn volume_words(&self, id: Id) -> Option<(PodName, String, String)> {
        let pod = &self.facts.record(id)?.pod;
        let claims: Vec<&str> = self.facts.storage.unbound(pod).collect();
        let message = if claims.is_empty() {
            "waiting for the volumes of other pods of its group to be bound".to_owned()
        } else {
            format!("waiting for volumes to be bound: persistentvolumeclaims {claims:?}")
        };
        Some((pod.key.clone(), pod.uid.clone(), message))
    }

    /// Takes claims that are not bound from the nodes that they name where their pods find no room
    /// and would elsewhere.
    pub(crate) fn release_claims(&mut self) {
        if !self.facts.config.knows_volumes {
            return;
        }
        for index in 0..self.units.len() {
            let Some(unit) = self.units.get(index) else { return };
            if !matches!(unit.verdict, Some(Verdict::Room(_))) {
                continue;
            }
            let claims = self.selected(unit);
            if claims.is_empty() {
                continue;
            }
            let pods = match unit.standing.enough(self.facts, &unit.standing.waiting) {
                Some(chosen) if !unit.standing.is_ready() => chosen,
                _ => unit.left_out.clone(),
            };
            let mark = self.board.mark();
            let request = Request { ignores_selected: true, ..self.request(index, View::Now) };
            let fits = place(&request, self.board, &pods).is_ok();
            self.board.undo(mark);
            if fits {
                self.released.extend(claims);
            }
        }
    }

    /// Claims of the members that wait which name a node and have no volume.
    fn selected(&self, unit: &Unit<'f>) -> Vec<ReleaseClaim> {
        let storage = &self.facts.storage;
        let waiting = unit.standing.waiting.iter().chain(&unit.left_out);
        let records = waiting.filter_map(|id| self.facts.record(*id));
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        for (key, claim) in records.flat_map(|record| storage.claims_of(&record.pod)) {
            let is_open = claim.selected.is_some() && storage.waits_for_consumer(claim);
            if is_open && storage.assumed().may_be_released(&key) && seen.insert(key.clone()) {
                found.push(ReleaseClaim {
                    namespace: key.0,
                    name: key.1,
                    uid: claim.uid().to_owned(),
                    version: claim.version(),
                });
            }
        }
        found
    }
}
