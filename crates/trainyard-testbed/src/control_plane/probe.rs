//! One question to an API server on loopback: what status does it answer with? Knows neither what is asked
//! nor the rest of the answer.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Patience with one answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks as the one whom the token names, or as nobody.
pub(crate) struct Probe {
    port: u16,
    connector: TlsConnector,
    token: Option<String>,
}

impl Probe {
    /// `authority` is the certificate, in DER, of the authority that the server is signed by.
    pub(crate) fn new(port: u16, authority: &[u8], token: Option<&str>) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(authority.to_vec()))?;
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self { port, connector, token: token.map(str::to_owned) })
    }

    /// The status of the answer to a GET of `path`.
    pub(crate) async fn status(&self, path: &str) -> Result<u16> {
        let answer = tokio::time::timeout(PATIENCE, self.ask(path)).await;
        let line = answer.with_context(|| format!("no answer within {PATIENCE:?}"))??;
        status_of(&line).with_context(|| format!("not an answer of HTTP: {line:?}"))
    }

    async fn ask(&self, path: &str) -> Result<String> {
        let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await?;
        let name = ServerName::try_from("localhost")?;
        let mut stream = BufReader::new(self.connector.connect(name, tcp).await?);
        let token = self.token.iter().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\n{}Connection: close\r\n\r\n",
            token.collect::<String>()
        );
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        Ok(line)
    }
}

/// The status in the first line of an answer.
fn status_of(line: &str) -> Option<u16> {
    line.strip_prefix("HTTP/1.1 ")?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_in_the_first_line() {
        assert_eq!(status_of("HTTP/1.1 200 OK\r\n"), Some(200));
        assert_eq!(status_of("HTTP/1.1 404 Not Found\r\n"), Some(404));
        assert_eq!(status_of("Client sent an HTTP request to an HTTPS server.\n"), None);
        assert_eq!(status_of(""), None);
    }
}
