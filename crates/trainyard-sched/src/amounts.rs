//! Amounts of several resources at once: what pods ask for and what nodes have.
//!
//! Whole numbers only: processor in thousandths, everything else in units. Must not know who asks.

use std::collections::BTreeMap;

use trainyard_schema::quantity::{self, Quantity};

/// Amounts by resource. A resource that is not named is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, i64>);

/// The one resource that is counted in thousandths.
const CPU: &str = "cpu";

impl Amounts {
    /// Reads amounts as objects have them. What is no quantity counts as nothing: the API server
    /// lets none in.
    #[must_use]
    pub fn read(written: &BTreeMap<String, String>) -> Self {
        let pairs = written.iter().filter_map(|(name, text)| {
            let amount = quantity::parse(text).ok()?;
            Some((name.clone(), counted(name, amount)))
        });
        Self(pairs.filter(|(_, amount)| *amount > 0).collect())
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self.0.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }

    /// Takes others away; what falls to zero is forgotten.
    pub fn remove(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let left = self.get(name).saturating_sub(*amount);
            if left > 0 {
                self.0.insert(name.clone(), left);
            } else {
                self.0.remove(name);
            }
        }
    }

    /// The larger of both, resource by resource.
    pub(crate) fn most(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let most = self.0.entry(name.clone()).or_default();
            *most = (*most).max(*amount);
        }
    }

    /// One amount.
    #[must_use]
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }
}

fn counted(name: &str, amount: Quantity) -> i64 {
    if name == CPU { amount.millis() } else { amount.value() }
}

/// Amounts by name, for tests.
#[cfg(test)]
impl<const N: usize> From<[(&str, i64); N]> for Amounts {
    fn from(pairs: [(&str, i64); N]) -> Self {
        Self(pairs.map(|(name, amount)| (name.to_owned(), amount)).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_is_counted_in_thousandths() {
        let written = [("cpu", "1500m"), ("memory", "1Gi"), ("nvidia.com/gpu", "2"), ("bad", "x")];
        let written = written.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        let amounts = Amounts::read(&written);
        assert_eq!(amounts.get("cpu"), 1500);
        assert_eq!(amounts.get("memory"), 1 << 30);
        assert_eq!((amounts.get("nvidia.com/gpu"), amounts.get("bad")), (2, 0));
    }

    #[test]
    fn what_is_added_can_be_taken_away() {
        let mut sum = Amounts::from([("cpu", 5)]);
        let other = Amounts::from([("cpu", 3), ("memory", 7)]);
        sum.add(&other);
        sum.remove(&other);
        assert_eq!(sum, Amounts::from([("cpu", 5)]));
        sum.remove(&Amounts::from([("cpu", 9)]));
        assert_eq!(sum, Amounts::default());
    }
}
