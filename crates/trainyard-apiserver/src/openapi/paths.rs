//! The paths of an `OpenAPI` page: for each kind what may be asked, with the parameters that clients look
//! for before they send something.
//!
//! Owns that part of a page. Must not know schemas beyond their names.

use serde_json::{Map, Value, json};

use super::{embedded::REFERENCE, subresource};
use crate::kind::{Kind, Verbs, Version};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// What a page says of one kind: its paths, and the names of the schemas they lead to.
pub(super) struct Names {
    /// The schema of the kind.
    pub(super) object: String,
    /// The schema of its lists.
    pub(super) list: String,
}

/// The paths of one kind.
pub(super) fn of(kind: &Kind, version: &Version, names: &Names) -> Map<String, Value> {
    let mut paths = Map::new();
    let root = if kind.group.is_empty() {
        format!("/api/{}", version.name)
    } else {
        format!("/apis/{}/{}", kind.group, version.name)
    };
    let plural = &kind.plural;
    let place = if kind.namespaced {
        format!("{root}/namespaces/{{namespace}}/{plural}")
    } else {
        format!("{root}/{plural}")
    };
    let page = Page { kind, version };
    if kind.verbs == Verbs::CreateOnly {
        let operations = json!({"post": page.operation("post", &names.object)});
        paths.insert(place, page.placed(operations, false));
        return paths;
    }
    let collection = json!({
        "get": page.operation("list", &names.list),
        "post": page.operation("post", &names.object),
        "delete": page.operation("deletecollection", &format!("{META}Status")),
    });
    let one = json!({
        "get": page.operation("get", &names.object),
        "put": page.operation("put", &names.object),
        "patch": page.operation("patch", &names.object),
        "delete": page.operation("delete", &format!("{META}Status")),
    });
    if kind.namespaced {
        let all = json!({"get": page.operation("list", &names.list)});
        paths.insert(format!("{root}/{plural}"), all);
    }
    for part in subresource::of(kind, version) {
        let path = format!("{place}/{{name}}/{}", part.name);
        paths.insert(path, page.placed(page.part(&part, &names.object), true));
    }
    paths.insert(place.clone(), page.placed(collection, false));
    paths.insert(format!("{place}/{{name}}"), page.placed(one, true));
    paths
}

struct Page<'a> {
    kind: &'a Kind,
    version: &'a Version,
}

impl Page<'_> {
    fn placed(&self, mut operations: Value, named: bool) -> Value {
        let mut parameters = Vec::new();
        let text = json!({"type": "string", "uniqueItems": true});
        if named {
            let description = format!("name of the {}", self.kind.kind);
            parameters.push(json!({
                "name": "name", "in": "path", "description": description, "required": true, "schema": text,
            }));
        }
        if self.kind.namespaced {
            parameters.push(json!({
                "name": "namespace", "in": "path", "required": true, "schema": text,
                "description": "object name and auth scope, such as for teams and projects",
            }));
        }
        if !parameters.is_empty() {
            operations["parameters"] = Value::Array(parameters);
        }
        operations
    }

    /// What a subresource allows; only those that are read and written like objects.
    fn part(&self, part: &subresource::Subresource, object: &str) -> Value {
        let object = match part.name {
            "scale" => "io.k8s.api.autoscaling.v1.Scale",
            "binding" => "io.k8s.api.core.v1.Binding",
            "eviction" => "io.k8s.api.policy.v1.Eviction",
            "token" => "io.k8s.api.authentication.v1.TokenRequest",
            _ => object,
        };
        let mut operations = json!({});
        for verb in part.verbs {
            let (method, action) = match *verb {
                "create" => ("post", "post"),
                "update" => ("put", "put"),
                "patch" => ("patch", "patch"),
                _ => ("get", "get"),
            };
            operations[method] = self.operation(action, object);
        }
        operations
    }

    fn operation(&self, action: &str, schema: &str) -> Value {
        let kind = &self.kind.kind;
        let description = match action {
            "list" => format!("list or watch objects of kind {kind}"),
            "post" => format!("create a {kind}"),
            "deletecollection" => format!("delete collection of {kind}"),
            "get" => format!("read the specified {kind}"),
            "put" => format!("replace the specified {kind}"),
            "patch" => format!("partially update the specified {kind}"),
            _ => format!("delete a {kind}"),
        };
        let mut operation = json!({
            "description": description,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {
                "group": self.kind.group, "version": self.version.name, "kind": kind,
            },
            "responses": {
                "200": {"description": "OK", "content": content("application/json", schema)},
                "401": {"description": "Unauthorized"},
            },
        });
        let parameters = parameters(action);
        if !parameters.is_empty() {
            operation["parameters"] = Value::Array(parameters);
        }
        if matches!(action, "post" | "put") {
            let body = json!({"required": true, "content": content("application/json", schema)});
            operation["requestBody"] = body;
        }
        if action == "patch" {
            operation["requestBody"] = self.patch_body();
        }
        operation
    }

    fn patch_body(&self) -> Value {
        let patch = format!("{META}Patch");
        let mut media = vec!["application/json-patch+json", "application/merge-patch+json"];
        if !self.kind.defined {
            media.push("application/strategic-merge-patch+json");
        }
        let content: Map<String, Value> =
            media.into_iter().map(|media| (media.to_owned(), schema(&patch))).collect();
        json!({"required": true, "content": content})
    }
}

fn schema(name: &str) -> Value {
    json!({"schema": {"$ref": format!("{REFERENCE}{name}")}})
}

fn content(media: &str, name: &str) -> Value {
    json!({media: schema(name)})
}

fn parameters(action: &str) -> Vec<Value> {
    let names: &[(&str, &str)] = match action {
        "post" | "put" => {
            &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")]
        }
        "patch" => &[
            ("dryRun", "string"),
            ("fieldManager", "string"),
            ("fieldValidation", "string"),
            ("force", "boolean"),
        ],
        "delete" => &[
            ("dryRun", "string"),
            ("gracePeriodSeconds", "integer"),
            ("orphanDependents", "boolean"),
            ("propagationPolicy", "string"),
        ],
        "list" | "deletecollection" => &[
            ("continue", "string"),
            ("fieldSelector", "string"),
            ("labelSelector", "string"),
            ("limit", "integer"),
            ("resourceVersion", "string"),
            ("timeoutSeconds", "integer"),
        ],
        _ => &[],
    };
    names
        .iter()
        .map(|(name, of)| {
            json!({"name": name, "in": "query", "schema": {"type": of, "uniqueItems": true}})
        })
        .collect()
}
