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

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use http::Method;
use kube::Client;
use serde_json::json;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use trainyard_apiserver::Server;
use trainyard_apiserver::controllers;

use crate::control_plane::{ControlPlane, Identity, Options, Program};
use crate::controllers::CERTIFICATE;
use crate::harness::{Case, Phase, Tier, cases, note};
use crate::rest::Rest;
use crate::setup;
use allowed::Allowed;
use ask::Side;
use story::Story;

/// Stories under way at the same time.
const AT_ONCE: usize = 6;
/// More differences of one story are not told.
const MOST_TOLD: usize = 100;

/// Both servers.
struct Pair {
    real: Client,
    ours: Client,
    allowed: Allowed,
    plane: Mutex<ControlPlane>,
    server: Server,
    stop: CancellationToken,
}

impl Pair {
    async fn start() -> Result<Arc<Self>> {
        let plane = ControlPlane::start(Options {
            controller_manager: false,
            audit: false,
            // Pods need accounts here, as on any cluster.
            // What a pod may is left to the labels of its namespace.
            api_server_flags: vec![
                "--disable-admission-plugins=".to_owned(),
                "--allow-privileged=true".to_owned(),
            ],
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
        let (allowed, plane) = (Allowed::read()?, Mutex::new(plane));
        Ok(Arc::new(Self { real, ours, allowed, plane, server, stop }))
    }
}

/// Runs the tier.
#[must_use]
pub fn run() -> ExitCode {
    Tier::in_real_time(setup::programs(&Program::CONTROL_PLANE), |tier, real| {
        let (first, others): (Vec<Story>, Vec<Story>) =
            story::all()?.into_iter().partition(|story| story.first);
        let requests: usize = first.iter().chain(&others).map(Story::requests).sum();
        let pair = real.fixture(Pair::start);
        tier.run(Phase::new(&pair, compared(first)).at_once(AT_ONCE).tried_once());
        let defined = real.fixture({
            let pair = Arc::clone(&pair);
            async move || {
                let pair = pair.get().await?;
                define(&pair.real).await?;
                define(&pair.ours).await?;
                Ok(pair)
            }
        });
        tier.run(Phase::new(&defined, compared(others)).at_once(AT_ONCE).tried_once());
        tier.judge_all(&pair, cases!["allowed": every_line_is_needed]);
        tier.judge(&pair, cases!["servers": still_run]);
        note(format_args!("all stories have {requests} requests to each server"));
        Ok(())
    })
}

/// Stories as cases.
fn compared(stories: Vec<Story>) -> Vec<Case<Arc<Pair>>> {
    let case = |story: Story| {
        let story = Arc::new(story);
        let name = story.name.clone();
        Case::new(name, move |pair| play(Arc::clone(&story), pair))
    };
    stories.into_iter().map(case).collect()
}

async fn every_line_is_needed(pair: &Pair) -> Result<()> {
    pair.allowed.all_needed()
}

async fn still_run(pair: &Pair) -> Result<()> {
    pair.stop.cancel();
    pair.server.close().await;
    pair.plane.lock().await.check()
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
async fn play(story: Arc<Story>, pair: Arc<Pair>) -> Result<()> {
    let Pair { real, ours, allowed, .. } = &*pair;
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
