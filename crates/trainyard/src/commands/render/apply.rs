//! `--apply`: the rendered objects are created in the cluster.
//!
//! Owns the order: every object is tried without effect first, so that one that is refused leaves
//! nothing behind.

use std::collections::BTreeMap;

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
    discovery::{self, Scope},
};
use serde_json::Value;
use thiserror::Error;
use trainyard_render::{check::Warning, rendering::Rendered};

use super::{Flags, cluster};
use crate::{failure::Failure, output};

/// Who is said to have made the objects.
const MANAGER: &str = "simpletfjob";

/// Refuses what cannot be created.
pub(super) fn check(rendered: &Rendered) -> Result<(), Failure> {
    let warnings = rendered.check().map_err(|error| Failure::invalid(vec![error.to_string()]))?;
    let problems: Vec<_> = warnings.iter().map(Warning::to_string).take(1).collect();
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid(problems).hint("nothing was created"))
}

/// Creates all objects, in their order.
pub(super) fn create(flags: &Flags, rendered: &Rendered) -> Result<(), Failure> {
    let objects =
        rendered.all_objects().map_err(|error| Failure::invalid(vec![error.to_string()]))?;
    cluster::block_on(async {
        let client = cluster::connect(flags).await?;
        let mut kinds = Kinds { client, known: BTreeMap::new() };
        let mut ready = Vec::with_capacity(objects.len());
        for object in objects {
            let (api, object) = kinds.place(object).await?;
            post(&api, &object, true)
                .await
                .map_err(|failure| failure.hint("nothing was created"))?;
            ready.push((api, object));
        }
        for (api, object) in &ready {
            post(api, object, false).await?;
            output::say(&format!("{} created\n", named(object)));
        }
        Ok(())
    })?
}

async fn post(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    dry_run: bool,
) -> Result<(), Failure> {
    let params = PostParams { dry_run, field_manager: Some(MANAGER.to_owned()) };
    match api.create(&params, object).await {
        Ok(_) => Ok(()),
        // The message says it; what the library adds is for machines.
        Err(kube::Error::Api(status)) => {
            Err(Failure::other(format!("creating {}", named(object)), &Refused(status.message)))
        }
        Err(error) => Err(Failure::other(format!("creating {}", named(object)), &error)),
    }
}

/// What the API server says of an object that it does not take.
#[derive(Debug, Error)]
#[error("{0}")]
struct Refused(String);

fn named(object: &DynamicObject) -> String {
    let kind = object.types.as_ref().map_or("object", |types| types.kind.as_str());
    format!("{kind} {}", object.metadata.name.as_deref().unwrap_or_default())
}

/// Where objects of a kind are kept.
struct Kinds {
    client: Client,
    known: BTreeMap<(String, String), (ApiResource, bool)>,
}

impl Kinds {
    async fn place(
        &mut self,
        object: Value,
    ) -> Result<(Api<DynamicObject>, DynamicObject), Failure> {
        let object: DynamicObject = serde_json::from_value(object)
            .map_err(|error| Failure::invalid(vec![format!("not an object: {error}")]))?;
        let types = object.types.clone().unwrap_or_default();
        let key = (types.api_version, types.kind);
        if !self.known.contains_key(&key) {
            let found = self.find(&key.0, &key.1).await?;
            self.known.insert(key.clone(), found);
        }
        let (resource, namespaced) = &self.known[&key];
        let client = self.client.clone();
        let api = if *namespaced {
            let namespace = object.metadata.namespace.clone();
            let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
            Api::namespaced_with(client, &namespace, resource)
        } else {
            Api::all_with(client, resource)
        };
        Ok((api, object))
    }

    async fn find(&self, version: &str, kind: &str) -> Result<(ApiResource, bool), Failure> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = GroupVersionKind::gvk(group, version, kind);
        let found = discovery::pinned_kind(&self.client, &kind).await;
        let (resource, capabilities) = found.map_err(|error| {
            Failure::other(
                format!("looking up the kind {} of {group}/{version}", kind.kind),
                &error,
            )
        })?;
        Ok((resource, capabilities.scope == Scope::Namespaced))
    }
}
