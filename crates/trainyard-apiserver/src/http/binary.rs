//! Bodies in the binary form of built-in kinds, made the JSON that all else reads.
//!
//! Owns which requests may have such a body and of what type it is. Must not know the form itself.

use bytes::Bytes;
use http::Method;

use crate::failure::Failure;
use crate::request::protobuf::{Envelope, MEDIA, ProtobufError};
use crate::verbs::Target;

/// Whether a body is in the binary form and may be: custom resources have none.
pub(super) fn is_read(target: &Target, method: &Method, content_type: &str) -> bool {
    let is_object = matches!(method, &Method::POST | &Method::PUT);
    let has_form = !target.kind.defined || target.subresource.as_deref() == Some("scale");
    content_type == MEDIA && (is_object && has_form || method == Method::DELETE)
}

/// The same body in JSON.
pub(super) fn as_json(target: &Target, method: &Method, body: &Bytes) -> Result<Bytes, Failure> {
    // A deletion need not say anything.
    if body.is_empty() && method == Method::DELETE {
        return Ok(Bytes::new());
    }
    let (api_version, expected) = expected(target, method);
    let is_deletion = method == Method::DELETE;
    let mut envelope = Envelope::open(body).map_err(|error| {
        if is_deletion { plain(&error) } else { unrecognized(&expected, body, &error) }
    })?;
    envelope.or_expected(&api_version, &expected);
    let object = envelope.must_be(&api_version, &expected).and_then(|()| envelope.object());
    match object {
        Ok(object) => Ok(object.to_string().into()),
        Err(error) if is_deletion => Err(plain(&error)),
        Err(error) => {
            tracing::debug!(kind = error.kind(), %error, "a binary body is refused");
            let version = envelope.api_version.rsplit('/').next().unwrap_or_default();
            Err(Failure::bad_request(format!(
                "{} in version {version:?} cannot be handled as a {expected}: {error}",
                envelope.kind
            )))
        }
    }
}

/// The version and kind that a request has to send.
fn expected(target: &Target, method: &Method) -> (String, String) {
    let (api_version, kind) = match (target.subresource.as_deref(), method) {
        (_, &Method::DELETE) => ("v1", "DeleteOptions"),
        (Some("binding"), _) => ("v1", "Binding"),
        (Some("eviction"), _) => ("policy/v1", "Eviction"),
        (Some("token"), _) => ("authentication.k8s.io/v1", "TokenRequest"),
        (Some("scale"), _) => ("autoscaling/v1", "Scale"),
        _ => return (target.api_version(), target.kind.kind.clone()),
    };
    (api_version.to_owned(), kind.to_owned())
}

fn plain(error: &ProtobufError) -> Failure {
    Failure::bad_request(error.to_string())
}

/// Of bytes that do not even tell their type, the first are shown.
fn unrecognized(expected: &str, body: &[u8], error: &ProtobufError) -> Failure {
    const SHOWN: usize = 30;
    let start = body.get(..SHOWN).unwrap_or(body);
    let shown = match start.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat(),
    };
    let more = if body.len() > SHOWN { " ..." } else { "" };
    Failure::bad_request(format!(
        "the object provided is unrecognized (must be of type {expected}): {error} ({shown}{more})"
    ))
}
