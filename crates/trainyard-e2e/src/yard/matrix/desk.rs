//! Where one kind is tried: kubectl in a namespace of its own, and the object at hand.
//!
//! Must not know verbs.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::specimen::Specimen;
use crate::kubectl::{Kubectl, Outcome};

/// The object that all verbs are about.
const OBJECT: &str = "alder";

/// A kind and what it is tried with.
pub(super) struct Desk {
    pub(super) kubectl: Kubectl,
    pub(super) specimen: Specimen,
    pub(super) namespace: String,
    /// For files that kubectl is to read or to run.
    pub(super) dir: PathBuf,
}

impl Desk {
    /// The object's name.
    pub(super) fn name(&self) -> String {
        self.specimen.name(OBJECT)
    }

    /// The object as kubectl prints it: `pod/alder`.
    pub(super) fn printed(&self) -> String {
        format!("{}/{}", self.specimen.printed(), self.name())
    }

    /// The object as it is asked for: `pods/alder`.
    pub(super) fn target(&self) -> String {
        format!("{}/{}", self.resource(), self.name())
    }

    /// The resource, by its full name where a short one could mean another.
    pub(super) fn resource(&self) -> String {
        match self.specimen.version.split_once('/') {
            Some((group, _)) => format!("{}.{group}", self.specimen.resource),
            None => self.specimen.resource.to_owned(),
        }
    }

    /// The manifest, with this value of the label `step`.
    pub(super) fn manifest(&self, step: &str) -> String {
        self.specimen.manifest(OBJECT, &self.namespace, step).to_string()
    }

    /// Runs kubectl in the namespace, whatever comes of it.
    pub(super) async fn run(&self, words: &[&str], input: &str) -> Result<Outcome> {
        let words = [&["-n", &self.namespace][..], words].concat();
        self.kubectl.run_with_input(&words, input).await
    }

    /// Runs kubectl; it must do.
    pub(super) async fn ok(&self, words: &[&str]) -> Result<String> {
        self.run(words, "").await?.stdout_of_success()
    }

    /// Runs kubectl with something on standard input; it must do.
    pub(super) async fn feed(&self, words: &[&str], input: &str) -> Result<String> {
        self.run(words, input).await?.stdout_of_success()
    }

    /// The label `step` must have come to this.
    pub(super) async fn is_at(&self, step: &str) -> Result<()> {
        let got =
            self.ok(&["get", &self.target(), "-o", "jsonpath={.metadata.labels.step}"]).await?;
        ensure!(got == step, "the label step is {got:?}, not {step:?}");
        Ok(())
    }
}
