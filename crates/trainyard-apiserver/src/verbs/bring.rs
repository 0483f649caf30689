//! Definitions that the program itself brings along.
//!
//! Whoever builds them has them checked by tests: here they are stored as they are, because checking
//! them takes most of the time in which a yard starts. What is stored already is left to the caller.

use serde_json::Value;

use super::create::complete;
use crate::api::{Api, DEFINITIONS};
use crate::crd::definition::established;
use crate::failure::Failure;
use crate::kind::World as _;
use crate::object::Draft;
use crate::store::{Change, CommitError, Expect, Key};

/// Stores definitions that are not there yet. Answers with those of a name that is there with another
/// specification: to change what is served is a matter of the ordinary verbs.
pub(crate) async fn bring(api: &Api, definitions: Vec<Value>) -> Result<Vec<Value>, Failure> {
    let table = api.registry.table();
    let rows = table.rows();
    let Some(row) = rows.iter().find(|row| row.storage == DEFINITIONS) else {
        return Err(Failure::no_such_path());
    };
    let mut known = api.list(DEFINITIONS, None);
    let mut others = Vec::new();
    for mut object in definitions {
        row.rules.default(&mut object);
        if let Some(old) = known.iter().find(|old| is_named_alike(old, &object)) {
            if old["spec"] != object["spec"] {
                others.push(object);
            }
            continue;
        }
        complete(api, &mut object)?;
        row.rules.prepare_create(&mut object);
        established(&mut object, &known, &api.clock.text());
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let key = Key::new(DEFINITIONS, "", name);
        let Some(members) = object.as_object() else { continue };
        let fields = row.rules.fields(&object).into_boxed_slice();
        let draft = Draft::of(&row.storage_api_version, &row.kind, members, fields);
        match api.store.commit(key, Expect::Absent, Change::Put(draft)).await {
            Ok(_) => known.push(object),
            Err(CommitError::Exists(_)) => others.push(object),
            Err(error) => return Err(Failure::internal(error.to_string())),
        }
    }
    // Nothing was taken away, so nothing is told to be gone.
    api.define();
    Ok(others)
}

fn is_named_alike(one: &Value, other: &Value) -> bool {
    one["metadata"]["name"] == other["metadata"]["name"]
}
