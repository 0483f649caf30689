//! What every namespace is given.

use std::sync::Arc;

use anyhow::Result;
use serde_json::json;

use crate::check;
use crate::controllers::CERTIFICATE;
use crate::controllers::ground::{Ground, uid};
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!("accounts": come_and_come_back)
}

async fn come_and_come_back(ground: &Ground) -> Result<()> {
    let place = ground.place("accounts").await?;
    let first = uid(&place.until_there("serviceaccounts/default").await?)?;
    let path = "configmaps/kube-root-ca.crt";
    let certificate = place.until_there(path).await?;
    check::equal("the certificate", &certificate["data"]["ca.crt"], CERTIFICATE)?;
    place.delete("serviceaccounts/default", &json!({})).await?;
    let is_new = |found: &serde_json::Value| uid(found).is_ok_and(|uid| uid != first);
    place.until("serviceaccounts/default", "made again", is_new).await?;
    place.delete(path, &json!({})).await?;
    let is_right = |found: &serde_json::Value| found["data"]["ca.crt"] == CERTIFICATE;
    place.until(path, "made again", is_right).await?;
    place.change(path, &json!({"data": {"ca.crt": "changed", "more": "x"}})).await?;
    let is_whole = |found: &serde_json::Value| is_right(found) && found["data"]["more"].is_null();
    place.until(path, "put right", is_whole).await?;
    Ok(())
}
