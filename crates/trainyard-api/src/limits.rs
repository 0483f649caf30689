//! The most that one object may ask for, so that no object costs more than its author's own work.
//!
//! The definitions state these bounds, and whatever reads a specification or a status checks them again: an
//! object may have been stored before there were bounds, and a status is written by whoever may write it.
//! Must not know what is counted.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::SpecError;

/// Most pods of one job, of all its replica types or tasks together.
pub const PODS_MAX: u32 = 10_000;
/// Most tasks of a Volcano Job, and most tasks that one of them may wait for.
pub const TASKS_MAX: u32 = 100;
/// Most volumes of a Volcano Job.
pub const VOLUMES_MAX: u32 = 50;
/// Most policies of a Volcano Job or of one of its tasks.
pub const POLICIES_MAX: u32 = 50;
/// Most arguments of one plugin of a Volcano Job.
pub const ARGUMENTS_MAX: u32 = 100;
/// Most resources in one list of amounts.
pub const RESOURCES_MAX: u32 = 256;
/// Most tasks that a `PodGroup` may name: more than a Volcano Job has, for groups that others make.
pub const GROUP_TASKS_MAX: u32 = 1_000;
/// Most containers of a pod times the tasks whose hosts plugin `svc` tells each of them.
pub const HOST_LISTS_MAX: usize = 2_000;
/// Most values in a specification: objects, lists, texts and numbers, wherever they stand.
pub const VALUES_MAX: usize = 50_000;
/// Longest name of a host and of a domain of hosts.
pub const HOST_NAME_MAX: usize = 63;
/// Most entries of a list in a status that has one for each pod: those asked for, and as many that still leave.
pub const RECORDS_MAX: usize = 2 * PODS_MAX as usize;
/// Most entries of any other list in a status.
pub const ENTRIES_MAX: usize = 1_000;

/// Reads the first items of a list. What comes later is passed over and never held.
pub(crate) fn first_items<'de, D, T, All>(deserializer: D, most: usize) -> Result<All, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
    All: FromIterator<T>,
{
    struct Items<T>(usize, PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
        type Value = Vec<T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a list")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while items.len() < self.0 {
                let Some(item) = list.next_element()? else { return Ok(items) };
                items.push(item);
            }
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(items)
        }
    }

    let items = deserializer.deserialize_any(Items::<T>(most, PhantomData))?;
    Ok(items.into_iter().collect())
}

/// Reads the first entries of an object. What comes later is passed over and never held.
pub(crate) fn first_entries<'de, D, T>(
    deserializer: D,
    most: usize,
) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Entries<T>(usize, PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
        type Value = BTreeMap<String, T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = BTreeMap::new();
            while entries.len() < self.0 {
                let Some((key, value)) = map.next_entry()? else { return Ok(entries) };
                entries.insert(key, value);
            }
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(entries)
        }
    }

    deserializer.deserialize_any(Entries::<T>(most, PhantomData))
}

/// Checks that a specification holds no more values than are read. A small object of one field takes a hundred
/// times the room of its text, so the text is counted before it is read.
pub(crate) fn check_values(text: Option<&RawValue>) -> Result<(), SpecError> {
    let count = text.map_or(0, |text| values(text.get()));
    if count <= VALUES_MAX {
        return Ok(());
    }
    let told = format!(
        "holds {count} values, at most {VALUES_MAX} are read; shorten lists and maps, or move them to a \
         ConfigMap or into the image"
    );
    Err(SpecError::new("spec", told))
}

/// Returns how many values a JSON text holds, the outermost not counted.
#[must_use]
fn values(text: &str) -> usize {
    let (mut count, mut is_quoted, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'{' | b'[' | b',' if !is_quoted => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_comes_after_the_first_ones_is_passed_over() {
        let read = |text: &str| -> Result<Vec<u32>, serde_json::Error> {
            first_items(&mut serde_json::Deserializer::from_str(text), 3)
        };
        assert_eq!(read("[1,2,3,4,\"five\"]").unwrap(), [1, 2, 3]);
        assert_eq!(read("[1]").unwrap(), [1]);
        assert_eq!(read("null").unwrap(), [0_u32; 0]);
        assert!(read("[1,\"two\"]").is_err() && read("7").is_err());
        let map = json!({"a": 1, "b": 2, "c": 3});
        let entries: BTreeMap<String, Value> = first_entries(map, 2).unwrap();
        assert_eq!(entries.into_keys().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn values_are_counted_outside_of_texts() {
        for (text, least) in
            [("7", 0), (r#"{"a":1,"b":[1,2]}"#, 4), (r#"{"a":"{[,\"{[,"}"#, 1), (r#"["\\",{}]"#, 3)]
        {
            assert_eq!(values(text), least, "{text}");
        }
    }
}
