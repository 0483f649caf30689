//! Which objects a command is about: `tfjobs`, `pods a b`, `pod/a tfjob/b`, `tfjobs,pods`, `mnist`.
//!
//! Must not know what is done with them.

use super::job;
use crate::cluster::{Cluster, Kind, Kinds};
use crate::failure::Failure;

/// Objects of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) kind: Kind,
    /// Their names; none for all of them.
    pub(super) names: Vec<String>,
}

/// Reads the words of a command line. Without any, TFJobs are meant; one word alone that is no kind
/// is a TFJob's name.
pub(super) fn read(kinds: &Kinds, words: &[String]) -> Result<Vec<Selection>, Failure> {
    let Some((first, names)) = words.split_first() else {
        return Ok(vec![Selection { kind: jobs(kinds)?.clone(), names: Vec::new() }]);
    };
    if words.iter().any(String::is_empty) {
        // Most likely a variable of a script that is not set.
        return Err(Failure::usage("a word is empty: write a kind or a name"));
    }
    if words.iter().any(|word| word.contains('/')) {
        return by_pairs(kinds, words);
    }
    if names.is_empty() && !first.contains(',') && is_name_only(kinds, first) {
        return Ok(vec![Selection { kind: jobs(kinds)?.clone(), names: vec![first.clone()] }]);
    }
    let mut selections: Vec<Selection> = Vec::new();
    for word in first.split(',').filter(|word| !word.is_empty()) {
        let category = kinds.category(word);
        let found = if category.is_empty() {
            vec![kinds.known(word).map_err(|failure| several_jobs(failure, words))?]
        } else {
            category
        };
        for kind in found {
            if !selections.iter().any(|selection| selection.kind == *kind) {
                selections.push(Selection { kind: kind.clone(), names: names.to_vec() });
            }
        }
    }
    if selections.is_empty() {
        return Err(Failure::usage(format!("{first:?} names no kind")));
    }
    Ok(selections)
}

fn jobs(kinds: &Kinds) -> Result<&Kind, Failure> {
    kinds.known(trainyard_api::names::CRD_NAME)
}

/// Whether a word is a job's name: no kind, and not nearly one.
fn is_name_only(kinds: &Kinds, word: &str) -> bool {
    kinds.find(word).is_none() && kinds.category(word).is_empty()
}

/// Several words are a kind and names: jobs need theirs said.
fn several_jobs(failure: Failure, words: &[String]) -> Failure {
    failure.or_hint(|| {
        let jobs = format!("several TFJobs are written as `tfjobs {}`", words.join(" "));
        (words.len() > 1).then_some(jobs)
    })
}

/// What a word may have meant that was taken for a job's name and is none.
pub(super) fn advise(kinds: &Kinds, words: &[String], failure: Failure) -> Failure {
    failure.or_hint(|| {
        let [word] = words else { return None };
        let near = kinds.nearest(word).filter(|_| !word.contains('/'))?;
        kinds.find(word).is_none().then(|| format!("it is no kind either: did you mean {near:?}?"))
    })
}

/// `kind/name` each.
fn by_pairs(kinds: &Kinds, words: &[String]) -> Result<Vec<Selection>, Failure> {
    let mut selections: Vec<Selection> = Vec::new();
    for word in words {
        let pair = word
            .split_once('/')
            .filter(|(kind, name)| !kind.is_empty() && !name.is_empty() && !name.contains('/'));
        let (kind, name) = pair.ok_or_else(|| {
            Failure::usage(format!("{word:?} is not of the form KIND/NAME"))
                .hint("write either KIND NAME… or KIND/NAME…")
        })?;
        let kind = kinds.known(kind)?;
        match selections.last_mut().filter(|last| last.kind == *kind) {
            Some(last) => last.names.push(name.to_owned()),
            None => selections.push(Selection { kind: kind.clone(), names: vec![name.to_owned()] }),
        }
    }
    Ok(selections)
}

/// Reads a selector for commands that change what it selects: a blank one would be everything.
pub(super) fn labels(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("no label is named: write it like team=vision, or say --all".to_owned());
    }
    Ok(text.to_owned())
}

/// The same as [`read`], with a look at the server: one word alone that is no TFJob's name may be a
/// Volcano Job's.
pub(super) async fn resolve(
    cluster: &Cluster,
    kinds: &Kinds,
    words: &[String],
) -> Result<Vec<Selection>, Failure> {
    let mut selections = read(kinds, words)?;
    let volcanos = kinds.find(trainyard_api::volcano::names::CRD_NAME);
    if let ([word], [selection], Some(_)) = (words, selections.as_mut_slice(), volcanos)
        && !word.contains('/')
        && selection.kind.is_tfjob()
        && selection.names == [word.as_str()]
        && let Some((kind, _)) = job::named(cluster, kinds, word).await?
    {
        selection.kind = kind;
    }
    Ok(selections)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> Kinds {
        let mut pods = Kind::example("", "v1", "Pod", "pods", true);
        pods.categories = vec!["all".into()];
        let mut services = Kind::example("", "v1", "Service", "services", true);
        services.categories = vec!["all".into()];
        let jobs = Kind::example("kubeflow.org", "v1", "TFJob", "tfjobs", true);
        Kinds(vec![pods, services, jobs])
    }

    fn chosen(words: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let selections = read(&kinds(), &words).map_err(|failure| failure.to_string())?;
        Ok(selections
            .into_iter()
            .map(|selection| format!("{} {}", selection.kind.plural, selection.names.join("+")))
            .collect())
    }

    #[test]
    fn words_choose_objects() {
        for (words, expected) in [
            (&[][..], &["tfjobs "][..]),
            (&["pods"], &["pods "]),
            (&["pods", "a", "b"], &["pods a+b"]),
            (&["tfjobs,pod"], &["tfjobs ", "pods "]),
            (&["tfjob/a", "tfjob/b", "pod/c"], &["tfjobs a+b", "pods c"]),
            (&["mnist"], &["tfjobs mnist"]),
            (&["all"], &["pods ", "services "]),
        ] {
            assert_eq!(chosen(words).unwrap(), expected, "{words:?}");
        }
    }

    #[test]
    fn what_is_unclear_is_refused() {
        // Never a job's name: what stands after it would be one too.
        assert!(chosen(&["pdos", "a"]).unwrap_err().contains("did you mean \"pods\"?"));
        assert!(chosen(&["pod/a", "b"]).unwrap_err().contains("KIND/NAME"));
        assert!(chosen(&["pod/"]).is_err());
        assert!(chosen(&[","]).is_err());
        for words in [&[""][..], &["pods", ""], &["pods", "a", ""]] {
            assert!(chosen(words).unwrap_err().contains("a word is empty"), "{words:?}");
        }
    }
}
