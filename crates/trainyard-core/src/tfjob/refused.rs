//! Objects of a job that the API server refuses to create: by a quota, by Pod Security, by a webhook.
//!
//! Owns the condition that says so in the server's words. Must not decide when it is tried again.

use trainyard_api::ConditionType;

use super::{conditions, draft::Draft};

/// Keeps the condition up to date. It stays until everything that is due could be created, or is not
/// asked for any more; `is_complete` says that nothing is left to create now, whatever was refused before.
pub(super) fn update(draft: &mut Draft<'_>, is_complete: bool) {
    match draft.seen.create_failure {
        _ if is_complete => {
            conditions::remove(&mut draft.status, ConditionType::ReplicaFailure);
        }
        Some(words) => {
            draft.update(ConditionType::ReplicaFailure, "FailedCreate", words.to_owned());
        }
        None => {}
    }
}
