//! What a client wants back: whole objects, their metadata, or a table.
//!
//! Must not know how any of them is made.

use crate::failure::Failure;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whole objects.
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
    /// A table for people to read; `v1beta1` when the flag is set.
    Table {
        /// The old name of the same thing.
        beta: bool,
    },
}

const OFFERED: &str = "application/json";

/// The first form of the `Accept` header that can be given.
pub(crate) fn form(header: Option<&str>) -> Result<Form, Failure> {
    let Some(header) = header.filter(|text| !text.trim().is_empty()) else {
        return Ok(Form::Whole);
    };
    header.split(',').find_map(offer).ok_or_else(|| {
        Failure::new(
            406,
            "NotAcceptable",
            format!(
                "only the following media types are accepted: {OFFERED}, {OFFERED};as=Table;v=v1;g=meta.k8s.io, {OFFERED};as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
            ),
        )
    })
}

fn offer(clause: &str) -> Option<Form> {
    let mut words = clause.split(';').map(str::trim);
    let media = words.next()?;
    if !matches!(media, "application/json" | "*/*" | "application/*") {
        return None;
    }
    let (mut kind, mut version, mut group) = ("", "", "");
    for (key, value) in words.filter_map(|word| word.split_once('=')) {
        match key.trim() {
            "as" => kind = value.trim(),
            "v" => version = value.trim(),
            "g" => group = value.trim(),
            _ => {}
        }
    }
    match (kind, group, version) {
        ("", _, _) => Some(Form::Whole),
        ("Table", "meta.k8s.io", "v1") => Some(Form::Table { beta: false }),
        ("Table", "meta.k8s.io", "v1beta1") => Some(Form::Table { beta: true }),
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => {
            Some(Form::Metadata)
        }
        _ => None,
    }
}

/// Whether a client asks for aggregated discovery, and by which version.
pub(crate) fn aggregated_discovery(header: Option<&str>) -> Option<&'static str> {
    header?.split(',').find_map(|clause| {
        let is = |word: &str| clause.split(';').any(|part| part.trim() == word);
        if !is("g=apidiscovery.k8s.io") || !is("as=APIGroupDiscoveryList") {
            return None;
        }
        ["v2", "v2beta1"].into_iter().find(|version| is(&format!("v={version}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_gets_its_table() {
        let header = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(form(Some(header)).unwrap(), Form::Table { beta: false });
        assert_eq!(
            form(Some("application/vnd.kubernetes.protobuf,application/json")).unwrap(),
            Form::Whole
        );
        assert_eq!(form(None).unwrap(), Form::Whole);
        assert_eq!(form(Some("text/html")).unwrap_err().code, 406);
    }

    #[test]
    fn discovery_is_asked_by_version() {
        let header =
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert_eq!(aggregated_discovery(Some(header)), Some("v2"));
        assert_eq!(aggregated_discovery(Some("application/json")), None);
    }
}
