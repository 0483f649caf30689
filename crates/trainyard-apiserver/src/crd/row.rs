//! The row that a definition makes in the table of kinds.
//!
//! Owns the reading of a definition that was accepted. Must not judge it.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use trainyard_schema::{FieldError, jsonpath::Path, structural::Schema};

use super::{definition::is_established, priority, rules::DefinedRules};
use crate::kind::{Columns, Kind, LazySchema, Scale, Verbs, Version};
use crate::table;

/// Why a definition makes no row.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RowError {
    /// Its names are taken, or it says nothing yet.
    #[error("its names are not accepted")]
    NotEstablished,
    /// No version is served, or none is stored.
    #[error("it has no {0} version")]
    NoVersion(&'static str),
    /// A schema that cannot be read.
    #[error("the schema of version {version} cannot be read: {problem}")]
    Schema {
        /// Of which version.
        version: String,
        /// The first thing that is wrong with it.
        problem: FieldError,
    },
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// The row of a definition that is established.
pub(crate) fn kind_of(definition: &Value) -> Result<Kind, RowError> {
    if !is_established(definition) {
        return Err(RowError::NotEstablished);
    }
    let spec = &definition["spec"];
    let group = text(&spec["group"]);
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let stored = versions.iter().find(|version| version["storage"] == true);
    let stored = stored.ok_or(RowError::NoVersion("stored"))?;
    let mut schemas = Schemas::default();
    let mut served = served_versions(spec, versions, &mut schemas)?;
    if served.is_empty() {
        return Err(RowError::NoVersion("served"));
    }
    served.sort_by(|one, other| priority::compare(&other.name, &one.name));
    let names = &definition["status"]["acceptedNames"];
    Ok(Kind {
        kind: text(&names["kind"]),
        list_kind: text(&names["listKind"]),
        plural: text(&names["plural"]),
        singular: text(&names["singular"]),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        storage: format!("{}.{group}", text(&names["plural"])),
        storage_api_version: format!("{group}/{}", text(&stored["name"])),
        versions: served,
        defined: true,
        verbs: Verbs::All,
        rules: Arc::new(DefinedRules {
            schema: schemas.of(stored)?,
            has_status: has_status(stored),
            scale: scale(stored),
            selectable: selectable(versions),
        }),
        group,
    })
}

/// Schemas of versions. They are often the same: each is read once.
#[derive(Default)]
struct Schemas<'a>(Vec<(&'a Value, Arc<Schema>)>);

impl<'a> Schemas<'a> {
    fn of(&mut self, version: &'a Value) -> Result<Arc<Schema>, RowError> {
        let written = &version["schema"]["openAPIV3Schema"];
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == written) {
            return Ok(Arc::clone(known));
        }
        let schema = Arc::new(read(version)?);
        self.0.push((written, Arc::clone(&schema)));
        Ok(schema)
    }
}

fn served_versions<'a>(
    spec: &Value,
    versions: &'a [Value],
    schemas: &mut Schemas<'a>,
) -> Result<Vec<Version>, RowError> {
    let mut served = Vec::new();
    for version in versions.iter().filter(|version| version["served"] == true) {
        let schema = schemas.of(version)?;
        let columns = version["additionalPrinterColumns"].as_array();
        let columns = columns.filter(|columns| !columns.is_empty()).cloned();
        served.push(Version {
            name: text(&version["name"]),
            schema: LazySchema::ready(schema),
            has_status: has_status(version),
            scale: scale(version),
            deprecation: deprecation(spec, version),
            columns: Columns::Defined(columns.unwrap_or_else(|| vec![table::age_row()])),
        });
    }
    Ok(served)
}

fn read(version: &Value) -> Result<Schema, RowError> {
    let written = &version["schema"]["openAPIV3Schema"];
    if written.is_null() {
        return Ok(Schema::open());
    }
    let unreadable = || FieldError::invalid("openAPIV3Schema", "", "cannot be read");
    Schema::parse(written).map_err(|errors| RowError::Schema {
        version: text(&version["name"]),
        problem: errors.into_iter().next().unwrap_or_else(unreadable),
    })
}

fn has_status(version: &Value) -> bool {
    version["subresources"]["status"].is_object()
}

fn scale(version: &Value) -> Option<Scale> {
    let paths = version["subresources"]["scale"].as_object()?;
    let path = |name: &str| paths.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(Scale {
        spec_replicas: path("specReplicasPath")?,
        status_replicas: path("statusReplicasPath")?,
        selector: path("labelSelectorPath").filter(|path| !path.is_empty()),
    })
}

fn selectable(versions: &[Value]) -> Vec<(Box<str>, Path)> {
    let mut fields: BTreeMap<Box<str>, Path> = BTreeMap::new();
    for field in
        versions.iter().filter_map(|version| version["selectableFields"].as_array()).flatten()
    {
        let path = field["jsonPath"].as_str().unwrap_or_default();
        if let Ok(parsed) = Path::parse(path) {
            fields.insert(path.trim_start_matches('.').into(), parsed);
        }
    }
    fields.into_iter().collect()
}

/// The warning of a version that is going away.
fn deprecation(spec: &Value, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(own) = version["deprecationWarning"].as_str() {
        return Some(own.to_owned());
    }
    let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
    let name = version["name"].as_str().unwrap_or_default();
    let others = spec["versions"].as_array().into_iter().flatten();
    let better = others
        .filter(|other| other["served"] == true && other["deprecated"] != true)
        .filter_map(|other| other["name"].as_str())
        .filter(|other| priority::compare(name, other).is_lt())
        .max_by(|one, other| priority::compare(one, other));
    let advice = better.map(|other| format!("; use {group}/{other} {kind}")).unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{advice}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::definition;

    fn gadgets() -> Value {
        let version = |name: &str, stored: bool| {
            json!({
                "name": name, "served": true, "storage": stored,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"color": {"type": "string", "default": "red"}}},
                }}},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                }},
                "additionalPrinterColumns": [{"name": "Color", "type": "string", "jsonPath": ".spec.color"}],
                "selectableFields": [{"jsonPath": ".spec.color"}],
            })
        };
        let mut old = version("v1beta1", false);
        old["deprecated"] = json!(true);
        let mut hidden = version("v3", false);
        hidden["served"] = json!(false);
        json!({
            "metadata": {"name": "gadgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"], "categories": ["all"]},
                "versions": [old, version("v1", true), hidden],
            },
        })
    }

    #[test]
    fn a_definition_makes_a_row() {
        let mut definition = gadgets();
        assert!(matches!(kind_of(&definition), Err(RowError::NotEstablished)));
        definition::default(&mut definition);
        definition::established(&mut definition, &[], "2026-11-16T05:40:00Z");
        let row = kind_of(&definition).unwrap();
        assert_eq!(
            (row.group.as_str(), row.kind.as_str(), row.list_kind.as_str()),
            ("example.com", "Gadget", "GadgetList")
        );
        assert_eq!((row.plural.as_str(), row.singular.as_str()), ("gadgets", "gadget"));
        assert_eq!(
            (row.short_names.as_slice(), row.categories.as_slice()),
            (&["gd".to_owned()][..], &["all".to_owned()][..])
        );
        assert!(row.namespaced && row.defined);
        assert_eq!(
            (row.storage.as_str(), row.storage_api_version.as_str()),
            ("gadgets.example.com", "example.com/v1")
        );
        let names: Vec<_> = row.versions.iter().map(|version| version.name.as_str()).collect();
        assert_eq!(names, ["v1", "v1beta1"]);
        assert_eq!(row.versions[0].deprecation, None);
        assert_eq!(
            row.versions[1].deprecation.as_deref(),
            Some("example.com/v1beta1 Gadget is deprecated; use example.com/v1 Gadget")
        );
        assert!(row.versions[0].has_status && row.versions[0].scale.is_some());
        assert!(row.rules.is_selectable("spec.color"));
        let schema = row.versions[0].schema.get();
        assert!(Arc::ptr_eq(&schema, &row.versions[1].schema.get()));
        let mut object = json!({"spec": {"x": 1}});
        assert_eq!(schema.prune(&mut object), ["spec.x"]);
        schema.default(&mut object);
        assert_eq!(object, json!({"spec": {"color": "red"}}));
    }

    #[test]
    fn a_definition_that_cannot_be_read_makes_none() {
        for broken in [json!(null), json!({}), json!({"spec": {"versions": 7}}), json!([])] {
            assert!(kind_of(&broken).is_err());
        }
    }
}
