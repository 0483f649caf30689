//! The embedded `OpenAPI` schemas, unpacked for one answer and dropped again: they are large and seldom
//! asked for.
//!
//! Owns the packed text and which schemas lead to which. Must not know kinds.

use std::collections::{BTreeMap, HashMap};

use serde_json::value::RawValue;

/// Raw deflate, made by `data/make.py`.
static PACKED: &[u8] = include_bytes!("../../data/openapi.json.z");

/// No larger text is unpacked.
const LARGEST: usize = 8 << 20;

/// How one schema refers to another.
pub(super) const REFERENCE: &str = "#/components/schemas/";

/// The unpacked text.
pub(super) struct Text(Vec<u8>);

/// All schemas of the text, each still a text.
pub(super) type Schemas<'a> = HashMap<&'a str, &'a RawValue>;

/// What tells one edition of the embedded schemas from another.
pub(super) fn packed() -> &'static [u8] {
    PACKED
}

impl Text {
    pub(super) fn unpack() -> Self {
        let text = miniz_oxide::inflate::decompress_to_vec_with_limit(PACKED, LARGEST);
        Self(text.unwrap_or_default())
    }

    pub(super) fn schemas(&self) -> Schemas<'_> {
        serde_json::from_slice(&self.0).unwrap_or_default()
    }
}

/// Adds a schema and all that it refers to.
pub(super) fn reach<'a>(
    schemas: &Schemas<'a>,
    name: &str,
    reached: &mut BTreeMap<&'a str, &'a str>,
) {
    let mut wanted = vec![name.to_owned()];
    while let Some(name) = wanted.pop() {
        let Some((name, raw)) = schemas.get_key_value(name.as_str()) else { continue };
        if reached.insert(name, raw.get()).is_none() {
            wanted.extend(references(raw.get()).map(str::to_owned));
        }
    }
}

/// The names that a schema refers to.
pub(super) fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split(REFERENCE).skip(1).filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_kind_has_its_schema_and_all_it_refers_to() {
        let text = Text::unpack();
        let schemas = text.schemas();
        for row in crate::kinds::rows() {
            for version in &row.versions {
                let name = version.schema.definition();
                assert!(schemas.contains_key(name), "{name}");
                let mut reached = BTreeMap::new();
                reach(&schemas, name, &mut reached);
                for (name, schema) in &reached {
                    for reference in references(schema) {
                        assert!(reached.contains_key(reference), "{name} -> {reference}");
                    }
                }
            }
        }
    }
}
