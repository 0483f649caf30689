//! The job kinds Trainyard runs: their types, names and labels, defaults, validation rules and CRDs.
//!
//! Owns everything that can be said about a job without looking at a cluster. It must not know
//! clients, clocks, files or an async runtime; text comes in and goes out as JSON values.

#[doc(hidden)]
pub mod cases;
pub mod convert;
pub mod crd;
pub mod limits;
pub mod meta;
pub mod names;
pub use trainyard_schema::quantity;
pub mod replica;
pub mod spec;
pub mod status;
pub mod tfjob;
pub mod time;
pub mod validate;
pub mod volcano;

pub use convert::{ConvertError, convert};
pub use crd::tfjob_crd;
pub use meta::{Meta, OwnerRef};
pub use replica::{ReplicaId, ReplicaType};
pub use spec::{
    CleanPodPolicy, ReplicaSpec, RestartPolicy, RestartScope, RunPolicy, SchedulingPolicy,
    SpecError, SuccessPolicy, TensorBoard, TfJobSpec,
};
pub use status::{
    Condition, ConditionType, Failure, FailureKind, JobStatus, ReplicaRecord, ReplicaStatus,
    UnavailableReplica,
};
pub use tfjob::TfJob;
pub use validate::{Violation, validate};
