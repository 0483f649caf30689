//! A Volcano Job as the API server has it.
//!
//! The specification stays text until a plan needs it: one job's malformed specification is then
//! that job's failure only. Must not validate.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{JobSpec, VolcanoStatus};
use crate::{Meta, SpecError, limits};

/// A whole manifest: not worth a copy in another object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One Volcano Job.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "Wire")]
pub struct VolcanoJob {
    /// Identity and version.
    pub metadata: Meta,
    /// Its annotations, which its PodGroup carries too, without what kubectl keeps there for itself.
    pub annotations: BTreeMap<String, String>,
    /// The specification, as JSON text.
    spec: Option<Box<RawValue>>,
    /// The status, as JSON text.
    status: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Wire {
    metadata: Box<RawValue>,
    #[serde(default)]
    spec: Option<Box<RawValue>>,
    #[serde(default)]
    status: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
struct Notes {
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

impl TryFrom<Wire> for VolcanoJob {
    type Error = serde_json::Error;

    fn try_from(wire: Wire) -> Result<Self, Self::Error> {
        let notes: Notes = serde_json::from_str(wire.metadata.get())?;
        let mut annotations = notes.annotations.unwrap_or_default();
        annotations.remove(LAST_APPLIED);
        let metadata = serde_json::from_str(wire.metadata.get())?;
        Ok(Self { metadata, annotations, spec: wire.spec, status: wire.status })
    }
}

impl VolcanoJob {
    /// Puts a job together from its parts.
    #[must_use]
    pub fn new(metadata: Meta, spec: &Value, status: &VolcanoStatus) -> Self {
        Self {
            annotations: metadata.annotations.clone(),
            metadata,
            spec: serde_json::value::to_raw_value(spec).ok(),
            status: serde_json::value::to_raw_value(status).ok(),
        }
    }

    /// The specification, defaulted; an error names the field that cannot be used.
    pub fn spec(&self) -> Result<JobSpec, SpecError> {
        limits::check_values(self.spec.as_deref())?;
        JobSpec::parse(value(self.spec.as_deref()))
    }

    /// Returns how many bytes its specification and its status take as text.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        [&self.spec, &self.status].into_iter().flatten().map(|raw| raw.get().len()).sum()
    }

    /// The status. What cannot be read counts as not written: the next write replaces it.
    #[must_use]
    pub fn status(&self) -> VolcanoStatus {
        serde_json::from_value(self.status_value()).unwrap_or_default()
    }

    /// The status as a JSON value, as it is stored.
    #[must_use]
    pub fn status_value(&self) -> Value {
        value(self.status.as_deref())
    }
}

fn value(raw: Option<&RawValue>) -> Value {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}
