//! HTTP probes: one GET on a connection of its own, redirects on the same host followed.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};

use super::outcome::Outcome;
use super::run::{Target, authority, dial_error};
use super::tls;

/// Bytes of an answer that are read.
const MOST_BODY: usize = 10 << 10;
const MOST_REDIRECTS: u32 = 10;
const AGENT: &str = "kube-probe/1.33";

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) tls: bool,
    pub(super) path: &'a str,
    pub(super) headers: &'a [(String, String)],
}

/// Where a request goes: the first, or the one a redirect leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    host: String,
    port: u16,
    tls: bool,
    path: String,
}

impl Place {
    fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", authority(&self.host, self.port), self.path)
    }
}

struct Reply {
    status: StatusCode,
    location: Option<String>,
    body: String,
}

/// Makes the probe.
pub(super) async fn get(request: Request<'_>, target: &impl Target, timeout: Duration) -> Outcome {
    let headers = match headers(request.headers) {
        Ok(headers) => headers,
        Err(problem) => return Outcome::Errored(problem),
    };
    let first = Place {
        host: request.host.to_owned(),
        port: request.port,
        tls: request.tls,
        path: request_target(request.path),
    };
    let url = first.url();
    match tokio::time::timeout(timeout, follow(first, &headers, target)).await {
        Ok(outcome) => outcome,
        Err(_) => Outcome::Failure(format!(
            "Get {url:?}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        )),
    }
}

async fn follow(first: Place, headers: &HeaderMap, target: &impl Target) -> Outcome {
    let mut place = first.clone();
    for _ in 0..MOST_REDIRECTS {
        let reply = match ask(&place, headers, target).await {
            Ok(reply) => reply,
            Err(problem) => return Outcome::Failure(format!("Get {:?}: {problem}", place.url())),
        };
        let code = reply.status.as_u16();
        if matches!(code, 301 | 302 | 303 | 307 | 308) {
            let next = reply.location.as_deref().and_then(|location| redirect(&place, location));
            match next {
                Some(next) if next.host == first.host => {
                    place = next;
                    continue;
                }
                _ => {}
            }
        }
        return match code {
            200..=299 => Outcome::Success,
            300..=399 => Outcome::Warning(format!(
                "Probe terminated redirects, Response body: {}",
                reply.body
            )),
            _ => Outcome::Failure(format!("HTTP probe failed with statuscode: {code}")),
        };
    }
    Outcome::Failure(format!("Get {:?}: stopped after {MOST_REDIRECTS} redirects", place.url()))
}

async fn ask(place: &Place, headers: &HeaderMap, target: &impl Target) -> Result<Reply, String> {
    let stream = target
        .connect(&place.host, place.port)
        .await
        .map_err(|error| dial_error(&place.host, place.port, &error))?;
    if !place.tls {
        return exchange(stream, place, headers).await;
    }
    let name = ServerName::try_from(place.host.clone()).map_err(|error| error.to_string())?;
    let connector = tls::connector().map_err(|error| error.to_string())?;
    let stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
    exchange(stream, place, headers).await
}

async fn exchange<S>(stream: S, place: &Place, headers: &HeaderMap) -> Result<Reply, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let mut request = http::Request::new(Empty::<Bytes>::new());
    *request.method_mut() = Method::GET;
    *request.uri_mut() =
        place.path.parse::<Uri>().map_err(|error| format!("{:?}: {error}", place.path))?;
    *request.headers_mut() = headers.clone();
    if !headers.contains_key(HOST) {
        let host = HeaderValue::from_str(&authority(&place.host, place.port))
            .map_err(|error| error.to_string())?;
        request.headers_mut().insert(HOST, host);
    }
    let asking = async {
        let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let (parts, mut body) = answer.into_parts();
        let mut text = Vec::new();
        while text.len() < MOST_BODY {
            match body.frame().await {
                None => break,
                Some(Ok(frame)) => {
                    text.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
                }
                Some(Err(error)) => return Err(error.to_string()),
            }
        }
        text.truncate(MOST_BODY);
        Ok(Reply {
            status: parts.status,
            location: parts
                .headers
                .get(LOCATION)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned),
            body: String::from_utf8_lossy(&text).into_owned(),
        })
    };
    // Both on this task: dropping the probe drops its connection.
    tokio::pin!(asking);
    tokio::pin!(connection);
    tokio::select! {
        biased;
        reply = &mut asking => reply,
        _ = &mut connection => asking.await,
    }
}

/// The headers of every request: those given, and a kubelet's where they say nothing.
fn headers(given: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let wrong = || format!("invalid header {name:?}: {value:?}");
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        headers.append(name, value);
    }
    if !headers.contains_key(USER_AGENT) {
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    }
    if headers.get(ACCEPT).is_some_and(HeaderValue::is_empty) {
        headers.remove(ACCEPT);
    } else if !headers.contains_key(ACCEPT) {
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    }
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(headers)
}

/// Path and query as they are sent: from the root, without a fragment, what cannot stand in a request
/// escaped.
fn request_target(path: &str) -> String {
    let path = path.split_once('#').map_or(path, |(path, _)| path);
    let mut sent = String::with_capacity(path.len() + 1);
    if !path.starts_with('/') {
        sent.push('/');
    }
    for byte in path.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`') {
            sent.push(char::from(byte));
        } else {
            sent.push_str(&format_escape(byte));
        }
    }
    sent
}

fn format_escape(byte: u8) -> String {
    format!("%{byte:02X}")
}

/// Where a `Location` leads to; none where it cannot be read.
fn redirect(from: &Place, location: &str) -> Option<Place> {
    if location.is_empty() {
        return None;
    }
    let absolute = location.contains("://");
    if !absolute && !location.starts_with("//") {
        let path = if location.starts_with('/') {
            location.to_owned()
        } else {
            let plain = from.path.split('?').next().unwrap_or_default();
            let folder = plain.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{location}")
        };
        return Some(Place { path: request_target(&path), ..from.clone() });
    }
    let scheme = if from.tls { "https" } else { "http" };
    let full = if absolute { location.to_owned() } else { format!("{scheme}:{location}") };
    let uri: Uri = full.parse().ok()?;
    let tls = match uri.scheme_str()? {
        "http" => false,
        "https" => true,
        _ => return None,
    };
    let host = uri.host()?.trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Some(Place { host, port, tls, path: request_target(path) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> Place {
        Place { host: "10.0.0.1".to_owned(), port: 8080, tls: false, path: path.to_owned() }
    }

    #[test]
    fn paths_are_sent_whole() {
        for (given, sent) in [
            ("", "/"),
            ("/", "/"),
            ("healthz", "/healthz"),
            ("/a?b=c&d=%20", "/a?b=c&d=%20"),
            ("/a b\u{e9}", "/a%20b%C3%A9"),
            ("/a#frag", "/a"),
            ("/\r\nX: y", "/%0D%0AX:%20y"),
        ] {
            assert_eq!(request_target(given), sent);
            assert!(sent.parse::<Uri>().is_ok(), "{sent}");
        }
    }

    #[test]
    fn redirects_lead_somewhere() {
        let from = place("/a/b?x=1");
        for (location, to) in [
            ("/c", Some(place("/c"))),
            ("c", Some(place("/a/c"))),
            ("http://10.0.0.1:8080/d?e", Some(place("/d?e"))),
            ("//10.0.0.1:8080/d", Some(place("/d"))),
            ("https://10.0.0.1/d", Some(Place { port: 443, tls: true, ..place("/d") })),
            (
                "http://elsewhere",
                Some(Place { host: "elsewhere".to_owned(), port: 80, ..place("/") }),
            ),
            ("ftp://10.0.0.1/", None),
            ("http://", None),
            ("", None),
        ] {
            assert_eq!(redirect(&from, location), to, "{location}");
        }
    }

    #[test]
    fn headers_given_and_usual() {
        let given = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let usual = headers(&[]).unwrap();
        assert_eq!(usual[USER_AGENT], AGENT);
        assert_eq!(usual[ACCEPT], "*/*");
        let own =
            headers(&[given("user-agent", "me"), given("Accept", ""), given("X", "1")]).unwrap();
        assert_eq!(own[USER_AGENT], "me");
        assert!(!own.contains_key(ACCEPT));
        assert_eq!(own["x"], "1");
        assert!(headers(&[given("a b", "c")]).unwrap_err().contains("invalid header"));
        assert!(headers(&[given("a", "b\r\nc: d")]).unwrap_err().contains("invalid header"));
    }
}
