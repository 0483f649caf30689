//! HTTPS without a client library: a connection is bytes, or HTTP/1.1 with one request at a time.
//!
//! Owns connecting and asking. Must not know which server is there, nor what is asked.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// No answer takes longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// Where a server is, how it is trusted and who asks.
#[derive(Clone)]
pub struct Door {
    address: SocketAddr,
    token: String,
    tls: Arc<ClientConfig>,
}

/// A certificate and its key, both in PEM.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The certificate.
    pub certificate: &'a str,
    /// The key.
    pub key: &'a str,
}

/// An answer, whole.
#[derive(Debug)]
pub struct Answer {
    /// The code.
    pub code: u16,
    /// The headers.
    pub headers: http::HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON; null when it is none.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Door {
    /// The door of a server that trusts a token and shows a certificate of this authority (in PEM).
    pub fn new(address: SocketAddr, authority: &str, token: &str) -> Result<Self> {
        let authority = CertificateDer::from_pem_slice(authority.as_bytes())?;
        Self::with(address, vec![authority], token, None)
    }

    /// The door of the server that a kubeconfig in JSON names, for whoever has the token in it.
    pub fn of_kubeconfig(path: &Path) -> Result<Self> {
        let config: Value = serde_json::from_slice(&std::fs::read(path)?)?;
        let cluster = &config["clusters"][0]["cluster"];
        let text = |value: &Value| value.as_str().map(str::to_owned).context("a kubeconfig");
        let server = text(&cluster["server"])?;
        let authority = std::fs::read_to_string(text(&cluster["certificate-authority"])?)?;
        let token = text(&config["users"][0]["user"]["token"])?;
        Self::new(server.trim_start_matches("https://").parse()?, &authority, &token)
    }

    fn with(
        address: SocketAddr,
        roots: Vec<CertificateDer<'static>>,
        token: &str,
        shown: Option<Shown<'_>>,
    ) -> Result<Self> {
        let mut store = RootCertStore::empty();
        for root in roots {
            store.add(root)?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(store);
        let tls = match shown {
            None => builder.with_no_client_auth(),
            Some(shown) => builder.with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(shown.certificate.as_bytes())?],
                PrivateKeyDer::from_pem_slice(shown.key.as_bytes())?,
            )?,
        };
        Ok(Self { address, token: token.to_owned(), tls: Arc::new(tls) })
    }

    /// The same server for another: with this token (none when empty) and this certificate.
    pub fn as_other(&self, authority: &str, token: &str, shown: Option<Shown<'_>>) -> Result<Self> {
        let authority = CertificateDer::from_pem_slice(authority.as_bytes())?;
        Self::with(self.address, vec![authority], token, shown)
    }

    /// Where the server is.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A connection.
    pub async fn connect(&self) -> Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        let name = ServerName::from(self.address.ip());
        let connecting = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream);
        tokio::time::timeout(PATIENCE, connecting)
            .await
            .context("TLS took too long")?
            .context("TLS")
    }

    /// A connection for requests, one after another.
    pub async fn open(&self) -> Result<Talk> {
        let (sender, connection) = handshake(TokioIo::new(self.connect().await?)).await?;
        tokio::spawn(connection);
        Ok(Talk { sender, door: self.clone() })
    }

    /// One request on a connection of its own.
    pub async fn ask(&self, method: Method, path: &str, body: &str) -> Result<Answer> {
        self.open().await?.ask(method, path, body.to_owned().into()).await
    }

    /// Whether the server answers as it should.
    pub async fn must_answer(&self) -> Result<()> {
        let answer = self.ask(Method::GET, "/api/v1/namespaces?limit=1", "").await?;
        match answer.code {
            200 => Ok(()),
            code => bail!("the server answers a list with {code}"),
        }
    }
}

/// A connection for requests.
pub struct Talk {
    sender: SendRequest<Full<Bytes>>,
    door: Door,
}

impl Talk {
    /// One request and its whole answer.
    pub async fn ask(&mut self, method: Method, path: &str, body: Bytes) -> Result<Answer> {
        let content = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let asked = async {
            let (parts, body) = self.begin(method, path, content, body).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            anyhow::Ok(Answer { code: parts.status.as_u16(), headers: parts.headers, body })
        };
        tokio::time::timeout(PATIENCE, asked).await.context("no answer in time")?
    }

    /// One request; the body of its answer is still to come.
    pub async fn begin(
        &mut self,
        method: Method,
        path: &str,
        content: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("Host", self.door.address.to_string())
            .header("Accept", "application/json")
            .header("Content-Type", content);
        if !self.door.token.is_empty() {
            request = request.header("Authorization", format!("Bearer {}", self.door.token));
        }
        self.sender.ready().await?;
        Ok(self.sender.send_request(request.body(Full::new(body))?).await?)
    }
}
