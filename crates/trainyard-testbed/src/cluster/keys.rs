//! The keys, certificates and kubeconfigs of a cluster's parts: each is somebody of its own, as in a cluster for
//! people. Knows nothing of processes.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use serde_json::json;

use super::addresses;
use super::folder::Folder;
use crate::certificates::{
    Authority, Signed, Subject, kubeconfig, write_account_key, write_secret,
};
use crate::control_plane::KUBELET_CLIENT_NAME;
use crate::control_plane::identity::SERVICE_ADDRESS;

/// Parts that speak to the API server as users of their own, beside the kubelets.
const USERS: [&str; 4] = ["kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns"];

/// The files with a cluster's keys.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    folder: PathBuf,
}

fn client<'a>(name: &'a str, group: Option<&'a str>) -> Subject<'a> {
    Subject { name, group, ..Subject::default() }
}

impl Keys {
    /// Those in a cluster's folder.
    pub(super) fn of(folder: &Folder) -> Self {
        Self { folder: folder.keys() }
    }

    /// Makes all of them; `url` is where programs of the machine find the API server. Returns the authority's
    /// certificate in DER.
    pub(super) fn create(folder: &Folder, nodes: usize, url: &str) -> Result<Vec<u8>> {
        let keys = Self::of(folder);
        let authority = Authority::create(&format!("cluster {}", folder.name()))?;
        authority.write(&keys.authority())?;
        write_account_key(&keys.account_key(), &keys.account_public_key())?;
        let own = addresses::node(0);
        let hosts = [
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "localhost",
            "127.0.0.1",
            SERVICE_ADDRESS,
            &own,
        ];
        let server = Subject { name: "kube-apiserver", hosts: &hosts, ..Subject::default() };
        authority.sign(&server, &[ServerAuth], &keys.api_server())?;
        for (subject, files) in [
            (client(KUBELET_CLIENT_NAME, None), keys.kubelet_client()),
            (client(FRONT_PROXY, None), keys.front_proxy()),
        ] {
            authority.sign(&subject, &[ClientAuth], &files)?;
        }
        let admin = client("admin", Some("system:masters"));
        keys.sign_user(&authority, &admin, "admin", url, &folder.kubeconfig())?;
        let inside = addresses::api_url();
        for user in USERS {
            let name = format!("system:{user}");
            let file = keys.kubeconfig(user);
            keys.sign_user(&authority, &client(&name, None), user, &inside, &file)?;
        }
        for index in 0..nodes {
            let (name, address) = (addresses::name(index), addresses::node(index));
            let user = format!("system:node:{name}");
            let group = Some("system:nodes");
            let kubelet = format!("kubelet-{name}");
            let file = keys.kubeconfig(&kubelet);
            keys.sign_user(&authority, &client(&user, group), &kubelet, &inside, &file)?;
            let server = Subject { name: &user, group, hosts: &[&name, &address] };
            authority.sign(&server, &[ServerAuth], &keys.kubelet_serving(index))?;
        }
        Ok(authority.der())
    }

    fn sign_user(
        &self,
        authority: &Authority,
        subject: &Subject<'_>,
        stem: &str,
        url: &str,
        file: &Path,
    ) -> Result<()> {
        let signed = Signed::named(&self.folder, stem);
        authority.sign(subject, &[ClientAuth], &signed)?;
        let shown = json!({ "client-certificate": signed.certificate, "client-key": signed.key });
        let content = kubeconfig(url, &self.authority().certificate, subject.name, &shown);
        write_secret(file, &serde_json::to_vec_pretty(&content)?)
    }

    /// The authority that signs all certificates of the cluster.
    pub(super) fn authority(&self) -> Signed {
        Signed::named(&self.folder, "ca")
    }

    /// Those that kube-apiserver shows its clients.
    pub(super) fn api_server(&self) -> Signed {
        Signed::named(&self.folder, "kube-apiserver")
    }

    /// Those that kube-apiserver shows kubelets.
    pub(super) fn kubelet_client(&self) -> Signed {
        Signed::named(&self.folder, KUBELET_CLIENT_NAME)
    }

    /// Those that kube-apiserver shows the servers behind it.
    pub(super) fn front_proxy(&self) -> Signed {
        Signed::named(&self.folder, FRONT_PROXY)
    }

    /// Those that a kubelet shows its clients.
    pub(super) fn kubelet_serving(&self, index: usize) -> Signed {
        Signed::named(&self.folder, &format!("kubelet-serving-{}", addresses::name(index)))
    }

    pub(super) fn account_key(&self) -> PathBuf {
        self.folder.join("service-accounts.key")
    }

    pub(super) fn account_public_key(&self) -> PathBuf {
        self.folder.join("service-accounts.pub")
    }

    /// The kubeconfig of one of the cluster's parts.
    pub(super) fn kubeconfig(&self, part: &str) -> PathBuf {
        self.folder.join(format!("{part}.kubeconfig"))
    }
}

/// The name by which servers behind the API server know it.
pub(super) const FRONT_PROXY: &str = "front-proxy-client";
