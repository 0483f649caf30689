//! Who speaks to the API server: users, tokens, keys, certificates and kubeconfigs, all made
//! afresh for each control plane. Knows nothing of processes.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::ExtendedKeyUsagePurpose;
use serde_json::json;

use crate::certificates::{self, Authority, Signed, Subject, kubeconfig, write_secret};

/// A user of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// May do everything; the person at kubectl.
    Admin,
    /// The operator's service account; has the rights that its role gives and no more.
    Operator,
    /// The service account of the gang scheduler; has the rights that its role gives and no more.
    GangScheduler,
    /// The one who plays the kubelets; may do everything, so that the audit log tells it apart.
    Kubelet,
    /// The service account of node agents; has the rights that its role gives and no more.
    Node,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
}

impl Identity {
    const ALL: [Self; 7] = [
        Self::Admin,
        Self::Operator,
        Self::GangScheduler,
        Self::Kubelet,
        Self::Node,
        Self::ControllerManager,
        Self::Scheduler,
    ];

    fn file_stem(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
            Self::GangScheduler => "gang-scheduler",
            Self::Kubelet => "kubelet",
            Self::Node => "node",
            Self::ControllerManager => "controller-manager",
            Self::Scheduler => "scheduler",
        }
    }
}

/// A service account in the form the API server knows users by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ServiceAccount {
    /// The user name that requests of this account carry, in the audit log too.
    #[must_use]
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    fn groups(&self) -> String {
        format!("system:serviceaccounts,system:serviceaccounts:{}", self.namespace)
    }
}

/// As `trainyard manifests --node` names it.
fn node_account() -> ServiceAccount {
    ServiceAccount { namespace: "kube-system".to_owned(), name: "trainyard-node".to_owned() }
}

/// As `trainyard manifests --scheduler` names it, beside the operator's.
fn scheduler_account(operator: &ServiceAccount) -> ServiceAccount {
    ServiceAccount { namespace: operator.namespace.clone(), name: "trainyard-scheduler".to_owned() }
}

/// The secrets of one control plane, written to a folder.
#[derive(Debug)]
pub(super) struct Credentials {
    dir: PathBuf,
    operator: ServiceAccount,
    tokens: Vec<(Identity, String)>,
    authority: Vec<u8>,
}

impl Credentials {
    /// Makes tokens, keys and certificates in `dir`.
    pub(super) fn create(dir: PathBuf, operator: ServiceAccount) -> Result<Self> {
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let authority = write_certificates(&dir).context("cannot make certificates")?;
        let mut tokens = Vec::new();
        for identity in Identity::ALL {
            tokens.push((identity, random_token()?));
        }
        let credentials = Self { dir, operator, tokens, authority };
        write_secret(&credentials.token_file(), credentials.token_lines().as_bytes())?;
        Ok(credentials)
    }

    /// The user name an identity has for the API server.
    pub(super) fn user(&self, identity: Identity) -> String {
        match identity {
            Identity::Admin => "admin".to_owned(),
            Identity::Operator => self.operator.user(),
            Identity::GangScheduler => scheduler_account(&self.operator).user(),
            Identity::Kubelet => "kubelet-player".to_owned(),
            Identity::Node => node_account().user(),
            Identity::ControllerManager => "system:kube-controller-manager".to_owned(),
            Identity::Scheduler => "system:kube-scheduler".to_owned(),
        }
    }

    fn groups(&self, identity: Identity) -> String {
        match identity {
            Identity::Operator => self.operator.groups(),
            Identity::GangScheduler => scheduler_account(&self.operator).groups(),
            Identity::Node => node_account().groups(),
            // Its controllers share one user here, and no single role covers all they do.
            Identity::Admin | Identity::Kubelet | Identity::ControllerManager => {
                "system:masters".to_owned()
            }
            Identity::Scheduler => String::new(),
        }
    }

    pub(super) fn token(&self, identity: Identity) -> &str {
        let found = self.tokens.iter().find(|(candidate, _)| *candidate == identity);
        found.map_or("", |(_, token)| token)
    }

    /// The API server's static token file: token, user, uid, groups.
    fn token_lines(&self) -> String {
        let line = |(identity, token): &(Identity, String)| {
            let (user, groups) = (self.user(*identity), self.groups(*identity));
            let groups = if groups.is_empty() { groups } else { format!(",\"{groups}\"") };
            format!("{token},{user},{user}{groups}\n")
        };
        self.tokens.iter().map(line).collect()
    }

    pub(super) fn token_file(&self) -> PathBuf {
        self.dir.join("tokens.csv")
    }

    pub(super) fn serving_certificate(&self) -> PathBuf {
        self.dir.join(SERVING_CERTIFICATE)
    }

    pub(super) fn serving_key(&self) -> PathBuf {
        self.dir.join(SERVING_KEY)
    }

    /// The authority that signs all certificates here, the API server's to kubelets among them.
    pub(super) fn authority_file(&self) -> PathBuf {
        self.dir.join(AUTHORITY)
    }

    pub(super) fn kubelet_client_certificate(&self) -> PathBuf {
        self.dir.join(KUBELET_CLIENT_CERTIFICATE)
    }

    pub(super) fn kubelet_client_key(&self) -> PathBuf {
        self.dir.join(KUBELET_CLIENT_KEY)
    }

    pub(super) fn account_key(&self) -> PathBuf {
        self.dir.join(ACCOUNT_KEY)
    }

    pub(super) fn account_public_key(&self) -> PathBuf {
        self.dir.join(ACCOUNT_PUBLIC_KEY)
    }

    /// The authority's certificate, in DER.
    pub(super) fn authority(&self) -> &[u8] {
        &self.authority
    }

    pub(super) fn kubeconfig(&self, identity: Identity) -> PathBuf {
        self.dir.join(format!("{}.kubeconfig", identity.file_stem()))
    }

    /// Writes a kubeconfig for every identity. (JSON is YAML.)
    pub(super) fn write_kubeconfigs(&self, url: &str) -> Result<()> {
        for identity in Identity::ALL {
            let user = self.user(identity);
            let credentials = json!({ "token": self.token(identity) });
            let content = kubeconfig(url, &self.authority_file(), &user, &credentials);
            let bytes = serde_json::to_vec_pretty(&content)?;
            write_secret(&self.kubeconfig(identity), &bytes)?;
        }
        Ok(())
    }
}

const AUTHORITY: &str = "ca.crt";
const AUTHORITY_KEY: &str = "ca.key";
const SERVING_CERTIFICATE: &str = "apiserver.crt";
const SERVING_KEY: &str = "apiserver.key";
const KUBELET_CLIENT_CERTIFICATE: &str = "apiserver-kubelet-client.crt";
const KUBELET_CLIENT_KEY: &str = "apiserver-kubelet-client.key";
/// The name by which kubelets know the API server.
pub const KUBELET_CLIENT_NAME: &str = "kube-apiserver-kubelet-client";
/// Somebody else of the same authority.
const PERSON_CERTIFICATE: &str = "person.crt";
const PERSON_KEY: &str = "person.key";
const ACCOUNT_KEY: &str = "service-accounts.key";
const ACCOUNT_PUBLIC_KEY: &str = "service-accounts.pub";

/// Where pods find the API server: the first address of the services' range.
pub(crate) const SERVICE_ADDRESS: &str = "10.96.0.1";

/// An authority, a serving certificate for loopback signed by it, the certificate by which kubelets
/// know the API server, one of a person, and the key that signs service account tokens. Returns the
/// authority's certificate in DER.
fn write_certificates(dir: &Path) -> Result<Vec<u8>> {
    let authority = Authority::create("authority of the tests")?;
    let hosts = ["localhost", "kubernetes.default.svc", "127.0.0.1", SERVICE_ADDRESS];
    let server = Subject { name: "kube-apiserver", hosts: &hosts, ..Subject::default() };
    let files = |[certificate, key]: [&str; 2]| Signed {
        certificate: dir.join(certificate),
        key: dir.join(key),
    };
    let purpose = [ExtendedKeyUsagePurpose::ServerAuth];
    authority.sign(&server, &purpose, &files([SERVING_CERTIFICATE, SERVING_KEY]))?;
    for (name, names) in [
        (KUBELET_CLIENT_NAME, [KUBELET_CLIENT_CERTIFICATE, KUBELET_CLIENT_KEY]),
        ("jane", [PERSON_CERTIFICATE, PERSON_KEY]),
    ] {
        let client = Subject { name, ..Subject::default() };
        authority.sign(&client, &[ExtendedKeyUsagePurpose::ClientAuth], &files(names))?;
    }
    authority.write(&files([AUTHORITY, AUTHORITY_KEY]))?;
    certificates::write_account_key(&dir.join(ACCOUNT_KEY), &dir.join(ACCOUNT_PUBLIC_KEY))?;
    Ok(authority.der())
}

fn random_token() -> Result<String> {
    let mut bytes = [0_u8; 16];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .context("cannot read random bytes")?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_file_names_users_and_groups() {
        let dir = tempfile::tempdir().unwrap();
        let operator = ServiceAccount { namespace: "kubeflow".into(), name: "op".into() };
        let credentials = Credentials::create(dir.path().join("secrets"), operator).unwrap();
        let lines = fs::read_to_string(credentials.token_file()).unwrap();
        let operator = lines.lines().find(|line| line.contains(":kubeflow:op,")).unwrap();
        let (token, rest) = operator.split_once(',').unwrap();
        assert_eq!(token, credentials.token(Identity::Operator));
        assert_eq!(
            rest,
            "system:serviceaccount:kubeflow:op,system:serviceaccount:kubeflow:op,\
             \"system:serviceaccounts,system:serviceaccounts:kubeflow\""
        );
        let mut tokens: Vec<_> = lines.lines().map(|line| &line[..32]).collect();
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!(tokens.len(), Identity::ALL.len());
    }
}
