//! What only namespaces have: the end of their finalizers.

use bytes::Bytes;
use http::Response;
use serde_json::Value;

use super::{Ask, read, update, write};
use crate::answer::Body;
use crate::api::Api;
use crate::failure::Failure;
use crate::store::{Change, Expect};

/// Writes `spec.finalizers`; the namespace goes when none is left of one that was to be deleted.
pub(super) async fn finalize(
    api: &Api,
    ask: &Ask,
    body: &Bytes,
) -> Result<Response<Body>, Failure> {
    let name = ask.target.name.as_deref().unwrap_or_default();
    let incoming = write::incoming(ask, body)?;
    let old = read::find(api, ask, name)?;
    let mut object = old.value();
    match &incoming.object["spec"]["finalizers"] {
        Value::Array(list) if !list.is_empty() => {
            object["spec"]["finalizers"] = Value::Array(list.clone());
        }
        _ => {
            if let Some(spec) = object["spec"].as_object_mut() {
                spec.remove("finalizers");
            }
        }
    }
    let draft = write::draft(ask, &object)?;
    let done = update::is_finished(&object);
    let expect = Expect::Revision(old.revision);
    let shown = draft.clone().at(old.revision).into();
    let change = if done { Change::Delete(draft) } else { Change::Put(draft) };
    let stored = write::commit(api, ask, &object, expect, change).await?;
    let shown = if done { shown } else { stored };
    Ok(write::answer(api, ask, 200, &shown, &incoming.warnings))
}
