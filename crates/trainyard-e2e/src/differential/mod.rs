//! The embedded server held against the real one: the same requests to both, the same answers.
//!
//! Requests are data, one file of stories per topic in `cases/`. What may differ is a line of
//! `allowed.yaml` with its reason, and a line that nothing needs any more is a fault as well. Must
//! not know how either server works.

mod allowed;
mod ask;
mod compare;
mod plain;
mod story;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use http::Method;
use kube::Client;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use trainyard_apiserver::Server;
use trainyard_apiserver::controllers;

use crate::control_plane::{ControlPlane, Identity, Options};
use crate::controllers::CERTIFICATE;
use crate::counts::Counts;
use crate::rest::Rest;
use crate::suite::report::{Report, bounded, say};
use allowed::Allowed;
use ask::Side;
use story::Story;

/// Stories under way at the same time.
const AT_ONCE: usize = 6;
/// No story takes longer.
const LONGEST: Duration = Duration::from_mins(2);
/// More differences of one story are not told.
const MOST_TOLD: usize = 100;

/// Plays the stories whose names contain `filter` on both servers and compares every answer.
pub async fn run(filter: Option<&str>) -> Result<Counts> {
    let stories = story::all()?;
    let allowed = Allowed::read()?;
    let mut plane = ControlPlane::start(Options {
        controller_manager: false,
        audit: false,
        // Pods need accounts here, as on any cluster.
        api_server_flags: vec!["--disable-admission-plugins=".to_owned()],
        ..Options::default()
    })
    .await?;
    let address = plane.url().trim_start_matches("https://").to_owned();
    let settings = trainyard_apiserver::Settings { address, ..Default::default() };
    let server = Server::open(settings)?;
    let real = plane.client(Identity::Admin)?;
    let ours = server.client(&plane.user(Identity::Admin));
    furnish(&real, &ours).await?;
    // The real server ends definitions by itself.
    let stop = CancellationToken::new();
    tokio::spawn(controllers::run_definitions(ours.clone(), stop.clone()));
    let report = Report::default();
    let wanted: Vec<&Story> = stories
        .iter()
        .filter(|story| filter.is_none_or(|filter| story.name.contains(filter)))
        .collect();
    let requests: usize = wanted.iter().map(|story| story.requests()).sum();
    let one = async |story: &Story| {
        let begun = Instant::now();
        let result = bounded(LONGEST, play(story, &real, &ours, &allowed)).await;
        report.tell(&story.name, &result, begun.elapsed());
    };
    let (first, others): (Vec<&Story>, Vec<&Story>) =
        wanted.into_iter().partition(|story| story.first);
    futures::stream::iter(first).for_each_concurrent(AT_ONCE, one).await;
    define(&real).await?;
    define(&ours).await?;
    futures::stream::iter(others).for_each_concurrent(AT_ONCE, one).await;
    if filter.is_none() {
        report.tell("allowed/every_line_is_needed", &allowed.all_needed(), Duration::ZERO);
    }
    stop.cancel();
    server.close().await;
    plane.check()?;
    say(&format!("{requests} requests to each server"));
    Ok(report.finish())
}

/// Gives both servers what a fresh cluster has.
async fn furnish(real: &Client, ours: &Client) -> Result<()> {
    let claims = tempfile::Builder::new().prefix("trainyard-claims-").tempdir()?;
    let settings = controllers::Settings::new(claims.path().to_owned(), CERTIFICATE.to_owned());
    for client in [real, ours] {
        controllers::bootstrap(client.clone(), settings.clone()).await?;
    }
    Ok(())
}

/// Gives a server the definition of TFJob.
async fn define(client: &Client) -> Result<()> {
    let rest = Rest::new(client.clone(), "");
    let definition = serde_json::to_value(trainyard_api::tfjob_crd())?;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    rest.send(Method::POST, path, Some(&definition)).await?;
    Ok(())
}

/// Plays one story in a namespace of its own.
async fn play(story: &Story, real: &Client, ours: &Client, allowed: &Allowed) -> Result<()> {
    let namespace = story.namespace();
    for client in [real, ours] {
        open(client, &namespace).await?;
    }
    let mut real = Side::new(real.clone(), &namespace, story.text());
    let mut ours = Side::new(ours.clone(), &namespace, story.text());
    let mut told = Vec::new();
    for (at, step) in story.steps.iter().enumerate() {
        for each in step.each() {
            let asked = step.title(each);
            let (theirs, own) = tokio::join!(real.perform(step, each), ours.perform(step, each));
            let theirs = theirs.with_context(|| format!("step {at}, real server: {asked}"))?;
            let own = own.with_context(|| format!("step {at}, embedded server: {asked}"))?;
            let found = compare::differences(&theirs, &own, step.parts);
            let found = found.into_iter().filter(|one| step.compares(&one.at));
            let found = found.filter(|one| !allowed.covers(&story.name, at, one));
            told.extend(found.map(|one| format!("\n    step {at} {asked}\n      {one}")));
        }
    }
    if told.is_empty() {
        return Ok(());
    }
    let count = told.len();
    told.truncate(MOST_TOLD);
    bail!("{count} differences{}", told.concat())
}

/// A namespace with the account that pods need.
async fn open(client: &Client, namespace: &str) -> Result<()> {
    let rest = Rest::new(client.clone(), namespace);
    let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    rest.send(Method::POST, "/api/v1/namespaces", Some(&made)).await?;
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    rest.send(Method::POST, &path, Some(&account)).await?;
    Ok(())
}
