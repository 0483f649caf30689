//! Tests only: a Volcano Job and its objects in memory, with the few rules of the API server that
//! matter to a plan, a scheduler that admits and a kubelet whose every move is told.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use trainyard_api::volcano::{JobPhase, VolcanoJob, VolcanoStatus};

use super::{Observed, plan};
use crate::{
    child::Child,
    config::Config,
    node::on_lost_node,
    plan::{Event, Mark, Plan, Write},
    view::{PodView, Unreachable},
};

/// A job and what it owns.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) config: Config,
    pub(crate) now: Timestamp,
    pub(crate) metadata: Value,
    pub(crate) spec: Value,
    pub(crate) status: Value,
    pub(crate) objects: BTreeMap<(Child, String), Value>,
    pub(crate) classes: Vec<Value>,
    pub(crate) deleted: bool,
    pub(crate) events: Vec<Event>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) status_writes: usize,
    pub(crate) creates: Vec<String>,
    pub(crate) deletes: Vec<String>,
    pub(crate) patches: Vec<String>,
    pub(crate) refused: Option<String>,
    pub(crate) create_failure: Option<String>,
    pub(crate) pending_since: Option<Timestamp>,
    /// Names of pods whose nodes are lost, and since when where that is known.
    pub(crate) lost: BTreeMap<String, Option<Timestamp>>,
    uids: u64,
}

/// A task with one container.
pub(crate) fn task(name: &str, replicas: u32) -> Value {
    json!({"name": name, "replicas": replicas,
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}})
}

/// The manifest of the reference, without the programs.
pub(crate) fn mnist() -> Value {
    let mut worker = task("worker", 2);
    worker["policies"] = json!([{"event": "TaskCompleted", "action": "CompleteJob"}]);
    json!({"minAvailable": 3, "schedulerName": "volcano", "plugins": {"env": [], "svc": []},
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}], "queue": "default",
        "tasks": [task("ps", 1), worker]})
}

impl World {
    /// A world with this specification, nothing else.
    pub(crate) fn new(spec: Value) -> Self {
        Self {
            config: Config::default(),
            now: Timestamp::from_second(1_800_000_000).unwrap(),
            metadata: json!({"name": "j", "namespace": "ns", "uid": "u",
                "creationTimestamp": "2027-01-15T07:59:00Z"}),
            spec,
            status: Value::Null,
            objects: BTreeMap::new(),
            classes: Vec::new(),
            deleted: false,
            events: Vec::new(),
            marks: Vec::new(),
            status_writes: 0,
            creates: Vec::new(),
            deletes: Vec::new(),
            patches: Vec::new(),
            refused: None,
            create_failure: None,
            pending_since: None,
            lost: BTreeMap::new(),
            uids: 0,
        }
    }

    /// A world whose job has started as far as the programs go.
    pub(crate) fn running(spec: Value) -> Self {
        let mut w = Self::new(spec);
        w.run();
        w
    }

    /// Carries out what a plan says of the status alone: objects are refused in these words.
    pub(crate) fn settle_refused(&mut self, words: &str) {
        self.create_failure = Some(words.to_owned());
        for ms in [0, self.config.counts_delay_ms] {
            self.pass_ms(ms);
            for _ in 0..20 {
                let plan = self.plan();
                self.pending_since =
                    plan.counts_pending.then(|| self.pending_since.unwrap_or(self.now));
                let done = |write: &&Write| !matches!(write, Write::Create(..));
                let writes: Vec<Write> = plan.writes().filter(done).cloned().collect();
                for write in &writes {
                    self.write(write);
                }
            }
        }
    }

    /// Admits the group and starts all pods, until nothing is left to do.
    pub(crate) fn run(&mut self) {
        self.settle();
        self.admit();
        self.settle();
        self.start_all();
        self.settle_counts();
    }

    fn all<T: DeserializeOwned>(&self, child: Child) -> Vec<Arc<T>> {
        let of = self.objects.iter().filter(|((kind, _), _)| *kind == child);
        of.map(|(_, object)| Arc::new(T::deserialize(object).unwrap())).collect()
    }

    /// Plans without carrying anything out.
    pub(crate) fn plan(&self) -> Plan {
        let text = json!({"metadata": self.metadata, "spec": self.spec, "status": self.status})
            .to_string();
        let job: VolcanoJob = serde_json::from_str(&text).unwrap();
        let classes: Vec<_> = self
            .classes
            .iter()
            .map(|one| Arc::new(Deserialize::deserialize(one).unwrap()))
            .collect();
        let judged = |pod: Arc<PodView>| match self.lost.get(&*pod.name) {
            Some(since) => on_lost_node(&pod, Unreachable { since: *since }).map_or(pod, Arc::new),
            None => pod,
        };
        let pods: Vec<_> = self.all(Child::Pod).into_iter().map(judged).collect();
        let seen = Observed {
            job: &job,
            pods: &pods,
            services: &self.all(Child::Service),
            config_maps: &self.all(Child::ConfigMap),
            policies: &self.all(Child::NetworkPolicy),
            claims: &self.all(Child::Claim),
            groups: &self.all(Child::PodGroup),
            commands: &self.all(Child::Command),
            classes: &classes,
            counts_pending_since: self.pending_since,
            refused: self.refused.as_deref(),
            create_failure: self.create_failure.as_deref(),
        };
        plan(&seen, self.now, &self.config)
    }

    /// Plans and carries out until nothing is left to do now; the number of passes is bounded.
    pub(crate) fn settle(&mut self) -> Plan {
        for _ in 0..30 {
            if self.deleted {
                return Plan::default();
            }
            let plan = self.plan();
            self.pending_since =
                plan.counts_pending.then(|| self.pending_since.unwrap_or(self.now));
            if plan.is_idle() {
                return plan;
            }
            self.carry_out(&plan);
        }
        unreachable!("the planner does not come to rest: {:#?}", self.plan());
    }

    /// Waits until held-back counts are written as well.
    pub(crate) fn settle_counts(&mut self) {
        self.settle();
        self.pass_ms(self.config.counts_delay_ms);
        self.settle();
    }

    /// Carries out one pass.
    pub(crate) fn step(&mut self) {
        let plan = self.plan();
        self.carry_out(&plan);
    }

    /// Carries out all writes of a plan.
    pub(crate) fn carry_out(&mut self, plan: &Plan) {
        for stage in &plan.stages {
            for write in &stage.writes {
                self.write(write);
            }
            self.events.extend(stage.events.iter().cloned());
        }
    }

    /// Carries out one write.
    pub(crate) fn write(&mut self, write: &Write) {
        match write {
            Write::Create(child, create) => {
                let key = (*child, create.name.clone());
                assert!(!self.objects.contains_key(&key), "{} exists", create.name);
                assert_eq!(create.body["metadata"]["ownerReferences"][0]["uid"], "u");
                let body = self.born(&create.body);
                self.objects.insert(key, body);
                self.creates.push(create.name.clone());
            }
            Write::Patch(child, patch) => {
                let object = self.objects.get_mut(&(*child, patch.name.clone())).unwrap();
                assert_eq!(object["metadata"]["uid"], patch.uid.as_str());
                merge(object, &patch.body);
                self.patches.push(patch.name.clone());
            }
            Write::Delete(child, delete) => {
                let key = (*child, delete.name.clone());
                assert_eq!(self.objects[&key]["metadata"]["uid"], delete.uid.as_str());
                self.deletes.push(delete.name.clone());
                if *child == Child::Pod {
                    self.delete_pod_with(&delete.name, delete.grace_seconds == Some(0));
                } else {
                    self.objects.remove(&key);
                }
            }
            Write::PatchStatus { patch, marks } => {
                merge(&mut self.status, patch);
                self.marks.extend(marks);
                self.status_writes += 1;
                self.pending_since = None;
            }
            Write::DeleteJob(_) => {
                self.deleted = true;
                self.objects.clear();
            }
        }
    }

    fn born(&mut self, body: &Value) -> Value {
        self.uids += 1;
        let mut body = body.clone();
        body["metadata"]["uid"] = format!("uid-{}", self.uids).into();
        body["metadata"]["resourceVersion"] = self.uids.to_string().into();
        if body["kind"] == "Pod" {
            body["status"] = json!({"phase": "Pending"});
        }
        body
    }

    /// Lets time pass.
    pub(crate) fn pass_ms(&mut self, ms: i64) {
        self.now = self.now.checked_add(SignedDuration::from_millis(ms)).unwrap();
    }

    /// Somebody issues a Command.
    pub(crate) fn command(&mut self, name: &str, action: &str) {
        let body = self.born(&json!({"kind": "Command", "metadata": {"name": name},
            "action": action, "target": {"kind": "Job", "uid": "u"}}));
        self.objects.insert((Child::Command, name.to_owned()), body);
    }

    /// The scheduler sets the phase of the PodGroup, if there is one.
    pub(crate) fn set_group(&mut self, phase: &str) {
        if let Some(group) = self.objects.get_mut(&(Child::PodGroup, "j-u".to_owned())) {
            group["status"]["phase"] = phase.into();
        }
    }

    /// The scheduler admits the job.
    pub(crate) fn admit(&mut self) {
        self.set_group("Inqueue");
    }

    /// An object.
    pub(crate) fn object(&self, child: Child, name: &str) -> &Value {
        &self.objects[&(child, name.to_owned())]
    }

    /// Names of the objects of a kind.
    pub(crate) fn names(&self, child: Child) -> Vec<&str> {
        self.objects.keys().filter(|(kind, _)| *kind == child).map(|(_, name)| &**name).collect()
    }

    /// A pod, by `worker-0`.
    pub(crate) fn pod(&mut self, place: &str) -> &mut Value {
        self.objects.get_mut(&(Child::Pod, format!("j-{place}"))).unwrap()
    }

    /// The kubelet starts a pod.
    pub(crate) fn start(&mut self, place: &str) {
        self.pod(place)["status"] = json!({"phase": "Running",
            "containerStatuses": [{"name": "c", "ready": true, "restartCount": 0,
                "state": {"running": {}}}]});
    }

    /// The kubelet starts all pods that wait.
    pub(crate) fn start_all(&mut self) {
        for name in self.places() {
            if self.pod(&name)["status"]["phase"] == "Pending" {
                self.start(&name);
            }
        }
    }

    /// Places of all pods: `worker-0`.
    pub(crate) fn places(&self) -> Vec<String> {
        self.names(Child::Pod).iter().map(|name| name.replacen("j-", "", 1)).collect()
    }

    /// A pod's program ends, and the pod with it.
    pub(crate) fn exit(&mut self, place: &str, code: i64) {
        self.terminate(place, code);
        self.publish_end(place);
    }

    /// The kubelet publishes the final phase of a pod whose program has ended.
    pub(crate) fn publish_end(&mut self, place: &str) {
        let status = &mut self.pod(place)["status"];
        let end = &status["containerStatuses"][0]["state"]["terminated"];
        let phase = if end["exitCode"] == 0 { "Succeeded" } else { "Failed" };
        if end.is_object() {
            status["phase"] = phase.into();
        }
    }

    /// A pod's program ends; its kubelet has not published the pod's final phase yet.
    pub(crate) fn terminate(&mut self, place: &str, code: i64) {
        let reason = if code == 0 { "Completed" } else { "Error" };
        let message = format!("last words of {place}\n");
        let now = self.now.to_string();
        self.pod(place)["status"] = json!({"phase": "Running", "containerStatuses": [{"name": "c",
            "state": {"terminated": {"exitCode": code, "reason": reason, "message": message,
                "finishedAt": now}}}]});
    }

    /// The kubelet has restarted a container in place so often.
    pub(crate) fn restart_in_place(&mut self, place: &str, count: i64) {
        self.pod(place)["status"]["containerStatuses"][0]["restartCount"] = count.into();
    }

    /// Somebody deletes a pod; one that has ended goes at once.
    pub(crate) fn delete_pod(&mut self, place: &str) {
        self.delete_pod_with(&format!("j-{place}"), false);
    }

    /// A pod is gone.
    pub(crate) fn vanish(&mut self, place: &str) {
        self.objects.remove(&(Child::Pod, format!("j-{place}")));
    }

    fn delete_pod_with(&mut self, name: &str, forced: bool) {
        let due = self.now.checked_add(SignedDuration::from_secs(30)).unwrap().to_string();
        let key = (Child::Pod, name.to_owned());
        let Some(pod) = self.objects.get_mut(&key) else {
            return;
        };
        let ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        if ended || forced {
            self.objects.remove(&key);
        } else if pod["metadata"]["deletionTimestamp"].is_null() {
            pod["metadata"]["deletionTimestamp"] = due.into();
            pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
        }
    }

    /// The kubelets finish all deletions under way.
    pub(crate) fn finish_deletions(&mut self) {
        self.objects.retain(|_, object| object["metadata"]["deletionTimestamp"].is_null());
    }

    /// The status, typed.
    pub(crate) fn typed(&self) -> VolcanoStatus {
        serde_json::from_value(self.status.clone()).unwrap_or_default()
    }

    /// The phase.
    pub(crate) fn phase(&self) -> JobPhase {
        self.typed().state.phase.unwrap()
    }

    /// Phases in the order of their last visit.
    pub(crate) fn visited(&self) -> Vec<JobPhase> {
        self.typed().conditions.iter().map(|record| record.status).collect()
    }

    /// Texts of the events of that reason.
    pub(crate) fn told(&self, reason: &str) -> Vec<&str> {
        let of = self.events.iter().filter(|event| &*event.reason == reason);
        of.map(|event| event.message.as_str()).collect()
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
