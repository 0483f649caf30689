//! Stories as cases on the cluster: each in a namespace of its own, which is deleted when the story has passed or
//! failed; and what there is around those that change the cluster itself.
//!
//! Must not know what stories do.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::site::{PATIENCE, Scene, Site};
use crate::harness::Case;
use crate::rest::is_missing;

/// Stories.
type Stories = Vec<Case<Arc<Scene>>>;
/// As the harness takes them.
type Cases = Vec<Case<Arc<Site>>>;

const NAMESPACES: &str = "/api/v1/namespaces";
/// The time between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// Making a cluster whole again takes as long as starting it.
const RECOVERY: Duration = Duration::from_mins(3);

/// Stories that leave the cluster to others.
pub(super) fn on_site(stories: Stories) -> Cases {
    cases(stories, play)
}

/// Stories that change what all stand on, and put it right again. What one leaves that fails is put right for it.
pub(super) fn changing(stories: Stories) -> Cases {
    cases(stories, async |site: Arc<Site>, story| {
        let played = play(Arc::clone(&site), story).await;
        if played.is_err() {
            site.recover().await.context("and the cluster cannot be put right")?;
        }
        played
    })
}

/// Stories that lose a node, all the same one at the same time.
pub(super) fn in_one_outage(stories: Stories) -> Cases {
    cases(stories, async |site: Arc<Site>, story| {
        let member = site.outage.join().await;
        let played = play(Arc::clone(&site), story).await;
        drop(member);
        if site.outage.is_empty() {
            site.end_outage().await.context("and the outage cannot be ended")?;
        }
        played
    })
}

fn cases(
    stories: Stories,
    play: impl AsyncFn(Arc<Site>, Case<Arc<Scene>>) -> Result<()> + Clone + Send + Sync + 'static,
) -> Cases {
    let case = |story: Case<Arc<Scene>>| {
        let (name, longest) = (story.name.clone(), story.timeout + PATIENCE + RECOVERY);
        let once = story.once;
        let play = play.clone();
        let play = move |site: Arc<Site>| {
            let (play, story) = (play.clone(), story.clone());
            async move { play(site, story).await }
        };
        Case::new(name, play).within(longest).once(once)
    };
    stories.into_iter().map(case).collect()
}

async fn play(site: Arc<Site>, story: Case<Arc<Scene>>) -> Result<()> {
    let namespace = format!("story-{}", site.opened.fetch_add(1, Ordering::Relaxed));
    let rest = site.rest(&namespace).await?;
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    rest.send(Method::POST, NAMESPACES, Some(&object)).await?;
    let path = format!("{NAMESPACES}/{namespace}");
    // Without it, no pod can be made there.
    while let Err(error) =
        rest.send(Method::GET, &format!("{path}/serviceaccounts/default"), None).await
    {
        ensure!(is_missing(&error), error);
        tokio::time::sleep(LOOK).await;
    }
    let scene = Arc::new(Scene { site: Arc::clone(&site), namespace });
    let mut played = story.play(Arc::clone(&scene)).await;
    if played.is_err() {
        let about = scene.about().await;
        played = played.with_context(|| about);
    }
    rest.send(Method::DELETE, &path, None).await?;
    played
}

/// Stories that begin before their turn, because they take long and let others be.
#[derive(Default)]
pub(super) struct Early {
    begun: Mutex<BTreeMap<String, JoinHandle<Result<()>>>>,
}

impl Early {
    /// Begins stories beside whatever is played meanwhile.
    pub(super) fn begin(&self, site: &Arc<Site>, stories: Stories) {
        let start = |story: Case<Arc<Scene>>| {
            let (name, site, runtime) = (story.name.clone(), Arc::clone(site), Handle::current());
            // A story stays on the thread that plays it.
            let play = move || runtime.block_on(async move { play(site, story).await });
            (name, tokio::task::spawn_blocking(play))
        };
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.extend(stories.into_iter().map(start));
    }

    fn take(&self, name: &str) -> Option<JoinHandle<Result<()>>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).remove(name)
    }

    /// As cases: one that has been begun is waited for, any other is played.
    pub(super) fn cases(self: &Arc<Self>, stories: Stories) -> Cases {
        let early = Arc::clone(self);
        cases(stories, move |site: Arc<Site>, story: Case<Arc<Scene>>| {
            let begun = early.take(&story.name);
            async move {
                match begun {
                    Some(played) => played.await.context("it has panicked")?,
                    None => play(site, story).await,
                }
            }
        })
    }
}
