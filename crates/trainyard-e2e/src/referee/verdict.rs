//! Whether Volcano was to do what a scenario says: the known differences.
//!
//! Must not play anything.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, anyhow};
use serde::Deserialize;

const WRITTEN: &str = include_str!("differences.yaml");

/// Why scenarios fail on Volcano, by name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Differences {
    always: BTreeMap<String, String>,
    sometimes: BTreeMap<String, String>,
}

/// How a scenario went.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Volcano does the same.
    Agrees,
    /// It does something else, as is known.
    Differs(String),
    /// Either of them is wrong, or the list is.
    Wrong(anyhow::Error),
}

impl Differences {
    pub(super) fn known() -> Result<Self> {
        serde_saphyr::from_str(WRITTEN).context("reading the known differences")
    }

    /// What a result means.
    pub(super) fn judge(&self, name: &str, result: Result<()>) -> Verdict {
        match (self.always.get(name), self.sometimes.get(name), result) {
            (Some(_), _, Ok(())) => Verdict::Wrong(anyhow!(
                "Volcano does the same by now: take the line out of differences.yaml"
            )),
            (None, _, Ok(())) => Verdict::Agrees,
            (Some(why), ..) | (_, Some(why), _) => Verdict::Differs(why.clone()),
            (None, None, Err(error)) => Verdict::Wrong(error),
        }
    }

    /// Lines about scenarios that are not there.
    pub(super) fn strays<'a>(&'a self, names: &[&str]) -> Vec<&'a str> {
        let lines = self.always.keys().chain(self.sometimes.keys()).map(String::as_str);
        lines.filter(|line| !names.contains(line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios;

    fn one(section: &str) -> Differences {
        let mut all = Differences { always: BTreeMap::new(), sometimes: BTreeMap::new() };
        let list = if section == "always" { &mut all.always } else { &mut all.sometimes };
        list.insert("it".to_owned(), "why".to_owned());
        all
    }

    #[test]
    fn what_is_known_to_differ_must_and_what_may_may() {
        let failed = || Err(anyhow!("other pods"));
        for (list, name, result, wanted) in [
            (one("always"), "it", failed(), "Differs(\"why\")"),
            (one("sometimes"), "it", failed(), "Differs(\"why\")"),
            (one("sometimes"), "it", Ok(()), "Agrees"),
            (one("always"), "other", Ok(()), "Agrees"),
        ] {
            assert_eq!(format!("{:?}", list.judge(name, result)), wanted);
        }
        assert!(matches!(one("always").judge("it", Ok(())), Verdict::Wrong(_)));
        assert!(matches!(one("always").judge("other", failed()), Verdict::Wrong(_)));
    }

    #[test]
    fn every_line_is_about_a_scenario() {
        let scenarios = scenarios::of_volcano_jobs();
        let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        assert_eq!(Differences::known().unwrap().strays(&names), Vec::<&str>::new());
    }
}
