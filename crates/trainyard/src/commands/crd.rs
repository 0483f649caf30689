//! `trainyard crd`: prints custom resource definitions.

use clap::Args;
use serde_json::Value;
use trainyard_api::{crd::tfjob_crd, volcano};

use crate::{failure::Failure, output, yaml};

/// Print the custom resource definition of TFJob, for `kubectl apply -f -`
///
/// Volcano's kinds are Job, PodGroup, Queue and Command. Where Volcano itself is installed its own
/// definitions are there and are to stay.
#[derive(Debug, Args)]
pub(crate) struct Crd {
    /// Those of Volcano's kinds instead
    #[arg(long, conflicts_with = "all")]
    volcano: bool,
    /// Both
    #[arg(long)]
    all: bool,
}

impl Crd {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        output::print(&yaml::to_string(&self.definitions()))
    }

    fn definitions(&self) -> Vec<Value> {
        let mut all = Vec::new();
        if !self.volcano {
            all.push(tfjob_crd());
        }
        if self.volcano || self.all {
            all.extend(volcano::crd::all());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::{self, Command};

    fn printed(words: &[&str]) -> Vec<String> {
        let args = ["trainyard", "crd"].iter().chain(words).map(Into::into);
        let Command::Crd(crd) = cli::parse(args).unwrap().command else { panic!("{words:?}") };
        let names = crd.definitions().into_iter();
        names.map(|one| one["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn volcanos_only_when_asked() {
        assert_eq!(printed(&[]), ["tfjobs.kubeflow.org"]);
        let volcanos = printed(&["--volcano"]);
        assert_eq!(volcanos.len(), 4);
        assert!(volcanos.iter().all(|name| name.ends_with(".volcano.sh")), "{volcanos:?}");
        assert_eq!(
            printed(&["--all"]),
            [vec!["tfjobs.kubeflow.org".to_owned()], volcanos].concat()
        );
    }
}
