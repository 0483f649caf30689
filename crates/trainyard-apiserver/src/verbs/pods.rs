//! What only pods have: binding to a node and eviction.

use bytes::Bytes;
use http::Response;

use super::options::DeleteOptions;
use super::{Ask, delete, read, write};
use crate::answer::{self, Body};
use crate::api::Api;
use crate::failure::Failure;
use crate::kinds;
use crate::request::body;
use crate::store::{Change, Expect};

/// Binds a pod to a node.
pub(super) async fn bind(api: &Api, ask: &Ask, bytes: &Bytes) -> Result<Response<Body>, Failure> {
    let name = ask.target.name.as_deref().unwrap_or_default();
    let dry = ask.query.dry_run()?;
    let binding = body::json(bytes)?.value;
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

/// Deletes a pod as a disruption would. Budgets are not counted here.
pub(super) async fn evict(api: &Api, ask: &Ask, bytes: &Bytes) -> Result<Response<Body>, Failure> {
    let name = ask.target.name.as_deref().unwrap_or_default();
    let eviction = body::json(bytes)?.value;
    let mut options = DeleteOptions { dry: ask.query.dry_run()?, ..DeleteOptions::default() };
    options.take_body(&eviction["deleteOptions"])?;
    delete::remove(api, ask, name, &options).await?;
    Ok(answer::success(201, None))
}
