//! The schema of Command.
//!
//! Owns its fields. They stand at the top of the object, as the reference has them.

use serde_json::{Value, json};

use super::{
    fields::{choice, object, resource, text},
    policy::ACTIONS,
};

/// The schema of a Command.
pub(super) fn schema() -> Value {
    let mut target = object(
        "The object that is told, by its name and its uid.",
        &json!({
            "apiVersion": text("Group and version of the object: batch.volcano.sh/v1alpha1."),
            "blockOwnerDeletion": {
                "type": "boolean",
                "description": "Has no meaning here; owner references have it.",
            },
            "controller": {
                "type": "boolean",
                "description": "Has no meaning here; owner references have it.",
            },
            "kind": text("Kind of the object: Job."),
            "name": text("Name of the object."),
            "uid": text("Identity of the object: a later one of the same name is not meant."),
        }),
    );
    // Queues are told as well.
    let actions: Vec<_> = ACTIONS.into_iter().chain(["OpenQueue", "CloseQueue"]).collect();
    target["required"] = json!(["apiVersion", "kind", "name", "uid"]);
    resource(
        "Something that a job is told to do. It is carried out at most once and then deleted.",
        &json!({
            "action": choice(
                &actions,
                "What is to be done. AbortJob stops a job so that ResumeJob can go on with it.",
            ),
            "message": text("Why, for people."),
            "reason": text("Why, in one word."),
            "target": target,
        }),
        json!([
            {
                "rule": "has(self.action)",
                "reason": "FieldValueRequired",
                "fieldPath": ".action",
                "message": "must be given, for example AbortJob",
            },
            {
                "rule": "has(self.target)",
                "reason": "FieldValueRequired",
                "fieldPath": ".target",
                "message": "must name the object that is told: apiVersion, kind, name and uid",
            },
        ]),
    )
}
