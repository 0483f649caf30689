//! The `OpenAPI` v3 pages: an index of all groups, and a page for each with the schemas of its kinds.
//!
//! Owns how pages are put together, from embedded schemas and from definitions alike. Must not know
//! where definitions are kept: they are given.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{
    discovery,
    embedded::{self, REFERENCE, Text},
    paths,
};
use crate::kind::{Kind, Version};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// `/openapi/v3`. A page's address changes with its content. `definitions` are all
/// `CustomResourceDefinition`s.
pub(crate) fn index(kinds: &[Arc<Kind>], definitions: &[Value]) -> Value {
    let embedded = Sha256::digest(embedded::packed());
    let mut paths = Map::new();
    let mut groups = vec![""];
    groups.extend(discovery::named_groups(kinds));
    for group in groups {
        for version in discovery::group_versions(kinds, group) {
            let path = if group.is_empty() {
                format!("api/{version}")
            } else {
                format!("apis/{group}/{version}")
            };
            let mut hash = Sha256::new();
            hash.update(embedded);
            for (kind, _) in discovery::served(kinds, group, version) {
                hash.update(&kind.plural);
            }
            for definition in definitions.iter().filter(|one| one["spec"]["group"] == group) {
                hash.update(definition["spec"].to_string());
            }
            let mut address = format!("/openapi/v3/{path}?hash=");
            for byte in hash.finalize() {
                // Writing into a text cannot fail.
                let _ = write!(address, "{byte:02X}");
            }
            paths.insert(path, json!({"serverRelativeURL": address}));
        }
    }
    json!({"paths": paths})
}

/// `/openapi/v3/apis/GROUP/VERSION`, as JSON text.
pub(crate) fn document(
    group: &str,
    version: &str,
    kinds: &[Arc<Kind>],
    definitions: &[Value],
) -> Option<String> {
    let served = discovery::served(kinds, group, version);
    if served.is_empty() {
        return None;
    }
    let text = Text::unpack();
    let schemas = text.schemas();
    let mut reached = BTreeMap::new();
    for name in ["DeleteOptions", "ListMeta", "ObjectMeta", "Patch", "Status"] {
        embedded::reach(&schemas, &format!("{META}{name}"), &mut reached);
    }
    let mut own: BTreeMap<String, String> = BTreeMap::new();
    let mut all_paths = Map::new();
    for (kind, version) in served {
        let names = names(kind, version);
        if kind.defined {
            let definition = definitions.iter().find(|one| {
                one["spec"]["group"] == kind.group && one["spec"]["names"]["plural"] == kind.plural
            });
            let schema = defined_schema(kind, version, definition.unwrap_or(&Value::Null));
            own.insert(names.object.clone(), schema.to_string());
            own.insert(names.list.clone(), defined_list(kind, version, &names).to_string());
        } else {
            embedded::reach(&schemas, &names.object, &mut reached);
            embedded::reach(&schemas, &names.list, &mut reached);
        }
        all_paths.extend(paths::of(kind, version, &names));
    }
    let all_paths = Value::Object(all_paths).to_string();
    for name in embedded::references(&all_paths) {
        embedded::reach(&schemas, name, &mut reached);
    }
    let all =
        reached.into_iter().chain(own.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    Some(page(&all_paths, all))
}

fn page<'a>(paths: &str, schemas: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut page = String::from(
        "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"Kubernetes\",\"version\":\"v1.36.3\"},\"paths\":",
    );
    page.push_str(paths);
    page.push_str(",\"components\":{\"schemas\":{");
    for (count, (name, schema)) in schemas.enumerate() {
        if count > 0 {
            page.push(',');
        }
        page.push_str(&Value::from(name).to_string());
        page.push(':');
        page.push_str(schema);
    }
    page.push_str("}}}");
    page
}

fn names(kind: &Kind, version: &Version) -> paths::Names {
    let definition = version.schema.definition();
    if !definition.is_empty() {
        return paths::Names { object: definition.to_owned(), list: format!("{definition}List") };
    }
    let mut words: Vec<&str> = kind.group.split('.').collect();
    words.reverse();
    let prefix = format!("{}.{}", words.join("."), version.name);
    paths::Names {
        object: format!("{prefix}.{}", kind.kind),
        list: format!("{prefix}.{}", kind.list_kind),
    }
}

fn identity(kind: &Kind, version: &Version, name: &str) -> Value {
    json!([{"group": kind.group, "version": version.name, "kind": name}])
}

/// The schema of a definition's version, with what every object has.
fn defined_schema(kind: &Kind, version: &Version, definition: &Value) -> Value {
    let versions = definition["spec"]["versions"].as_array();
    let found = versions.into_iter().flatten().find(|one| one["name"] == version.name);
    let mut schema = found.map_or(json!({}), |one| one["schema"]["openAPIV3Schema"].clone());
    if !schema.is_object() {
        schema = json!({});
    }
    schema["type"] = json!("object");
    // Those who only read do not need rules, and may not know them.
    if let Some(members) = schema.as_object_mut() {
        members.remove("x-kubernetes-validations");
    }
    for (key, value) in common("object", "ObjectMeta") {
        schema["properties"][key] = value;
    }
    schema["x-kubernetes-group-version-kind"] = identity(kind, version, &kind.kind);
    schema
}

fn defined_list(kind: &Kind, version: &Version, names: &paths::Names) -> Value {
    let mut list = json!({
        "type": "object",
        "description": format!("{} is a list of {}", kind.list_kind, kind.kind),
        "required": ["items"],
        "properties": {
            "items": {
                "type": "array",
                "description": format!("List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md", kind.plural),
                "items": {"$ref": format!("{REFERENCE}{}", names.object)},
            },
        },
        "x-kubernetes-group-version-kind": identity(kind, version, &kind.list_kind),
    });
    for (key, value) in common("list", "ListMeta") {
        list["properties"][key] = value;
    }
    list
}

fn common(what: &str, metadata: &str) -> [(&'static str, Value); 3] {
    let conventions =
        "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
    let (possessive, chapter) =
        if what == "object" { ("object's", "metadata") } else { ("list", "types-kinds") };
    [
        (
            "apiVersion",
            json!({
                "type": "string",
                "description": format!("APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: {conventions}#resources"),
            }),
        ),
        (
            "kind",
            json!({
                "type": "string",
                "description": format!("Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: {conventions}#types-kinds"),
            }),
        ),
        (
            "metadata",
            json!({
                "description": format!("Standard {possessive} metadata. More info: {conventions}#{chapter}"),
                "allOf": [{"$ref": format!("{REFERENCE}{META}{metadata}")}],
            }),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn rows() -> Vec<Arc<Kind>> {
        kinds::rows().into_iter().map(Arc::new).collect()
    }

    #[test]
    fn the_index_names_a_page_for_each_group() {
        let index = index(&rows(), &[]);
        let page = index["paths"]["apis/batch/v1"]["serverRelativeURL"].as_str().unwrap();
        assert!(page.starts_with("/openapi/v3/apis/batch/v1?hash="));
        assert!(index["paths"]["api/v1"].is_object());
    }

    #[test]
    fn a_page_is_complete() {
        let rows = rows();
        for (group, version) in [("", "v1"), ("batch", "v1"), ("apiextensions.k8s.io", "v1")] {
            let text = document(group, version, &rows, &[]).unwrap();
            let page: Value = serde_json::from_str(&text).unwrap();
            let schemas = page["components"]["schemas"].as_object().unwrap();
            for name in embedded::references(&text) {
                assert!(schemas.contains_key(name), "{group} {name}");
            }
        }
        let page: Value =
            serde_json::from_str(&document("batch", "v1", &rows, &[]).unwrap()).unwrap();
        let patch = &page["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Job");
        assert!(
            patch["parameters"].as_array().unwrap().iter().any(|p| p["name"] == "fieldValidation")
        );
        assert!(document("nowhere", "v1", &rows, &[]).is_none());
    }
}
