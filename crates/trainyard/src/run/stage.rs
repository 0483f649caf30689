//! Puts everything of a run into its yard: namespaces, claims with their folders, what jobs use, and
//! the jobs last; all of it only after the server has looked at everything.

use serde_json::{Value, json};

use super::bundle::{Bundle, Job, made_up_claim};
use super::places::Places;
use crate::cluster::{Cluster, DryRun, Error, Kind, Kinds, Query};
use crate::commands::apply::without_nulls;
use crate::commands::files::Manifest;
use crate::failure::Failure;
use crate::present::text;

const MERGE: &str = "application/merge-patch+json";

/// A job that the yard has.
#[derive(Debug, Clone)]
pub(crate) struct Staged {
    pub(crate) job: Job,
    pub(crate) kind: Kind,
    pub(crate) uid: String,
}

impl Staged {
    pub(crate) fn name(&self) -> &str {
        &self.job.name
    }
}

/// Has the server look at all objects; nothing but their namespaces is made.
pub(crate) async fn check(
    cluster: &Cluster,
    kinds: &Kinds,
    bundle: &Bundle,
) -> Result<(), Failure> {
    namespaces(cluster, kinds, bundle).await?;
    for manifest in in_order(&bundle.others) {
        other(cluster, kinds, manifest, DryRun::Server).await?;
    }
    for job in &bundle.jobs {
        let kind = known(kinds, &job.place, &job.object)?;
        send(cluster, kind, &job.place, &job.object, DryRun::Server).await?;
    }
    Ok(())
}

/// Makes all objects, which were looked at before.
pub(crate) async fn stage(
    cluster: &Cluster,
    kinds: &Kinds,
    bundle: &Bundle,
    places: &Places,
) -> Result<Vec<Staged>, Failure> {
    let made_up = bundle.claims_made_up.iter().map(|(namespace, name)| Manifest {
        place: format!("claim {name:?}"),
        object: made_up_claim(namespace, name),
    });
    let made_up: Vec<Manifest> = made_up.collect();
    for manifest in in_order(&bundle.others).into_iter().chain(&made_up) {
        let Manifest { place, object } = manifest;
        let is_claim = object["kind"] == "PersistentVolumeClaim";
        if is_claim && !has_volume(object, &bundle.others) {
            let volume = volume(object, places)?;
            let volumes = kinds.known("persistentvolumes")?;
            send(cluster, volumes, place, &volume, DryRun::No).await?;
        }
        other(cluster, kinds, manifest, DryRun::No).await?;
    }
    let mut staged = Vec::new();
    for job in &bundle.jobs {
        let kind = known(kinds, &job.place, &job.object)?;
        let made = send(cluster, kind, &job.place, &job.object, DryRun::No).await?;
        let name = text(&made, &["metadata", "name"]).to_owned();
        let uid = text(&made, &["metadata", "uid"]).to_owned();
        staged.push(Staged { job: Job { name, ..job.clone() }, kind: kind.clone(), uid });
    }
    Ok(staged)
}

/// What others need comes first.
fn in_order(others: &[Manifest]) -> Vec<&Manifest> {
    let first = |manifest: &&Manifest| is_first(&manifest.object);
    let (before, after): (Vec<&Manifest>, Vec<&Manifest>) = others.iter().partition(first);
    before.into_iter().chain(after).collect()
}

/// What others need to be there.
fn is_first(object: &Value) -> bool {
    ["PersistentVolume", "StorageClass", "PriorityClass", "ServiceAccount", "Queue"]
        .contains(&text(object, &["kind"]))
}

async fn namespaces(cluster: &Cluster, kinds: &Kinds, bundle: &Bundle) -> Result<(), Failure> {
    let kind = kinds.known("namespaces")?;
    for name in bundle.namespaces() {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        match cluster.create(kind, "", &object, &Query::default()).await {
            Err(error) if error.code() == 409 => {}
            Err(error) => return Err(refused(&format!("namespace {name:?}"), error)),
            Ok(_) => {}
        }
    }
    Ok(())
}

async fn other(
    cluster: &Cluster,
    kinds: &Kinds,
    manifest: &Manifest,
    dry_run: DryRun,
) -> Result<(), Failure> {
    let Manifest { place, object } = manifest;
    let kind = known(kinds, place, object)?;
    if kind.kind == "Namespace" {
        return Ok(());
    }
    match send(cluster, kind, place, object, dry_run).await {
        // Every namespace has some objects by itself, and every yard some queues.
        Err(failure) if failure.to_string().contains("exists") => match kind.kind.as_str() {
            "ServiceAccount" => Ok(()),
            "Queue" => change(cluster, kind, place, object, dry_run).await,
            _ => Err(failure),
        },
        answer => answer.map(drop),
    }
}

/// Makes an object that is there by itself what the files say.
async fn change(
    cluster: &Cluster,
    kind: &Kind,
    place: &str,
    object: &Value,
    dry_run: DryRun,
) -> Result<(), Failure> {
    let (namespace, name) =
        (text(object, &["metadata", "namespace"]), text(object, &["metadata", "name"]));
    let object = without_nulls(object.clone());
    let query = dry_run.query().with("fieldValidation", "Strict");
    let sent = cluster.patch(kind, (namespace, name, ""), MERGE, &object, &query).await;
    sent.map(drop).map_err(|error| refused(place, error))
}

/// Whether the files bring a volume that the claim is meant to have.
fn has_volume(claim: &Value, others: &[Manifest]) -> bool {
    let class = |object: &Value| text(object, &["spec", "storageClassName"]).to_owned();
    let name = text(claim, &["metadata", "name"]);
    let volumes = others.iter().map(|other| &other.object);
    !text(claim, &["spec", "volumeName"]).is_empty()
        || volumes.filter(|one| one["kind"] == "PersistentVolume").any(|volume| {
            class(volume) == class(claim) || text(volume, &["spec", "claimRef", "name"]) == name
        })
}

/// A volume kept for a claim, in the run's own folder, so that the next run finds it again.
fn volume(claim: &Value, places: &Places) -> Result<Value, Failure> {
    let (namespace, name) =
        (text(claim, &["metadata", "namespace"]), text(claim, &["metadata", "name"]));
    let folder = places.claim(namespace, name)?;
    let spec = &claim["spec"];
    Ok(json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": format!("{namespace}-{name}")},
        "spec": {
            "capacity": spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "storageClassName": text(claim, &["spec", "storageClassName"]),
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                         "namespace": namespace, "name": name},
            "hostPath": {"path": folder, "type": "DirectoryOrCreate"},
        },
    }))
}

fn known<'k>(kinds: &'k Kinds, place: &str, object: &Value) -> Result<&'k Kind, Failure> {
    let (version, kind) = (text(object, &["apiVersion"]), text(object, &["kind"]));
    kinds.exact(version, kind).ok_or_else(|| {
        Failure::invalid(vec![format!("{place}: a yard does not know {kind} of {version}")])
            .hint("nothing was started")
    })
}

async fn send(
    cluster: &Cluster,
    kind: &Kind,
    place: &str,
    object: &Value,
    dry_run: DryRun,
) -> Result<Value, Failure> {
    let namespace = text(object, &["metadata", "namespace"]);
    let object = without_nulls(object.clone());
    let query = dry_run.query().with("fieldValidation", "Strict");
    cluster.create(kind, namespace, &object, &query).await.map_err(|error| refused(place, error))
}

/// What the server finds wrong in a manifest is invalid.
fn refused(place: &str, error: Error) -> Failure {
    match error.code() {
        400 | 409 | 422 => {
            Failure::invalid(vec![error.to_string()]).at(place).hint("nothing was started")
        }
        _ => Failure::from(error).at(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_of_the_files_is_left_to_its_claim() {
        let volume = |spec: Value| {
            let object = json!({"kind": "PersistentVolume", "spec": spec});
            vec![Manifest { place: String::new(), object }]
        };
        let claim = made_up_claim("team", "model");
        assert!(!has_volume(&claim, &[]));
        assert!(!has_volume(&claim, &volume(json!({"storageClassName": "nfs"}))));
        assert!(has_volume(&claim, &volume(json!({}))));
        let kept = json!({"storageClassName": "nfs", "claimRef": {"name": "model"}});
        assert!(has_volume(&claim, &volume(kept)));
    }

    #[test]
    fn a_claim_lies_in_the_runs_own_folder() {
        let root = tempfile::tempdir().unwrap();
        let places = Places::open(root.path(), "mnist").unwrap();
        let claim = made_up_claim("team", "model");
        let volume = volume(&claim, &places).unwrap();
        let path = text(&volume, &["spec", "hostPath", "path"]);
        assert!(path.ends_with("mnist/claims/team/model"), "{path}");
        assert!(std::path::Path::new(path).is_dir());
        assert_eq!(volume["spec"]["capacity"]["storage"], "1Gi");
        assert_eq!(volume["spec"]["claimRef"]["name"], "model");
    }
}
