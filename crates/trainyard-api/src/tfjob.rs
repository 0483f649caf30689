//! A TFJob as the API server has it.
//!
//! The specification stays text until a plan needs it: one job's malformed specification is then
//! that job's failure only, and five hundred idle jobs cost little memory. Must not validate.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    limits,
    meta::Meta,
    spec::{SpecError, TfJobSpec},
    status::JobStatus,
};

/// One TFJob.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct TfJob {
    /// Identity and version.
    pub metadata: Meta,
    /// The specification, as JSON text.
    #[serde(default)]
    spec: Option<Box<RawValue>>,
    /// The status, as JSON text.
    #[serde(default)]
    status: Option<Box<RawValue>>,
}

impl TfJob {
    /// Puts a job together from its parts.
    #[must_use]
    pub fn new(metadata: Meta, spec: &serde_json::Value, status: &JobStatus) -> Self {
        Self {
            metadata,
            spec: serde_json::value::to_raw_value(spec).ok(),
            status: serde_json::value::to_raw_value(status).ok(),
        }
    }

    /// The specification, defaulted; an error names the field that cannot be used.
    pub fn spec(&self) -> Result<TfJobSpec, SpecError> {
        limits::check_values(self.spec.as_deref())?;
        TfJobSpec::parse(self.spec_value())
    }

    /// Returns how many bytes its specification and its status take as text.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        [&self.spec, &self.status].into_iter().flatten().map(|raw| raw.get().len()).sum()
    }

    /// The specification as a JSON value; `null` when there is none, or a larger one than is read.
    #[must_use]
    pub fn spec_value(&self) -> serde_json::Value {
        let read = self.spec.as_ref().filter(|raw| limits::check_values(Some(raw)).is_ok());
        read.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// The status. What cannot be read counts as not written: the next write replaces it.
    #[must_use]
    pub fn status(&self) -> JobStatus {
        self.status
            .as_ref()
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default()
    }

    /// The status as a JSON value, as it is stored.
    #[must_use]
    pub fn status_value(&self) -> serde_json::Value {
        self.status
            .as_ref()
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default()
    }
}
