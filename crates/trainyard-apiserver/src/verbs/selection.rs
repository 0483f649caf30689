//! Which objects a list or a watch is about: selectors, and how much rows of tables hold.
//!
//! Must not know how the objects are found.

use trainyard_schema::FieldError;
use trainyard_schema::select::{fields, labels};

use crate::answer::view::Include;
use crate::failure::Failure;
use crate::kind::Kind;
use crate::object::Stored;
use crate::request::query::Query;

/// Which objects are wanted.
#[derive(Clone, Default)]
pub(crate) struct Selection {
    labels: Option<labels::Selector>,
    fields: Option<fields::Selector>,
}

impl Selection {
    /// Reads the selectors of a query.
    pub(crate) fn read(kind: &Kind, query: &Query) -> Result<Self, Failure> {
        let labels = query.text("labelSelector").map(labels::Selector::parse).transpose();
        let labels = labels.map_err(|error| Failure::bad_request(error.to_string()))?;
        let fields = query.text("fieldSelector").map(fields::Selector::parse).transpose();
        let fields = fields.map_err(|error| Failure::bad_request(error.to_string()))?;
        if let Some(fields) = &fields {
            for requirement in fields.requirements() {
                let field = &*requirement.field;
                let general =
                    field == "metadata.name" || (field == "metadata.namespace" && kind.namespaced);
                if !general && !kind.rules.is_selectable(field) {
                    return Err(Failure::bad_request(kind.rules.not_selectable(field)));
                }
            }
        }
        Ok(Self { labels, fields })
    }

    /// Whether everything is wanted.
    pub(crate) const fn is_everything(&self) -> bool {
        self.labels.is_none() && self.fields.is_none()
    }

    /// Whether an object is wanted.
    pub(crate) fn wants(&self, namespace: &str, name: &str, stored: &Stored) -> bool {
        if self.labels.as_ref().is_some_and(|labels| !labels.matches(&stored.meta.labels)) {
            return false;
        }
        let Some(fields) = &self.fields else { return true };
        fields.matches(|field| match field {
            "metadata.name" => name,
            "metadata.namespace" => namespace,
            other => {
                let known = stored.meta.fields.iter().find(|(key, _)| &**key == other);
                known.map_or("", |(_, value)| value)
            }
        })
    }
}

/// How much of each object the rows of a table hold.
pub(crate) fn include(query: &Query) -> Include {
    match query.text("includeObject") {
        Some("Object") => Include::Object,
        Some("None") => Include::None,
        _ => Include::Metadata,
    }
}

/// Refuses a word for that which means nothing.
pub(crate) fn check_include(query: &Query) -> Result<(), Failure> {
    match query.text("includeObject") {
        None | Some("Object" | "None" | "Metadata") => Ok(()),
        Some(other) => {
            let words = "must be 'Metadata', 'Object', 'None', or empty";
            let error = FieldError::invalid("includeObject", other, words);
            Err(Failure::bad_request(format!("Unable to convert to Table as requested: {error}")))
        }
    }
}
