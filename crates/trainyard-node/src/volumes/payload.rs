//! The files that config maps, secrets and the pod's own fields become.
//!
//! Only says which files there are, with what in them; must not touch a disk.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, Secret};

use crate::env::{Facts, metadata_field, resource_value};

/// Files by their path in the volume, cleaned: no `.`, no doubled slashes.
pub(crate) type Payload = BTreeMap<String, File>;

/// One file.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) data: Vec<u8>,
    /// Permission bits, at most 0777.
    pub(crate) mode: u32,
    /// The user it shall belong to.
    pub(crate) owner: Option<u32>,
    /// The group it shall belong to.
    pub(crate) group: Option<u32>,
}

impl fmt::Debug for File {
    // What is in it may be secret, and must not reach a log by accident.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File({} bytes, mode {:o})", self.data.len(), self.mode)
    }
}

/// Why an object cannot become files, in the kubelet's words where it has any.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PayloadError {
    /// An item names a key that is not there.
    #[error("configmap references non-existent config key: {0}")]
    ConfigKey(String),
    /// An item names a key that is not there.
    #[error("references non-existent secret key: {0}")]
    SecretKey(String),
    /// A file that would be outside of the volume, or cannot be.
    #[error("invalid path: {problem}: {path:?}")]
    Path {
        /// As written.
        path: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Permission bits that are none.
    #[error("mode {mode} of {path:?} is not between 0 and 511 (octal 0777)")]
    Mode {
        /// As written.
        mode: i32,
        /// Whose.
        path: String,
    },
    /// Neither `fieldRef` nor `resourceFieldRef`.
    #[error("file {path:?} names neither fieldRef nor resourceFieldRef")]
    NoSource {
        /// The file.
        path: String,
    },
    /// A field or resource that cannot be told.
    #[error("{0}")]
    Downward(String),
}

/// Adds a file under a path that was written in a manifest.
pub(crate) fn add(
    payload: &mut Payload,
    path: &str,
    data: Vec<u8>,
    mode: i32,
    owner: Option<u32>,
) -> Result<(), PayloadError> {
    let path = cleaned(path)?;
    let bits = u32::try_from(mode).ok().filter(|m| *m <= 0o777);
    let mode = bits.ok_or_else(|| PayloadError::Mode { mode, path: path.clone() })?;
    payload.insert(path, File { data, mode, owner, group: None });
    Ok(())
}

/// A relative path that stays inside, without `.` and doubled slashes.
fn cleaned(path: &str) -> Result<String, PayloadError> {
    let wrong = |problem| PayloadError::Path { path: path.to_owned(), problem };
    if path.starts_with('/') {
        return Err(wrong("must be relative path"));
    }
    if path.len() > 4096 {
        return Err(wrong("must be less than or equal to 4096 characters"));
    }
    if path.contains('\0') {
        return Err(wrong("must not contain a zero byte"));
    }
    let parts: Vec<&str> = path.split('/').filter(|p| !matches!(*p, "" | ".")).collect();
    match parts.first() {
        None => return Err(wrong("must not be empty")),
        // Names that begin so are the kubelet's own, and programs skip them.
        Some(first) if first.starts_with("..") => return Err(wrong("must not start with '..'")),
        Some(_) => {}
    }
    if parts.contains(&"..") {
        return Err(wrong("must not contain '..'"));
    }
    if parts.iter().any(|p| p.len() > 255) {
        return Err(wrong("filenames must be less than or equal to 255 characters"));
    }
    Ok(parts.join("/"))
}

/// The files of a config map: all keys, or the items named.
pub(crate) fn of_config_map(
    map: Option<&ConfigMap>,
    items: &[KeyToPath],
    default_mode: i32,
    optional: bool,
) -> Result<Payload, PayloadError> {
    let text = map.and_then(|m| m.data.as_ref());
    let binary = map.and_then(|m| m.binary_data.as_ref());
    let mut payload = Payload::new();
    if items.is_empty() {
        for (key, value) in text.into_iter().flatten() {
            add(&mut payload, key, value.clone().into_bytes(), default_mode, None)?;
        }
        for (key, value) in binary.into_iter().flatten() {
            add(&mut payload, key, value.0.clone(), default_mode, None)?;
        }
    }
    for item in items {
        let written = text.and_then(|t| t.get(&item.key)).map(|t| t.clone().into_bytes());
        let data = written.or_else(|| binary.and_then(|b| b.get(&item.key)).map(|b| b.0.clone()));
        match data {
            Some(data) => {
                add(&mut payload, &item.path, data, item.mode.unwrap_or(default_mode), None)?;
            }
            None if optional => {}
            None => return Err(PayloadError::ConfigKey(item.key.clone())),
        }
    }
    Ok(payload)
}

/// The files of a secret: all keys, or the items named.
pub(crate) fn of_secret(
    secret: Option<&Secret>,
    items: &[KeyToPath],
    default_mode: i32,
    optional: bool,
) -> Result<Payload, PayloadError> {
    let values = secret.and_then(|s| s.data.as_ref());
    let mut payload = Payload::new();
    if items.is_empty() {
        for (key, value) in values.into_iter().flatten() {
            add(&mut payload, key, value.0.clone(), default_mode, None)?;
        }
    }
    for item in items {
        match values.and_then(|v| v.get(&item.key)) {
            Some(value) => {
                let mode = item.mode.unwrap_or(default_mode);
                add(&mut payload, &item.path, value.0.clone(), mode, None)?;
            }
            None if optional => {}
            None => return Err(PayloadError::SecretKey(item.key.clone())),
        }
    }
    Ok(payload)
}

/// The files that tell a pod about itself.
pub(crate) fn of_fields(
    items: &[DownwardAPIVolumeFile],
    default_mode: i32,
    pod: &Pod,
    facts: &Facts,
) -> Result<Payload, PayloadError> {
    let mut payload = Payload::new();
    for item in items {
        let told = |e: &dyn std::error::Error| PayloadError::Downward(e.to_string());
        let value = if let Some(selector) = &item.field_ref {
            metadata_field(pod, &selector.field_path).map_err(|e| told(&e))?
        } else if let Some(selector) = &item.resource_field_ref {
            resource_value(selector, pod, None, &facts.allocatable).map_err(|e| told(&e))?
        } else {
            return Err(PayloadError::NoSource { path: item.path.clone() });
        };
        let mode = item.mode.unwrap_or(default_mode);
        add(&mut payload, &item.path, value.into_bytes(), mode, None)?;
    }
    Ok(payload)
}

#[cfg(test)]
#[path = "payload_tests.rs"]
mod tests;
