//! Turns an HTTP request into a websocket that speaks one of the remote command protocols.

use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Which protocol was agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Exit codes on the error channel.
    V4,
    /// Also a signal that closes one channel.
    V5,
}

impl Protocol {
    const fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4.channel.k8s.io",
            Self::V5 => "v5.channel.k8s.io",
        }
    }
}

/// The answer that begins the websocket, or why there is none, in words for the client.
pub(super) fn negotiate(headers: &HeaderMap) -> Result<(Protocol, Response), String> {
    if !tokens(headers, &CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade")) {
        return Err(format!("an upgrade to a websocket is required: {WANTED}"));
    }
    if !asks_for(headers, "websocket") {
        let upgrades: Vec<&str> = tokens(headers, &UPGRADE).collect();
        return Err(format!("{} is not spoken here: {WANTED}", upgrades.join(", ")));
    }
    let known = |token: &str| [Protocol::V5, Protocol::V4].into_iter().find(|p| p.name() == token);
    let protocol = tokens(headers, &SEC_WEBSOCKET_PROTOCOL)
        .find_map(known)
        .ok_or_else(|| format!("none of the websocket's protocols is spoken here: {WANTED}"))?;
    Ok((protocol, websocket(headers, protocol.name())?))
}

/// Whether a request wants its connection to become this.
pub(super) fn asks_for(headers: &HeaderMap, what: &str) -> bool {
    let says =
        |name, word: &str| tokens(headers, name).any(|token| token.eq_ignore_ascii_case(word));
    says(&CONNECTION, "upgrade") && says(&UPGRADE, what)
}

/// The answer that begins a websocket with this protocol, which must be among those that are offered.
pub(super) fn websocket(headers: &HeaderMap, protocol: &'static str) -> Result<Response, String> {
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err("the websocket's version must be 13".to_owned());
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).ok_or("the websocket's key is missing")?;
    if !tokens(headers, &SEC_WEBSOCKET_PROTOCOL).any(|token| token == protocol) {
        return Err(format!("the websocket's protocol must be {protocol}"));
    }
    let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes()))
        .map_err(|error| error.to_string())?;
    let answer = [
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_ACCEPT, accept),
        (SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol)),
    ];
    Ok((StatusCode::SWITCHING_PROTOCOLS, answer).into_response())
}

const WANTED: &str = "this node takes websockets with v5.channel.k8s.io or v4.channel.k8s.io, \
    which kubectl from 1.30 and an API server from 1.36 (feature ExtendWebSocketsToKubelet) send";

pub(super) fn tokens<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    fn websocket(protocols: &'static str) -> HeaderMap {
        headers(&[
            (CONNECTION, "keep-alive, Upgrade"),
            (UPGRADE, "websocket"),
            (SEC_WEBSOCKET_VERSION, "13"),
            (SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ=="),
            (SEC_WEBSOCKET_PROTOCOL, protocols),
        ])
    }

    #[test]
    fn the_clients_first_known_protocol_is_taken() {
        for (protocols, expected) in [
            ("v5.channel.k8s.io", Protocol::V5),
            ("v4.channel.k8s.io,v5.channel.k8s.io", Protocol::V4),
            ("v9.channel.k8s.io, v5.channel.k8s.io", Protocol::V5),
        ] {
            let (protocol, answer) = negotiate(&websocket(protocols)).unwrap();
            assert_eq!(protocol, expected, "{protocols}");
            assert_eq!(answer.status(), 101);
            assert_eq!(answer.headers()[SEC_WEBSOCKET_PROTOCOL], expected.name());
            // The example of the websocket standard.
            assert_eq!(answer.headers()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        }
    }

    #[test]
    fn what_is_not_spoken_is_named() {
        let spdy = headers(&[(CONNECTION, "Upgrade"), (UPGRADE, "SPDY/3.1")]);
        let mut old = websocket("v5.channel.k8s.io");
        old.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("8"));
        let mut keyless = websocket("v5.channel.k8s.io");
        keyless.remove(SEC_WEBSOCKET_KEY);
        for (headers, word) in [
            (HeaderMap::new(), "upgrade"),
            (spdy, "SPDY/3.1 is not spoken"),
            (old, "13"),
            (keyless, "key"),
            (websocket("base64.channel.k8s.io"), "protocols"),
        ] {
            let error = negotiate(&headers).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
