//! Which kinds a server has, and which one a word means: `tfjobs`, `TFJob`, `po`,
//! `jobs.batch.volcano.sh`, `tfjobs.v1beta1.kubeflow.org`.
//!
//! Must not know what is done with them.

use serde_json::Value;
use trainyard_api::volcano::names as volcano;

use super::{Cluster, Error};
use crate::failure::Failure;

/// What newer servers answer with everything at once.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// The plural of Volcano's short name `vcjob`. Volcano does not define it, so kubectl does not take it;
/// people write it all the same.
const VOLCANO_JOBS: &str = "vcjobs";

/// One kind in one version.
#[expect(clippy::struct_field_names, reason = "Kubernetes has its names for them")]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) namespaced: bool,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) verbs: Vec<String>,
}

impl Kind {
    /// `kubeflow.org/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// How kubectl names the kind before a name: `tfjob.kubeflow.org`, `pod`.
    pub(crate) fn word(&self) -> String {
        let kind = self.kind.to_lowercase();
        if self.group.is_empty() { kind } else { format!("{kind}.{}", self.group) }
    }

    /// Whether it is the kind of jobs that this project is about.
    pub(crate) fn is_tfjob(&self) -> bool {
        self.group == trainyard_api::names::GROUP && self.kind == trainyard_api::names::KIND
    }

    /// Whether it is Volcano's kind of jobs.
    pub(crate) fn is_volcano_job(&self) -> bool {
        self.api_version() == volcano::API_VERSION && self.kind == volcano::KIND
    }

    /// Whether its objects are jobs with replicas that work together.
    pub(crate) fn is_training(&self) -> bool {
        self.is_tfjob() || self.is_volcano_job()
    }

    fn is_called(&self, word: &str) -> bool {
        self.plural == word || self.singular == word || self.kind.to_lowercase() == word
    }

    #[cfg(test)]
    pub(crate) fn example(
        group: &str,
        version: &str,
        kind: &str,
        plural: &str,
        namespaced: bool,
    ) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            singular: kind.to_lowercase(),
            namespaced,
            verbs: vec!["list".into()],
            ..Self::default()
        }
    }
}

/// All kinds, those that a bare word is more likely to mean first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kinds(pub(crate) Vec<Kind>);

impl Kinds {
    /// Asks the server.
    pub(crate) async fn of(cluster: &Cluster) -> Result<Self, Error> {
        let mut kinds = Vec::new();
        for root in ["/api", "/apis"] {
            let answer = cluster.document(root, AGGREGATED).await?;
            if answer["kind"] == "APIGroupDiscoveryList" {
                kinds.extend(aggregated(&answer));
            } else {
                for path in plain_paths(root, &answer) {
                    // A group whose own server is away must not hide the others.
                    let Ok(list) = cluster.document(&path, "application/json").await else {
                        continue;
                    };
                    kinds.extend(plain(&list));
                }
            }
        }
        Ok(Self(kinds))
    }

    /// The kind that a word means.
    pub(crate) fn find(&self, word: &str) -> Option<&Kind> {
        let word = word.to_lowercase();
        let named = |kind: &&Kind| kind.is_called(&word);
        let short = |kind: &&Kind| kind.short_names.contains(&word);
        self.0
            .iter()
            .find(named)
            .or_else(|| self.0.iter().find(short))
            .or_else(|| {
                let (name, rest) = word.split_once('.')?;
                let of_name = |kind: &&Kind| {
                    kind.is_called(name) || kind.short_names.iter().any(|short| short == name)
                };
                let group = |kind: &&Kind| of_name(kind) && kind.group == rest;
                let versioned = |kind: &&Kind| {
                    let (version, group) = rest.split_once('.').unwrap_or((rest, ""));
                    of_name(kind) && kind.version == version && kind.group == group
                };
                self.0.iter().find(group).or_else(|| self.0.iter().find(versioned))
            })
            .or_else(|| (word == VOLCANO_JOBS).then(|| self.find(volcano::CRD_NAME)).flatten())
    }

    /// The kinds of a category, as `all`.
    pub(crate) fn category(&self, word: &str) -> Vec<&Kind> {
        let mut found: Vec<&Kind> = Vec::new();
        for kind in &self.0 {
            let new = !found.iter().any(|k| k.group == kind.group && k.plural == kind.plural);
            if new && kind.categories.iter().any(|category| category == word) {
                found.push(kind);
            }
        }
        found
    }

    /// The kind of an object.
    pub(crate) fn exact(&self, api_version: &str, name: &str) -> Option<&Kind> {
        self.0.iter().find(|kind| kind.kind == name && kind.api_version() == api_version)
    }

    /// The kind that a word means, or what to write instead.
    pub(crate) fn known(&self, word: &str) -> Result<&Kind, Failure> {
        self.find(word).ok_or_else(|| {
            let failure = Failure::usage(format!("the server has no kind {word:?}"));
            match self.nearest(word) {
                Some(near) => failure.hint(format!("did you mean {near:?}?")),
                None if word.to_lowercase().starts_with("tfjob") => failure
                    .hint("install the definition of TFJob: trainyard crd | trainyard apply -f -"),
                None if is_volcanos(&word.to_lowercase()) => failure.hint(
                    "install Volcano's definitions: trainyard crd --volcano | trainyard apply -f -",
                ),
                None => failure,
            }
        })
    }

    /// The kind whose name is spelled nearly so.
    pub(crate) fn nearest(&self, word: &str) -> Option<&str> {
        let word = word.to_lowercase();
        let names = self.0.iter().flat_map(|kind| [&kind.plural, &kind.singular]);
        let near = names.map(|name| (distance(&word, name), name.as_str()));
        near.filter(|(distance, _)| *distance <= 2).min().map(|(_, name)| name)
    }
}

/// Whether a word is one for a kind of Volcano's.
fn is_volcanos(word: &str) -> bool {
    let words = ["vcjob", "vcjobs", "vj", "podgroup", "podgroups", "pg", "queue", "queues", "q"];
    words.contains(&word) || word.contains("volcano.sh")
}

/// How many letters have to be changed, added, left out or swapped.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len().abs_diff(other.len()) > 2 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=one.len() {
        let mut next = vec![i];
        for j in 1..=other.len() {
            let same = usize::from(one[i - 1] != other[j - 1]);
            let mut least = (row[j] + 1).min(next[j - 1] + 1).min(row[j - 1] + same);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn aggregated(answer: &Value) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for group in items(&answer["items"]) {
        for version in items(&group["versions"]) {
            for resource in items(&version["resources"]) {
                let kind = text(&resource["responseKind"]["kind"]);
                kinds.push(Kind {
                    group: text(&group["metadata"]["name"]),
                    version: text(&version["version"]),
                    singular: Some(text(&resource["singularResource"]))
                        .filter(|singular| !singular.is_empty())
                        .unwrap_or_else(|| kind.to_lowercase()),
                    kind,
                    plural: text(&resource["resource"]),
                    namespaced: resource["scope"] == "Namespaced",
                    short_names: texts(&resource["shortNames"]),
                    categories: texts(&resource["categories"]),
                    verbs: texts(&resource["verbs"]),
                });
            }
        }
    }
    kinds
}

/// The documents to read where the server does not tell everything at once.
fn plain_paths(root: &str, answer: &Value) -> Vec<String> {
    if root == "/api" {
        return texts(&answer["versions"])
            .iter()
            .map(|version| format!("/api/{version}"))
            .collect();
    }
    items(&answer["groups"])
        .flat_map(|group| items(&group["versions"]))
        .map(|version| format!("/apis/{}", text(&version["groupVersion"])))
        .collect()
}

fn plain(list: &Value) -> Vec<Kind> {
    let all = text(&list["groupVersion"]);
    let (group, version) = all.split_once('/').unwrap_or(("", &all));
    items(&list["resources"])
        .filter(|resource| !text(&resource["name"]).contains('/'))
        .map(|resource| {
            let kind = text(&resource["kind"]);
            Kind {
                group: group.to_owned(),
                version: version.to_owned(),
                singular: Some(text(&resource["singularName"]))
                    .filter(|singular| !singular.is_empty())
                    .unwrap_or_else(|| kind.to_lowercase()),
                kind,
                plural: text(&resource["name"]),
                namespaced: resource["namespaced"] == true,
                short_names: texts(&resource["shortNames"]),
                categories: texts(&resource["categories"]),
                verbs: texts(&resource["verbs"]),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kinds() -> Kinds {
        let mut pods = Kind::example("", "v1", "Pod", "pods", true);
        pods.short_names = vec!["po".into()];
        pods.categories = vec!["all".into()];
        let mut volcanos = Kind::example("batch.volcano.sh", "v1alpha1", "Job", "jobs", true);
        volcanos.short_names = vec!["vcjob".into(), "vj".into()];
        Kinds(vec![
            pods,
            Kind::example("batch", "v1", "Job", "jobs", true),
            Kind::example("kubeflow.org", "v1", "TFJob", "tfjobs", true),
            Kind::example("kubeflow.org", "v1beta1", "TFJob", "tfjobs", true),
            volcanos,
        ])
    }

    #[test]
    fn words_mean_kinds_as_kubectl_takes_them() {
        let kinds = kinds();
        for (word, meaning) in [
            ("pods", "v1 Pod"),
            ("Pod", "v1 Pod"),
            ("po", "v1 Pod"),
            ("jobs", "batch/v1 Job"),
            ("job.batch", "batch/v1 Job"),
            ("jobs.batch.volcano.sh", "batch.volcano.sh/v1alpha1 Job"),
            ("vcjob", "batch.volcano.sh/v1alpha1 Job"),
            ("vj", "batch.volcano.sh/v1alpha1 Job"),
            ("vj.v1alpha1.batch.volcano.sh", "batch.volcano.sh/v1alpha1 Job"),
            ("VCJobs", "batch.volcano.sh/v1alpha1 Job"),
            ("TFJob", "kubeflow.org/v1 TFJob"),
            ("tfjobs.kubeflow.org", "kubeflow.org/v1 TFJob"),
            ("tfjobs.v1beta1.kubeflow.org", "kubeflow.org/v1beta1 TFJob"),
            ("pods.v1", "v1 Pod"),
        ] {
            let found =
                kinds.find(word).map(|kind| format!("{} {}", kind.api_version(), kind.kind));
            assert_eq!(found.as_deref(), Some(meaning), "{word}");
        }
        assert_eq!(kinds.find("jobs.example.org"), None);
        assert!(kinds.find("jobs.batch.volcano.sh").unwrap().is_volcano_job());
        assert!(!kinds.find("jobs").unwrap().is_training());
        assert_eq!(kinds.category("all").len(), 1);
    }

    #[test]
    fn a_slip_is_put_right() {
        let said = kinds().known("pdos").unwrap_err().to_string();
        assert_eq!(said, "error: the server has no kind \"pdos\"\nhint: did you mean \"pods\"?");
        let said = Kinds::default().known("tfjobs").unwrap_err().to_string();
        assert!(said.contains("trainyard crd |"), "{said}");
        for word in ["vcjob", "Queue", "jobs.batch.volcano.sh"] {
            let said = Kinds::default().known(word).unwrap_err().to_string();
            assert!(said.contains("trainyard crd --volcano"), "{said}");
        }
        assert_eq!(distance("pods", "pods"), 0);
        assert_eq!(distance("tfjbos", "tfjobs"), 1);
        assert_eq!(distance("pods", "persistentvolumes"), usize::MAX);
    }

    #[test]
    fn both_ways_of_telling_say_the_same() {
        let whole = json!({"kind": "APIGroupDiscoveryList", "items": [{
            "metadata": {"name": "kubeflow.org"},
            "versions": [{"version": "v1", "resources": [{
                "resource": "tfjobs", "responseKind": {"kind": "TFJob"}, "scope": "Namespaced",
                "singularResource": "tfjob", "verbs": ["get"], "shortNames": ["tfj"],
            }]}],
        }]});
        let groups = json!({"groups": [{"versions": [{"groupVersion": "kubeflow.org/v1"}]}]});
        assert_eq!(plain_paths("/apis", &groups), ["/apis/kubeflow.org/v1"]);
        let list = json!({"groupVersion": "kubeflow.org/v1", "resources": [
            {"name": "tfjobs", "kind": "TFJob", "namespaced": true, "singularName": "tfjob",
             "verbs": ["get"], "shortNames": ["tfj"]},
            {"name": "tfjobs/status", "kind": "TFJob", "namespaced": true, "verbs": ["get"]},
        ]});
        assert_eq!(aggregated(&whole), plain(&list));
        assert_eq!(plain_paths("/api", &json!({"versions": ["v1"]})), ["/api/v1"]);
    }
}
