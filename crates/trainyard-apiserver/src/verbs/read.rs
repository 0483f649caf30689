//! Reading one object.

use http::Response;

use super::{Ask, list};
use crate::answer::{self, Body};
use crate::api::Api;
use crate::failure::Failure;
use crate::object::Object;

/// Answers with one object.
pub(super) fn get(api: &Api, ask: &Ask, name: &str) -> Result<Response<Body>, Failure> {
    if let Some(text) =
        ask.query.text("resourceVersion").filter(|text| text.parse::<u64>().is_err())
    {
        return Err(Failure::unreasoned(list::malformed(text).to_string()));
    }
    let stored = find(api, ask, name)?;
    Ok(answer::text(200, ask.view(api).one(&stored)))
}

/// One object, or that there is none.
pub(super) fn find(api: &Api, ask: &Ask, name: &str) -> Result<Object, Failure> {
    let target = &ask.target;
    api.store
        .get(&target.kind.storage, &target.namespace, name)
        .ok_or_else(|| Failure::not_found(target.about(name)))
}
