//! Members that cannot be tried for reasons of their own: a claim that is not there, a field that is
//! not honoured. Where their group can do without them the others go on.

use crate::cycle::{Block, Cycle, Unit};
use crate::serve::sum;
use crate::slots::Id;

impl<'f> Cycle<'f> {
    /// Why a member cannot be tried, whatever is free.
    pub(crate) fn trouble_of(&self, id: Id) -> Option<Block> {
        let pod = &self.facts.record(id)?.pod;
        if let Some(beyond) = pod.beyond {
            return Some(Block::Beyond(beyond));
        }
        let trouble = || self.facts.storage.trouble(pod).map(Block::Claim);
        if self.facts.config.knows_volumes { trouble() } else { None }
    }

    /// Takes those out of a group that cannot be tried, if the rest of it can run without them.
    pub(crate) fn set_aside(&self, unit: &mut Unit<'f>) {
        if unit.muster.beyond.is_none()
            && !(unit.muster.has_claims && self.facts.config.knows_volumes)
        {
            return;
        }
        let mut aside = Vec::new();
        let mut able = Vec::new();
        for id in &unit.standing.waiting {
            match self.trouble_of(*id) {
                Some(trouble) => aside.push((*id, trouble)),
                None => able.push(*id),
            }
        }
        if aside.is_empty() || able.is_empty() {
            return;
        }
        if !unit.standing.is_ready() {
            let Some(chosen) = unit.standing.enough(self.facts, &able) else { return };
            let ask = sum(self.facts, &chosen);
            unit.own_minimum = Some((chosen, ask));
        }
        unit.standing.to_mut().waiting = able;
        unit.aside = aside;
    }
}
