//! Amounts as numbers in a row, for sums and comparisons in great number.
//!
//! Resources get an index when they are first heard of. The index depends on history, so nothing
//! may be ordered by it.

use std::collections::BTreeMap;

use crate::Amounts;

/// The resource that counts pods; every pod asks for one.
pub(crate) const PODS: &str = "pods";
/// Stands for "as many as you like".
pub(crate) const ENDLESS: i64 = i64::MAX / 4;

/// The resources that were ever heard of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resources {
    names: Vec<String>,
    indices: BTreeMap<String, usize>,
}

impl Resources {
    pub(crate) fn index(&mut self, name: &str) -> usize {
        if let Some(index) = self.indices.get(name) {
            return *index;
        }
        let index = self.names.len();
        self.names.push(name.to_owned());
        self.indices.insert(name.to_owned(), index);
        index
    }

    pub(crate) fn known(&self, name: &str) -> Option<usize> {
        self.indices.get(name).copied()
    }

    pub(crate) fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or("", String::as_str)
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn is_pods(&self, index: usize) -> bool {
        self.name(index) == PODS
    }

    /// What somebody asks for.
    pub(crate) fn ask(&mut self, amounts: &Amounts) -> Ask {
        Ask(amounts.iter().map(|(name, amount)| (self.index(name), amount)).collect())
    }

    /// Back to amounts by name; what is not above zero is left out.
    pub(crate) fn amounts(&self, vector: &Vector) -> Amounts {
        let all = vector.0.iter().enumerate();
        let some = all.filter(|(_, amount)| **amount > 0);
        some.map(|(index, amount)| (self.name(index), *amount)).collect()
    }
}

/// What somebody asks for: index and amount, only what is above zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ask(pub(crate) Vec<(usize, i64)>);

impl Ask {
    pub(crate) fn of(&self, resource: usize) -> i64 {
        self.0.iter().find(|(index, _)| *index == resource).map_or(0, |(_, amount)| *amount)
    }
}

/// An amount of every resource; what is not there is zero.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vector(pub(crate) Vec<i64>);

impl Vector {
    pub(crate) fn get(&self, resource: usize) -> i64 {
        self.0.get(resource).copied().unwrap_or(0)
    }

    pub(crate) fn set(&mut self, resource: usize, amount: i64) {
        if self.0.len() <= resource {
            self.0.resize(resource + 1, 0);
        }
        if let Some(place) = self.0.get_mut(resource) {
            *place = amount;
        }
    }

    /// Adds `times` the ask. Sums wrap: what was added can always be taken away again.
    pub(crate) fn add(&mut self, ask: &Ask, times: i64) {
        for (resource, amount) in &ask.0 {
            let sum = self.get(*resource).wrapping_add(amount.wrapping_mul(times));
            self.set(*resource, sum);
        }
    }

    pub(crate) fn plus(&mut self, other: &Self, times: i64) {
        for (resource, amount) in other.0.iter().enumerate() {
            let sum = self.get(resource).wrapping_add(amount.wrapping_mul(times));
            self.set(resource, sum);
        }
    }

    pub(crate) fn covers(&self, ask: &Ask) -> bool {
        ask.0.iter().all(|(resource, amount)| self.get(*resource) >= *amount)
    }

    /// The resources with an amount above zero.
    pub(crate) fn positive(&self) -> impl Iterator<Item = (usize, i64)> + '_ {
        self.0.iter().copied().enumerate().filter(|(_, amount)| *amount > 0)
    }
}

impl PartialEq for Vector {
    fn eq(&self, other: &Self) -> bool {
        (0..self.0.len().max(other.0.len())).all(|index| self.get(index) == other.get(index))
    }
}

impl Eq for Vector {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_can_be_taken_away() {
        let mut resources = Resources::default();
        let ask = resources.ask(&Amounts::from([("cpu", 3), ("memory", 7)]));
        let mut vector = Vector::default();
        vector.add(&ask, 2);
        assert!(vector.covers(&ask));
        assert_eq!(resources.amounts(&vector), Amounts::from([("cpu", 6), ("memory", 14)]));
        vector.add(&ask, -2);
        assert_eq!(vector, Vector::default());
        assert!(!vector.covers(&ask));
    }
}
