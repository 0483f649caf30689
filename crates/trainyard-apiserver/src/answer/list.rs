//! The text of a list or table, made while it is sent: never more than a piece of it in memory.
//!
//! Must not know how the objects were chosen.

use bytes::Bytes;
use futures::stream;
use serde_json::{Map, Value};

use super::{Body, View};
use crate::object::Object;
use crate::request::accept::Form;

/// As much is made at once.
const PIECE: usize = 128 * 1024;

/// A list of objects as a body.
pub(crate) fn body(view: View, metadata: Map<String, Value>, items: Vec<Object>) -> Body {
    let metadata = Value::Object(metadata);
    // Nothing is written as null by some kinds, as by the real server.
    match view.form {
        Form::Metadata if items.is_empty() => {
            let (kind, api_version) = view.list_head();
            let head = format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\"");
            return Body::full(format!("{head},\"metadata\":{metadata},\"items\":null}}\n"));
        }
        Form::Table { .. } if items.is_empty() => {
            return Body::full(format!("{}\n", view.table_value(&[], &metadata, true)));
        }
        _ => {}
    }
    let head = head(&view, &metadata);
    let first = piece(&view, &items, 0, head.into_bytes());
    if first.1 >= items.len() {
        return Body::full(first.0);
    }
    let state = (view, items, Some(first));
    Body::pieces(stream::unfold(state, |(view, items, next)| async move {
        let (text, at) = next?;
        let following = (at < items.len()).then(|| piece(&view, &items, at, Vec::new()));
        Some((text, (view, items, following)))
    }))
}

/// The text before the first item.
fn head(view: &View, metadata: &Value) -> String {
    let (kind, api_version) = view.list_head();
    let start =
        format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},");
    match view.form {
        Form::Table { .. } => {
            format!("{start}\"columnDefinitions\":{},\"rows\":[", view.columns())
        }
        Form::Whole | Form::Metadata => start + "\"items\":[",
    }
}

/// The text from an item on, and the item after it; with the last one comes the end.
fn piece(view: &View, items: &[Object], from: usize, mut out: Vec<u8>) -> (Bytes, usize) {
    let mut at = from;
    while let Some(item) = items.get(at) {
        if at > 0 {
            out.push(b',');
        }
        view.push_item(&mut out, item);
        at += 1;
        if out.len() >= PIECE {
            break;
        }
    }
    if at >= items.len() {
        out.extend_from_slice(b"]}\n");
    }
    (out.into(), at)
}
