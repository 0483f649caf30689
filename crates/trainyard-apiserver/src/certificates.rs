//! The yard's own authority: keys and certificates of the server, its clients and its nodes.
//!
//! Owns making, keeping and reading them. Must not know requests.

mod life;
mod rotating;
mod user_token;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use rotating::Rotating;

pub use life::Life;
pub(crate) use user_token::UserTokens;

use crate::secret_file::write_secret;
use crate::tokens::{TokenError, Tokens};

/// What is wrong with keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file of the authority.
    #[error(
        "{what} {path}: {source}; check that the folder is yours, or remove the file to have it made anew"
    )]
    File {
        /// Reading or writing.
        what: &'static str,
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A key or certificate that cannot be used.
    #[error("the {what} cannot be used: {problem}")]
    Unusable {
        /// Which one.
        what: &'static str,
        /// What the library said.
        problem: String,
    },
}

impl KeyError {
    /// A stable name of the variant, for logs and metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::File { .. } => "key_file",
            Self::Unusable { .. } => "key_unusable",
        }
    }
}

fn unusable(what: &'static str) -> impl Fn(rcgen::Error) -> KeyError {
    move |error| KeyError::Unusable { what, problem: error.to_string() }
}

/// A certificate with its key, as text.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The certificate in PEM.
    pub certificate: String,
    /// The key in PEM.
    pub key: String,
    /// How long the certificate holds.
    pub life: Life,
}

/// The yard's authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
    pub(crate) token_key: Vec<u8>,
}

impl Authority {
    /// An authority that lives as long as the process.
    pub fn ephemeral() -> Result<Self, KeyError> {
        let (certificate, key) = made()?;
        Self::read(certificate, &key, new_token_key()?)
    }

    /// The authority kept in a folder; made there if there is none.
    pub fn open(folder: &Path) -> Result<Self, KeyError> {
        let path = |name: &str| folder.join(name);
        let paths = [path("ca.crt"), path("ca.key"), path("token.key")];
        let kept = (read(&paths[0])?, read(&paths[1])?);
        let kept = kept.0.zip(kept.1).map(|(certificate, key)| (text(&certificate), text(&key)));
        let (certificate, key) = match kept {
            Some((certificate, key)) if !is_due(&certificate)? => (certificate, key),
            kept => {
                if kept.is_some() {
                    tracing::warn!(
                        "the yard's authority is made anew: copies of its kubeconfig are no longer of use"
                    );
                }
                let (certificate, key) = made()?;
                write(&paths[1], key.as_bytes())?;
                write(&paths[0], certificate.as_bytes())?;
                (certificate, key)
            }
        };
        let token_key = if let Some(key) = read(&paths[2])? {
            key
        } else {
            let key = new_token_key()?;
            write(&paths[2], &key)?;
            key
        };
        Self::read(certificate, &key, token_key)
    }

    fn read(certificate: String, key: &str, token_key: Vec<u8>) -> Result<Self, KeyError> {
        let key = KeyPair::from_pem(key).map_err(unusable("authority's key"))?;
        let issuer = Issuer::from_ca_cert_pem(&certificate, key);
        let issuer = issuer.map_err(unusable("authority's certificate"))?;
        Ok(Self { issuer, certificate, token_key })
    }

    /// The certificate that clients trust, in PEM.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A token that lets its bearer do everything, for as long as a certificate that is made with it.
    #[must_use]
    pub fn user_token(&self, life: Life) -> String {
        self.user_tokens().issue(life.end)
    }

    /// Who checks such tokens.
    pub(crate) fn user_tokens(&self) -> UserTokens {
        UserTokens::new(&self.token_key)
    }

    /// A certificate for a client.
    pub fn client(&self, name: &str, groups: &[&str]) -> Result<Credentials, KeyError> {
        self.issue(name, groups, &[], ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(
        &self,
        name: &str,
        groups: &[&str],
        hosts: &[String],
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Credentials, KeyError> {
        let what = unusable("certificate");
        let mut params = CertificateParams::new(hosts.to_vec()).map_err(&what)?;
        params.distinguished_name.push(DnType::CommonName, name);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages.push(usage);
        params.key_usages.push(KeyUsagePurpose::DigitalSignature);
        let life = Life::of_certificate(now());
        hold(&mut params, life);
        let key = KeyPair::generate().map_err(&what)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(&what)?;
        Ok(Credentials { certificate: certificate.pem(), key: key.serialize_pem(), life })
    }

    /// TLS for the server, whose certificate is made anew in time: clients may show a certificate of this
    /// authority, or none.
    pub(crate) fn server_tls(
        self: &Arc<Self>,
        hosts: &[String],
    ) -> Result<Arc<ServerConfig>, KeyError> {
        let what = |error: &dyn std::fmt::Display| KeyError::Unusable {
            what: "server's certificate",
            problem: error.to_string(),
        };
        let (own, hosts) = (Arc::clone(self), hosts.to_vec());
        let make = move || {
            let usage = ExtendedKeyUsagePurpose::ServerAuth;
            let credentials = own.issue("kube-apiserver", &[], &hosts, usage)?;
            Ok((certified(&credentials)?, credentials.life))
        };
        let certificate = Arc::new(Rotating::new(make, now)?);
        let provider = Arc::new(ring::default_provider());
        let roots = Arc::new(self.roots()?);
        let clients = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .map_err(|error| what(&error))?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| what(&error))?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(certificate);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// TLS towards nodes: who we are to them. Their own certificates are made by themselves and
    /// are not checked, as by the real server unless it is told otherwise; nodes are on loopback.
    pub(crate) fn node_tls(self: &Arc<Self>, name: &str) -> Result<Arc<ClientConfig>, KeyError> {
        let (own, name) = (Arc::clone(self), name.to_owned());
        let make = move || {
            let credentials = own.client(&name, &["system:masters"])?;
            Ok((certified(&credentials)?, credentials.life))
        };
        let certificate = Arc::new(Rotating::new(make, now)?);
        let provider = Arc::new(ring::default_provider());
        let unusable = |error: rustls::Error| KeyError::Unusable {
            what: "certificate for nodes",
            problem: error.to_string(),
        };
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyNode(provider)))
            .with_client_cert_resolver(certificate);
        Ok(Arc::new(config))
    }

    fn roots(&self) -> Result<RootCertStore, KeyError> {
        let problem = |problem: String| KeyError::Unusable { what: "authority", problem };
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes());
        let certificate = certificate.map_err(|error| problem(error.to_string()))?;
        roots.add(certificate).map_err(|error| problem(error.to_string()))?;
        Ok(roots)
    }
}

/// Takes any node's certificate; its signature must fit.
#[derive(Debug)]
struct AnyNode(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyNode {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A certificate with its key, as TLS takes them.
fn certified(credentials: &Credentials) -> Result<Arc<CertifiedKey>, KeyError> {
    let problem = |problem: String| KeyError::Unusable { what: "certificate", problem };
    let chain = CertificateDer::from_pem_slice(credentials.certificate.as_bytes());
    let chain = vec![chain.map_err(|error| problem(error.to_string()))?];
    let key = PrivateKeyDer::from_pem_slice(credentials.key.as_bytes());
    let key = key.map_err(|error| problem(error.to_string()))?;
    let certified = CertifiedKey::from_der(chain, key, &ring::default_provider());
    certified.map(Arc::new).map_err(|error| problem(error.to_string()))
}

/// The time of day, in seconds since 1970: that by which clients judge certificates.
pub(crate) fn now() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

/// Sets how long a certificate holds.
fn hold(params: &mut CertificateParams, life: Life) {
    let at = |seconds: i64| {
        let since = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        rcgen::date_time_ymd(1970, 1, 1) + since
    };
    (params.not_before, params.not_after) = (at(life.begin), at(life.end));
}

/// Whether an authority is to be made anew.
fn is_due(certificate: &str) -> Result<bool, KeyError> {
    let what = "authority's certificate";
    let der = CertificateDer::from_pem_slice(certificate.as_bytes());
    let der = der.map_err(|error| KeyError::Unusable { what, problem: error.to_string() })?;
    let (_, read) = X509Certificate::from_der(&der)
        .map_err(|error| KeyError::Unusable { what, problem: error.to_string() })?;
    let life = read.validity();
    let life = Life { begin: life.not_before.timestamp(), end: life.not_after.timestamp() };
    Ok(life.is_due_for_authority(now()))
}

fn made() -> Result<(String, String), KeyError> {
    let what = unusable("authority");
    let mut params = CertificateParams::new(Vec::new()).map_err(&what)?;
    params.distinguished_name.push(DnType::CommonName, "trainyard");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    hold(&mut params, Life::of_authority(now()));
    let key = KeyPair::generate().map_err(&what)?;
    let certificate = params.self_signed(&key).map_err(&what)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn new_token_key() -> Result<Vec<u8>, KeyError> {
    Tokens::new_key().map_err(|error: TokenError| KeyError::Unusable {
        what: "signing key",
        problem: error.to_string(),
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, KeyError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(KeyError::File { what: "reading", path: path.to_owned(), source }),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), KeyError> {
    write_secret(path, bytes).map_err(|source| KeyError::File {
        what: "writing",
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let first = Authority::open(folder.path()).unwrap();
        let second = Arc::new(Authority::open(folder.path()).unwrap());
        assert_eq!(first.certificate(), second.certificate());
        assert_eq!(first.token_key, second.token_key);
        second.client("me", &["system:masters"]).unwrap();
        second.server_tls(&["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        second.node_tls("kube-apiserver-kubelet-client").unwrap();
    }

    #[test]
    fn an_authority_that_holds_for_ever_is_made_anew_and_tokens_of_accounts_stay() {
        let folder = tempfile::tempdir().unwrap();
        let first = Authority::open(folder.path()).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let key = KeyPair::from_pem(&first.issuer.key().serialize_pem()).unwrap();
        let endless = params.self_signed(&key).unwrap().pem();
        std::fs::write(folder.path().join("ca.crt"), &endless).unwrap();
        assert!(is_due(&endless).unwrap());
        let second = Authority::open(folder.path()).unwrap();
        assert_ne!(second.certificate(), endless);
        assert!(!is_due(second.certificate()).unwrap());
        assert_eq!(first.token_key, second.token_key);
    }

    #[test]
    fn certificates_say_how_long_they_hold() {
        let authority = Authority::ephemeral().unwrap();
        let client = authority.client("me", &[]).unwrap();
        let der = CertificateDer::from_pem_slice(client.certificate.as_bytes()).unwrap();
        let (_, read) = X509Certificate::from_der(&der).unwrap();
        assert_eq!(read.validity().not_before.timestamp(), client.life.begin);
        assert_eq!(read.validity().not_after.timestamp(), client.life.end);
        assert!(client.life.begin < now() && !client.life.is_due(now()));
        let token = authority.user_token(client.life);
        assert!(authority.user_tokens().check(&token, now()));
    }

    #[test]
    fn a_broken_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        Authority::open(folder.path()).unwrap();
        std::fs::write(folder.path().join("ca.key"), "rubbish").unwrap();
        assert_eq!(Authority::open(folder.path()).map(|_| ()).unwrap_err().kind(), "key_unusable");
    }
}
