//! Tests only: a job and its objects in memory, with the few rules of the API server that matter
//! to a plan, and a kubelet whose every move is told.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use trainyard_api::{Condition, ConditionType, JobStatus, Meta, TfJob, names};

use super::{Observed, plan};
use crate::{
    aid::{Aid, ClassFacts, GroupFacts},
    child::Child,
    config::{Config, Gang},
    outcome::{Tongue, outcome_events},
    plan::{Event, Mark, Plan, Write},
    view::{PodView, ServiceView},
};

mod nodes;

/// A job and what it owns.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) config: Config,
    pub(crate) now: Timestamp,
    pub(crate) spec: Value,
    pub(crate) status: Value,
    pub(crate) pods: BTreeMap<String, Value>,
    pub(crate) services: BTreeMap<String, Value>,
    pub(crate) groups: BTreeMap<String, Value>,
    /// Priority classes and their worth.
    pub(crate) classes: BTreeMap<String, i64>,
    pub(crate) group_writes: usize,
    pub(crate) deleted: bool,
    pub(crate) events: Vec<Event>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) status_writes: usize,
    pub(crate) creates: Vec<String>,
    pub(crate) deletes: Vec<String>,
    pub(crate) name: String,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) generation: i64,
    pub(crate) refused: Option<String>,
    pub(crate) create_failure: Option<String>,
    /// Pods that have gone and had been restarted in place, until a status is written.
    pub(crate) departed: Vec<Arc<PodView>>,
    /// UIDs of pods whose nodes are lost, and since when.
    lost: BTreeMap<String, Timestamp>,
    pending_since: Option<Timestamp>,
    uids: u64,
}

/// A replica with one container.
pub(crate) fn replica(replicas: u32, policy: &str) -> Value {
    json!({"replicas": replicas, "restartPolicy": policy, "template": template()})
}

/// The smallest pod template.
pub(crate) fn template() -> Value {
    json!({"spec": {"containers": [{"name": "tensorflow", "image": "tf"}]}})
}

impl World {
    /// A world with this specification, nothing else.
    pub(crate) fn new(spec: Value) -> Self {
        Self {
            config: Config::default(),
            now: Timestamp::from_second(1_800_000_000).unwrap(),
            spec,
            status: Value::Null,
            pods: BTreeMap::new(),
            services: BTreeMap::new(),
            groups: BTreeMap::new(),
            classes: BTreeMap::new(),
            group_writes: 0,
            deleted: false,
            events: Vec::new(),
            marks: Vec::new(),
            status_writes: 0,
            creates: Vec::new(),
            deletes: Vec::new(),
            name: "j".into(),
            annotations: BTreeMap::new(),
            generation: 1,
            refused: None,
            create_failure: None,
            departed: Vec::new(),
            lost: BTreeMap::new(),
            pending_since: None,
            uids: 0,
        }
    }

    /// A world with these replicas.
    pub(crate) fn with(replicas: &[(&str, u32, &str)]) -> Self {
        let specs: serde_json::Map<String, Value> = replicas
            .iter()
            .map(|(kind, count, policy)| ((*kind).to_owned(), replica(*count, policy)))
            .collect();
        Self::new(json!({"tfReplicaSpecs": specs}))
    }

    /// Sets a field of the run policy.
    pub(crate) fn policy(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.spec["runPolicy"][key] = value.into();
        self
    }

    /// Jobs are gangs of this scheduler.
    pub(crate) fn gang(mut self, scheduler: &str) -> Self {
        self.config.gang = Gang::by_scheduler(scheduler);
        self
    }

    fn job(&self) -> TfJob {
        let meta = Meta {
            name: self.name.clone(),
            namespace: "ns".into(),
            uid: "job-uid".into(),
            generation: self.generation,
            annotations: self.annotations.clone(),
            ..Meta::default()
        };
        let text = json!({"metadata": {}, "spec": self.spec, "status": self.status}).to_string();
        let mut job: TfJob = serde_json::from_str(&text).unwrap();
        job.metadata = meta;
        job
    }

    /// Plans without carrying anything out.
    pub(crate) fn plan(&self) -> Plan {
        let pods: Vec<Arc<PodView>> =
            self.pods.values().map(|pod| Arc::new(self.view(pod))).collect();
        let services: Vec<Arc<ServiceView>> = self
            .services
            .values()
            .map(|service| Arc::new(ServiceView::deserialize(service).unwrap()))
            .collect();
        let groups: Vec<Arc<Aid<GroupFacts>>> =
            self.groups.values().map(|group| Arc::new(Aid::deserialize(group).unwrap())).collect();
        let class = |(name, value): (&String, &i64)| {
            let facts = ClassFacts { value: *value };
            Arc::new(Aid { name: name.as_str().into(), facts, ..Aid::default() })
        };
        let classes: Vec<Arc<Aid<ClassFacts>>> = self.classes.iter().map(class).collect();
        let job = self.job();
        let seen = Observed {
            job: &job,
            pods: &pods,
            departed: &self.departed,
            services: &services,
            groups: &groups,
            classes: &classes,
            counts_pending_since: self.pending_since,
            refused: self.refused.as_deref(),
            create_failure: self.create_failure.as_deref(),
        };
        plan(&seen, self.now, &self.config)
    }

    /// Plans and carries out until nothing is left to do now; the number of passes is bounded.
    pub(crate) fn settle(&mut self) -> Plan {
        for _ in 0..20 {
            if self.deleted {
                return Plan::default();
            }
            let plan = self.plan();
            if plan.is_idle() {
                self.pending_since =
                    plan.counts_pending.then(|| self.pending_since.unwrap_or(self.now));
                return plan;
            }
            self.carry_out(&plan);
        }
        unreachable!("the planner does not come to rest: {:?}", self.plan());
    }

    /// Waits until held-back counts are written as well.
    pub(crate) fn settle_counts(&mut self) {
        self.settle();
        self.pass_ms(self.config.counts_delay_ms);
        self.settle();
    }

    /// Carries out all writes of a plan.
    pub(crate) fn carry_out(&mut self, plan: &Plan) {
        self.pending_since = plan.counts_pending.then(|| self.pending_since.unwrap_or(self.now));
        for stage in &plan.stages {
            let outcomes: Vec<_> = stage.writes.iter().map(|write| (write, Ok(()))).collect();
            for write in &stage.writes {
                self.write(write);
            }
            self.events.extend(outcome_events(
                &outcomes,
                self.config.events_each,
                Tongue::Kubeflow,
            ));
            self.events.extend(stage.events.iter().cloned());
        }
    }

    /// Carries out one write.
    pub(crate) fn write(&mut self, write: &Write) {
        match write {
            Write::Create(Child::Pod, create) => {
                assert!(!self.pods.contains_key(&create.name), "{} exists", create.name);
                let body = self.born(&create.body);
                self.pods.insert(create.name.clone(), body);
                self.creates.push(create.name.clone());
            }
            Write::Create(Child::Service, create) => {
                assert!(!self.services.contains_key(&create.name), "{} exists", create.name);
                let body = self.born(&create.body);
                self.services.insert(create.name.clone(), body);
            }
            Write::Delete(Child::Pod, delete) => {
                assert_eq!(self.pods[&delete.name]["metadata"]["uid"], delete.uid.as_str());
                self.deletes.push(delete.name.clone());
                let forced = delete.grace_seconds == Some(0);
                self.delete_pod_with(&delete.name, forced);
            }
            Write::Delete(Child::Service, delete) => {
                self.services.remove(&delete.name).unwrap();
            }
            Write::Create(child, create) if Some(*child) == self.config.gang.child() => {
                assert!(!self.groups.contains_key(&create.name), "{} exists", create.name);
                let mut body = self.born(&create.body);
                body["status"] = json!({});
                self.groups.insert(create.name.clone(), body);
                self.group_writes += 1;
            }
            Write::Patch(child, patch) if Some(*child) == self.config.gang.child() => {
                let group = self.groups.get_mut(&patch.name).unwrap();
                assert_eq!(group["metadata"]["uid"], patch.uid.as_str());
                merge(group, &patch.body);
                self.group_writes += 1;
            }
            Write::Delete(child, delete) if Some(*child) == self.config.gang.child() => {
                let group = self.groups.remove(&delete.name).unwrap();
                assert_eq!(group["metadata"]["uid"], delete.uid.as_str());
                self.group_writes += 1;
            }
            Write::Create(..) | Write::Patch(..) | Write::Delete(..) => {
                panic!("a TFJob does not need {write:?}")
            }
            Write::PatchStatus { patch, marks } => {
                merge(&mut self.status, patch);
                self.marks.extend(marks);
                self.status_writes += 1;
                self.pending_since = None;
                self.departed.clear();
            }
            Write::DeleteJob(_) => {
                self.deleted = true;
                self.pods.clear();
                self.services.clear();
                self.groups.clear();
            }
        }
    }

    fn born(&mut self, body: &Value) -> Value {
        self.uids += 1;
        let mut body = body.clone();
        body["metadata"]["uid"] = format!("uid-{}", self.uids).into();
        body["metadata"]["resourceVersion"] = self.uids.to_string().into();
        body["metadata"]["labels"]["generation"] = self.generation.to_string().into();
        body["status"] = json!({"phase": "Pending"});
        body
    }

    /// Lets time pass.
    pub(crate) fn pass_ms(&mut self, ms: i64) {
        self.now = self.now.checked_add(SignedDuration::from_millis(ms)).unwrap();
    }

    /// A pod, by `worker-0`.
    pub(crate) fn pod(&mut self, replica: &str) -> &mut Value {
        self.pods.get_mut(&format!("j-{replica}")).unwrap()
    }

    /// Whether the replica has a pod.
    pub(crate) fn has(&self, replica: &str) -> bool {
        self.pods.contains_key(&format!("j-{replica}"))
    }

    /// The kubelet starts a pod.
    pub(crate) fn start(&mut self, replica: &str) {
        self.find_node_of(replica);
        let since = self.now.to_string();
        self.pod(replica)["status"] = json!({"phase": "Running", "containerStatuses": [
            {"name": "tensorflow", "restartCount": 0, "state": {"running": {"startedAt": since}}}
        ]});
    }

    /// The kubelet starts all pods that wait.
    pub(crate) fn start_all(&mut self) {
        let names: Vec<String> = self
            .pods
            .iter()
            .filter(|(_, pod)| pod["status"]["phase"] == "Pending")
            .map(|(name, _)| name.trim_start_matches("j-").to_owned())
            .collect();
        for name in names {
            self.start(&name);
        }
    }

    /// A pod's program ends for good; the pod ends with it.
    pub(crate) fn exit(&mut self, replica: &str, code: i64) {
        self.terminate(replica, code);
        self.publish_end(replica);
    }

    /// A pod's program ends; its kubelet has not published the pod's final phase yet.
    pub(crate) fn terminate(&mut self, replica: &str, code: i64) {
        let now = self.now.to_string();
        let pod = self.pod(replica);
        let before = pod["status"]["containerStatuses"][0].clone();
        let since = &before["state"]["running"]["startedAt"];
        let reason = if code == 0 { "Completed" } else { "Error" };
        pod["status"] = json!({"phase": "Running", "containerStatuses": [{"name": "tensorflow",
            "restartCount": before["restartCount"].as_i64().unwrap_or(0),
            "lastState": before["lastState"].as_object().cloned().unwrap_or_default(),
            "state": {"terminated": {"exitCode": code, "reason": reason, "startedAt": since,
                "finishedAt": now, "message": format!("last words of {replica}\n")}}}]});
    }

    /// The kubelet publishes the final phase of a pod whose program has ended.
    pub(crate) fn publish_end(&mut self, replica: &str) {
        let status = &mut self.pod(replica)["status"];
        let end = &status["containerStatuses"][0]["state"]["terminated"]["exitCode"];
        if let Some(code) = end.as_i64() {
            status["phase"] = if code == 0 { "Succeeded" } else { "Failed" }.into();
        }
    }

    /// The kubelet restarts a container in place.
    pub(crate) fn restart_in_place(&mut self, replica: &str, count: i64) {
        let pod = self.pod(replica);
        pod["status"]["containerStatuses"][0]["restartCount"] = count.into();
        pod["status"]["containerStatuses"][0]["lastState"] =
            json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    }

    /// Carries out only what a plan says of the status: everything else is refused.
    pub(crate) fn settle_refused(&mut self, words: &str) {
        self.create_failure = Some(words.to_owned());
        for _ in 0..20 {
            let plan = self.plan();
            self.pending_since =
                plan.counts_pending.then(|| self.pending_since.unwrap_or(self.now));
            let statuses: Vec<Write> = plan
                .writes()
                .filter(|write| matches!(write, Write::PatchStatus { .. }))
                .cloned()
                .collect();
            if statuses.is_empty() {
                return;
            }
            for write in &statuses {
                self.write(write);
            }
        }
        unreachable!("the planner does not come to rest: {:?}", self.plan());
    }

    /// A condition of the job that holds.
    pub(crate) fn holding(&self, kind: ConditionType) -> Option<Condition> {
        self.typed().condition(kind).filter(|condition| condition.holds()).cloned()
    }

    /// Somebody deletes a pod; one that has ended goes at once.
    pub(crate) fn delete_pod(&mut self, replica: &str) {
        self.delete_pod_with(&format!("j-{replica}"), false);
    }

    fn delete_pod_with(&mut self, name: &str, forced: bool) {
        let due = self.now.checked_add(SignedDuration::from_secs(30)).unwrap().to_string();
        let Some(pod) = self.pods.get_mut(name) else {
            return;
        };
        let ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        if ended || forced {
            self.pods.remove(name);
        } else if pod["metadata"]["deletionTimestamp"].is_null() {
            pod["metadata"]["deletionTimestamp"] = due.into();
            pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
        }
    }

    /// The kubelets finish all deletions under way.
    pub(crate) fn finish_deletions(&mut self) {
        self.pods.retain(|_, pod| pod["metadata"]["deletionTimestamp"].is_null());
    }

    /// The group; null when there is none.
    pub(crate) fn group(&self) -> &Value {
        self.groups.get(&self.name).unwrap_or(&Value::Null)
    }

    /// The gang scheduler puts the group into this phase.
    pub(crate) fn group_phase(&mut self, phase: &str) {
        if let Some(group) = self.groups.get_mut(&self.name) {
            group["status"] = json!({"phase": phase});
        }
    }

    /// The gang scheduler has no room and says so.
    pub(crate) fn hold_up(&mut self, message: &str) {
        self.groups.get_mut(&self.name).unwrap()["status"] = json!({"phase": "Pending", "conditions": [{"type": "Unschedulable", "status": "True",
                "reason": "NotEnoughResources", "message": message}]});
    }

    /// The status, typed.
    pub(crate) fn typed(&self) -> JobStatus {
        serde_json::from_value(self.status.clone()).unwrap_or_default()
    }

    /// Conditions in short: `Running F`.
    pub(crate) fn conditions(&self) -> Vec<String> {
        let short = |c: &Condition| format!("{:?} {}", c.kind, if c.holds() { "T" } else { "F" });
        self.typed().conditions.iter().map(short).collect()
    }

    /// Names of pods that are there.
    pub(crate) fn pod_names(&self) -> Vec<&str> {
        self.pods.keys().map(String::as_str).collect()
    }

    /// Reasons of the events told so far.
    pub(crate) fn reasons(&self) -> Vec<&str> {
        self.events.iter().map(|event| &*event.reason).collect()
    }

    /// Pods of replicas that are not being deleted.
    pub(crate) fn live_replicas(&self) -> Vec<String> {
        let mut live: Vec<String> = self
            .pods
            .values()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
            .map(|pod| {
                let labels = &pod["metadata"]["labels"];
                let text = |key: &str| labels[key].as_str().unwrap_or("?").to_owned();
                format!("{}-{}", text(names::LABEL_TYPE), text(names::LABEL_INDEX))
            })
            .collect();
        live.sort();
        live
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, change) in changes {
        if change.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], change);
        }
    }
}
