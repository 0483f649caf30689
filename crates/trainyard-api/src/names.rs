//! Names, labels and constants that clients, services and scripts rely on.
//!
//! One place for every string of the contract; must not build whole objects.

/// API group of TFJob.
pub const GROUP: &str = "kubeflow.org";
/// Stored version of TFJob.
pub const VERSION: &str = "v1";
/// `apiVersion` of the stored version.
pub const API_VERSION: &str = "kubeflow.org/v1";
/// Versions served beside the stored one, newest first.
pub const LEGACY_VERSIONS: [&str; 3] = ["v1beta2", "v1beta1", "v1alpha2"];
/// Kind of the job.
pub const KIND: &str = "TFJob";
/// Plural name in paths.
pub const PLURAL: &str = "tfjobs";
/// Name of the custom resource definition.
pub const CRD_NAME: &str = "tfjobs.kubeflow.org";

/// Name of the container that trains.
pub const CONTAINER: &str = "tensorflow";
/// Name of the port under which replicas talk to each other.
pub const PORT_NAME: &str = "tfjob-port";
/// Its number unless the manifest says otherwise.
pub const PORT: i64 = 2222;

/// Label: which controller made the object.
pub const LABEL_OPERATOR: &str = "training.kubeflow.org/operator-name";
/// Value of [`LABEL_OPERATOR`].
pub const OPERATOR: &str = "tfjob-controller";
/// Label: the job.
pub const LABEL_JOB: &str = "training.kubeflow.org/job-name";
/// Label: replica type in lower case.
pub const LABEL_TYPE: &str = "training.kubeflow.org/replica-type";
/// Label: replica index.
pub const LABEL_INDEX: &str = "training.kubeflow.org/replica-index";
/// Label: role; only on pods that play the master.
pub const LABEL_ROLE: &str = "training.kubeflow.org/job-role";
/// Value of [`LABEL_ROLE`].
pub const ROLE_MASTER: &str = "master";
/// Label: which attempt of the whole job a pod belongs to (only with `restartScope: Job`).
pub const LABEL_ATTEMPT: &str = "trainyard.dev/attempt";
/// Label: the PodGroup of a pod, as the scheduler plugins read it.
pub const LABEL_PLUGINS_GROUP: &str = "scheduling.x-k8s.io/pod-group";
/// Annotation: the gang a pod belongs to, which starts all together or not at all.
pub const ANNOTATION_GANG: &str = "trainyard.dev/gang";
/// Annotation: how many pods that gang has.
pub const ANNOTATION_GANG_SIZE: &str = "trainyard.dev/gang-size";

/// Annotation: the port of a pod that programs on its node's machine may reach, by number or by name.
/// Trainyard's node opens it on loopback and answers with [`ANNOTATION_ADDRESS`]; others ignore it.
pub const ANNOTATION_EXPOSE: &str = "trainyard.dev/expose";
/// Annotation: where on the node's machine that port is.
pub const ANNOTATION_ADDRESS: &str = "trainyard.dev/address";

/// Component under which events are reported, as users know it.
pub const EVENT_SOURCE: &str = "tf-operator";
/// Lower-case replica type of the TensorBoard pod and service.
pub const TENSORBOARD: &str = "tensorboard";
/// The value of `managedBy` that means "this operator".
pub const MANAGED_BY_US: &str = "kubeflow.org/training-operator";
/// The other value of `managedBy` that is allowed.
pub const MANAGED_BY_MULTIKUEUE: &str = "kueue.x-k8s.io/multikueue";
/// Webhook of the reference operator, left behind by incomplete removal.
pub const REFERENCE_WEBHOOK: &str = "validator.training-operator.kubeflow.org";

/// Longest DNS label.
pub const LABEL_MAX: usize = 63;

/// Name of a replica's pod and service.
#[must_use]
pub fn replica_name(job: &str, replica_type: &str, index: u32) -> String {
    format!("{job}-{replica_type}-{index}")
}
