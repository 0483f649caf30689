//! Scenarios on the API of a real `trainyard up`, over TLS and in real time: the first of each file. All
//! of them run on the embedded server in the test's process and on a real one. The yard's own operator,
//! scheduler and nodes are left out: scenarios bring theirs.
//!
//! Must not know what scenarios do.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::bed::Bed;
use crate::harness::{Case, Phase, RealTime, Tier, cases, product};
use crate::kubelet::presence;
use crate::rest::Rest;
use crate::scenarios;
use crate::stage::{self, Stage, in_worlds, in_worlds_with_kubectl};
use crate::suite::AT_ONCE;
use crate::world::Clients;

/// What stands before the names of all of them.
const GROUP: &str = "scenarios";

/// A yard that is nothing but its API.
struct Api {
    bed: Mutex<Option<Bed>>,
    clients: Clients,
    _beats: JoinSet<Result<()>>,
}

impl Api {
    async fn start() -> Result<Arc<Self>> {
        let bed = Bed::start(&product().await?, &["--api-only"]).await?;
        let client = bed.client().await?;
        let clients = Clients {
            user: client.clone(),
            kubelet: client.clone(),
            operator: client.clone(),
            scheduler: client,
            turn: Arc::default(),
        };
        // Pods of a node that is not there, or that is silent, are taken away.
        let rest = Rest::new(clients.kubelet.clone(), "default");
        presence::register(&rest).await?;
        let mut beats = JoinSet::new();
        beats.spawn(async move { presence::beat(&rest).await });
        Ok(Arc::new(Self { bed: Mutex::new(Some(bed)), clients, _beats: beats }))
    }

    async fn stage(&self) -> Result<Stage> {
        let bed = self.bed.lock().await;
        let kubectl = bed.as_ref().context("the yard has been stopped")?.kubectl.clone();
        Ok(Stage::new(self.clients.clone()).with_accounts().with_kubectl(kubectl))
    }
}

/// Runs them.
pub(super) fn run(tier: &mut Tier, real: &RealTime) {
    let api = real.fixture(Api::start);
    let with_operator = real.fixture({
        let api = Arc::clone(&api);
        async move || Ok(Arc::new(api.get().await?.stage().await?.with_operator().await?))
    });
    let with_kubectl = in_worlds_with_kubectl(scenarios::with_kubectl());
    // Those with kubectl are played on no other embedded server: all of them.
    let shared = [one_per_file(in_worlds(scenarios::shared())), below(with_kubectl)].concat();
    tier.run(Phase::new(&with_operator, shared).at_once(AT_ONCE));
    tier.judge(&with_operator, below(stage::verdicts()));
    drop(with_operator);
    let plain = real.fixture({
        let api = Arc::clone(&api);
        async move || Ok(Arc::new(api.get().await?.stage().await?))
    });
    let own = one_per_file(in_worlds(scenarios::own_operator()));
    tier.run(Phase::new(&plain, own).at_once(AT_ONCE));
    tier.judge(&api, below(cases!["api": down_leaves_nothing]));
}

fn below<F: 'static>(cases: Vec<Case<F>>) -> Vec<Case<F>> {
    cases.into_iter().map(|case| case.below(GROUP)).collect()
}

/// The first case of each file.
fn one_per_file<F: 'static>(cases: Vec<Case<F>>) -> Vec<Case<F>> {
    let mut files = HashSet::new();
    let mut is_first = |case: &Case<F>| {
        let file = case.name.rsplit_once('/').map_or("", |(file, _)| file);
        files.insert(file.to_owned())
    };
    below(cases.into_iter().filter(|case| is_first(case)).collect())
}

async fn down_leaves_nothing(api: &Api) -> Result<()> {
    api.bed.lock().await.take().context("it has been stopped")?.stop().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_scenarios_has_one_case_here() {
        let all = scenarios::shared();
        let count = all.len();
        let files: HashSet<String> = all
            .iter()
            .filter_map(|case| case.name.rsplit_once('/').map(|(file, _)| file.to_owned()))
            .collect();
        let chosen = one_per_file(all);
        assert_eq!(chosen.len(), files.len());
        assert!(chosen.len() * 3 < count && chosen.iter().all(|case| case.name.starts_with(GROUP)));
    }
}
