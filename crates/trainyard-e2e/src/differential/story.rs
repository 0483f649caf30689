//! Stories: requests one after the other, read from the files in `cases/`.
//!
//! Owns the form of those files. Must not know how requests are sent or compared.

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

/// The topics, each a file.
const TOPICS: [(&str, &str); 18] = [
    ("definitions", include_str!("cases/definitions.yaml")),
    ("defaults", include_str!("cases/defaults.yaml")),
    ("deletes", include_str!("cases/deletes.yaml")),
    ("discovery", include_str!("cases/discovery.yaml")),
    ("jobs", include_str!("cases/jobs.yaml")),
    ("lists", include_str!("cases/lists.yaml")),
    ("namespaces", include_str!("cases/namespaces.yaml")),
    ("nodes", include_str!("cases/nodes.yaml")),
    ("patches", include_str!("cases/patches.yaml")),
    ("pod-security", include_str!("cases/pod-security.yaml")),
    ("reviews", include_str!("cases/reviews.yaml")),
    ("rights", include_str!("cases/rights.yaml")),
    ("subresources", include_str!("cases/subresources.yaml")),
    ("tables", include_str!("cases/tables.yaml")),
    ("tfjobs", include_str!("cases/tfjobs.yaml")),
    ("trials", include_str!("cases/trials.yaml")),
    ("watches", include_str!("cases/watches.yaml")),
    ("writes", include_str!("cases/writes.yaml")),
];

/// A story.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Story {
    /// What it shows; `topic/` is put before it.
    #[serde(rename = "story")]
    pub(super) name: String,
    /// Its requests.
    pub(super) steps: Vec<Step>,
    /// Whether it is played before the others, on servers that nobody else changes.
    #[serde(default)]
    pub(super) first: bool,
    /// All that its file says, to know which values were asked for by name.
    #[serde(skip)]
    text: &'static str,
}

/// One request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// Method and path: `GET pods/a` or `GET /apis/…`. Paths without a slash at the front are in the
    /// core group and the story's namespace.
    pub(super) send: String,
    /// The body.
    #[serde(default)]
    pub(super) body: Option<Value>,
    /// The body as it is written, for what is no JSON.
    #[serde(default)]
    pub(super) text: Option<String>,
    /// `Content-Type`, or a short name of one.
    #[serde(default, rename = "as")]
    pub(super) media: Option<String>,
    /// `Accept`, or a short name of one.
    #[serde(default)]
    pub(super) accept: Option<String>,
    /// In whose name the request is sent; else the administrator's.
    #[serde(default)]
    pub(super) user: Option<String>,
    /// The groups that one is in.
    #[serde(default)]
    pub(super) groups: Vec<String>,
    /// Under which name the body of the answer is kept.
    #[serde(default)]
    pub(super) keep: Option<String>,
    /// The request is sent once for each of these.
    #[serde(default)]
    each: Vec<String>,
    /// The request is sent until the answer is so.
    #[serde(default)]
    pub(super) until: Option<Until>,
    /// How much of the answers is compared.
    #[serde(default)]
    pub(super) parts: Parts,
    /// The places that are compared, as JSON pointers into the answer; all when there is none.
    #[serde(default)]
    pub(super) only: Vec<String>,
}

/// Until when a request is repeated.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Until {
    /// A JSON pointer into `{code, body, …}`.
    pub(super) at: String,
    /// What stands there then.
    pub(super) is: Value,
}

/// How much of the answers is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Parts {
    /// Everything.
    #[default]
    All,
    /// The real server's lists may have more elements: kinds that are not served here.
    Items,
    /// Its maps may have more members, too.
    Members,
}

impl Story {
    /// The namespace in which it plays.
    pub(super) fn namespace(&self) -> String {
        let words = self.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        words.take(50).collect::<String>().trim_end_matches('-').to_ascii_lowercase()
    }

    pub(super) fn text(&self) -> &'static str {
        self.text
    }

    pub(super) fn requests(&self) -> usize {
        self.steps.iter().map(|step| step.each().len()).sum()
    }
}

impl Step {
    /// What `${each}` stands for, one after the other; once nothing when it is not used.
    pub(super) fn each(&self) -> Vec<&str> {
        if self.each.is_empty() {
            return vec![""];
        }
        self.each.iter().map(String::as_str).collect()
    }

    /// Whether a place of the answer counts.
    pub(super) fn compares(&self, at: &str) -> bool {
        let is_inside = |place: &String| at.strip_prefix(place.as_str());
        let mut inside = self.only.iter().filter_map(is_inside);
        self.only.is_empty() || inside.any(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// How the request is told.
    pub(super) fn title(&self, each: &str) -> String {
        self.send.replace("${each}", each)
    }
}

/// `y` and `n` are names here.
pub(super) fn options() -> serde_saphyr::Options {
    serde_saphyr::options! { strict_booleans: true }
}

/// All stories.
pub(super) fn all() -> Result<Vec<Story>> {
    let mut all = Vec::new();
    for (topic, text) in TOPICS {
        let stories: Vec<Story> = serde_saphyr::from_str_with_options(text, options())
            .with_context(|| format!("cases/{topic}.yaml"))?;
        all.extend(stories.into_iter().map(|story| Story {
            name: format!("{topic}/{}", story.name),
            text,
            ..story
        }));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn stories_can_be_read_and_have_places_of_their_own() {
        let stories = all().unwrap();
        let places: HashSet<String> = stories.iter().map(Story::namespace).collect();
        assert_eq!(places.len(), stories.len());
        let requests: usize = stories.iter().map(Story::requests).sum();
        assert!(requests >= 150, "only {requests} requests");
    }
}
