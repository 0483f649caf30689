//! The cells of built-in kinds.

use super::*;

fn now() -> Timestamp {
    "2026-11-16T06:00:00Z".parse().unwrap()
}

/// The cells of an object that was made five minutes ago.
fn shown(kind: &str, mut object: Value) -> Value {
    object["metadata"] = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    object["metadata"]["name"] = json!("x");
    object["metadata"]["creationTimestamp"] = json!("2026-11-16T05:55:00Z");
    let cells = built_in(kind, &object, now());
    assert_eq!(cells.len(), columns::of_kind(kind).len(), "{kind}");
    Value::Array(cells)
}

/// READY, STATUS and RESTARTS of a pod.
fn pod(spec: &Value, status: &Value) -> (String, String, String) {
    let cells = shown("Pod", json!({"spec": spec, "status": status}));
    let cell = |index: usize| cells[index].as_str().unwrap().to_owned();
    (cell(1), cell(2), cell(3))
}

fn told(ready: &str, status: &str, restarts: &str) -> (String, String, String) {
    (ready.to_owned(), status.to_owned(), restarts.to_owned())
}

fn running(name: &str) -> Value {
    json!({"name": name, "ready": true, "restartCount": 0, "state": {"running": {}}})
}

fn ended(name: &str, code: i64, reason: &str) -> Value {
    let state = json!({"terminated": {"exitCode": code, "reason": reason}});
    json!({"name": name, "ready": false, "restartCount": 0, "state": state})
}

#[test]
fn pods_in_one_word() {
    let one = json!({"containers": [{"name": "a"}]});
    let two = json!({"containers": [{"name": "a"}, {"name": "b"}]});
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let waiting = |reason: &str| json!({"name": "a", "state": {"waiting": {"reason": reason}}});
    let cases = [
        (&one, json!({"phase": "Pending"}), told("0/1", "Pending", "0")),
        (
            &one,
            json!({"phase": "Pending", "containerStatuses": [waiting("ContainerCreating")]}),
            told("0/1", "ContainerCreating", "0"),
        ),
        (
            &one,
            json!({"phase": "Running", "containerStatuses": [running("a")]}),
            told("1/1", "Running", "0"),
        ),
        (
            &one,
            json!({"phase": "Succeeded", "containerStatuses": [ended("a", 0, "Completed")]}),
            told("0/1", "Completed", "0"),
        ),
        (
            &one,
            json!({"phase": "Failed", "containerStatuses": [ended("a", 1, "Error")]}),
            told("0/1", "Error", "0"),
        ),
        (
            &one,
            json!({"phase": "Failed", "containerStatuses": [ended("a", 3, "")]}),
            told("0/1", "ExitCode:3", "0"),
        ),
        (&one, json!({"phase": "Failed", "reason": "Evicted"}), told("0/1", "Evicted", "0")),
        (
            &two,
            json!({"phase": "Running", "conditions": ready, "containerStatuses": [ended("a", 0, "Completed"), running("b")]}),
            told("1/2", "Running", "0"),
        ),
        (
            &two,
            json!({"phase": "Running", "containerStatuses": [ended("a", 0, "Completed"), running("b")]}),
            told("1/2", "NotReady", "0"),
        ),
        (
            &two,
            json!({"phase": "Failed", "containerStatuses": [ended("a", 0, "Completed"), ended("b", 137, "OOMKilled")]}),
            told("0/2", "OOMKilled", "0"),
        ),
        (
            &one,
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
            told("0/1", "SchedulingGated", "0"),
        ),
    ];
    for (spec, status, expected) in cases {
        assert_eq!(pod(spec, &status), expected, "{status}");
    }
}

#[test]
fn restarts_say_when_the_last_was() {
    let spec = json!({"containers": [{"name": "a"}]});
    let last = json!({"terminated": {"exitCode": 1, "finishedAt": "2026-11-16T05:40:00Z"}});
    let state = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let status = json!({"phase": "Running", "containerStatuses": [
        {"name": "a", "restartCount": 4, "lastState": last, "state": state},
    ]});
    assert_eq!(pod(&spec, &status), told("0/1", "CrashLoopBackOff", "4 (20m ago)"));
}

#[test]
fn containers_that_run_first() {
    let spec = json!({
        "initContainers": [{"name": "i"}, {"name": "side", "restartPolicy": "Always"}, {"name": "j"}],
        "containers": [{"name": "a"}],
    });
    let side = json!({"name": "side", "started": true, "ready": true, "restartCount": 2, "state": {"running": {}}});
    let done = ended("i", 0, "Completed");
    let cases = [
        (json!([running("i")]), told("0/2", "Init:0/3", "0")),
        (json!([done, side, running("j")]), told("1/2", "Init:2/3", "2")),
        (json!([ended("i", 2, "Error")]), told("0/2", "Init:Error", "0")),
        (json!([ended("i", 2, "")]), told("0/2", "Init:ExitCode:2", "0")),
        (
            json!([{"name": "i", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]),
            told("0/2", "Init:ImagePullBackOff", "0"),
        ),
    ];
    for (first, expected) in cases {
        let status = json!({"phase": "Pending", "initContainerStatuses": first});
        assert_eq!(pod(&spec, &status), expected, "{status}");
    }
    let status = json!({
        "phase": "Running",
        "initContainerStatuses": [done, side, ended("j", 0, "Completed")],
        "containerStatuses": [running("a")],
    });
    assert_eq!(pod(&spec, &status), told("2/2", "Running", "2"));
}

#[test]
fn pods_that_go() {
    let going = |status: Value| {
        let object =
            json!({"metadata": {"deletionTimestamp": "2026-11-16T05:59:00Z"}, "status": status});
        shown("Pod", object)[2].clone()
    };
    assert_eq!(going(json!({"phase": "Running"})), "Terminating");
    assert_eq!(going(json!({"phase": "Succeeded"})), "Succeeded");
    assert_eq!(going(json!({"phase": "Running", "reason": "NodeLost"})), "Unknown");
}

#[test]
fn where_pods_are() {
    let object = json!({
        "spec": {"nodeName": "n", "readinessGates": [{"conditionType": "g"}, {"conditionType": "h"}]},
        "status": {
            "podIPs": [{"ip": "10.0.0.9"}], "nominatedNodeName": "m",
            "conditions": [{"type": "g", "status": "True"}],
        },
    });
    let cells = shown("Pod", object);
    let wide = |cells: &Value| cells.as_array().unwrap()[4..].to_vec();
    assert_eq!(json!(wide(&cells)), json!(["5m", "10.0.0.9", "n", "m", "1/2"]));
    let bare = shown("Pod", json!({}));
    assert_eq!(json!(wide(&bare)), json!(["5m", "<none>", "<none>", "<none>", "<none>"]));
}

#[test]
fn rows_of_pods_that_are_done_say_so() {
    let phase = |phase: &str| pods::completed(&json!({"status": {"phase": phase}}));
    assert_eq!(
        phase("Succeeded"),
        json!([{"type": "Completed", "status": "True", "reason": "Succeeded", "message": "The pod has completed successfully."}])
    );
    assert_eq!(phase("Failed")[0]["message"], "The pod failed.");
    assert_eq!(phase("Running"), Value::Null);
}

#[test]
fn nodes() {
    let info = json!({"kubeletVersion": "v1", "kernelVersion": "6", "architecture": "amd64"});
    let node = json!({
        "metadata": {"labels": {"node-role.kubernetes.io/b": "", "kubernetes.io/role": "a"}},
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "Unknown"}], "nodeInfo": info,
            "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}],
        },
    });
    let cells = |object| {
        let cells = shown("Node", object);
        let cells: Vec<&str> = cells.as_array().unwrap().iter().filter_map(Value::as_str).collect();
        cells.join("|")
    };
    assert_eq!(
        cells(node),
        "x|NotReady,SchedulingDisabled|a,b|5m|v1|1.2.3.4|<none>|<unknown>|6 (amd64)|<unknown>"
    );
    assert_eq!(
        cells(json!({})),
        "x|Unknown|<none>|5m||<none>|<none>|<unknown>|<unknown>|<unknown>"
    );
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(shown("Node", ready)[1], "Ready");
}

#[test]
fn small_kinds() {
    let cases = [
        ("Namespace", json!({"status": {"phase": "Active"}}), json!(["x", "Active", "5m"])),
        ("ConfigMap", json!({"data": {"a": ""}, "binaryData": {"b": ""}}), json!(["x", 2, "5m"])),
        ("Secret", json!({"type": "Opaque", "data": {"a": ""}}), json!(["x", "Opaque", 1, "5m"])),
        ("ServiceAccount", json!({}), json!(["x", "5m"])),
        (
            "PriorityClass",
            json!({"value": 7, "globalDefault": true, "preemptionPolicy": "Never"}),
            json!(["x", 7, true, "5m", "Never"]),
        ),
        ("Lease", json!({"spec": {"holderIdentity": "me"}}), json!(["x", "me", "5m"])),
        ("RuntimeClass", json!({"handler": "runc"}), json!(["x", "runc", "5m"])),
        (
            "ResourceQuota",
            json!({"status": {"hard": {"pods": "10", "limits.cpu": "2000m"}, "used": {"pods": "3"}}}),
            json!(["x", "pods: 3/10", "limits.cpu: 0/2", "5m"]),
        ),
        (
            "RoleBinding",
            json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [
                {"kind": "User", "name": "u"}, {"kind": "User", "name": "v"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            ]}),
            json!(["x", "Role/r", "5m", "u, v", "", "n/s"]),
        ),
        ("Role", json!({}), json!(["x", "2026-11-16T05:55:00Z"])),
        ("CustomResourceDefinition", json!({}), json!(["x", "2026-11-16T05:55:00Z"])),
    ];
    for (kind, object, expected) in cases {
        assert_eq!(shown(kind, object), expected, "{kind}");
    }
}

#[test]
fn services_and_endpoints() {
    let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "nodePort": 30053}]);
    let balanced = json!({"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"hostname": "h"}]}});
    let addresses = json!([{"ip": "1.1.1.1"}, {"ip": "fd00::1"}]);
    let cases = [
        (
            "Service",
            json!({"spec": {"type": "ClusterIP", "clusterIPs": ["None"], "ports": ports, "selector": {"b": "2", "a": "1"}}}),
            json!(["x", "ClusterIP", "None", "<none>", "80/TCP,53:30053/UDP", "5m", "a=1,b=2"]),
        ),
        (
            "Service",
            json!({"spec": {"type": "LoadBalancer", "externalIPs": ["8.8.8.8"]}, "status": balanced}),
            json!(["x", "LoadBalancer", "<none>", "9.9.9.9,h,8.8.8.8", "<none>", "5m", "<none>"]),
        ),
        (
            "Service",
            json!({"spec": {"type": "LoadBalancer"}}),
            json!(["x", "LoadBalancer", "<none>", "<pending>", "<none>", "5m", "<none>"]),
        ),
        (
            "Service",
            json!({"spec": {"type": "ExternalName", "externalName": "e.x"}}),
            json!(["x", "ExternalName", "<none>", "e.x", "<none>", "5m", "<none>"]),
        ),
        ("Endpoints", json!({}), json!(["x", "<none>", "5m"])),
        (
            "Endpoints",
            json!({"subsets": [{"addresses": addresses, "ports": [{"port": 80}, {"port": 81}]}]}),
            json!(["x", "1.1.1.1:80,[fd00::1]:80,1.1.1.1:81 + 1 more...", "5m"]),
        ),
        (
            "EndpointSlice",
            json!({"addressType": "IPv4", "ports": [{"port": 1}, {"name": "p"}, {}], "endpoints": [{"addresses": ["a"]}]}),
            json!(["x", "IPv4", "1,p,*", "a", "5m"]),
        ),
        (
            "EndpointSlice",
            json!({"addressType": "IPv4"}),
            json!(["x", "IPv4", "<unset>", "<unset>", "5m"]),
        ),
        (
            "NetworkPolicy",
            json!({"spec": {"podSelector": {"matchLabels": {"a": "b"}}}}),
            json!(["x", "a=b", "5m"]),
        ),
        ("NetworkPolicy", json!({"spec": {"podSelector": {}}}), json!(["x", "<none>", "5m"])),
    ];
    for (kind, object, expected) in cases {
        assert_eq!(shown(kind, object), expected, "{kind}");
    }
}

#[test]
fn storage_and_work() {
    let annotated = json!({"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}});
    let capacity = json!({"storage": "1024Mi"});
    let cases = [
        (
            "PersistentVolume",
            json!({
                "spec": {
                    "capacity": capacity, "accessModes": ["ReadWriteMany", "ReadWriteOnce"], "volumeMode": "Block",
                    "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "n", "name": "c"}, "storageClassName": "s",
                },
                "status": {"phase": "Bound"},
            }),
            json!([
                "x", "1Gi", "RWO,RWX", "Retain", "Bound", "n/c", "s", "<unset>", "", "5m", "Block"
            ]),
        ),
        (
            "PersistentVolumeClaim",
            json!({"spec": {"volumeName": "v"}, "status": {"phase": "Bound", "capacity": capacity, "accessModes": ["ReadWriteOnce"]}}),
            json!(["x", "Bound", "v", "1Gi", "RWO", "", "<unset>", "5m", "<unset>"]),
        ),
        (
            "PersistentVolumeClaim",
            json!({"metadata": {"deletionTimestamp": "2026-11-16T05:59:00Z"}, "status": {"phase": "Pending"}}),
            json!(["x", "Terminating", "", "", "", "", "<unset>", "5m", "<unset>"]),
        ),
        (
            "StorageClass",
            json!({"metadata": annotated, "provisioner": "p"}),
            json!(["x (default)", "p", "Delete", "Immediate", false, "5m"]),
        ),
        (
            "Job",
            json!({
                "spec": {"completions": 3, "selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]}}},
                "status": {"succeeded": 3, "startTime": "2026-11-16T05:00:00Z", "completionTime": "2026-11-16T05:01:00Z", "conditions": [{"type": "Complete", "status": "True"}]},
            }),
            json!(["x", "Complete", "3/3", "60s", "5m", "c,d", "i,j", "a=b"]),
        ),
        (
            "Job",
            json!({"spec": {"parallelism": 2}, "status": {"startTime": "2026-11-16T05:00:00Z"}}),
            json!(["x", "Running", "0/1 of 2", "60m", "5m", "", "", "<none>"]),
        ),
        (
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}}),
            json!(["x", "50%", "N/A", 1, "5m"]),
        ),
    ];
    for (kind, object, expected) in cases {
        assert_eq!(shown(kind, object), expected, "{kind}");
    }
}

#[test]
fn events_of_both_forms() {
    let old = json!({
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"}, "reason": "Pulled", "type": "Normal",
        "message": " done\n", "source": {"component": "kubelet", "host": "n"}, "count": 3,
        "firstTimestamp": "2026-11-16T05:00:00Z", "lastTimestamp": "2026-11-16T05:59:00Z",
    });
    let new = json!({
        "regarding": {"kind": "Node"}, "reason": "Up", "type": "Warning", "note": "n", "reportingController": "me",
        "eventTime": "2026-11-16T05:58:00.000001Z",
    });
    let repeated =
        json!({"series": {"count": 9, "lastObservedTime": "2026-11-16T05:59:50.000000Z"}});
    assert_eq!(
        shown("Event", old),
        json!([
            "60s",
            "Normal",
            "Pulled",
            "pod/p",
            "spec.containers{c}",
            "kubelet, n",
            "done",
            "60m",
            3,
            "x"
        ])
    );
    assert_eq!(
        shown("Event", new),
        json!(["119s", "Warning", "Up", "node", "", "me", "n", "119s", 1, "x"])
    );
    let cells = shown("Event", repeated);
    assert_eq!((&cells[0], &cells[8]), (&json!("10s"), &json!(9)));
}

#[test]
fn nonsense_is_shown_as_nothing() {
    let nonsense = [json!(null), json!([]), json!({"spec": 1, "status": "x", "metadata": []})];
    for kind in ["Pod", "Node", "Service", "Event", "Job", "PersistentVolume", "Endpoints", "Other"]
    {
        for object in &nonsense {
            assert_eq!(built_in(kind, object, now()).len(), columns::of_kind(kind).len(), "{kind}");
        }
    }
}
