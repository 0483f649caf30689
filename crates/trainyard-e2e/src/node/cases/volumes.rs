//! Volumes of every kind: what they hold, who may write, what is said when they cannot be had.

use std::fs;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};

use super::Shared;
use super::objects::{ended, hindered, make, open_folder, open_to_all, said, says};
use crate::check::{contains, equal};
use crate::harness::{Case, cases, within};
use crate::node::{Agent, AgentOptions, Pods, Stage};

pub(super) fn all() -> Vec<Case<Shared>> {
    cases!["volumes":
        empty_dir,
        memory,
        eviction,
        host_path,
        host_path_errors,
        files,
        missing_then_there,
        downward,
        projected,
        static_claim,
        sub_paths,
        escapes,
        unsupported,
    ]
}

pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    within(
        Duration::from_mins(3),
        cases!["volumes":
            claim_outlives_agent,
        ],
    )
}

/// One volume at `/v` of the container.
fn at(source: Value) -> Value {
    let mut volume = source;
    volume["name"] = json!("v");
    json!({
        "volumes": [volume],
        "containers": [{"volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
    })
}

async fn empty_dir(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "empty-dir").await?;
    let container = |name: &str, user: u32, script: &str, read_only: bool| {
        json!({"name": name, "image": "test", "command": ["sh", "-c", script],
            "securityContext": {"runAsUser": user},
            "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": read_only}]})
    };
    let waits = "until [ -e /v/b ]; do sleep 0.05; done; cat /v/a /v/b; stat -c %a /v; \
                 (echo x > /v/c) 2>/dev/null && echo wrote || echo kept out";
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [container("first", 5, "echo one > /v/a", false)],
        "containers": [
            container("main", 0, waits, true),
            container("other", 6, "sleep 0.3; echo two > /v/b", false),
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
    });
    pods.create("three", spec).await?;
    equal("what came", said(&pods, "three").await?.as_str(), "one\ntwo\n777\nkept out\n")?;
    // Another pod's is another one.
    let text = says(&pods, "next", "ls /v | wc -l", at(json!({"emptyDir": {}}))).await?;
    equal("files", text.as_str(), "0\n")
}

async fn memory(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "memory").await?;
    let mut more = at(json!({"emptyDir": {"medium": "Memory", "sizeLimit": "4Mi"}}));
    more["securityContext"] = json!({"runAsUser": 1234});
    let script = "stat -f -c %T /v; df -B1 --output=size /v | tail -1 | tr -d ' '; stat -c %a /v; \
                  head -c 3000000 /dev/zero > /v/a && echo fits; \
                  head -c 3000000 /dev/zero > /v/b 2>/dev/null && echo more || echo full";
    let text = says(&pods, "writes", script, more).await?;
    equal("what it is", text.as_str(), "tmpfs\n4194304\n777\nfits\nfull\n")?;
    let mut shared = at(json!({"emptyDir": {"medium": "Memory"}}));
    shared["containers"][0]["volumeMounts"][0]["subPath"] = json!("below/it");
    shared["initContainers"] = json!([{"name": "first", "image": "test",
        "command": ["sh", "-c", "mkdir -p /v/below/it; echo here > /v/below/it/x"],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]);
    equal("below", says(&pods, "below", "cat /v/x", shared).await?.as_str(), "here\n")
}

async fn eviction(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "eviction").await?;
    let more = at(json!({"emptyDir": {"sizeLimit": "1Mi"}}));
    pods.shell("greedy", "head -c 3000000 /dev/zero > /v/x; exec sleep 600", more.clone()).await?;
    pods.shell("modest", "head -c 300000 /dev/zero > /v/x; sleep 15", more).await?;
    let pod = pods.until_phase("greedy", "Failed").await?;
    let status = pod.status.unwrap_or_default();
    equal("reason", status.reason.as_deref(), Some("Evicted"))?;
    let wanted = "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ";
    equal("message", status.message.as_deref(), Some(wanted))?;
    pods.until_event("greedy", "Evicted: Usage of EmptyDir volume").await?;
    said(&pods, "modest").await?;
    Ok(())
}

async fn host_path(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "host-path").await?;
    let place = open_folder()?;
    let path = |name: &str| place.path().join(name).display().to_string();
    fs::create_dir(path("folder"))?;
    fs::write(path("folder/in"), "from outside\n")?;
    fs::write(path("file"), "a file\n")?;
    let _socket = UnixListener::bind(path("socket"))?;
    let volume = |name: &str, path: &str, kind: &str| json!({"name": name, "hostPath": {"path": path, "type": kind}});
    let names = ["any", "made", "folder", "new", "file", "born", "socket", "null", "loop"];
    let mounts: Vec<Value> =
        names.iter().map(|name| json!({"name": name, "mountPath": format!("/v/{name}")})).collect();
    let loop_device = std::path::Path::new("/dev/loop0").exists();
    let block = if loop_device {
        volume("loop", "/dev/loop0", "BlockDevice")
    } else {
        volume("loop", "/dev/null", "")
    };
    let more = json!({
        "volumes": [
            volume("any", &path("folder"), ""), volume("made", &path("made/by"), ""),
            volume("folder", &path("folder"), "Directory"), volume("new", &path("new"), "DirectoryOrCreate"),
            volume("file", &path("file"), "File"), volume("born", &path("born"), "FileOrCreate"),
            volume("socket", &path("socket"), "Socket"), volume("null", "/dev/null", "CharDevice"), block,
        ],
        "containers": [{"volumeMounts": mounts}],
    });
    let script = "cat /v/any/in /v/folder/in /v/file; echo new > /v/new/x; echo made > /v/made/x; \
                  echo born > /v/born; echo x > /v/null && echo null; test -S /v/socket && echo socket; \
                  test -b /v/loop && echo block; true";
    let text = says(&pods, "all", script, more).await?;
    let block = if loop_device { "block\n" } else { "" };
    let wanted = format!("from outside\nfrom outside\na file\nnull\nsocket\n{block}");
    equal("what it reads", text, wanted)?;
    for (file, wanted) in [("new/x", "new\n"), ("made/by/x", "made\n"), ("born", "born\n")] {
        equal(file, fs::read_to_string(path(file))?.as_str(), wanted)?;
    }
    Ok(())
}

async fn host_path_errors(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "host-path-errors").await?;
    let place = open_folder()?;
    let path = |name: &str| place.path().join(name).display().to_string();
    fs::write(path("file"), "")?;
    fs::create_dir(path("folder"))?;
    let wrong = [
        ("absent", "none", "Directory", "is not a directory"),
        ("folder", "file", "Directory", "is not a directory"),
        ("made", "file", "DirectoryOrCreate", "is not a directory"),
        ("file", "folder", "File", "is not a file"),
        ("socket", "file", "Socket", "is not a socket file"),
        ("char", "file", "CharDevice", "is not a character device"),
        ("block", "file", "BlockDevice", "is not a block device"),
    ];
    for (name, file, kind, _) in wrong {
        let more = at(json!({"hostPath": {"path": path(file), "type": kind}}));
        pods.shell(name, "true", more).await?;
    }
    for (name, file, _, words) in wrong {
        let path = path(file);
        let event = format!(
            "FailedMount: MountVolume.SetUp failed for volume \"v\" : hostPath type check failed: {path} {words}"
        );
        pods.until_event(name, &event).await?;
    }
    // It is mended when the path is.
    fs::create_dir(path("none"))?;
    said(&pods, "absent").await?;
    Ok(())
}

async fn objects(pods: &Pods<'_>) -> Result<()> {
    let map = json!({"metadata": {"name": "map"}, "data": {"a": "alpha\n", "b": "beta\n"},
        "binaryData": {"raw": "AAEC/w=="}});
    make::<ConfigMap>(pods, map).await?;
    let secret =
        json!({"metadata": {"name": "keys"}, "stringData": {"id": "private\n", "pub": "open\n"}});
    make::<Secret>(pods, secret).await?;
    Ok(())
}

async fn files(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "files").await?;
    objects(&pods).await?;
    let items =
        json!([{"key": "id", "path": "deep/er/key", "mode": 0o400}, {"key": "pub", "path": "pub"}]);
    let more = json!({
        "volumes": [
            {"name": "map", "configMap": {"name": "map"}},
            {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 0o640, "items": items}},
            {"name": "none", "configMap": {"name": "gone", "optional": true}},
            {"name": "half", "secret": {"secretName": "keys", "optional": true,
                "items": [{"key": "gone", "path": "gone"}, {"key": "pub", "path": "pub"}]}},
        ],
        "containers": [{"volumeMounts": [
            {"name": "map", "mountPath": "/map"}, {"name": "keys", "mountPath": "/keys"},
            {"name": "none", "mountPath": "/none"}, {"name": "half", "mountPath": "/half"},
        ]}],
    });
    let script = "cat /map/a /map/b; od -An -tx1 /map/raw; cat /keys/deep/er/key /keys/pub; \
                  stat -L -c %a /map/a /keys/deep/er/key /keys/pub; ls /none | wc -l; ls /half; \
                  ls /keys | tr '\\n' ' '; (echo x > /map/a) 2>/dev/null && echo wrote || echo kept out";
    let text = says(&pods, "reads", script, more).await?;
    let wanted =
        "alpha\nbeta\n 00 01 02 ff\nprivate\nopen\n644\n400\n640\n0\npub\ndeep pub kept out\n";
    equal("what it reads", text.as_str(), wanted)
}

async fn missing_then_there(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "missing-volume").await?;
    pods.shell("map", "cat /v/a", at(json!({"configMap": {"name": "map"}}))).await?;
    pods.shell("secret", "cat /v/id", at(json!({"secret": {"secretName": "keys"}}))).await?;
    let claim = at(json!({"persistentVolumeClaim": {"claimName": "none"}}));
    pods.shell("claim", "true", claim).await?;
    let start = "FailedMount: MountVolume.SetUp failed for volume \"v\" : ";
    pods.until_event("map", &format!("{start}configmap \"map\" not found")).await?;
    pods.until_event("secret", &format!("{start}secret \"keys\" not found")).await?;
    objects(&pods).await?;
    equal("map", said(&pods, "map").await?.as_str(), "alpha\n")?;
    equal("secret", said(&pods, "secret").await?.as_str(), "private\n")?;
    // The scheduler keeps a pod without its claim away from nodes.
    pods.until_event("claim", "persistentvolumeclaim \"none\" not found").await?;
    // A key that is asked for must be there.
    let items = json!([{"key": "gone", "path": "x"}]);
    let more = at(json!({"configMap": {"name": "map", "items": items}}));
    pods.shell("key", "true", more).await?;
    pods.until_event("key", "references non-existent config key: gone").await?;
    Ok(())
}

async fn downward(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "downward").await?;
    let field = |path: &str, from: &str| json!({"path": path, "fieldRef": {"fieldPath": from}});
    let pod = json!({
        "metadata": {"name": "asks", "labels": {"app": "mnist", "z": "9"}, "annotations": {"note": "a\"b"}},
        "spec": {
            "restartPolicy": "Never",
            "volumes": [{"name": "v", "downwardAPI": {"items": [
                field("labels", "metadata.labels"), field("notes", "metadata.annotations"),
                field("in/name", "metadata.name"), field("space", "metadata.namespace"),
                {"path": "memory", "mode": 0o600, "resourceFieldRef":
                    {"containerName": "main", "resource": "limits.memory", "divisor": "1Mi"}},
            ]}}],
            "containers": [{"name": "main", "image": "test",
                "resources": {"limits": {"memory": "64Mi"}},
                "command": ["sh", "-c", "for F in labels notes in/name space memory; do cat /v/$F; echo; done; stat -L -c %a /v/memory"],
                "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        },
    });
    make::<Pod>(&pods, pod).await?;
    let wanted =
        format!("app=\"mnist\"\nz=\"9\"\nnote=\"a\\\"b\"\nasks\n{}\n64\n600\n", pods.namespace);
    equal("what it reads", said(&pods, "asks").await?, wanted)
}

async fn projected(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "projected").await?;
    objects(&pods).await?;
    let more = at(json!({"projected": {"defaultMode": 0o440, "sources": [
        {"configMap": {"name": "map", "items": [{"key": "a", "path": "cfg/a"}]}},
        {"secret": {"name": "keys", "items": [{"key": "id", "path": "sec/id", "mode": 0o400}]}},
        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 3600}},
    ]}}));
    let script = "cat /v/cfg/a /v/sec/id /v/name; echo; stat -L -c %a /v/cfg/a /v/sec/id; \
                  cut -d. -f2 /v/token | tr '_-' '/+' | base64 -d 2>/dev/null | grep -o '\"aud\":\\[\"[a-z]*\"\\]'";
    let text = says(&pods, "all", script, more).await?;
    let mut lines: Vec<&str> = text.lines().collect();
    equal("the audience", lines.pop(), Some("\"aud\":[\"vault\"]"))?;
    equal("the rest", lines.join(" ").as_str(), "alpha private all 440 400")
}

/// A volume and the claim bound to it; `source` is the volume's kind.
async fn claim(pods: &Pods<'_>, name: &str, source: Value) -> Result<()> {
    let volume_name = format!("{}-{name}", pods.namespace);
    let mut volume = json!({"metadata": {"name": volume_name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "",
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": pods.namespace, "name": name},
    }});
    if let (Some(into), Value::Object(source)) = (volume["spec"].as_object_mut(), source) {
        into.extend(source);
    }
    let volumes: Api<PersistentVolume> = Api::all(pods.stage.client.clone());
    volumes.create(&PostParams::default(), &serde_json::from_value(volume)?).await?;
    let claim = json!({"metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": volume_name,
        "resources": {"requests": {"storage": "1Gi"}},
    }});
    make::<PersistentVolumeClaim>(pods, claim).await?;
    Ok(())
}

/// Volumes belong to no namespace and stay behind it.
async fn unclaim(pods: &Pods<'_>, name: &str) -> Result<()> {
    let volumes: Api<PersistentVolume> = Api::all(pods.stage.client.clone());
    volumes.delete(&format!("{}-{name}", pods.namespace), &DeleteParams::default()).await?;
    Ok(())
}

fn claimed(name: &str, read_only: bool) -> Value {
    at(json!({"persistentVolumeClaim": {"claimName": name, "readOnly": read_only}}))
}

async fn static_claim(stage: &Stage, agent: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "static-claim").await?;
    let place = open_folder()?;
    claim(&pods, "data", json!({"hostPath": {"path": place.path()}})).await?;
    says(&pods, "writes", "echo weights > /v/model", claimed("data", false)).await?;
    equal("on disk", fs::read_to_string(place.path().join("model"))?.as_str(), "weights\n")?;
    pods.delete("writes", None).await?;
    let script = "cat /v/model; (echo x > /v/x) 2>/dev/null && echo wrote || echo kept out";
    let text = says(&pods, "reads", script, claimed("data", true)).await?;
    equal("reads", text.as_str(), "weights\nkept out\n")?;
    // What this machine cannot mount is kept in a folder of its own, and that is said.
    claim(&pods, "far", json!({"nfs": {"server": "192.0.2.9", "path": "/x"}})).await?;
    says(&pods, "far-writes", "echo kept > /v/model", claimed("far", false)).await?;
    let event = pods.until_event("far-writes", "of kind nfs, which this node cannot mount").await?;
    let folder = agent.state.join("claims").join(&pods.namespace).join("far");
    contains("the event", &event, &["stands in for it", &folder.display().to_string()])?;
    pods.delete("far-writes", None).await?;
    pods.until_gone("far-writes").await?;
    equal(
        "far",
        says(&pods, "far-reads", "cat /v/model", claimed("far", false)).await?.as_str(),
        "kept\n",
    )?;
    unclaim(&pods, "data").await?;
    unclaim(&pods, "far").await
}

async fn claim_outlives_agent(stage: &Stage) -> Result<()> {
    let agent = Agent::start(stage, AgentOptions::default()).await?;
    let pods = Pods::open(stage, "outlives").await?;
    claim(&pods, "model", json!({"csi": {"driver": "disk.example", "volumeHandle": "x"}})).await?;
    says(&pods, "writes", "echo step 7 > /v/checkpoint", claimed("model", false)).await?;
    let kept = agent.state.clone();
    agent.kill().await?;
    let options = AgentOptions { state: Some(kept), ..AgentOptions::default() };
    let agent = Agent::start(stage, options).await?;
    let text = says(&pods, "reads", "cat /v/checkpoint", claimed("model", false)).await?;
    equal("after a crash", text.as_str(), "step 7\n")?;
    unclaim(&pods, "model").await?;
    agent.stop().await
}

async fn sub_paths(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "sub-paths").await?;
    objects(&pods).await?;
    let place = open_folder()?;
    fs::create_dir_all(place.path().join("runs"))?;
    open_to_all(&place.path().join("runs"))?;
    fs::write(place.path().join("one"), "one file\n")?;
    let more = json!({
        "volumes": [
            {"name": "v", "hostPath": {"path": place.path()}},
            {"name": "map", "configMap": {"name": "map"}},
        ],
        "containers": [{
            "env": [{"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "volumeMounts": [
                {"name": "v", "mountPath": "/runs/own", "subPathExpr": "runs/$(ME)"},
                {"name": "v", "mountPath": "/runs", "subPath": "runs", "readOnly": true},
                {"name": "v", "mountPath": "/one", "subPath": "one"},
                {"name": "v", "mountPath": "/fresh", "subPath": "fresh/er"},
                {"name": "map", "mountPath": "/etc/app/a.conf", "subPath": "a"},
            ],
        }],
    });
    // The outer mount is written after the inner one, and shall not hide it.
    let setup = place.path().join("runs/own");
    fs::create_dir_all(setup)?;
    let script = "cat /one /etc/app/a.conf; echo mine > /runs/own/x; echo f > /fresh/f; \
                  (echo x > /runs/x) 2>/dev/null && echo wrote || echo kept out; ls /etc/app";
    let text = says(&pods, "writer", script, more).await?;
    equal("what it sees", text.as_str(), "one file\nalpha\nkept out\na.conf\n")?;
    for (file, wanted) in [("runs/writer/x", "mine\n"), ("fresh/er/f", "f\n")] {
        equal(file, fs::read_to_string(place.path().join(file))?.as_str(), wanted)?;
    }
    Ok(())
}

async fn escapes(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "escapes").await?;
    let reason = "CreateContainerConfigError";
    let mount = |more: Value| {
        let mut mount = json!({"name": "v", "mountPath": "/v"});
        if let (Some(into), Value::Object(more)) = (mount.as_object_mut(), more) {
            into.extend(more);
        }
        json!({"volumes": [{"name": "v", "emptyDir": {}}], "containers": [{
            "env": [{"name": "UP", "value": "../../.."}, {"name": "EMPTY", "value": ""}],
            "volumeMounts": [mount],
        }]})
    };
    let refused = pods.shell("up", "true", mount(json!({"subPath": "a/../../x"}))).await;
    let text = refused.err().map(|error| error.to_string()).unwrap_or_default();
    contains("the API server", &text, &["must not contain '..'"])?;
    pods.shell("by-name", "ls /v", mount(json!({"subPathExpr": "$(UP)"}))).await?;
    let words = hindered(&pods, "by-name", "main", reason).await?;
    contains("by name", &words, &["must not contain '..'"])?;
    pods.shell("by-nothing", "ls /v", mount(json!({"subPathExpr": "a$(EMPTY)"}))).await?;
    let words = hindered(&pods, "by-nothing", "main", reason).await?;
    contains("by nothing", &words, &["missing value for EMPTY"])?;
    // A link that an earlier container left leads nowhere.
    let mut by_link = mount(json!({"subPath": "out"}));
    by_link["initContainers"] = json!([{"name": "first", "image": "test",
        "command": ["ln", "-s", "/etc", "/v/out"],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]);
    pods.shell("by-link", "ls /v", by_link).await?;
    let words = hindered(&pods, "by-link", "main", reason).await?;
    contains("by link", &words, &["failed to prepare subPath for volumeMount \"v\""])?;
    let refused = at(json!({"hostPath": {"path": "/tmp/../etc"}}));
    let refused = pods.shell("host", "true", refused).await;
    let text = refused.err().map(|error| error.to_string()).unwrap_or_default();
    contains("the API server", &text, &["must not contain '..'"])
}

async fn unsupported(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "unsupported").await?;
    // The scheduler sends nobody to a node where another pod has the same disk.
    let disk = format!("iqn.2001-04.com.example:{}", pods.namespace);
    let sources = [
        ("nfs", json!({"nfs": {"server": "192.0.2.9", "path": "/x"}})),
        ("csi", json!({"csi": {"driver": "disk.example"}})),
        ("iscsi", json!({"iscsi": {"targetPortal": "192.0.2.9", "iqn": disk, "lun": 0}})),
    ];
    for (name, source) in &sources {
        let name = name.to_ascii_lowercase();
        pods.shell(&name, "true", at(source.clone())).await?;
    }
    for (name, _) in &sources {
        let words =
            format!("FailedMount: volume \"v\" is of kind {name}, which this node cannot mount");
        let event = pods.until_event(&name.to_ascii_lowercase(), &words).await?;
        contains(name, &event, &["persistentVolumeClaim", "hostPath"])?;
    }
    // A volume that nobody mounts hinders nobody.
    let unused = json!({"volumes": [{"name": "v", "nfs": {"server": "192.0.2.9", "path": "/x"}}]});
    says(&pods, "unused", "true", unused).await?;
    pods.delete("nfs", None).await?;
    pods.until_gone("nfs").await?;
    let pod = ended(&pods, "unused").await?;
    ensure!(pod.metadata.name.is_some(), "the pod is gone");
    Ok(())
}
