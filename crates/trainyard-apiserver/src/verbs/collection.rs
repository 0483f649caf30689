//! Deleting many objects at once.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use serde_json::{Map, json};

use super::delete::{remove, warn_of_orphans};
use super::options::DeleteOptions;
use super::selection::Selection;
use super::{Ask, Target};
use crate::answer::{self, Body};
use crate::api::Api;
use crate::failure::Failure;
use crate::object::{Object, Stored};
use crate::store::{self, Listing};

/// Deletes all objects that the selectors choose, and answers with them.
pub(super) async fn delete(
    api: &Arc<Api>,
    ask: &Ask,
    body: &Bytes,
) -> Result<Response<Body>, Failure> {
    let everywhere = ask.target.kind.namespaced && ask.target.namespace.is_empty();
    // Namespaces go one by one.
    if everywhere || ask.target.kind.storage == "namespaces" {
        return Err(super::not_allowed());
    }
    let options = DeleteOptions::read(ask, body)?;
    let selection = Selection::read(&ask.target.kind, &ask.query)?;
    let found = choose(api, ask, &selection)?;
    let mut shown: Vec<Object> = Vec::with_capacity(found.items.len());
    for object in &found.items {
        let value = object.value();
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        let one = one(ask, name);
        match remove(api, &one, name, &options).await {
            Ok(_) => shown.push(object.clone()),
            // Someone else was quicker.
            Err(failure) if failure.code == 404 => {}
            Err(failure) => return Err(failure),
        }
    }
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".to_owned(), json!(found.revision.to_string()));
    if ask.target.kind.defined {
        metadata.insert("continue".to_owned(), json!(""));
    }
    let mut view = ask.view(api);
    view.form = crate::request::accept::Form::Whole;
    let mut response = Response::new(answer::list::body(view, metadata, shown));
    let media = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, media);
    warn_of_orphans(ask, &options, &mut response);
    Ok(response)
}

/// The objects that are to go.
fn choose(api: &Api, ask: &Ask, selection: &Selection) -> Result<Listing, Failure> {
    let wants = |ns: &str, name: &str, stored: &Stored| selection.wants(ns, name, stored);
    let query = store::Query {
        namespace: Some(ask.target.namespace.as_str()).filter(|namespace| !namespace.is_empty()),
        filter: if selection.is_everything() { None } else { Some(&wants) },
        ..store::Query::default()
    };
    api.store.list(&ask.target.kind.storage, &query).map_err(Failure::internal)
}

/// The same request for one of its objects.
fn one(ask: &Ask, name: &str) -> Ask {
    ask.of(Target { name: Some(name.to_owned()), ..ask.target.clone() })
}
