//! Names, labels and constants of Volcano's kinds that clients, services and scripts rely on.
//!
//! One place for every string of the contract; must not build whole objects.

/// `apiVersion` of Job.
pub const API_VERSION: &str = "batch.volcano.sh/v1alpha1";
/// Kind of the job.
pub const KIND: &str = "Job";
/// Plural name in paths.
pub const PLURAL: &str = "jobs";
/// Name of the custom resource definition.
pub const CRD_NAME: &str = "jobs.batch.volcano.sh";

/// Label and annotation: the job.
pub const LABEL_JOB: &str = "volcano.sh/job-name";
/// Label: the job's namespace.
pub const LABEL_NAMESPACE: &str = "volcano.sh/job-namespace";
/// Label and annotation: the task.
pub const LABEL_TASK: &str = "volcano.sh/task-spec";
/// Label and annotation: the index in the task.
pub const LABEL_INDEX: &str = "volcano.sh/task-index";
/// Label and annotation: the queue.
pub const LABEL_QUEUE: &str = "volcano.sh/queue-name";
/// Annotation: version of the job that a pod was made for.
pub const ANNOTATION_VERSION: &str = "volcano.sh/job-version";
/// Annotation: how often the job had been restarted when a pod was made.
pub const ANNOTATION_RETRY: &str = "volcano.sh/job-retry-count";
/// Annotation: job and task.
pub const ANNOTATION_TEMPLATE: &str = "volcano.sh/template-uid";
/// Annotation: the controller is about to delete the pod itself.
pub const ANNOTATION_OUT_OF_SYNC: &str = "volcano.sh/controller-out-of-sync";
/// Annotation: the PodGroup of a pod.
pub const ANNOTATION_GROUP: &str = "scheduling.k8s.io/group-name";

/// The scheduler of jobs that name none.
pub const SCHEDULER: &str = "volcano";
/// The queue of jobs that name none.
pub const QUEUE: &str = "default";
/// How often a job or the containers of a task may be restarted unless it says otherwise.
pub const MAX_RETRY: i64 = 3;
/// Component under which events are reported.
pub const EVENT_SOURCE: &str = "vc-controller-manager";
