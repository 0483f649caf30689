//! What decisions read of the objects beside a job's pods and services, and nothing more.
//!
//! Reading one of these from an API object skips all other fields. Must not decide anything.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use trainyard_api::Meta;

/// An object of which some facts are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aid<F> {
    /// Its namespace; empty for what belongs to the whole cluster.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its identity.
    pub uid: Box<str>,
    /// Its version.
    pub version: u64,
    /// UID of what it belongs to: its controller, or what it is aimed at.
    pub owner: Option<Box<str>>,
    /// Whether it is being deleted.
    pub is_leaving: bool,
    /// What else is known.
    pub facts: F,
}

/// What is read of an object beside its metadata.
pub trait Facts: DeserializeOwned + Default + Clone + PartialEq + Send + Sync + 'static {
    /// UID of what the object belongs to; its controller unless the kind says otherwise.
    fn owner<'a>(&'a self, meta: &'a Meta) -> Option<&'a str> {
        meta.controller_uid()
    }
}

impl<'de, F: Facts> Deserialize<'de> for Aid<F> {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(bound = "F: Facts")]
        struct Wire<F> {
            metadata: Meta,
            #[serde(flatten)]
            facts: F,
        }
        let Wire { metadata: meta, facts } = Wire::<F>::deserialize(reader)?;
        Ok(Self {
            version: meta.version(),
            owner: facts.owner(&meta).map(Into::into),
            is_leaving: meta.is_terminating(),
            namespace: meta.namespace.into(),
            name: meta.name.into(),
            uid: meta.uid.into(),
            facts,
        })
    }
}

/// Of a network policy and the like it matters only that they are there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Presence {}

impl Facts for Presence {}

/// What a config map says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ConfigMapFacts {
    /// Its entries.
    pub data: BTreeMap<String, String>,
}

impl Facts for ConfigMapFacts {}

/// What a PodGroup asks for and how far it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GroupFacts {
    /// What it asks for.
    pub spec: GroupSpec,
    /// How far it is.
    pub status: GroupStatus,
}

impl Facts for GroupFacts {}

/// What a PodGroup asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupSpec {
    /// How many members it needs at least.
    pub min_member: i64,
    /// How many of each task it needs at least.
    pub min_task_member: BTreeMap<String, i64>,
    /// What its minimum asks for, as it is written.
    #[serde(deserialize_with = "as_text")]
    pub min_resources: BTreeMap<String, String>,
    /// Its queue.
    pub queue: String,
    /// Its priority class.
    pub priority_class_name: String,
    /// How long it may wait (scheduler plugins only).
    pub schedule_timeout_seconds: Option<i64>,
}

/// How far a PodGroup is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GroupStatus {
    /// Its phase; empty while nobody has looked at it.
    pub phase: String,
    /// What is said of it, the newest last.
    pub conditions: Vec<GroupCondition>,
}

/// What is said of a PodGroup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupCondition {
    /// `Unschedulable` or `Scheduled`.
    pub r#type: String,
    /// `True` or not.
    pub status: String,
    /// One word.
    pub reason: String,
    /// The same for people.
    pub message: String,
    /// Since when.
    pub last_transition_time: Option<Timestamp>,
}

/// Amounts may be written as numbers or as text.
fn as_text<'de, D: serde::Deserializer<'de>>(
    reader: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let written: Option<BTreeMap<String, serde_json::Value>> = Option::deserialize(reader)?;
    let text = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(written.into_iter().flatten().map(|(name, value)| (name, text(value))).collect())
}

impl GroupStatus {
    /// Whether pods of the group may be made.
    #[must_use]
    pub fn may_run(&self) -> bool {
        !matches!(self.phase.as_str(), "" | "Pending")
    }

    /// Whether enough pods of the group have had nodes.
    #[must_use]
    pub fn is_placed(&self) -> bool {
        !matches!(self.phase.as_str(), "" | "Pending" | "Inqueue")
    }

    /// The newest condition that holds and is not `Scheduled`.
    #[must_use]
    pub fn obstacle(&self) -> Option<&GroupCondition> {
        let holding = self.conditions.iter().filter(|one| one.status == "True");
        // Volcano replaces conditions in place: the order of the list says little.
        let newest = holding.max_by_key(|one| one.last_transition_time)?;
        (newest.r#type != "Scheduled").then_some(newest)
    }
}

/// What a Command asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CommandFacts {
    /// The action, as it is written.
    pub action: String,
    /// What it is aimed at.
    pub target: CommandTarget,
}

/// What a Command is aimed at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CommandTarget {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Identity.
    pub uid: String,
}

impl Facts for CommandFacts {
    fn owner<'a>(&'a self, meta: &'a Meta) -> Option<&'a str> {
        let aimed = Some(self.target.uid.as_str()).filter(|uid| !uid.is_empty());
        aimed.or_else(|| meta.owner_references.first().map(|owner| owner.uid.as_str()))
    }
}

/// What a priority class is worth.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClassFacts {
    /// Its worth.
    pub value: i64,
}

impl Facts for ClassFacts {}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_group_is_read_with_its_obstacle() {
        let group: Aid<GroupFacts> = from_value(json!({
            "metadata": {"name": "g", "uid": "u", "resourceVersion": "7",
                "ownerReferences": [{"uid": "j", "controller": true}]},
            "spec": {"minMember": 3, "minResources": {"cpu": "3", "pods": 3}},
            "status": {"phase": "Inqueue", "conditions": [
                {"type": "Scheduled", "status": "True"},
                {"type": "Unschedulable", "status": "True", "reason": "r", "message": "m"}]},
        }))
        .unwrap();
        assert_eq!((group.version, group.owner.as_deref()), (7, Some("j")));
        assert_eq!(group.facts.spec.min_member, 3);
        assert_eq!(group.facts.spec.min_resources["pods"], "3");
        assert!(group.facts.status.may_run());
        assert_eq!(group.facts.status.obstacle().unwrap().message, "m");
    }

    #[test]
    fn a_command_belongs_to_what_it_is_aimed_at() {
        let command: Aid<CommandFacts> = from_value(json!({
            "metadata": {"name": "c"}, "action": "AbortJob", "target": {"kind": "Job", "uid": "j"},
        }))
        .unwrap();
        assert_eq!(
            (command.owner.as_deref(), command.facts.action.as_str()),
            (Some("j"), "AbortJob")
        );
    }

    #[test]
    fn of_a_policy_it_matters_that_it_is_there() {
        let policy: Aid<Presence> =
            from_value(json!({"metadata": {"name": "p"}, "spec": {"podSelector": {}}})).unwrap();
        assert_eq!(&*policy.name, "p");
    }
}
