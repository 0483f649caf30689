//! What every namespace is given: the account `default`, and the certificate by which its pods know
//! the API server.
//!
//! Must not know what accounts may do, nor how tokens are made.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::Deserialize;
use serde_json::{Value, json};

use super::calls::{Calls, core};
use super::error::{Error, unless_missing};
use super::follow::{News, Source, follow};
use super::queue::{Next, Queue};
use super::view::{Bare, HasMeta, Meta};
use super::{Context, held};

const ACCOUNT: &str = "default";
const CERTIFICATE: &str = "kube-root-ca.crt";
const CERTIFICATE_FILE: &str = "ca.crt";
const DESCRIBED: &str = "kubernetes.io/description";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when \
    using internal endpoints such as the internal service IP or kubernetes.default.svc. No other \
    usage is guaranteed across distributions of Kubernetes clusters.";
const WIDTH: usize = 4;

/// A namespace, and what it has of what it should have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Given {
    alive: bool,
    account: bool,
    certificate: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Data {
    metadata: Meta,
    data: BTreeMap<String, String>,
}

impl HasMeta for Data {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// Runs until dropped.
pub(super) async fn run(context: Context) {
    let given: Mutex<BTreeMap<String, Given>> = Mutex::default();
    let queue = Queue::new();
    let note = |namespace: &str, change: &dyn Fn(&mut Given)| {
        let mut given = held(&given);
        let entry = given.entry(namespace.to_owned()).or_default();
        change(entry);
        if entry.alive && !(entry.account && entry.certificate) {
            queue.add(namespace.to_owned());
        }
        if *entry == Given::default() {
            given.remove(namespace);
        }
    };
    let clear = |change: &dyn Fn(&mut Given)| {
        let names: Vec<String> = held(&given).keys().cloned().collect();
        for name in &names {
            note(name, change);
        }
    };
    let calls = &context.calls;
    let source = Source::bare("/api/v1/namespaces");
    let namespaces = follow(calls, &source, |news: News<Bare>| match news {
        News::All(all) => {
            clear(&|entry| entry.alive = false);
            for one in &all {
                seen(&one.metadata, &note);
            }
        }
        News::There(one) => seen(&one.metadata, &note),
        News::Gone(one) => note(&one.metadata.name, &|entry| entry.alive = false),
    });
    let source = Source::bare("/api/v1/serviceaccounts").named(ACCOUNT);
    let accounts = follow(calls, &source, |news: News<Bare>| match news {
        News::All(all) => {
            let there: Vec<&str> = all.iter().map(|one| &*one.metadata.namespace).collect();
            for name in &there {
                note(name, &|entry| entry.account = true);
            }
            forget_others(&given, &there, &note, &|entry| entry.account = false);
        }
        News::There(one) => note(&one.metadata.namespace, &|entry| entry.account = true),
        News::Gone(one) => note(&one.metadata.namespace, &|entry| entry.account = false),
    });
    let right = |one: &Data| certificate_is_right(one, &context.settings.root_ca_pem);
    let source = Source::new("/api/v1/configmaps").named(CERTIFICATE);
    let certificates = follow(calls, &source, |news: News<Data>| match news {
        News::All(all) => {
            let there: Vec<&str> =
                all.iter().filter(|one| right(one)).map(|one| &*one.metadata.namespace).collect();
            for name in &there {
                note(name, &|entry| entry.certificate = true);
            }
            forget_others(&given, &there, &note, &|entry| entry.certificate = false);
        }
        News::There(one) => {
            let right = right(&one);
            note(&one.metadata.namespace, &|entry| entry.certificate = right);
        }
        News::Gone(one) => note(&one.metadata.namespace, &|entry| entry.certificate = false),
    });
    let work = queue.work(WIDTH, async |namespace: String| {
        let given = held(&given).get(&namespace).copied().unwrap_or_default();
        if given.alive {
            ensure(calls, &namespace, &context.settings.root_ca_pem, given).await?;
        }
        Ok(Next::Rest)
    });
    tokio::join!(namespaces, accounts, certificates, work);
}

type Note<'a> = dyn Fn(&str, &dyn Fn(&mut Given)) + 'a;

fn seen(meta: &Meta, note: &Note<'_>) {
    let alive = !meta.is_deleting();
    note(&meta.name, &|entry| entry.alive = alive);
}

/// Those that a list does not hold have gone while nobody looked.
fn forget_others(
    given: &Mutex<BTreeMap<String, Given>>,
    there: &[&str],
    note: &Note<'_>,
    change: &dyn Fn(&mut Given),
) {
    let names: Vec<String> = held(given).keys().cloned().collect();
    for name in names.iter().filter(|name| !there.contains(&name.as_str())) {
        note(name, change);
    }
}

fn certificate_is_right(found: &Data, pem: &str) -> bool {
    found.data.len() == 1
        && found.data.get(CERTIFICATE_FILE).is_some_and(|text| text == pem)
        && found.metadata.annotations.contains_key(DESCRIBED)
}

fn certificate(namespace: &str, pem: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": CERTIFICATE, "namespace": namespace,
            "annotations": {DESCRIBED: DESCRIPTION},
        },
        "data": {CERTIFICATE_FILE: pem},
    })
}

/// Gives a namespace everything, whatever it has.
pub(super) async fn provide(calls: &Calls, namespace: &str, pem: &str) -> Result<(), Error> {
    ensure(calls, namespace, pem, Given::default()).await
}

async fn ensure(calls: &Calls, namespace: &str, pem: &str, given: Given) -> Result<(), Error> {
    if !given.account {
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": namespace},
        });
        create(calls, &core(namespace, "serviceaccounts", ""), &account).await?;
    }
    if !given.certificate {
        let wanted = certificate(namespace, pem);
        if !create(calls, &core(namespace, "configmaps", ""), &wanted).await? {
            // Somebody has changed it, or it is of another certificate.
            let path = core(namespace, "configmaps", CERTIFICATE);
            unless_missing(calls.replace(&path, &wanted).await)?;
        }
    }
    Ok(())
}

/// Creates an object; false when there is one. A namespace that goes needs nothing any more.
async fn create(calls: &Calls, path: &str, object: &Value) -> Result<bool, Error> {
    match calls.create_missing(path, object).await {
        Err(error) if error.is_ending_namespace() || error.is_missing() => Ok(true),
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_certificate_is_seen() {
        let read = |value: Value| -> Data { serde_json::from_value(value).unwrap() };
        assert!(certificate_is_right(&read(certificate("n", "pem")), "pem"));
        assert!(!certificate_is_right(&read(certificate("n", "old")), "pem"));
        let mut bare = certificate("n", "pem");
        bare["metadata"]["annotations"] = json!({});
        assert!(!certificate_is_right(&read(bare), "pem"));
        let mut more = certificate("n", "pem");
        more["data"]["more"] = json!("");
        assert!(!certificate_is_right(&read(more), "pem"));
    }
}
