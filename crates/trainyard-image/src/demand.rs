//! What a container asks of an environment, and the recipe of one that answers it: packages, names,
//! keys. Pure.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::interpreters::Interpreter;
use crate::releases;
use crate::requirements;
use crate::version::{Python, Version, Wanted};

/// Raised when environments made before must not be used any more.
pub(crate) const FORMAT: u32 = 1;

/// What stands behind an official image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Tensorflow {
        wanted: Wanted,
        /// The tag says so and there is one.
        gpu: bool,
        jupyter: bool,
    },
    Python {
        wanted: Wanted,
    },
}

/// What a container asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) what: What,
    /// Extra packages, normalised.
    pub(crate) requirements: Vec<String>,
    /// Those may be built from their sources.
    pub(crate) sources: bool,
}

/// What an environment holds, apart from its Python.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recipe {
    /// `tensorflow-cpu`, …, or `python` for a plain one.
    pub(crate) package: String,
    pub(crate) extra: String,
    pub(crate) version: Version,
    pub(crate) jupyter: bool,
    pub(crate) requirements: Vec<String>,
    /// Those may have been built from their sources.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) sources: bool,
}

impl Demand {
    pub(crate) fn wanted(&self) -> &Wanted {
        match &self.what {
            What::Tensorflow { wanted, .. } | What::Python { wanted } => wanted,
        }
    }

    /// Whether only the index can say which release is meant.
    pub(crate) fn must_be_looked_up(&self) -> bool {
        matches!(&self.what, What::Tensorflow { wanted, .. } if releases::settled(wanted).is_none())
    }

    /// The recipe, once the release is known.
    pub(crate) fn recipe(&self, version: &Version, machine: &str) -> Recipe {
        let (package, extra, jupyter) = match &self.what {
            What::Tensorflow { gpu, jupyter, .. } => {
                let (package, extra) = releases::package(version, *gpu, machine);
                (package, extra, *jupyter)
            }
            What::Python { .. } => ("python", "", false),
        };
        Recipe {
            package: package.to_owned(),
            extra: extra.to_owned(),
            version: version.clone(),
            jupyter,
            requirements: self.requirements.clone(),
            sources: self.sources,
        }
    }

    /// Whether an environment of this recipe answers the demand.
    pub(crate) fn accepts(&self, recipe: &Recipe) -> bool {
        self.wanted().matches(&recipe.version)
            && *recipe == self.recipe(&recipe.version, std::env::consts::ARCH)
    }
}

impl std::fmt::Display for Demand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.what {
            What::Tensorflow { wanted, .. } => write!(f, "tensorflow {wanted}"),
            What::Python { wanted } => write!(f, "Python {wanted}"),
        }
    }
}

impl Recipe {
    pub(crate) fn is_tensorflow(&self) -> bool {
        self.package != "python"
    }

    /// The folder's name: readable, and different for all that differs.
    pub(crate) fn name(&self, python: &Interpreter) -> String {
        let mut hash = Sha256::new();
        let facts = (FORMAT, self, python.version, &python.base_prefix, self.constraints());
        hash.update(serde_json::to_vec(&facts).unwrap_or_default());
        let digest = hash.finalize();
        let key = digest.iter().take(6).fold(0u64, |key, byte| key << 8 | u64::from(*byte));
        let Python { major, minor, .. } = python.version;
        if self.is_tensorflow() {
            format!("{}-{}-py{major}.{minor}-{key:012x}", self.package, self.version)
        } else {
            format!("python-{}-{key:012x}", self.version)
        }
    }

    /// Lines to install.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.is_tensorflow() {
            lines.push(format!("{}{}=={}", self.package, self.extra, self.version));
            lines.extend(releases::tensorboard(&self.version));
        }
        if self.jupyter {
            lines.extend(["jupyter".to_owned(), "matplotlib".to_owned()]);
        }
        lines.extend(self.requirements.iter().cloned());
        lines
    }

    /// Lines that hold back; what the user asks for by name is not held.
    pub(crate) fn constraints(&self) -> Vec<String> {
        if !self.is_tensorflow() {
            return Vec::new();
        }
        let asked: Vec<String> =
            self.requirements.iter().map(|line| requirements::name(line)).collect();
        let mut lines = releases::constraints(&self.version);
        lines.retain(|line| !asked.contains(&requirements::name(line)));
        // Other packages choose their own version by it.
        lines.push(format!("tensorflow=={}", self.version));
        lines
    }

    /// The name under which other packages ask for TensorFlow, where it is installed under another.
    pub(crate) fn stands_for(&self) -> Option<&'static str> {
        (self.is_tensorflow() && self.package != "tensorflow").then_some("tensorflow")
    }

    /// What is in it, in words.
    pub(crate) fn words(&self, python: Python) -> String {
        let mut words = if self.is_tensorflow() {
            format!("{}{} {} (Python {python})", self.package, self.extra, self.version)
        } else {
            format!("Python {python}")
        };
        if !self.requirements.is_empty() {
            words = format!("{words} and {}", self.requirements.join(", "));
        }
        words
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::interpreters::tests::interpreter;

    pub(crate) fn tensorflow(tag: &str, requirements: &[&str]) -> Demand {
        let tag = crate::tag::tensorflow(tag).unwrap();
        Demand {
            what: What::Tensorflow { wanted: tag.wanted, gpu: tag.gpu, jupyter: tag.jupyter },
            requirements: requirements.iter().map(|line| (*line).to_owned()).collect(),
            sources: false,
        }
    }

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn names_say_what_is_inside_and_differ_by_all_of_it() {
        let recipe = tensorflow("2.21.0", &[]).recipe(&version("2.21.0"), "x86_64");
        let name = recipe.name(&interpreter(11, 7));
        assert!(name.starts_with("tensorflow-cpu-2.21.0-py3.11-"), "{name}");
        assert_eq!(name, recipe.name(&interpreter(11, 7)));
        let mut names =
            vec![name, recipe.name(&interpreter(11, 8)), recipe.name(&interpreter(12, 0))];
        for other in [
            tensorflow("2.21.0", &["six"]),
            tensorflow("2.21.0-gpu", &[]),
            tensorflow("2.21.0-jupyter", &[]),
        ] {
            names.push(other.recipe(&version("2.21.0"), "x86_64").name(&interpreter(11, 7)));
        }
        let built = Demand { sources: true, ..tensorflow("2.21.0", &["six"]) };
        names.push(built.recipe(&version("2.21.0"), "x86_64").name(&interpreter(11, 7)));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 7);
    }

    #[test]
    fn a_demand_accepts_only_what_fits() {
        let recipe = |demand: &Demand, text| demand.recipe(&version(text), std::env::consts::ARCH);
        let latest = tensorflow("latest", &["six"]);
        assert!(latest.accepts(&recipe(&latest, "2.16.2")));
        assert!(!latest.accepts(&recipe(&tensorflow("latest", &[]), "2.16.2")));
        assert!(!latest.accepts(&recipe(&latest, "2.17.0rc1")));
        let exact = tensorflow("2.16.2", &[]);
        assert!(!exact.accepts(&recipe(&exact, "2.16.1")));
        let python = Demand {
            what: What::Python { wanted: Wanted::Latest },
            requirements: vec![],
            sources: false,
        };
        assert!(!python.accepts(&recipe(&exact, "2.16.2")));
    }

    #[test]
    fn lines_hold_tensorboard_and_what_the_user_asks() {
        let recipe = tensorflow("2.21.0", &["tf-keras"]).recipe(&version("2.21.0"), "x86_64");
        assert_eq!(recipe.lines(), ["tensorflow-cpu==2.21.0", "tensorboard>=2,<2.22", "tf-keras"]);
        assert!(recipe.constraints().contains(&"tensorflow==2.21.0".to_owned()));
        assert_eq!(recipe.stands_for(), Some("tensorflow"));
        let recipe = tensorflow("2.16.2", &["Keras==3.15"]).recipe(&version("2.16.2"), "x86_64");
        assert!(!recipe.constraints().iter().any(|line| line.starts_with("keras")));
        assert_eq!(
            tensorflow("1.15.5", &[]).recipe(&version("1.15.5"), "x86_64").stands_for(),
            None
        );
    }
}
