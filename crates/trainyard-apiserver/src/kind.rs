//! A row of the table of kinds: everything the generic verbs need to know of one kind.
//!
//! Built-in kinds have their rows in [`crate::kinds`]; a definition makes a row in [`crate::crd`].
//! Must not know how requests arrive or how objects are stored.

use std::sync::{Arc, LazyLock};

use serde_json::Value;
use trainyard_schema::{FieldError, golang, structural::Schema};

use crate::{failure::Failure, kinds::naming, openapi::types, request::numbers};

/// Which part of an object a write is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but the status, where the kind has a status of its own.
    Main,
    /// The `/status` subresource.
    Status,
}

/// One kind.
#[expect(clippy::struct_field_names, reason = "the words of the API's own description of kinds")]
pub(crate) struct Kind {
    /// The API group; empty for the core.
    pub(crate) group: String,
    /// `Pod`.
    pub(crate) kind: String,
    /// `PodList`.
    pub(crate) list_kind: String,
    /// `pods`.
    pub(crate) plural: String,
    /// `pod`.
    pub(crate) singular: String,
    /// `po`.
    pub(crate) short_names: Vec<String>,
    /// `all`.
    pub(crate) categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub(crate) namespaced: bool,
    /// The served versions, the preferred one first.
    pub(crate) versions: Vec<Version>,
    /// Under which name its objects are stored: `pods`, `tfjobs.kubeflow.org`. Two rows with the
    /// same name are two views of the same objects.
    pub(crate) storage: String,
    /// What `apiVersion` stored texts have; for a view (events.k8s.io) it differs from the group's.
    pub(crate) storage_api_version: String,
    /// Whether it came by a definition; then there is no strategic merge.
    pub(crate) defined: bool,
    /// What may be done with it.
    pub(crate) verbs: Verbs,
    /// What is special about it.
    pub(crate) rules: Arc<dyn Rules>,
}

/// What may be done with a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbs {
    /// Everything.
    All,
    /// Only asked, never stored: reviews.
    CreateOnly,
}

/// One served version of a kind.
pub(crate) struct Version {
    /// `v1`.
    pub(crate) name: String,
    /// What its objects look like.
    pub(crate) schema: LazySchema,
    /// Whether `/status` is written apart.
    pub(crate) has_status: bool,
    /// Where `/scale` finds its numbers.
    pub(crate) scale: Option<Scale>,
    /// The warning that every use gets, for versions that are going away.
    pub(crate) deprecation: Option<String>,
    /// What `kubectl get` shows.
    pub(crate) columns: Columns,
}

/// What the objects of a version look like.
pub(crate) struct LazySchema {
    /// The schema of a definition; the open one for a built-in kind.
    schema: Arc<Schema>,
    /// The name of a built-in kind's definition, as `io.k8s.api.core.v1.Pod`; else empty.
    definition: &'static str,
}

/// Built-in kinds are told by types, not by a schema: what this one says holds for all of them.
static OPEN: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::open()));

impl LazySchema {
    /// That of a definition.
    pub(crate) fn ready(schema: Arc<Schema>) -> Self {
        Self { schema, definition: "" }
    }

    /// One of the embedded types.
    pub(crate) fn built_in(definition: &'static str) -> Self {
        Self { schema: Arc::clone(&OPEN), definition }
    }

    /// The schema; one that allows everything for a built-in kind.
    pub(crate) fn get(&self) -> Arc<Schema> {
        Arc::clone(&self.schema)
    }

    /// The name of a built-in kind's definition; empty for a defined one.
    pub(crate) fn definition(&self) -> &'static str {
        self.definition
    }

    /// Brings an object from a request into the form in which it is worked on and stored: what is
    /// unknown goes (and is told, as `spec.containers[0].bar`), defaults of the schema come. Fails in
    /// the words of the real decoder when a value has the wrong type.
    pub(crate) fn read(&self, object: &mut Value) -> Result<Vec<String>, String> {
        if !self.definition.is_empty() {
            return types::read(self.definition, object);
        }
        let mut unknown = types::read_metadata(object)?;
        unknown.extend(self.schema.unknown_fields(object));
        self.schema.prune(object);
        self.schema.default(object);
        numbers::whole(object);
        Ok(unknown)
    }

    /// The type of a built-in kind, for strategic merges.
    pub(crate) fn shape(&self) -> Option<&'static types::Node> {
        types::shape(self.definition)
    }
}

/// The paths of a scale subresource, in the definition's form (`.spec.replicas`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) selector: Option<String>,
}

/// What `kubectl get` shows of a kind.
#[derive(Debug, Clone)]
pub(crate) enum Columns {
    /// A built-in kind: its columns are code, found by [`Kind::storage`].
    BuiltIn,
    /// `additionalPrinterColumns` of a definition's version, as written there.
    Defined(Vec<Value>),
}

/// What rules may look at beside the object itself.
pub(crate) trait World: Send + Sync {
    /// One object as stored, by its kind's storage name.
    fn get(&self, storage: &str, namespace: &str, name: &str) -> Option<Value>;
    /// All objects of a kind, or those of one namespace.
    fn list(&self, storage: &str, namespace: Option<&str>) -> Vec<Value>;
    /// Whether something holds for a pod that is bound to a node. Pods whose text has not this word in
    /// quotes may be left out.
    fn some_pod(
        &self,
        node: &str,
        namespace: &str,
        _word: &str,
        holds: &dyn Fn(&Value) -> bool,
    ) -> bool {
        let pods = self.list("pods", Some(namespace));
        pods.iter().any(|pod| pod["spec"]["nodeName"] == node && holds(pod))
    }
    /// The time, as RFC 3339 with seconds: `2026-11-16T05:40:00Z`.
    fn now(&self) -> String;
}

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    /// `system:serviceaccount:default:default`.
    pub(crate) name: String,
    /// Of an account, its object's; else mostly empty.
    pub(crate) uid: String,
    /// `system:masters`.
    pub(crate) groups: Vec<String>,
    /// What a token says beside.
    pub(crate) extra: Vec<(String, Vec<String>)>,
}

/// How a delete goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grace {
    /// The kind knows no grace: what nothing holds goes at once, as it is.
    None,
    /// The object is marked and goes when its kubelet says so, or at once when these are none.
    Seconds(i64),
}

/// What is special about a kind. Everything has an answer that suits a kind without peculiarities.
/// Objects come with `apiVersion` and `kind` of the stored version.
pub(crate) trait Rules: Send + Sync {
    /// Fills in what is left out, as the version's defaults say; on everything that is read from a
    /// request. (Defaults that the schema holds are applied before.)
    fn default(&self, _object: &mut Value) {}

    /// What admission changes or refuses at creation, looking at other objects.
    fn admit(&self, _object: &mut Value, _world: &dyn World) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether a write of this object takes something that no two objects may have. Such writes go one
    /// after the other, from admission until they are stored.
    fn is_exclusive(&self, _object: &Value) -> bool {
        false
    }

    /// Clears or sets what a creator may not or need not say (status, generation).
    fn prepare_create(&self, _object: &mut Value) {}

    /// What is wrong with a new object, its metadata apart.
    fn validate_create(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What is wrong with a name; with the beginning of one when the rest is generated.
    fn name_faults(&self, name: &str, is_prefix: bool) -> Vec<String> {
        naming::subdomain(&naming::masked(name, is_prefix))
    }

    /// Keeps what this part of a write may not change, and counts generations.
    fn prepare_update(&self, _new: &mut Value, _old: &Value, _part: Part) {}

    /// What admission changes or refuses in a change, looking at other objects.
    fn admit_update(
        &self,
        _new: &mut Value,
        _old: &Value,
        _part: Part,
        _world: &dyn World,
    ) -> Result<(), Failure> {
        Ok(())
    }

    /// What is wrong with a change, its metadata apart.
    fn validate_update(&self, _new: &Value, _old: &Value, _part: Part) -> Vec<FieldError> {
        Vec::new()
    }

    /// Words of warning about an object that is accepted.
    fn warnings(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Whether field selectors may name a field, beside `metadata.name` and `metadata.namespace`.
    fn is_selectable(&self, _field: &str) -> bool {
        false
    }

    /// What is said of a field that selectors may not name.
    fn not_selectable(&self, field: &str) -> String {
        let field = golang::quote(field);
        format!(
            "{field} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )
    }

    /// The values of those fields; what is absent is the empty text.
    fn fields(&self, _object: &Value) -> Vec<(Box<str>, Box<str>)> {
        Vec::new()
    }

    /// How long a deletion may take; `asked` is what the request said.
    fn grace(&self, _object: &Value, _asked: Option<i64>) -> Grace {
        Grace::None
    }

    /// Says that the dependents of a deleted object stay unless the request says otherwise, in the
    /// words of a warning to those who did not say.
    fn leaves_dependents(&self) -> Option<&'static str> {
        None
    }

    /// Turns an object of this row's version into the stored form (two views of one kind).
    fn to_stored(&self, object: Value) -> Value {
        object
    }

    /// The answer to an object that is only asked ([`Verbs::CreateOnly`]).
    fn answer(&self, object: Value, _caller: &Caller) -> Result<Value, Failure> {
        Ok(object)
    }

    /// The way back. `None` when stored texts are served as they are.
    fn served(&self, _object: &Value) -> Option<Value> {
        None
    }
}

impl Kind {
    /// A served version by its name.
    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// `v1` or `kubeflow.org/v1`.
    pub(crate) fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }
}
