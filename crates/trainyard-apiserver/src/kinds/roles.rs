//! Roles and who has them: stored and checked; nobody is refused by them here.

use serde_json::{Value, json};
use trainyard_schema::FieldError;

use super::{
    json::{faults, fill, items, items_mut, text},
    metadata::{self, shown},
    naming,
};
use crate::kind::{Part, Rules};

/// The rules of roles, of a namespace or of all.
pub(super) struct Roles {
    pub(super) namespaced: bool,
}

/// The rules of bindings, in a namespace or in all.
pub(super) struct Bindings {
    pub(super) namespaced: bool,
}

const GROUP: &str = "rbac.authorization.k8s.io";

impl Rules for Roles {
    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (at, rule) in items(object, "rules").iter().enumerate() {
            errors.extend(self.rule(rule, &format!("rules[{at}]")));
        }
        errors
    }

    fn name_faults(&self, name: &str, is_prefix: bool) -> Vec<String> {
        naming::path_segment(name, is_prefix)
    }

    fn validate_update(&self, new: &Value, _old: &Value, _part: Part) -> Vec<FieldError> {
        let mut errors = metadata::again(&new["metadata"], self.namespaced, self);
        errors.extend(self.validate_create(new));
        errors
    }
}

impl Roles {
    fn rule(&self, rule: &Value, path: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if items(rule, "verbs").is_empty() {
            let words = "verbs must contain at least one value";
            errors.push(FieldError::required(format!("{path}.verbs"), words));
        }
        let addresses = &rule["nonResourceURLs"];
        if !items(rule, "nonResourceURLs").is_empty() {
            let path = format!("{path}.nonResourceURLs");
            if self.namespaced {
                let words = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(&path, addresses.clone(), words));
            }
            let both = ["apiGroups", "resources", "resourceNames"];
            if both.iter().any(|key| !items(rule, key).is_empty()) {
                let words = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(&path, addresses.clone(), words));
            }
            return errors;
        }
        for (key, what) in [("apiGroups", "api group"), ("resources", "resource")] {
            if items(rule, key).is_empty() {
                let words = format!("resource rules must supply at least one {what}");
                errors.push(FieldError::required(format!("{path}.{key}"), words));
            }
        }
        errors
    }
}

impl Rules for Bindings {
    fn default(&self, object: &mut Value) {
        let role = &mut object["roleRef"];
        if text(role, "apiGroup").is_empty() {
            role["apiGroup"] = json!(GROUP);
        }
        for subject in items_mut(object, "subjects") {
            if matches!(text(subject, "kind"), "User" | "Group") {
                fill(subject, "apiGroup", GROUP);
            }
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let role = &object["roleRef"];
        let group = text(role, "apiGroup");
        if group != GROUP {
            errors.push(FieldError::not_supported("roleRef.apiGroup", group, &[GROUP]));
        }
        let kinds: &[&str] =
            if self.namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
        let kind = text(role, "kind");
        if !kinds.contains(&kind) {
            errors.push(FieldError::not_supported("roleRef.kind", kind, kinds));
        }
        let name = text(role, "name");
        if name.is_empty() {
            errors.push(FieldError::required("roleRef.name", ""));
        } else {
            errors.extend(faults(naming::path_segment(name, false), name, "roleRef.name"));
        }
        for (at, subject) in items(object, "subjects").iter().enumerate() {
            errors.extend(self.subject(subject, &format!("subjects[{at}]")));
        }
        errors
    }

    fn name_faults(&self, name: &str, is_prefix: bool) -> Vec<String> {
        naming::path_segment(name, is_prefix)
    }

    fn validate_update(&self, new: &Value, old: &Value, _part: Part) -> Vec<FieldError> {
        let mut errors = metadata::again(&new["metadata"], self.namespaced, self);
        errors.extend(self.validate_create(new));
        if new["roleRef"] != old["roleRef"] {
            let role = &new["roleRef"];
            // The real server shows its own form of the reference.
            let value = format!(
                "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
                role["apiGroup"], role["kind"], role["name"]
            );
            errors.push(shown("roleRef", &value, "cannot change roleRef"));
        }
        errors
    }
}

impl Bindings {
    fn subject(&self, subject: &Value, path: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
        if name.is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        }
        let group_path = format!("{path}.apiGroup");
        match text(subject, "kind") {
            "ServiceAccount" => {
                if !name.is_empty() {
                    errors.extend(faults(naming::subdomain(name), name, &format!("{path}.name")));
                }
                if !group.is_empty() {
                    errors.push(FieldError::not_supported(group_path, group, &[""]));
                }
                if !self.namespaced && text(subject, "namespace").is_empty() {
                    errors.push(FieldError::required(format!("{path}.namespace"), ""));
                }
            }
            "User" | "Group" => {
                if group != GROUP {
                    errors.push(FieldError::not_supported(group_path, group, &[GROUP]));
                }
            }
            other => errors.push(FieldError::not_supported(
                format!("{path}.kind"),
                other,
                &["ServiceAccount", "User", "Group"],
            )),
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_are_about_something() {
        let role = json!({"rules": [{"apiGroups": [""], "resources": ["pods"]}, {"verbs": ["a"], "nonResourceURLs": ["/x"]}]});
        assert_eq!(
            told(&Roles { namespaced: true }.validate_create(&role)),
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
            ]
        );
    }

    #[test]
    fn bindings_keep_their_role() {
        let rules = Bindings { namespaced: true };
        let mut old = json!({"metadata": {"name": "b", "namespace": "n"}, "roleRef": {"kind": "Role", "name": "a"}, "subjects": [{"kind": "User", "name": "b"}]});
        rules.default(&mut old);
        assert_eq!(old["subjects"][0]["apiGroup"], GROUP);
        assert!(rules.validate_create(&old).is_empty());
        let mut new = old.clone();
        new["roleRef"]["name"] = json!("c");
        assert_eq!(
            told(&rules.validate_update(&new, &old, Part::Main)),
            [
                "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"c\"}: cannot change roleRef"
            ]
        );
    }
}
