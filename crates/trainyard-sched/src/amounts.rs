//! Amounts of several resources at once: what pods ask for and what nodes have.
//!
//! Whole numbers only: processor in thousandths, everything else in units. Must not know who asks.

use std::collections::BTreeMap;

use serde::Serialize;
use trainyard_schema::quantity::{self, Quantity};

/// Amounts by resource. A resource that is not named is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Amounts(BTreeMap<String, i64>);

/// The one resource that is counted in thousandths.
const CPU: &str = "cpu";
/// Nothing real is larger. Sums of some ten thousand such amounts still fit the number.
const MOST: i64 = 1 << 47;

impl Amounts {
    /// Reads amounts as objects have them. What is no quantity counts as nothing: the API server
    /// lets none in.
    #[must_use]
    pub fn read(written: &BTreeMap<String, String>) -> Self {
        let pairs = written.iter().filter_map(|(name, text)| {
            let amount = quantity::parse(text).ok()?;
            Some((name.clone(), counted(name, amount).min(MOST)))
        });
        Self(pairs.filter(|(_, amount)| *amount > 0).collect())
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            self.put(name, *amount);
        }
    }

    /// Adds so much of one resource.
    pub(crate) fn put(&mut self, name: &str, amount: i64) {
        if let Some(sum) = self.0.get_mut(name) {
            *sum = sum.saturating_add(amount);
        } else {
            self.0.insert(name.to_owned(), amount);
        }
    }

    /// Sets one amount; zero is as if it were not named.
    pub(crate) fn set(&mut self, name: &str, amount: i64) {
        if amount > 0 {
            self.0.insert(name.to_owned(), amount);
        } else {
            self.0.remove(name);
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

    /// One amount, if it is named.
    pub(crate) fn named(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// An amount as people want to read it: of a mebibyte and more the odd bytes are left out, for
    /// what nodes have free is never round.
    #[must_use]
    pub fn rounded(name: &str, amount: i64) -> i64 {
        const MI: i64 = 1 << 20;
        if is_bytes(name) && amount >= MI { amount - amount % MI } else { amount }
    }

    /// Whether nothing is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn is_bytes(name: &str) -> bool {
    name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-")
}

fn counted(name: &str, amount: Quantity) -> i64 {
    if name == CPU { amount.millis() } else { amount.value() }
}

/// An amount in the words of manifests: `1500m` of processor, `512Mi` of memory, `3` devices.
#[must_use]
pub fn written(name: &str, amount: i64) -> String {
    if name == CPU {
        return if amount % 1000 == 0 { (amount / 1000).to_string() } else { format!("{amount}m") };
    }
    let scales = [(1_i64 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")];
    let exact = |(scale, _): &&(i64, &str)| amount != 0 && amount % scale == 0;
    match scales.iter().find(exact).filter(|_| is_bytes(name)) {
        Some((scale, letters)) => format!("{}{letters}", amount / scale),
        None => amount.to_string(),
    }
}

impl<'n, const N: usize> From<[(&'n str, i64); N]> for Amounts {
    fn from(pairs: [(&'n str, i64); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl<'n> FromIterator<(&'n str, i64)> for Amounts {
    fn from_iter<I: IntoIterator<Item = (&'n str, i64)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect())
    }
}

/// Amounts in objects of custom kinds, which may be numbers as well as text, or nothing at all.
pub(crate) fn as_text<'de, D>(reader: D) -> Result<BTreeMap<String, String>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Whole(i64),
        Number(f64),
    }
    let written: Option<BTreeMap<String, Written>> = serde::Deserialize::deserialize(reader)?;
    let text = |one: Written| match one {
        Written::Text(text) => text,
        Written::Whole(number) => number.to_string(),
        Written::Number(number) => number.to_string(),
    };
    Ok(written.into_iter().flatten().map(|(name, one)| (name, text(one))).collect())
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
    fn absurd_amounts_are_cut() {
        let absurd = [("memory".to_owned(), "9E".to_owned())].into();
        assert_eq!(Amounts::read(&absurd).get("memory"), MOST);
    }

    #[test]
    fn amounts_are_written_as_manifests_write_them() {
        for (name, amount, text) in [
            ("cpu", 1500, "1500m"),
            ("cpu", 2000, "2"),
            ("memory", 512 << 20, "512Mi"),
            ("memory", 1000, "1000"),
            ("nvidia.com/gpu", 1024, "1024"),
            ("memory", 0, "0"),
        ] {
            assert_eq!(written(name, amount), text);
        }
    }
}
