//! Which folders of claims go, and which stay whatever happens.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, from_value, json};

use super::Fate::{self, Goes, Stays};
use super::{Note, fate, settle, sweep};
use crate::objects::memory::MemoryObjects;

const CLUSTER: &str = "k-1";

fn note(policy: &str) -> Note {
    let [cluster, claim, volume] = [CLUSTER, "c-1", "pv"].map(str::to_owned);
    Note { cluster, claim, volume, policy: policy.to_owned() }
}

fn volume(policy: &str, claim: &str) -> Value {
    json!({"metadata": {"name": "pv"}, "spec": {
        "claimRef": {"uid": claim}, "persistentVolumeReclaimPolicy": policy, "nfs": null,
    }})
}

#[test]
fn data_goes_with_its_claim_where_the_volume_says_so() {
    let decided = |noted: &str, claimed: bool, volume: Option<Value>| {
        let volume = volume.map(|volume| from_value(volume).unwrap());
        fate(&note(noted), claimed, volume.as_ref())
    };
    let under = |policy: &str| Fate::StaysUnder(policy.to_owned());
    for (noted, claimed, volume, expected) in [
        ("Delete", true, Some(volume("Delete", "c-1")), Stays),
        ("Delete", false, Some(volume("Delete", "c-1")), Goes),
        ("Delete", false, None, Goes),
        ("Retain", false, None, Stays),
        ("Retain", false, Some(volume("Retain", "c-1")), Stays),
        // What is said now counts, not what was said then.
        ("Delete", false, Some(volume("Retain", "c-1")), Stays),
        ("Retain", false, Some(volume("Delete", "c-1")), Goes),
        ("Delete", true, Some(volume("Retain", "c-1")), under("Retain")),
        // It holds for somebody else by now.
        ("Delete", false, Some(volume("Delete", "c-2")), Stays),
        ("Delete", true, None, Stays),
        ("Recycle", false, None, Stays),
    ] {
        let words = format!("{noted} {claimed} {volume:?}");
        assert_eq!(decided(noted, claimed, volume), expected, "{words}");
    }
}

/// Folders of claims on disk, and the API server's side.
struct Kept {
    root: tempfile::TempDir,
    objects: MemoryObjects,
}

impl Kept {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap(), objects: MemoryObjects::default() }
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("ns/data")
    }

    /// What a pod with the claim `c-1` does to its folder.
    async fn used(&self, note: Option<Note>) {
        let folder = self.folder();
        settle(&folder, ("ns", "data"), note, &self.objects).await.unwrap();
        fs::create_dir_all(&folder).unwrap();
    }

    async fn filled(&self, note: Option<Note>) {
        self.used(note).await;
        fs::create_dir_all(self.folder().join("deep/er")).unwrap();
        fs::write(self.folder().join("deep/er/model"), "weights").unwrap();
    }

    fn claim(&mut self, uid: &str) {
        let claim = from_value(json!({"metadata": {"uid": uid}})).unwrap();
        self.objects.claims.insert("data".to_owned(), claim);
    }

    fn volume(&mut self, policy: &str, claim: &str) {
        self.objects.volumes.insert("pv".to_owned(), from_value(volume(policy, claim)).unwrap());
    }

    async fn swept(&self) -> Vec<String> {
        sweep(self.root.path(), CLUSTER, &self.objects, |_, _| false).await
    }

    fn is_filled(&self) -> bool {
        self.folder().join("deep/er/model").exists()
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[tokio::test]
async fn a_folder_goes_when_its_claim_is_gone_and_nobody_uses_it() {
    let mut kept = Kept::new();
    kept.claim("c-1");
    kept.volume("Delete", "c-1");
    kept.filled(Some(note("Delete"))).await;
    assert_eq!(kept.swept().await, Vec::<String>::new());
    kept.objects.claims.clear();
    let busy =
        sweep(kept.root.path(), CLUSTER, &kept.objects, |ns, claim| (ns, claim) == ("ns", "data"));
    assert_eq!(busy.await, Vec::<String>::new());
    *kept.objects.broken.lock().unwrap() = Some("not today".to_owned());
    assert_eq!(kept.swept().await, Vec::<String>::new());
    assert!(kept.is_filled());
    *kept.objects.broken.lock().unwrap() = None;
    assert_eq!(kept.swept().await, ["ns/data"]);
    assert!(is_empty(kept.root.path()), "something is left");
}

#[tokio::test]
async fn a_volume_that_is_retained_is_retained() {
    let mut kept = Kept::new();
    kept.claim("c-1");
    kept.volume("Retain", "c-1");
    kept.filled(Some(note("Delete"))).await;
    // Seen while the claim is there; the volume's object may be gone with it.
    kept.swept().await;
    kept.objects = MemoryObjects::default();
    assert_eq!(kept.swept().await, Vec::<String>::new());
    assert!(kept.is_filled());
}

#[tokio::test]
async fn what_was_not_made_here_stays() {
    let kept = Kept::new();
    // Somebody's own folder, an agent's of another cluster, one of nobody knows which.
    fs::create_dir_all(kept.folder()).unwrap();
    kept.filled(Some(note("Delete"))).await;
    assert_eq!(kept.swept().await, Vec::<String>::new());
    let kept = Kept::new();
    kept.filled(Some(Note { cluster: "k-2".to_owned(), ..note("Delete") })).await;
    assert_eq!(kept.swept().await, Vec::<String>::new());
    assert!(kept.is_filled());
    // Used by a claim of this cluster, it belongs to both.
    kept.used(Some(note("Delete"))).await;
    assert_eq!(kept.swept().await, Vec::<String>::new());
    let kept = Kept::new();
    kept.filled(None).await;
    kept.used(Some(note("Delete"))).await;
    assert_eq!(kept.swept().await, Vec::<String>::new());
    assert!(kept.is_filled());
}

#[tokio::test]
async fn a_new_claim_of_the_same_name_finds_only_what_was_retained() {
    let next = |policy: &str| Note { claim: "c-2".to_owned(), ..note(policy) };
    let mut kept = Kept::new();
    kept.claim("c-2");
    kept.filled(Some(note("Delete"))).await;
    kept.used(Some(next("Delete"))).await;
    assert!(kept.folder().exists() && !kept.is_filled());
    kept.swept().await;
    assert!(kept.folder().exists() && !kept.root.path().join(".gone").exists());
    let mut kept = Kept::new();
    kept.claim("c-2");
    kept.filled(Some(note("Retain"))).await;
    kept.used(Some(next("Delete"))).await;
    assert!(kept.is_filled());
    // Nor does it go with the second one.
    kept.objects.claims.clear();
    assert_eq!(kept.swept().await, Vec::<String>::new());
    assert!(kept.is_filled());
}

#[tokio::test]
async fn what_a_pod_closed_is_removed_all_the_same() {
    use std::os::unix::fs::PermissionsExt as _;
    let kept = Kept::new();
    kept.filled(Some(note("Delete"))).await;
    let closed = fs::Permissions::from_mode(0o500);
    fs::set_permissions(kept.folder().join("deep/er"), closed).unwrap();
    assert_eq!(kept.swept().await, ["ns/data"]);
    assert!(is_empty(kept.root.path()), "something is left");
}
