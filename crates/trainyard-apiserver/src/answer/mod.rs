//! How answers look: bodies, single objects, lists, tables and the events of a watch.
//!
//! Copies stored texts wherever they can be served as they are. Must not know the store's inside.

pub(crate) mod body;
pub(crate) mod list;
pub(crate) mod view;

use bytes::Bytes;
use http::{Response, StatusCode, header};
use serde_json::{Value, json};

pub(crate) use body::{Body, Pieces};
pub(crate) use view::View;

use crate::failure::{About, Failure};

const JSON: &str = "application/json";

/// An answer of JSON text.
pub(crate) fn text(code: u16, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    let json = header::HeaderValue::from_static(JSON);
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// An answer of a value.
pub(crate) fn value(code: u16, value: &Value) -> Response<Body> {
    text(code, value.to_string())
}

/// A refusal.
pub(crate) fn failure(failure: &Failure) -> Response<Body> {
    let mut response = value(failure.code, &failure.status());
    if let Some(seconds) = failure.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// That it was done, where there is no object to show.
pub(crate) fn success(code: u16, about: Option<(&About, &str)>) -> Response<Body> {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
    });
    match about {
        Some((about, uid)) => {
            let mut details = serde_json::Map::new();
            let pairs =
                [("name", about.name.as_str()), ("group", &about.group), ("kind", &about.kind)];
            for (key, value) in pairs.into_iter().chain([("uid", uid)]) {
                if !value.is_empty() {
                    details.insert(key.to_owned(), json!(value));
                }
            }
            status["details"] = Value::Object(details);
        }
        None => status["code"] = json!(code),
    }
    value(code, &status)
}

/// Adds words of warning, as `kubectl` prints them.
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    const MOST: usize = 32;
    // Headers have bounds, so of many or long words the beginnings are told.
    const ALL: usize = 4096;
    const EACH: usize = 256;
    let whole: usize = warnings.iter().map(|warning| warning.chars().count()).sum();
    let longest = if whole > ALL { EACH } else { ALL };
    for warning in warnings.iter().take(MOST.min(if whole > ALL { ALL / EACH } else { MOST })) {
        let shown = warning.chars().filter(|letter| !letter.is_control()).take(longest);
        let shown: String = shown.collect();
        let quoted = shown.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(header) = header::HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, header);
        }
    }
}
