//! Who the node is to its clients, and which clients it lets in.

use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;

use super::ServeError;

/// The node's certificate and key.
pub(crate) struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Makes a certificate for this run, signed by itself, as a kubelet without one does.
    pub(crate) fn self_made(node: &str, addresses: &[IpAddr]) -> Result<Self, ServeError> {
        let problem = |error: rcgen::Error| ServeError::Certificate {
            what: "the self-made certificate",
            problem: error.to_string(),
        };
        let mut names = vec![node.to_owned()];
        names.extend(addresses.iter().map(IpAddr::to_string));
        let mut params = CertificateParams::new(names).map_err(problem)?;
        params.distinguished_name.push(DnType::CommonName, format!("system:node:{node}"));
        params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        let key = KeyPair::generate().map_err(problem)?;
        let certificate = params.self_signed(&key).map_err(problem)?;
        Ok(Self {
            chain: vec![certificate.der().clone()],
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        })
    }
}

/// TLS for the node's API: clients must show a certificate that leads to one of `client_authorities`
/// (PEM); nobody else gets through the handshake.
pub(crate) fn server_config(
    identity: Identity,
    client_authorities: &[u8],
) -> Result<Arc<ServerConfig>, ServeError> {
    let what = "the client authority";
    let mut roots = RootCertStore::empty();
    for authority in certificates(what, client_authorities)? {
        roots
            .add(authority)
            .map_err(|error| ServeError::Certificate { what, problem: error.to_string() })?;
    }
    let provider = Arc::new(ring::default_provider());
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| ServeError::Certificate { what, problem: error.to_string() })?;
    let unusable = |error: rustls::Error| ServeError::Certificate {
        what: "the certificate",
        problem: error.to_string(),
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_client_cert_verifier(clients)
        .with_single_cert(identity.chain, identity.key)
        .map_err(unusable)?;
    // Upgrades exist in this version only.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(
    what: &'static str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let problem = |problem| ServeError::Certificate { what, problem };
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| problem(format!("not readable as PEM: {error}")))?;
    if found.is_empty() {
        return Err(problem("holds no certificate in PEM form".to_owned()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_is_named() {
        let identity = Identity::self_made("node-a", &["127.0.0.1".parse().unwrap()]).unwrap();
        let error = server_config(identity, b"nothing").unwrap_err();
        assert_eq!(error.kind(), "certificate");
        assert!(error.to_string().starts_with("the client authority"), "{error}");
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let identity = Identity::self_made("node-a", &[]).unwrap();
        assert!(server_config(identity, broken).is_err());
    }
}
