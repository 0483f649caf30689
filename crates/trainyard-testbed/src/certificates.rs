//! An authority of a cluster's own, what it signs, and the kubeconfigs of those who show it. Knows nothing of
//! who they are.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};

/// An authority that signs certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Certificate,
}

/// Whom a certificate speaks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subject<'a> {
    /// The user's name.
    pub(crate) name: &'a str,
    /// The user's group.
    pub(crate) group: Option<&'a str>,
    /// Names and addresses of the server that shows it.
    pub(crate) hosts: &'a [&'a str],
}

/// Where a certificate and its key are.
#[derive(Clone, Debug)]
pub(crate) struct Signed {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Signed {
    /// The files of this name in a folder.
    pub(crate) fn named(folder: &Path, name: &str) -> Self {
        let file = |ending: &str| folder.join(format!("{name}.{ending}"));
        Self { certificate: file("crt"), key: file("key") }
    }
}

impl Authority {
    pub(crate) fn create(name: &str) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        // OpenSSL takes a certificate whose issuer has its subject's name for one that signed itself.
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Ok(Self { issuer: Issuer::new(params, key), certificate })
    }

    /// Its certificate, in DER.
    pub(crate) fn der(&self) -> Vec<u8> {
        self.certificate.der().to_vec()
    }

    /// Writes its certificate and its key.
    pub(crate) fn write(&self, files: &Signed) -> Result<()> {
        write_secret(&files.certificate, self.certificate.pem().as_bytes())?;
        write_secret(&files.key, self.issuer.key().serialize_pem().as_bytes())
    }

    /// Signs a certificate for these purposes and writes it and its key.
    pub(crate) fn sign(
        &self,
        subject: &Subject<'_>,
        purposes: &[ExtendedKeyUsagePurpose],
        files: &Signed,
    ) -> Result<()> {
        let hosts = subject.hosts.iter().map(|&host| host.to_owned()).collect::<Vec<_>>();
        let mut params = CertificateParams::new(hosts)?;
        if let Some(group) = subject.group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.distinguished_name.push(DnType::CommonName, subject.name);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = purposes.to_vec();
        let key = KeyPair::generate()?;
        let signed = params.signed_by(&key, &self.issuer)?;
        write_secret(&files.certificate, signed.pem().as_bytes())?;
        write_secret(&files.key, key.serialize_pem().as_bytes())
    }
}

/// Writes the key that signs the tokens of service accounts, and its public half: the API server signs with the
/// one and verifies only with the other.
pub(crate) fn write_account_key(private: &Path, public: &Path) -> Result<()> {
    let key = KeyPair::generate()?;
    write_secret(private, key.serialize_pem().as_bytes())?;
    write_secret(public, key.public_key_pem().as_bytes())
}

/// A kubeconfig (JSON is YAML): the server, the authority it is signed by, and what `user` shows it.
pub(crate) fn kubeconfig(url: &str, authority: &Path, user: &str, credentials: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "test", "cluster": {
            "server": url, "certificate-authority": authority } }],
        "users": [{ "name": user, "user": credentials }],
        "contexts": [{ "name": "test", "context": {
            "cluster": "test", "user": user, "namespace": "default" } }],
        "current-context": "test",
    })
}

/// Writes a file that only its owner can read.
pub(crate) fn write_secret(path: &Path, content: &[u8]) -> Result<()> {
    let write = || {
        let mut options = File::options();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
        std::io::Write::write_all(&mut file, content)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
