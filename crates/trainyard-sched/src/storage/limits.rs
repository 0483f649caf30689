//! How many volumes of a CSI driver a node can have.

use std::collections::BTreeSet;

use super::{Claim, ClaimKey, Question, Storage};
use crate::Pod;
use crate::facts::{Facts, Record, Stand};
use crate::fit::Obstacle;
use crate::room::{Board, View};
use crate::slots::Id;

/// A volume on a node: its driver, and its handle or the claim that it will be made for.
type Attached = (String, Result<String, ClaimKey>);

/// Whether any node has a limit at all.
pub(super) fn could_matter(storage: &Storage) -> bool {
    storage.limited > 0
}

/// Whether a node has a place for the pod's volumes.
pub(super) fn check(
    record: &Record,
    room: usize,
    board: &Board,
    facts: &Facts,
    question: Question,
) -> Result<(), Obstacle> {
    let storage = &facts.storage;
    let Some(room) = board.rooms.get(room) else { return Ok(()) };
    let Some(limits) = storage.nodes.get(&room.name).filter(|node| node.has_limits()) else {
        return Ok(());
    };
    let mut new: BTreeSet<Attached> = of_pod(storage, &record.pod).collect();
    new.retain(|(driver, _)| limits.limit(driver).is_some());
    if new.is_empty() {
        return Ok(());
    }
    let stays = |id: &&Id| question.view == View::Now || !board.departed.contains(id);
    let others = room.pods.iter().filter(stays).filter_map(|id| facts.record(*id));
    let others = others.filter(|other| {
        let has_left = question.view != View::Now && other.stand() == Stand::Leaving;
        other.pod.uid != record.pod.uid && !has_left
    });
    let mut there: BTreeSet<Attached> =
        others.flat_map(|other| of_pod(storage, &other.pod)).collect();
    // A volume stays on its node for a while after its last pod.
    for attachment in storage.attachments.values().filter(|one| one.node() == room.name) {
        let Some((driver, volume)) = attachment.volume() else { continue };
        let csi = storage.volumes.get(volume).and_then(|volume| volume.csi.as_ref());
        there.extend(csi.map(|(_, handle)| (driver.to_owned(), Ok(handle.clone()))));
    }
    let drivers: BTreeSet<&String> = new.iter().map(|(driver, _)| driver).collect();
    for driver in drivers {
        let all = there.union(&new).filter(|(one, _)| one == driver).count();
        let is_more = new.difference(&there).any(|(one, _)| one == driver);
        let most = limits.limit(driver).unwrap_or(i64::MAX);
        if is_more && i64::try_from(all).unwrap_or(i64::MAX) > most {
            return Err(Obstacle::TooManyVolumes);
        }
    }
    Ok(())
}

fn of_pod<'s>(storage: &'s Storage, pod: &'s Pod) -> impl Iterator<Item = Attached> + 's {
    let of_claims = storage.claims_of(pod).filter_map(|(key, claim)| of_claim(storage, key, claim));
    let inline = pod.disks.iter().map(|(driver, disk)| (driver.clone(), Ok(disk.clone())));
    of_claims.chain(inline)
}

fn of_claim(storage: &Storage, key: ClaimKey, claim: &Claim) -> Option<Attached> {
    if let Some(volume) = storage.volumes.get(claim.volume()) {
        let (driver, handle) = volume.attached()?;
        return Some((driver.clone(), Ok(handle.clone())));
    }
    let class = storage.classes.get(&claim.class)?;
    Some((class.driver().to_owned(), Err(key)))
}
