//! Taints of nodes and what tolerates them.

use serde::Deserialize;

/// A mark on a node that keeps pods away.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub(crate) struct Taint {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) effect: String,
}

/// What a pod puts up with.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub(crate) struct Toleration {
    key: String,
    operator: String,
    value: String,
    effect: String,
}

impl Taint {
    /// Whether it keeps new pods away.
    fn repels(&self) -> bool {
        matches!(self.effect.as_str(), "NoSchedule" | "NoExecute")
    }
}

impl Toleration {
    fn covers(&self, taint: &Taint) -> bool {
        let effect = self.effect.is_empty() || self.effect == taint.effect;
        let key = self.key.is_empty() || self.key == taint.key;
        let value = match self.operator.as_str() {
            "" | "Equal" => self.value == taint.value,
            "Exists" => true,
            _ => false,
        };
        // Without a key everything is meant, which has to be said.
        let said = !self.key.is_empty() || self.operator == "Exists";
        effect && key && value && said
    }
}

/// The first taint that keeps a pod away.
pub(crate) fn repelled<'t>(taints: &'t [Taint], tolerations: &[Toleration]) -> Option<&'t Taint> {
    let borne = |taint: &Taint| tolerations.iter().any(|toleration| toleration.covers(taint));
    taints.iter().find(|taint| taint.repels() && !borne(taint))
}

/// How many taints ask to keep away where that is possible.
pub(crate) fn disliked(taints: &[Taint], tolerations: &[Toleration]) -> i64 {
    let borne = |taint: &Taint| tolerations.iter().any(|toleration| toleration.covers(taint));
    let soft = |taint: &&Taint| taint.effect == "PreferNoSchedule" && !borne(taint);
    i64::try_from(taints.iter().filter(soft).count()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(effect: &str) -> Taint {
        Taint { key: "k".into(), value: "v".into(), effect: effect.into() }
    }

    fn toleration(key: &str, operator: &str, value: &str, effect: &str) -> Toleration {
        Toleration {
            key: key.into(),
            operator: operator.into(),
            value: value.into(),
            effect: effect.into(),
        }
    }

    #[test]
    fn tolerations_cover_what_they_name() {
        let taints = [taint("PreferNoSchedule"), taint("NoSchedule")];
        assert_eq!(repelled(&taints, &[]), Some(&taints[1]));
        for covering in [
            toleration("k", "Equal", "v", ""),
            toleration("k", "", "v", "NoSchedule"),
            toleration("k", "Exists", "", ""),
            toleration("", "Exists", "", ""),
        ] {
            assert_eq!(repelled(&taints, &[covering]), None);
        }
        for other in [
            toleration("k", "Equal", "w", ""),
            toleration("x", "Exists", "", ""),
            toleration("", "", "", ""),
            toleration("k", "Exists", "", "NoExecute"),
        ] {
            assert!(repelled(&taints, &[other]).is_some());
        }
    }
}
