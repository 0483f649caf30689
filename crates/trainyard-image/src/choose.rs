//! Which release and which Python a demand gets on this machine. Asks the index only where a tag can move
//! and the table of releases cannot know.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::demand::{Demand, Recipe, What};
use crate::error::ImageError;
use crate::index;
use crate::interpreters::{self, Interpreter};
use crate::releases;
use crate::settings::{Installer, Settings};
use crate::tools::{Tool, find_uv};
use crate::version::{Python, Version, Wanted};

/// How long an answer of the index is good for.
const GOOD_FOR: Duration = Duration::from_mins(10);
/// How many Pythons are tried or asked for one demand.
const MOST_TRIED: usize = 4;

/// An environment that could be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) recipe: Recipe,
    pub(crate) python: Interpreter,
}

impl Plan {
    pub(crate) fn name(&self) -> String {
        self.recipe.name(&self.python)
    }
}

/// Chooses, and remembers what the index said.
#[derive(Debug)]
pub(crate) struct Chooser {
    cache: PathBuf,
    offline: bool,
    installer: Installer,
    said: Mutex<HashMap<String, (Instant, Version)>>,
}

impl Chooser {
    pub(crate) fn new(cache: &Path, settings: &Settings) -> Self {
        let Settings { offline, installer, .. } = *settings;
        Self { cache: cache.to_owned(), offline, installer, said: Mutex::default() }
    }

    /// The `uv` of this machine, where it is to be used.
    pub(crate) fn uv(&self) -> Option<Tool> {
        match self.installer {
            Installer::Any => find_uv(&self.cache).map(Tool::Uv),
            Installer::Pip => None,
        }
    }

    /// What could be made for a demand, the best first; never empty. `name` is the image's.
    pub(crate) async fn plans(&self, demand: &Demand, name: &str) -> Result<Vec<Plan>, ImageError> {
        let pythons = self.usable().await;
        let plans = match &demand.what {
            What::Python { wanted } => plain(demand, wanted, &pythons),
            What::Tensorflow { wanted, gpu, .. } => {
                match self.release(wanted, *gpu, &pythons).await? {
                    Some(version) => with_tensorflow(demand, &version, &pythons),
                    None => Vec::new(),
                }
            }
        };
        if plans.is_empty() {
            return Err(not_installable(demand, name, &versions(&pythons), ""));
        }
        Ok(plans)
    }

    /// The error for a demand that nothing here can answer.
    pub(crate) async fn not_installable(
        &self,
        demand: &Demand,
        name: &str,
        said: &str,
    ) -> ImageError {
        not_installable(demand, name, &versions(&self.usable().await), said)
    }

    /// Pythons that environments can be made from.
    async fn usable(&self) -> Vec<Interpreter> {
        let uv = self.uv();
        let mut found = interpreters::find(&self.cache.join(".interpreters.json")).await;
        found.retain(|python| {
            Tool::Pip.can_use(python) || uv.as_ref().is_some_and(|uv| uv.can_use(python))
        });
        found
    }

    async fn release(
        &self,
        wanted: &Wanted,
        gpu: bool,
        pythons: &[Interpreter],
    ) -> Result<Option<Version>, ImageError> {
        if let Some(version) = releases::settled(wanted) {
            return Ok(Some(version));
        }
        let known = releases::newest_known(wanted, &versions(pythons));
        if self.offline {
            return Ok(known);
        }
        let package = match (wanted, &known) {
            (Wanted::Exact(version), _) | (_, Some(version)) => {
                releases::package(version, gpu, std::env::consts::ARCH).0
            }
            _ => "tensorflow",
        };
        let key = format!("{package} {wanted}");
        let mut said = self.said.lock().await;
        if let Some((_, version)) = said.get(&key).filter(|(at, _)| at.elapsed() < GOOD_FOR) {
            return Ok(Some(version.clone()));
        }
        let newest = self.ask(package, wanted, pythons).await?.max(known);
        if let Some(version) = &newest {
            said.insert(key, (Instant::now(), version.clone()));
        }
        Ok(newest)
    }

    /// Asks the index for each Python that may have it, at once.
    async fn ask(
        &self,
        package: &'static str,
        wanted: &Wanted,
        pythons: &[Interpreter],
    ) -> Result<Option<Version>, ImageError> {
        let uv = self.uv();
        let mut asked = tokio::task::JoinSet::new();
        let distinct = one_per_minor(pythons.iter().filter(|python| match wanted {
            Wanted::Exact(version) => releases::supports(version, python.version),
            _ => releases::may_have_newest(python.version),
        }));
        for python in distinct.into_iter().take(MOST_TRIED) {
            let tool = match &uv {
                Some(uv) => uv.clone(),
                None if python.pip => Tool::Pip,
                None => continue,
            };
            let (wanted, folder) = (wanted.clone(), self.cache.clone());
            asked.spawn(async move {
                let first = index::newest(&tool, &python, package, &wanted, &folder).await;
                // The other may be the one that is configured to reach the index.
                match first {
                    Err(ImageError::NoNetwork { .. }) if tool != Tool::Pip && python.pip => {
                        index::newest(&Tool::Pip, &python, package, &wanted, &folder).await
                    }
                    answer => answer,
                }
            });
        }
        let mut newest = None;
        let mut failure = None;
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok(Ok(version)) => newest = newest.max(version),
                Ok(Err(error)) => failure = Some(error),
                Err(error) => tracing::debug!(%error, "a question to the index was broken off"),
            }
        }
        match (newest, failure) {
            (None, Some(error)) => Err(error),
            (newest, _) => Ok(newest),
        }
    }
}

fn versions(pythons: &[Interpreter]) -> Vec<Python> {
    pythons.iter().map(|python| python.version).collect()
}

/// The first of each minor version: they come with the newest first.
fn one_per_minor<'a>(pythons: impl Iterator<Item = &'a Interpreter>) -> Vec<Interpreter> {
    let mut kept: Vec<Interpreter> = Vec::new();
    for python in pythons {
        if !kept.iter().any(|other| other.version.minor == python.version.minor) {
            kept.push(python.clone());
        }
    }
    kept
}

fn with_tensorflow(demand: &Demand, version: &Version, pythons: &[Interpreter]) -> Vec<Plan> {
    let mut fitting =
        one_per_minor(pythons.iter().filter(|python| releases::supports(version, python.version)));
    fitting.sort_by_key(|python| releases::preference(version, python.version));
    fitting.truncate(MOST_TRIED);
    let recipe = demand.recipe(version, std::env::consts::ARCH);
    fitting.into_iter().map(|python| Plan { recipe: recipe.clone(), python }).collect()
}

fn plain(demand: &Demand, wanted: &Wanted, pythons: &[Interpreter]) -> Vec<Plan> {
    let version = |python: &Interpreter| Version {
        release: vec![python.version.major, python.version.minor, python.version.patch],
        pre: None,
        post: None,
    };
    let exact = pythons.iter().find(|python| wanted.matches(&version(python)));
    // Patch releases of Python do not differ in what runs on them.
    let same_minor = || match wanted {
        Wanted::Exact(exact) => pythons
            .iter()
            .find(|python| (python.version.major, python.version.minor) == exact.major_minor()),
        _ => None,
    };
    exact
        .or_else(same_minor)
        .map(|python| Plan {
            recipe: demand.recipe(&version(python), std::env::consts::ARCH),
            python: python.clone(),
        })
        .into_iter()
        .collect()
}

fn not_installable(demand: &Demand, name: &str, pythons: &[Python], said: &str) -> ImageError {
    let mut here: Vec<String> =
        pythons.iter().map(|p| format!("{}.{}", p.major, p.minor)).collect();
    here.dedup();
    let what = demand.to_string();
    if here.is_empty() {
        return ImageError::NotInstallable {
            what,
            why: "no Python with venv was found".to_owned(),
            remedy: "Install Python 3.11 with its venv module (python3-venv), or uv and \
                     `uv python install 3.11`"
                .to_owned(),
        };
    }
    let here = format!("the Pythons here are {}", here.join(", "));
    let (why, instead) = match &demand.what {
        What::Python { .. } => {
            let newest = pythons.first().map(|p| format!("python:{}.{}", p.major, p.minor));
            (here, newest)
        }
        What::Tensorflow { wanted, .. } => {
            let range = match wanted {
                Wanted::Exact(version) => releases::pythons_in_words(version),
                _ => releases::settled(wanted).as_ref().and_then(releases::pythons_in_words),
            };
            let fits = releases::newest_known(wanted, pythons).is_some();
            let needs =
                match range.filter(|_| said.is_empty() && !fits && !demand.must_be_looked_up()) {
                    Some(range) => format!("it needs Python {range}, and {here}"),
                    None if said.is_empty() => format!("no such release is known, and {here}"),
                    None => format!("{said} ({here})"),
                };
            let nearest = releases::nearest(wanted, pythons);
            (needs, nearest.map(|version| format!("tensorflow/tensorflow:{version}")))
        }
    };
    let remedy = match instead {
        Some(instead) => {
            format!("The nearest that works here is {instead}: use --image {name}={instead}")
        }
        None => "Install a Python that it supports, for instance with pyenv or uv".to_owned(),
    };
    ImageError::NotInstallable { what, why, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::tests::tensorflow;
    use crate::interpreters::tests::interpreter;

    fn pythons() -> Vec<Interpreter> {
        [(13, 0), (12, 1), (11, 9), (11, 7), (10, 2), (8, 18)]
            .map(|(minor, patch)| interpreter(minor, patch))
            .to_vec()
    }

    fn python(tag: &str) -> Demand {
        let wanted = crate::tag::python(tag).unwrap();
        Demand { what: What::Python { wanted }, requirements: Vec::new(), sources: false }
    }

    #[test]
    fn the_python_of_the_official_image_is_taken_first() {
        let demand = tensorflow("2.16.2", &[]);
        let plans = with_tensorflow(&demand, &Version::parse("2.16.2").unwrap(), &pythons());
        let order: Vec<String> = plans.iter().map(|plan| plan.python.version.to_string()).collect();
        assert_eq!(order, ["3.11.9", "3.12.1", "3.10.2"]);
        let demand = tensorflow("2.9.1", &[]);
        let plans = with_tensorflow(&demand, &Version::parse("2.9.1").unwrap(), &pythons());
        assert_eq!(plans[0].python.version.to_string(), "3.8.18");
    }

    #[test]
    fn a_plain_python_is_the_one_asked_for() {
        let chosen = |tag: &str| {
            let demand = python(tag);
            let plans = plain(&demand, demand.wanted(), &pythons());
            plans.first().map(|plan| plan.python.version.to_string())
        };
        assert_eq!(chosen("3.11").as_deref(), Some("3.11.9"));
        assert_eq!(chosen("3.11.7-slim").as_deref(), Some("3.11.7"));
        assert_eq!(chosen("3.11.1").as_deref(), Some("3.11.9"), "another patch of it");
        assert_eq!(chosen("3").as_deref(), Some("3.13.0"));
        assert_eq!(chosen("latest").as_deref(), Some("3.13.0"));
        assert_eq!(chosen("3.9"), None);
        assert_eq!(chosen("2.7"), None);
    }

    #[test]
    fn what_cannot_be_installed_names_the_nearest_and_the_mapping() {
        let here = versions(&pythons());
        let name = "tensorflow/tensorflow:1.13.1-py3";
        let error = not_installable(&tensorflow("1.13.1-py3", &[]), name, &here, "");
        assert_eq!(error.kind(), "ErrImagePull");
        assert_eq!(
            error.to_string(),
            "tensorflow 1.13.1 cannot be installed on this machine: it needs Python 3.3 to 3.7, and the \
             Pythons here are 3.13, 3.12, 3.11, 3.10, 3.8. The nearest that works here is \
             tensorflow/tensorflow:2.2.3: use --image tensorflow/tensorflow:1.13.1-py3=tensorflow/tensorflow:2.2.3"
        );
        let error = not_installable(&python("3.9"), "python:3.9", &here, "").to_string();
        assert!(error.contains("use --image python:3.9=python:3.13"), "{error}");
        let error = not_installable(&python("3.9"), "python:3.9", &[], "").to_string();
        assert!(error.contains("no Python with venv was found"), "{error}");
    }
}
