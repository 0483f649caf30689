//! What is to be done with an object, once it is known how its owners stand.
//!
//! Pure. Must not know how that was found out.

use super::graph::{FOREGROUND, ORPHAN};
use crate::controllers::calls::Propagation;
use crate::controllers::view::{Meta, Owner};

/// How an owner stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is there and stays.
    Solid,
    /// There is none of that UID.
    Absent,
    /// It is being deleted and waits for its dependents.
    Waiting,
}

/// What is to be done with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Keep,
    /// It has an owner left: those that are gone, or going, are taken off its list.
    Trim(Vec<Owner>),
    /// It goes. Where `unblock` is set it must first let go of its owners: one of its own dependents
    /// waits already, and two that wait for each other would wait for ever.
    Delete { propagation: Propagation, unblock: bool },
}

/// Decides. `dependents` tells how many it has, and whether one of them waits for others itself.
pub(super) fn verdict(
    meta: &Meta,
    owners: &[(Owner, Standing)],
    dependents: (usize, bool),
) -> Verdict {
    let count = |wanted| owners.iter().filter(|(_, standing)| *standing == wanted).count();
    if owners.is_empty() || count(Standing::Solid) == owners.len() {
        return Verdict::Keep;
    }
    if count(Standing::Solid) > 0 {
        let solid = owners.iter().filter(|(_, standing)| *standing == Standing::Solid);
        return Verdict::Trim(solid.map(|(owner, _)| owner.clone()).collect());
    }
    let (dependents, one_waits) = dependents;
    if count(Standing::Waiting) > 0 && dependents > 0 {
        return Verdict::Delete { propagation: Propagation::Foreground, unblock: one_waits };
    }
    let propagation = if meta.has_finalizer(ORPHAN) {
        Propagation::Orphan
    } else if meta.has_finalizer(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    Verdict::Delete { propagation, unblock: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(standings: &[Standing]) -> Vec<(Owner, Standing)> {
        let owner = |(at, standing): (usize, &Standing)| {
            (Owner { uid: at.to_string(), ..Owner::default() }, *standing)
        };
        standings.iter().enumerate().map(owner).collect()
    }

    fn decide(standings: &[Standing], dependents: (usize, bool)) -> Verdict {
        verdict(&Meta::default(), &owners(standings), dependents)
    }

    const DELETE: Verdict =
        Verdict::Delete { propagation: Propagation::Background, unblock: false };

    #[test]
    fn an_object_goes_when_its_last_owner_is_gone() {
        assert_eq!(decide(&[], (0, false)), Verdict::Keep);
        assert_eq!(decide(&[Standing::Solid], (0, false)), Verdict::Keep);
        assert_eq!(decide(&[Standing::Absent], (0, false)), DELETE);
        assert_eq!(decide(&[Standing::Absent, Standing::Absent], (3, false)), DELETE);
        assert_eq!(decide(&[Standing::Waiting], (0, false)), DELETE);
    }

    #[test]
    fn one_owner_is_enough_to_stay() {
        let mixed = [Standing::Absent, Standing::Solid, Standing::Waiting];
        let Verdict::Trim(left) = decide(&mixed, (0, false)) else { panic!("kept") };
        assert_eq!(left.iter().map(|owner| owner.uid.as_str()).collect::<Vec<_>>(), ["1"]);
    }

    #[test]
    fn dependents_of_the_waiting_are_waited_for_in_turn() {
        let wanted = Verdict::Delete { propagation: Propagation::Foreground, unblock: false };
        assert_eq!(decide(&[Standing::Waiting], (1, false)), wanted);
        let wanted = Verdict::Delete { propagation: Propagation::Foreground, unblock: true };
        assert_eq!(decide(&[Standing::Waiting], (1, true)), wanted);
    }

    #[test]
    fn its_own_finalizers_say_how_it_goes() {
        let meta = Meta { finalizers: vec![ORPHAN.to_owned()], ..Meta::default() };
        let wanted = Verdict::Delete { propagation: Propagation::Orphan, unblock: false };
        assert_eq!(verdict(&meta, &owners(&[Standing::Absent]), (0, false)), wanted);
    }
}
