//! From a name to an image: mappings first, then the official images that an environment stands for.
//! Decides; the making is done by `make`, the sharing by `share`, the keeping by `store`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::choose::{Chooser, Plan};
use crate::compose;
use crate::demand::{Demand, What};
use crate::error::{ImageError, SettingsError};
use crate::ground::Ground;
use crate::held::{self, Held};
use crate::image::{Foreseen, Image, Progress, PullPolicy, Step};
use crate::make::Making;
use crate::reference::Reference;
use crate::requirements;
use crate::settings::{Mapping, Settings, Target, default_cache};
use crate::share::{Shared, Teller};
use crate::store::{Environment, Store};
use crate::tag;
use crate::tools::{Failure, Tool};
use crate::version::Wanted;

/// How often, and how long after, an environment that is being removed is looked for again.
const REMOVALS: u32 = 100;
const REMOVAL: Duration = Duration::from_millis(200);

/// All images of this machine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Images {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: Settings,
    store: Store,
    chooser: Chooser,
    shared: Shared,
    held: Held,
    /// None as long as nobody has said where environments are made.
    ground: watch::Sender<Option<Ground>>,
}

/// What a name turned out to mean.
struct Meaning<'a> {
    reference: &'a str,
    /// Its name as a mapping would give it.
    name: String,
    mapping: Option<&'a Mapping>,
    /// Whether the name itself is an official image's, so that its command is known.
    official: bool,
    remarks: Vec<String>,
}

/// What stands for an image.
enum Understood<'a> {
    /// Something that is there.
    Image(Arc<Image>),
    /// An environment that answers this.
    Environment(Demand, Meaning<'a>),
}

impl Meaning<'_> {
    fn words(&self) -> compose::Words<'_> {
        compose::Words {
            reference: self.reference,
            mapping: self.mapping,
            keeps_command: false,
            remarks: &self.remarks,
        }
    }
}

impl Images {
    /// Checks the settings and opens the cache.
    pub fn new(mut settings: Settings) -> Result<Self, SettingsError> {
        if settings.cache.as_os_str().is_empty() {
            settings.cache = default_cache().ok_or_else(|| SettingsError::Cache {
                path: "~/.cache".into(),
                reason: "there is no home; say where to keep them".to_owned(),
            })?;
        }
        settings.check()?;
        let store = Store::open(&settings.cache).map_err(|error| SettingsError::Cache {
            path: settings.cache.clone(),
            reason: error.to_string(),
        })?;
        let chooser = Chooser::new(store.root(), &settings);
        let (shared, held) = (Shared::default(), Held::default());
        let ground = watch::Sender::new(None);
        Ok(Self { inner: Arc::new(Inner { settings, store, chooser, shared, held, ground }) })
    }

    /// Says where environments are made; whatever is to be made waits for it.
    pub fn make_on(&self, ground: Ground) {
        self.inner.ground.send_replace(Some(ground));
    }

    /// What stands for an image, made ready if need be. `requirements` are lines as in requirements.txt.
    pub async fn resolve(
        &self,
        reference: &str,
        requirements: &[String],
        policy: PullPolicy,
        progress: impl Fn(Progress) + Send + Sync,
    ) -> Result<Arc<Image>, ImageError> {
        let (demand, meaning) = match self.inner.understand(reference, requirements)? {
            Understood::Image(image) => return Ok(image),
            Understood::Environment(demand, meaning) => (demand, meaning),
        };
        let found = self.held(&demand, &meaning, policy, &progress).await?;
        Ok(Arc::new(compose::environment(
            &found,
            &demand,
            &compose::Words { keeps_command: meaning.official, ..meaning.words() },
            &self.inner.settings.mounts,
        )))
    }

    /// Says what would stand for an image, without making anything and without asking anybody. An error
    /// is final: only other settings, or another name, can help.
    pub fn foresee(
        &self,
        reference: &str,
        requirements: &[String],
    ) -> Result<Foreseen, ImageError> {
        let has_command = match self.inner.understand(reference, requirements)? {
            Understood::Image(image) => !(image.entrypoint.is_empty() && image.cmd.is_empty()),
            // Official images bring a command; a mapping to one brings only what the user wrote.
            Understood::Environment(_, meaning) => {
                meaning.official
                    || meaning.mapping.is_some_and(|mapping| !mapping.entrypoint.is_empty())
            }
        };
        Ok(Foreseen { has_command })
    }

    /// Removes environments that nobody has used for so long, those that processes use excepted; names
    /// what it removed.
    pub async fn sweep(&self, unused_for: Duration) -> Vec<String> {
        self.inner.held.sweep(&self.inner.store, unused_for).await
    }

    /// An environment that stays while this process lives.
    async fn held(
        &self,
        demand: &Demand,
        meaning: &Meaning<'_>,
        policy: PullPolicy,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Environment, ImageError> {
        let mut tries = 0;
        loop {
            let found = self.environment(demand, meaning, policy, progress).await?;
            if self.inner.held.take(&self.inner.store, &found) {
                return Ok(found);
            }
            // Somebody removes it just now; then it is made anew.
            tries += 1;
            if tries == REMOVALS {
                return Err(held::goes_away(&found));
            }
            tokio::time::sleep(REMOVAL).await;
        }
    }

    async fn environment(
        &self,
        demand: &Demand,
        meaning: &Meaning<'_>,
        policy: PullPolicy,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Environment, ImageError> {
        let inner = &self.inner;
        let ready = inner.store.best(demand);
        let settled = matches!(demand.wanted(), Wanted::Exact(_));
        let look_again = policy == PullPolicy::Always && !settled && !inner.settings.offline;
        match ready {
            Some(ready) if !look_again => return Ok(ready),
            None if policy == PullPolicy::Never => {
                return Err(ImageError::NeverPull { reference: meaning.reference.to_owned() });
            }
            _ => {}
        }
        if demand.must_be_looked_up() {
            let words = format!("looking for the release that {demand} means");
            progress(Progress::new(Step::Choosing, words));
        }
        match (self.newest(demand, meaning, progress).await, ready) {
            // A tag that moves stays where it is while there is no network.
            (Err(ImageError::NoNetwork { .. }), Some(ready)) => Ok(ready),
            (outcome, _) => outcome,
        }
    }

    /// What the demand means now, made if it is not there.
    async fn newest(
        &self,
        demand: &Demand,
        meaning: &Meaning<'_>,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Environment, ImageError> {
        let inner = &self.inner;
        let plans = inner.chooser.plans(demand, &meaning.name).await?;
        if let Some(found) = plans.iter().find_map(|plan| inner.store.read(&plan.name())) {
            return Ok(found);
        }
        let Some(first) = plans.first().map(Plan::name) else {
            return Err(inner.chooser.not_installable(demand, &meaning.name, "").await);
        };
        let (me, wanted, name) = (inner.clone(), demand.clone(), meaning.name.clone());
        let make = |teller| async move { me.make(plans, wanted, name, teller).await };
        let found = inner.shared.get(&first, make, progress).await?;
        let words = format!("environment {} is ready", found.dir.display());
        progress(Progress::new(Step::Ready, words).at(100));
        Ok(found)
    }
}

impl Inner {
    /// What a name means, as far as settings and the name itself say.
    fn understand<'a>(
        &'a self,
        reference: &'a str,
        requirements: &[String],
    ) -> Result<Understood<'a>, ImageError> {
        let invalid = |reason: &str| ImageError::InvalidName {
            reference: reference.to_owned(),
            reason: reason.to_owned(),
        };
        let (parsed, mapping) = match Reference::parse(reference) {
            Ok(parsed) => {
                let mapping = find_mapping(&self.settings.mappings, &parsed);
                (Some(parsed), mapping)
            }
            // A name that the manifest left open is none, unless the user said what it means.
            Err(reason) => {
                let mapping = self.settings.mappings.iter().find(|m| m.name == reference);
                (None, Some(mapping.ok_or_else(|| invalid(reason))?))
            }
        };
        let is_official = |parsed: &Reference| parsed.is_tensorflow() || parsed.is_python();
        let mut meaning = Meaning {
            reference,
            name: reference.split('@').next().unwrap_or(reference).to_owned(),
            mapping,
            official: parsed.as_ref().is_some_and(is_official),
            remarks: Vec::new(),
        };
        if parsed.as_ref().is_some_and(|parsed| parsed.digest.is_some()) {
            meaning.remarks.push("the digest says nothing here".to_owned());
        }
        let official = match mapping.map(|mapping| &mapping.target) {
            Some(Target::Host) => {
                return self.host(&meaning, requirements).map(Understood::Image);
            }
            Some(Target::Environment(dir)) => {
                return self.folder(&meaning, dir, requirements).map(Understood::Image);
            }
            Some(Target::Official(name)) => Reference::parse(name).map_err(|reason| {
                ImageError::InvalidName { reference: name.clone(), reason: reason.to_owned() }
            })?,
            None => parsed.ok_or_else(|| invalid("invalid reference format"))?,
        };
        let demand = self.demand(&official, requirements, &mut meaning)?;
        Ok(Understood::Environment(demand, meaning))
    }

    /// Makes the first plan that can be carried out.
    async fn make(
        self: Arc<Self>,
        plans: Vec<Plan>,
        demand: Demand,
        name: String,
        teller: Teller,
    ) -> Result<Environment, ImageError> {
        let mut refused = None;
        for plan in &plans {
            let folder = plan.name();
            let waiting = teller.clone();
            let mut tell = move || {
                let words = format!("waiting for another process that makes {folder}");
                waiting.tell(Progress::new(Step::Waiting, words));
            };
            let _lock = self.store.lock(&plan.name(), &mut tell).await?;
            if let Some(ready) = self.store.read(&plan.name()) {
                return Ok(ready);
            }
            match self.make_plan(plan, &teller).await {
                Err((Failure::NoRelease, error)) => refused = Some(error),
                Err((_, error)) => return Err(error),
                Ok(made) => return Ok(made),
            }
        }
        let said = refused.map_or_else(String::new, |error| error.to_string());
        Err(self.chooser.not_installable(&demand, &name, &said).await)
    }

    /// With `uv` where there is one; with pip where there is none, or where only it is configured to
    /// reach the index.
    async fn make_plan(
        &self,
        plan: &Plan,
        teller: &Teller,
    ) -> Result<Environment, (Failure, ImageError)> {
        let uv = self.chooser.uv();
        let tools: Vec<Tool> =
            uv.into_iter().chain([Tool::Pip]).filter(|tool| tool.can_use(&plan.python)).collect();
        let mut last = None;
        for tool in &tools {
            if self.settings.offline && *tool == Tool::Pip {
                continue;
            }
            let making = Making {
                ground: &self.ground().await,
                store: &self.store,
                recipe: &plan.recipe,
                python: &plan.python,
                tool,
                offline: self.settings.offline,
                teller,
            };
            match making.make().await {
                Ok(made) => return Ok(made),
                Err(not_made) if not_made.kind == Failure::Network => {
                    last = Some((not_made.kind, not_made.error));
                }
                Err(not_made) => return Err((not_made.kind, not_made.error)),
            }
        }
        Err(last.unwrap_or_else(|| {
            let doing =
                format!("making an environment with {}", plan.recipe.words(plan.python.version));
            let said = "the network is not to be used (offline)".to_owned();
            (Failure::Network, ImageError::NoNetwork { doing, tool: "pip".to_owned(), said })
        }))
    }

    /// Where environments are made, once that is known.
    async fn ground(&self) -> Ground {
        let mut said = self.ground.subscribe();
        let said = said.wait_for(Option::is_some).await;
        // The sender is our own, and what was waited for is there.
        said.ok().and_then(|ground| ground.clone()).unwrap_or(Ground::Machine)
    }

    fn demand(
        &self,
        official: &Reference,
        requirements: &[String],
        meaning: &mut Meaning<'_>,
    ) -> Result<Demand, ImageError> {
        let unknown = |instead: &str| ImageError::UnknownTag {
            reference: meaning.name.clone(),
            tag: official.tag().to_owned(),
            instead: instead.to_owned(),
        };
        let mut no_gpu = false;
        let what = if official.is_tensorflow() {
            let tag = tag::tensorflow(official.tag())
                .ok_or_else(|| unknown("tensorflow/tensorflow:latest"))?;
            no_gpu = tag.gpu && !self.settings.gpu;
            let gpu = tag.gpu && self.settings.gpu;
            What::Tensorflow { wanted: tag.wanted, gpu, jupyter: tag.jupyter }
        } else if official.is_python() {
            let wanted = tag::python(official.tag()).ok_or_else(|| unknown("python:3"))?;
            What::Python { wanted }
        } else {
            return Err(ImageError::Unmapped {
                reference: meaning.reference.to_owned(),
                name: meaning.name.clone(),
            });
        };
        if no_gpu {
            meaning
                .remarks
                .push("this machine has no GPU to use: the CPU build is taken".to_owned());
        }
        let lines = requirements.iter().chain(&self.settings.with);
        let sources = self.settings.source_packages;
        let requirements = requirements::normalise(lines, sources)?;
        let sources = sources && !requirements.is_empty();
        Ok(Demand { what, requirements, sources })
    }

    fn host(
        &self,
        meaning: &Meaning<'_>,
        requirements: &[String],
    ) -> Result<Arc<Image>, ImageError> {
        refuse_extras(meaning, "host", requirements)?;
        let words = meaning.words();
        Ok(Arc::new(compose::host(&words, &self.settings.mounts)))
    }

    fn folder(
        &self,
        meaning: &Meaning<'_>,
        dir: &Path,
        requirements: &[String],
    ) -> Result<Arc<Image>, ImageError> {
        refuse_extras(meaning, &format!("env:{}", dir.display()), requirements)?;
        let words = meaning.words();
        let image = compose::folder(&words, dir, &self.settings.mounts).map_err(|why| {
            ImageError::NoEnvironment {
                reference: meaning.reference.to_owned(),
                dir: dir.to_owned(),
                why,
            }
        })?;
        Ok(Arc::new(image))
    }
}

/// An environment that is not ours is not changed.
fn refuse_extras(meaning: &Meaning<'_>, target: &str, lines: &[String]) -> Result<(), ImageError> {
    let lines = requirements::normalise(lines, true)?;
    if lines.is_empty() {
        return Ok(());
    }
    Err(ImageError::NotExtensible {
        reference: meaning.reference.to_owned(),
        target: target.to_owned(),
        packages: lines.join(", "),
    })
}

/// The mapping for this very tag, else the one for the repository.
fn find_mapping<'a>(mappings: &'a [Mapping], image: &Reference) -> Option<&'a Mapping> {
    let of = |mapping: &'a Mapping| {
        let name = Reference::parse(&mapping.name).ok()?;
        name.same_repository(image).then_some((mapping, name.tag))
    };
    let mut whole = None;
    for (mapping, tag) in mappings.iter().filter_map(of) {
        match tag {
            Some(tag) if tag == image.tag() => return Some(mapping),
            None => whole = whole.or(Some(mapping)),
            Some(_) => {}
        }
    }
    whole
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
