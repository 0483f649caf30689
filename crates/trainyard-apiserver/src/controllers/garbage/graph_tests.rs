//! Whom changes concern, and that the graph equals the objects after any history.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::controllers::view::Owner;

fn meta(uid: &str, owners: &[(&str, bool)]) -> Meta {
    let owner = |(uid, block): &(&str, bool)| Owner {
        uid: (*uid).to_owned(),
        block_owner_deletion: Some(*block),
        ..Owner::default()
    };
    Meta {
        uid: uid.to_owned(),
        name: uid.to_owned(),
        namespace: "n".to_owned(),
        owner_references: owners.iter().map(owner).collect(),
        ..Meta::default()
    }
}

fn deleting(mut meta: Meta, finalizer: &str) -> Meta {
    meta.deletion_timestamp = Some("2026-01-01T00:00:00Z".to_owned());
    meta.finalizers = vec![finalizer.to_owned()];
    meta
}

fn names(uids: &[Uid]) -> Vec<&str> {
    uids.iter().map(|uid| &**uid).collect()
}

#[test]
fn an_object_with_a_known_owner_needs_no_look() {
    let mut graph = Graph::default();
    assert!(graph.there(0, &meta("job", &[])).is_empty());
    assert!(graph.there(1, &meta("pod", &[("job", true)])).is_empty());
    assert!(graph.there(1, &meta("pod", &[("job", true)])).is_empty());
}

#[test]
fn an_unknown_owner_is_looked_for() {
    let mut graph = Graph::default();
    assert_eq!(names(&graph.there(1, &meta("pod", &[("job", true)]))), ["pod"]);
    assert_eq!(names(&graph.doubtful()), ["pod"]);
    assert!(graph.there(0, &meta("job", &[])).is_empty());
    assert!(graph.doubtful().is_empty());
}

#[test]
fn an_owner_of_another_namespace_is_no_owner() {
    let mut graph = Graph::default();
    let stranger = Meta { namespace: "other".to_owned(), ..meta("job", &[]) };
    graph.there(0, &stranger);
    assert_eq!(names(&graph.there(1, &meta("pod", &[("job", true)]))), ["pod"]);
    let node = Meta { namespace: String::new(), ..meta("node", &[]) };
    graph.there(2, &node);
    assert!(graph.there(1, &meta("lease", &[("node", false)])).is_empty());
}

#[test]
fn dependents_of_what_is_gone_are_looked_at() {
    let mut graph = Graph::default();
    graph.there(0, &meta("job", &[]));
    graph.there(1, &meta("a", &[("job", true)]));
    graph.there(1, &meta("b", &[("job", true)]));
    assert_eq!(names(&graph.gone("job")), ["a", "b"]);
    assert!(graph.gone("job").is_empty());
}

#[test]
fn an_owner_that_waits_is_looked_at_when_a_dependent_goes_or_lets_go() {
    let mut graph = Graph::default();
    graph.there(0, &meta("job", &[]));
    graph.there(1, &meta("a", &[("job", true)]));
    graph.there(1, &meta("b", &[("job", true)]));
    let look = graph.there(0, &deleting(meta("job", &[]), FOREGROUND));
    assert_eq!(names(&look), ["a", "b", "job"]);
    assert_eq!(graph.blocking("job").count(), 2);
    assert!(graph.there(1, &meta("a", &[("job", false)])).contains(&"job".into()));
    assert_eq!(graph.blocking("job").count(), 1);
    assert_eq!(names(&graph.gone("b")), ["job"]);
    assert_eq!(graph.blocking("job").count(), 0);
}

#[test]
fn an_orphaning_owner_is_looked_at_itself() {
    let mut graph = Graph::default();
    graph.there(1, &meta("a", &[("job", true)]));
    assert_eq!(names(&graph.there(0, &deleting(meta("job", &[]), ORPHAN))), ["job"]);
    assert_eq!(graph.dependents("job").count(), 1);
}

#[test]
fn a_list_tells_what_went_while_nobody_looked() {
    let mut graph = Graph::default();
    graph.there(0, &meta("job", &[]));
    graph.there(1, &meta("a", &[("job", true)]));
    assert_eq!(names(&graph.all(0, [].iter())), ["a"]);
    assert!(graph.all(1, [meta("a", &[("job", true)])].iter()).is_empty());
}

/// One step of a history: which object, what owners it has then, or that it goes.
#[derive(Debug, Clone)]
enum Step {
    There(u8, Vec<u8>, bool),
    Gone(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..8_u8, prop::collection::vec(0..8_u8, 0..3), any::<bool>())
            .prop_map(|(uid, owners, block)| Step::There(uid, owners, block)),
        (0..8_u8).prop_map(Step::Gone),
    ]
}

proptest! {
    #[test]
    fn the_index_equals_the_objects(steps in prop::collection::vec(step(), 0..60)) {
        let mut graph = Graph::default();
        let mut model: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for step in steps {
            match step {
                Step::There(uid, mut owners, block) => {
                    owners.sort_unstable();
                    owners.dedup();
                    let owners: Vec<String> = owners.iter().map(u8::to_string).collect();
                    let links: Vec<(&str, bool)> =
                        owners.iter().map(|owner| (owner.as_str(), block)).collect();
                    graph.there(0, &meta(&uid.to_string(), &links));
                    model.insert(uid.to_string(), owners);
                }
                Step::Gone(uid) => {
                    graph.gone(&uid.to_string());
                    model.remove(&uid.to_string());
                }
            }
        }
        prop_assert_eq!(graph.len(), model.len());
        for owner in 0..8_u8 {
            let owner = owner.to_string();
            let wanted: Vec<&str> = model
                .iter()
                .filter(|(_, owners)| owners.contains(&owner))
                .map(|(uid, _)| uid.as_str())
                .collect();
            let found: Vec<&str> = graph.dependents(&owner).map(|(uid, _)| &**uid).collect();
            prop_assert_eq!(found, wanted);
        }
        let wanted: Vec<&str> = model
            .iter()
            .filter(|(_, owners)| owners.iter().any(|owner| !model.contains_key(owner)))
            .map(|(uid, _)| uid.as_str())
            .collect();
        let doubtful = graph.doubtful();
        prop_assert_eq!(names(&doubtful), wanted);
    }
}
