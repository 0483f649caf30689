//! What only pods have: binding to a node and eviction.

use bytes::Bytes;
use http::Response;
use serde_json::Value;

use super::options::DeleteOptions;
use super::{Ask, delete, read, update, write};
use crate::answer::{self, Body};
use crate::api::Api;
use crate::failure::Failure;
use crate::http::nodes::restriction::{self, Deed};
use crate::kinds;
use crate::openapi::types;
use crate::request::body;
use crate::store::{Change, Expect};

/// Binds a pod to a node.
pub(super) async fn bind(api: &Api, ask: &Ask, bytes: &Bytes) -> Result<Response<Body>, Failure> {
    let name = ask.target.name.as_deref().unwrap_or_default();
    let dry = ask.dry_run()?;
    let binding = understood("Binding", "v1", "core.Binding", bytes)?;
    let old = read::find(api, ask, name)?;
    let mut pod = old.value();
    kinds::pods::bind(&mut pod, &binding, &api.clock.text())?;
    let draft = write::draft(ask, &pod)?;
    if !dry {
        let expect = Expect::Revision(old.revision);
        write::commit(api, ask, &pod, expect, Change::Put(draft)).await?;
    }
    Ok(answer::success(201, None))
}

/// Says why a pod goes before it goes, trying again when it is written in between.
async fn disrupt(api: &Api, ask: &Ask, name: &str, options: &DeleteOptions) -> Result<(), Failure> {
    for _ in 1..update::TRIES {
        let old = read::find(api, ask, name)?;
        delete::check(ask, name, &old, options)?;
        let mut pod = old.value();
        kinds::pods::disrupted(&mut pod, &api.clock.text());
        let draft = write::draft(ask, &pod)?;
        let expect = Expect::Revision(old.revision);
        match write::commit(api, ask, &pod, expect, Change::Put(draft)).await {
            Err(failure) if failure.reason == "Conflict" => {}
            other => return other.map(|_| ()),
        }
    }
    Err(Failure::stale(ask.target.about(name)))
}

/// An object of a type that is never stored.
fn understood(kind: &str, version: &str, name: &str, bytes: &[u8]) -> Result<Value, Failure> {
    let mut object = body::json(bytes)?.value;
    types::read_type(name, &mut object).map_err(|why| {
        let words = format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}");
        Failure::bad_request(words)
    })?;
    Ok(object)
}

/// Deletes a pod as a disruption would. Budgets are not counted here.
pub(super) async fn evict(api: &Api, ask: &Ask, bytes: &Bytes) -> Result<Response<Body>, Failure> {
    let name = ask.target.name.as_deref().unwrap_or_default();
    let dry = ask.dry_run()?;
    let eviction = understood("Eviction", "v1", "policy.Eviction", bytes)?;
    if eviction["metadata"]["name"].as_str() != Some(name) {
        return Err(Failure::bad_request("name in URL does not match name in Eviction object"));
    }
    let there = read::find(api, ask, name)?.value();
    restriction::check(api, &ask.caller, &ask.target.kind, Deed::Evict(&there))?;
    let mut options = DeleteOptions { dry, ..DeleteOptions::default() };
    options.take_body(&eviction["deleteOptions"])?;
    if !options.dry {
        disrupt(api, ask, name, &options).await?;
    }
    delete::remove(api, ask, name, &options).await?;
    Ok(answer::success(201, None))
}
