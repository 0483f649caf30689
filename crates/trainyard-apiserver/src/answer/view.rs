//! Stored objects as one request wants to see them: in its version and its form.
//!
//! Must not know verbs or transport.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json, value::RawValue};

use crate::kind::{Kind, Version};
use crate::object::Stored;
use crate::request::accept::Form;
use crate::table;

/// How one request wants to see objects.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) kind: Arc<Kind>,
    version: usize,
    pub(crate) form: Form,
    /// How much of an object the rows of a table hold.
    pub(crate) include: Include,
    now: Timestamp,
}

/// How much of an object the rows of a table hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    /// Nothing.
    None,
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
}

impl View {
    /// A view of a version, by its place in the row.
    pub(crate) fn new(kind: Arc<Kind>, version: usize, now: Timestamp) -> Self {
        Self { kind, version, form: Form::Whole, include: Include::Metadata, now }
    }

    /// The version that is seen.
    pub(crate) fn version(&self) -> Option<&Version> {
        self.kind.versions.get(self.version)
    }

    /// `kubeflow.org/v1`.
    pub(crate) fn api_version(&self) -> String {
        self.kind.api_version(self.version().map_or("v1", |version| &version.name))
    }

    /// The object as a value, in the version that is seen.
    pub(crate) fn value(&self, stored: &Stored) -> Value {
        let value = stored.value();
        let mut value = self.kind.rules.served(&value).unwrap_or(value);
        value["apiVersion"] = json!(self.api_version());
        value
    }

    /// One object as the whole answer.
    pub(crate) fn one(&self, stored: &Stored) -> Bytes {
        match self.form {
            Form::Whole => self.whole(stored),
            Form::Metadata => partial(stored).into(),
            Form::Table { .. } => {
                self.table(&[stored], &json!({"resourceVersion": stored.revision.to_string()}))
            }
        }
    }

    /// A whole object; the stored text itself where that is possible.
    pub(crate) fn whole(&self, stored: &Stored) -> Bytes {
        if self.kind.rules.served(&Value::Null).is_some() {
            return self.value(stored).to_string().into();
        }
        let api_version = self.api_version();
        if api_version == self.kind.storage_api_version {
            return stored.text.clone();
        }
        let mut out = Vec::with_capacity(stored.text.len() + api_version.len());
        self.push_head(&mut out, &api_version);
        out.extend_from_slice(stored.rest());
        out.into()
    }

    fn push_head(&self, out: &mut Vec<u8>, api_version: &str) {
        out.extend_from_slice(b"{\"apiVersion\":\"");
        out.extend_from_slice(api_version.as_bytes());
        out.extend_from_slice(b"\",\"kind\":\"");
        out.extend_from_slice(self.kind.kind.as_bytes());
        out.extend_from_slice(b"\",");
    }

    /// One item of a list. Built-in kinds leave the type out, as the real server does.
    pub(crate) fn push_item(&self, out: &mut Vec<u8>, stored: &Stored) {
        if let Form::Table { .. } = self.form {
            out.extend_from_slice(self.row(stored).to_string().as_bytes());
        } else if self.form == Form::Metadata {
            out.extend_from_slice(partial(stored).as_bytes());
        } else if self.kind.defined {
            out.extend_from_slice(&self.whole(stored));
        } else if self.kind.rules.served(&Value::Null).is_some() {
            let mut value = self.value(stored);
            if let Some(object) = value.as_object_mut() {
                object.remove("apiVersion");
                object.remove("kind");
            }
            out.extend_from_slice(value.to_string().as_bytes());
        } else {
            out.push(b'{');
            out.extend_from_slice(stored.rest());
        }
    }

    /// A table of objects.
    pub(crate) fn table(&self, objects: &[&Stored], metadata: &Value) -> Bytes {
        self.table_value(objects, metadata, true).to_string().into()
    }

    /// A table; watches show the columns only once.
    pub(crate) fn table_value(
        &self,
        objects: &[&Stored],
        metadata: &Value,
        columns: bool,
    ) -> Value {
        let (kind, api_version) = self.list_head();
        let rows: Vec<Value> = objects.iter().map(|stored| self.row(stored)).collect();
        json!({
            "kind": kind,
            "apiVersion": api_version,
            "metadata": metadata,
            "columnDefinitions": if columns { self.columns() } else { Value::Null },
            "rows": if rows.is_empty() && !table::has_printer(&self.kind) {
                Value::Null
            } else {
                Value::Array(rows)
            },
        })
    }

    /// The columns of a table.
    pub(super) fn columns(&self) -> Value {
        let version = self.version();
        let columns = version.map(|version| table::columns(&self.kind, version));
        let columns: Vec<Value> =
            columns.unwrap_or_default().iter().map(table::Column::value).collect();
        if columns.is_empty() { Value::Null } else { Value::Array(columns) }
    }

    fn row(&self, stored: &Stored) -> Value {
        let value = self.value(stored);
        let cells = self
            .version()
            .map(|version| table::cells(&self.kind, version, &value, self.now))
            .unwrap_or_default();
        let mut row = json!({"cells": cells});
        let conditions = table::row_conditions(&self.kind, &value);
        if !conditions.is_null() {
            row["conditions"] = conditions;
        }
        match self.include {
            Include::None => row["object"] = Value::Null,
            Include::Metadata => {
                let beta = self.form == Form::Table { beta: true };
                let version = if beta { "meta.k8s.io/v1beta1" } else { "meta.k8s.io/v1" };
                row["object"] = json!({
                    "kind": "PartialObjectMetadata", "apiVersion": version,
                    "metadata": value["metadata"],
                });
            }
            Include::Object => row["object"] = value,
        }
        row
    }

    /// The form in which watches and lists name the list's kind.
    pub(crate) fn list_head(&self) -> (String, String) {
        match self.form {
            Form::Metadata => ("PartialObjectMetadataList".into(), "meta.k8s.io/v1".into()),
            Form::Table { beta: false } => ("Table".into(), "meta.k8s.io/v1".into()),
            Form::Table { beta: true } => ("Table".into(), "meta.k8s.io/v1beta1".into()),
            Form::Whole => (self.kind.list_kind.clone(), self.api_version()),
        }
    }

    /// Sets the time from which ages in tables are counted.
    pub(crate) fn at(&mut self, now: Timestamp) {
        self.now = now;
    }
}

/// `PartialObjectMetadata`.
fn partial(stored: &Stored) -> String {
    format!(
        "{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{}}}",
        metadata_text(stored)
    )
}

/// The text of an object's metadata, without reading the rest.
fn metadata_text(stored: &Stored) -> &str {
    const KEY: &[u8] = b"\"metadata\":";
    let text = stored.rest().strip_prefix(KEY).unwrap_or(b"{}");
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>();
    match values.next() {
        Some(Ok(metadata)) => metadata.get(),
        _ => "{}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Draft;

    #[test]
    fn metadata_is_cut_out_of_the_text() {
        let value = json!({"metadata": {"name": "a", "labels": {"x": "}\""}}, "spec": {"b": 1}});
        let stored = Draft::of("v1", "Pod", value.as_object().unwrap(), Box::default()).at(3);
        let read: Value = serde_json::from_str(metadata_text(&stored)).unwrap();
        assert_eq!(read, json!({"name": "a", "labels": {"x": "}\""}, "resourceVersion": "3"}));
    }
}
