//! A node for tests: a certificate authority, a client, and pods that do as the test says.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::logs::LogSource;

/// A certificate with its key.
pub(super) type ClientCertificate = (CertificateDer<'static>, PrivatePkcs8KeyDer<'static>);

/// The name of the client that is let in.
const CLIENT: &str = "kube-apiserver-kubelet-client";

/// A certificate authority.
pub(super) struct Authority {
    pub(super) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// The certificate of the client that the node lets in.
    pub(super) fn client(&self) -> ClientCertificate {
        self.client_named(CLIENT)
    }

    pub(super) fn client_named(&self, name: &str) -> ClientCertificate {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.der().clone(), PrivatePkcs8KeyDer::from(key.serialize_der()))
    }
}

/// Starts a program: what the fake does for exec.
pub(super) type Start = Box<dyn Fn(ExecAsk) -> Result<ExecSession, Refused> + Send + Sync>;

/// Pods whose logs and programs a test gives.
#[derive(Default)]
pub(super) struct FakePods {
    /// By pod, container and whether it is the previous run's.
    pub(super) logs: Mutex<HashMap<(String, String, bool), LogSource>>,
    pub(super) start: Mutex<Option<Start>>,
    pub(super) broken: bool,
}

impl Pods for FakePods {
    async fn log(&self, ask: LogAsk) -> Result<LogSource, Refused> {
        let missing = format!("container {:?} not found in pod {:?}", ask.container, ask.pod);
        let key = (ask.pod, ask.container, ask.previous);
        self.logs.lock().unwrap().get(&key).cloned().ok_or(Refused::NotFound(missing))
    }

    async fn exec(&self, ask: ExecAsk) -> Result<ExecSession, Refused> {
        match &*self.start.lock().unwrap() {
            Some(start) => start(ask),
            None => Err(Refused::NotFound("pod does not exist".to_owned())),
        }
    }

    async fn connect(&self, _: ForwardTarget, port: u16) -> Result<TcpStream, Refused> {
        let connected = TcpStream::connect(("127.0.0.1", port)).await;
        connected.map_err(|error| Refused::BadRequest(error.to_string()))
    }

    async fn summary(&self) -> Result<Summary, Refused> {
        if self.broken {
            return Err(Refused::Internal("the holder does not answer".to_owned()));
        }
        Ok(summary())
    }

    async fn pods(&self) -> Vec<Pod> {
        let mut pod = Pod::default();
        pod.metadata.name = Some("p".to_owned());
        vec![pod]
    }
}

/// A small summary.
pub(super) fn summary() -> Summary {
    let time = Timestamp::from_second(1_800_000_000).unwrap();
    let cpu =
        |nanos| CpuStats { time, usage_nano_cores: None, usage_core_nano_seconds: Some(nanos) };
    let memory = MemoryStats {
        time,
        available_bytes: None,
        usage_bytes: None,
        working_set_bytes: Some(4096),
    };
    let start_time = Timestamp::from_second(1_799_999_990).unwrap();
    Summary {
        node: NodeStats {
            node_name: "node-a".to_owned(),
            start_time,
            cpu: Some(cpu(3_000_000_000)),
            memory: None,
            fs: None,
            runtime: None,
        },
        pods: vec![PodStats {
            pod_ref: PodReference {
                name: "p".to_owned(),
                namespace: "default".to_owned(),
                uid: "u".to_owned(),
            },
            start_time,
            containers: vec![ContainerStats {
                name: "main".to_owned(),
                start_time,
                cpu: Some(cpu(1_500_000_000)),
                memory: Some(memory),
                logs: None,
            }],
            cpu: None,
            memory: Some(memory),
            processes: Some(ProcessStats { process_count: 3 }),
        }],
    }
}

/// A served node and a client that it lets in.
pub(super) struct FakeNode {
    pub(super) authority: Authority,
    pub(super) address: SocketAddr,
    pub(super) stop: CancellationToken,
    pub(super) server: JoinHandle<Result<(), ServeError>>,
    pub(super) pods: Arc<FakePods>,
}

impl FakeNode {
    pub(super) fn new(pods: FakePods) -> Self {
        let authority = Authority::new();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let identity = Identity::self_made("node-a", &[address.ip()]).unwrap();
        let tls = server_config(identity, authority.pem.as_bytes()).unwrap();
        let clients = Clients::named(&[CLIENT.to_owned()]);
        let stop = CancellationToken::new();
        let pods = Arc::new(pods);
        let server = tokio::spawn(serve(listener, tls, clients, Arc::clone(&pods), stop.clone()));
        Self { authority, address, stop, server, pods }
    }

    pub(super) async fn connect(&self) -> TlsStream<TcpStream> {
        connect(self.address, Some(self.authority.client())).await.unwrap()
    }

    /// Asks and reads the whole answer.
    pub(super) async fn ask(&self, method: &str, path: &str) -> (u16, String) {
        let answer = self.begin(method, path, &[]).await;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Asks; the answer's body is still to be read.
    pub(super) async fn begin(
        &self,
        method: &str,
        path: &str,
        headers: &[(&'static str, &'static str)],
    ) -> http::Response<hyper::body::Incoming> {
        let stream = self.connect().await;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = http::Request::builder().method(method).uri(path).header("host", "node");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        sender.send_request(request.body(Empty::<bytes::Bytes>::new()).unwrap()).await.unwrap()
    }
}

/// Connects with the given certificate. The node's own is looked at by nobody, as the API server does.
pub(super) async fn connect(
    address: SocketAddr,
    client: Option<ClientCertificate>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty());
    let mut config = match client {
        Some((certificate, key)) => {
            builder.with_client_auth_cert(vec![certificate], key.into()).unwrap()
        }
        None => builder.with_no_client_auth(),
    };
    config.dangerous().set_certificate_verifier(Arc::new(AnyServer));
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::from(address.ip()), stream).await
}

#[derive(Debug)]
struct AnyServer;

impl rustls::client::danger::ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// A future that never ends and tells when it is dropped.
pub(super) fn never(dropped: CancellationToken) -> BoxFuture<'static, Result<i32, String>> {
    Box::pin(async move {
        let _tell = dropped.drop_guard();
        std::future::pending().await
    })
}
