//! Manifests that are refused, in the words that tools look for, and those that are not.

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::Value;
use trainyard_api::volcano::Kind;
use trainyard_api::volcano::cases::{Case, validation_cases};

use crate::harness::{self, cases};
use crate::rest::refusal;
use crate::seen::text;
use crate::volcano::Scene;

pub(super) fn all() -> Vec<harness::Case<Scene>> {
    cases!["volcano/invalid": all_cases]
}

async fn all_cases(scene: Scene) -> Result<()> {
    let cases = validation_cases();
    ensure!(cases.len() > 20, "only {} cases", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        if let Err(error) = try_case(&scene, case).await {
            wrong.push(format!("{}: {error:#}", case.name));
        }
    }
    ensure!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    Ok(())
}

async fn try_case(scene: &Scene, case: &Case) -> Result<()> {
    let answer = match &case.old {
        None => create(scene, &case.object).await?,
        Some(old) => {
            let path = path(scene, old)?;
            let created = scene.rest.send(Method::POST, &path, Some(old)).await;
            created.context("creating the job that is to be changed")?;
            update(scene, &case.object).await?
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

type Answer = Result<Value, kube::Error>;

/// The collection that an object belongs to.
fn path(scene: &Scene, object: &Value) -> Result<String> {
    let kind = Kind::of(object).context("a kind of Volcano's")?;
    let (version, plural) = (kind.api_version(), kind.plural);
    Ok(if kind.namespaced {
        format!("/apis/{version}/namespaces/{}/{plural}", scene.namespace)
    } else {
        format!("/apis/{version}/{plural}")
    })
}

async fn create(scene: &Scene, object: &Value) -> Result<Answer> {
    let path = format!("{}?dryRun=All&fieldValidation=Strict", path(scene, object)?);
    Ok(scene.rest.send(Method::POST, &path, Some(object)).await)
}

/// The operator writes to the job too; a conflict is tried again.
async fn update(scene: &Scene, object: &Value) -> Result<Answer> {
    let path = format!("{}/{}", path(scene, object)?, text(&object["metadata"]["name"]));
    let mut tries = 0;
    loop {
        let stored = scene.rest.send(Method::GET, &path, None).await?;
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        let dry_run = format!("{path}?dryRun=All");
        let answer = scene.rest.send(Method::PUT, &dry_run, Some(&object)).await;
        tries += 1;
        match &answer {
            Err(kube::Error::Api(status)) if status.code == 409 && tries < 20 => {}
            _ => return Ok(answer),
        }
    }
}
