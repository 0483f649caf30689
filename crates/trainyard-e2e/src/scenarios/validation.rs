//! What the API server accepts and refuses, by the rules in the CRD: the same cases that our own
//! evaluation of those rules is put to.

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::Value;
use trainyard_api::cases::{Case, validation_cases};
use trainyard_api::names;

use crate::harness;
use crate::rest::{Resource, refusal};
use crate::seen::text;
use crate::world::World;

pub(super) fn all() -> Vec<harness::Case<World>> {
    let versions = [names::VERSION].into_iter().chain(names::LEGACY_VERSIONS);
    versions
        .map(|version| {
            let name = format!("validation/cases_of_{version}");
            harness::Case::new(name, move |world| cases_of(world, version))
        })
        .collect()
}

async fn cases_of(world: World, version: &'static str) -> Result<()> {
    let start = format!("{version}:");
    let cases: Vec<_> =
        validation_cases().into_iter().filter(|case| case.name.starts_with(&start)).collect();
    ensure!(cases.len() > 10, "only {} cases for {version}", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        if let Err(error) = try_case(&world, case).await {
            wrong.push(format!("{}: {error:#}", case.name));
        }
    }
    ensure!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    Ok(())
}

async fn try_case(world: &World, case: &Case) -> Result<()> {
    let answer = match &case.old {
        None => create(world, &case.object).await,
        Some(old) => {
            let created = world.rest.create(Resource::Jobs, old).await;
            created.context("creating the job that is to be changed")?;
            update(world, &case.object).await
        }
    };
    match &case.refused {
        None => answer.map(|_| ()).context("should have been accepted"),
        Some(part) => {
            let said = refusal(answer)?;
            ensure!(said.contains(part), "{part:?} is missing in the refusal: {said}");
            Ok(())
        }
    }
}

fn path(world: &World, object: &Value) -> String {
    let version = text(&object["apiVersion"]);
    format!("/apis/{version}/namespaces/{}/{}", world.namespace, names::PLURAL)
}

async fn create(world: &World, object: &Value) -> Result<Value, kube::Error> {
    let path = format!("{}?dryRun=All&fieldValidation=Strict", path(world, object));
    world.rest.send(Method::POST, &path, Some(object)).await
}

/// The operator writes to the job too; a conflict is tried again.
async fn update(world: &World, object: &Value) -> Result<Value, kube::Error> {
    let name = text(&object["metadata"]["name"]);
    let path = format!("{}/{name}?dryRun=All&fieldValidation=Strict", path(world, object));
    let mut tries = 0;
    loop {
        let stored = world.rest.get(Resource::Jobs, name).await?;
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        let answer = world.rest.send(Method::PUT, &path, Some(&object)).await;
        tries += 1;
        match &answer {
            Err(kube::Error::Api(status)) if status.code == 409 && tries < 20 => {}
            _ => return answer,
        }
    }
}
