//! Clients that may not come in, and those who ask for another server.

use std::fs;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, date_time_ymd};

use super::ground::{Ground, MAPS, codes};
use crate::harness::{Case, cases};
use crate::raw::Shown;

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!["strangers":
        without_credentials,
        with_wrong_tokens,
        with_expired_certificates,
        with_foreign_certificates,
        for_another_host,
    ]
}

const OPEN: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];
const CLOSED: [&str; 9] =
    ["/", "/api", "/apis", "/api/v1", "/metrics", "/openapi/v3", "/api/v1/secrets", MAPS, "/x"];

async fn without_credentials(ground: &Ground) -> Result<()> {
    let nobody = ground.door().as_other(&ground.lone.authority, "", None)?;
    for path in OPEN {
        let answer = nobody.ask(Method::GET, path, "").await?;
        ensure!(answer.code == 200, "{path}: {}", answer.code);
        ensure!(nobody.ask(Method::POST, path, "{}").await?.code >= 400, "POST {path}");
    }
    for path in CLOSED {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let answer = nobody.ask(method.clone(), path, "{}").await?;
            ensure!(answer.code == 401, "{method} {path}: {}", answer.code);
            ensure!(answer.value()["reason"] == "Unauthorized", "{:?}", answer.body);
        }
    }
    Ok(())
}

async fn with_wrong_tokens(ground: &Ground) -> Result<()> {
    let long = "a".repeat(30_000);
    let none = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzeXN0ZW06YWRtaW4ifQ.";
    let right = ground.door().token();
    let (longer, shorter) = (format!("{right}x"), right.get(1..).unwrap_or_default());
    for token in ["x", ".", "..", "a.b.c", none, &long, &longer, shorter] {
        let stranger = ground.door().as_other(&ground.lone.authority, token, None)?;
        let answer = stranger.ask(Method::GET, MAPS, "").await?;
        ensure!(answer.code == 401, "{token:.30}: {}", answer.code);
    }
    for header in ["Basic YTpi", "Bearer", "", "bearer\tx", "\u{e4}"] {
        let address = ground.door().address();
        let asked = format!(
            "GET {MAPS} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: {header}\r\n\r\n"
        );
        let codes = codes(&ground.say(asked.as_bytes()).await?);
        ensure!(codes == [401], "{header:?}: {codes:?}");
    }
    Ok(())
}

/// A certificate for one who may do everything.
fn certificate(expired: bool) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "admin");
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
    if expired {
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    }
    Ok(params)
}

/// The code that one with this certificate gets; none when there is not even a connection.
async fn code_with(ground: &Ground, certificate: &str, key: &str) -> Result<Option<u16>> {
    let shown = Shown { certificate, key };
    let door = ground.door().as_other(&ground.lone.authority, "", Some(shown))?;
    Ok(door.ask(Method::GET, MAPS, "").await.ok().map(|answer| answer.code))
}

async fn with_expired_certificates(ground: &Ground) -> Result<()> {
    let authority = fs::read_to_string(ground.keys().join("ca.crt")).context("the authority")?;
    let key = KeyPair::from_pem(&fs::read_to_string(ground.keys().join("ca.key"))?)?;
    let issuer = Issuer::from_ca_cert_pem(&authority, key)?;
    for (expired, wanted) in [(false, Some(200)), (true, None)] {
        let own = KeyPair::generate()?;
        let signed = certificate(expired)?.signed_by(&own, &issuer)?;
        let code = code_with(ground, &signed.pem(), &own.serialize_pem()).await?;
        ensure!(code == wanted, "expired {expired}: {code:?}");
    }
    Ok(())
}

async fn with_foreign_certificates(ground: &Ground) -> Result<()> {
    let own = KeyPair::generate()?;
    let signed = certificate(false)?.self_signed(&own)?;
    let code = code_with(ground, &signed.pem(), &own.serialize_pem()).await?;
    ensure!(code.is_none() || code == Some(401), "{code:?}");
    Ok(())
}

async fn for_another_host(ground: &Ground) -> Result<()> {
    let token = ground.door().token();
    let port = ground.door().address().port();
    let wrong =
        ["evil.example", "127.0.0.1.evil.example", "", "[::2]", "127.0.0.2", "localhost.", "@"];
    let right = [
        "localhost".to_owned(),
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
        "kubernetes.default.svc".to_owned(),
    ];
    let code = async |host: &str, path: &str| {
        let asked = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        anyhow::Ok(codes(&ground.say(asked.as_bytes()).await?))
    };
    for host in wrong {
        for path in [MAPS, "/version"] {
            let found = code(host, path).await?;
            ensure!(matches!(found[..], [400 | 421]), "{host} {path}: {found:?}");
        }
    }
    for host in right {
        ensure!(code(&host, MAPS).await? == [200], "{host}");
    }
    let asked = format!("GET {MAPS} HTTP/1.1\r\nAuthorization: Bearer {token}\r\n\r\n");
    let found = codes(&ground.say(format!("{asked}\r\n").as_bytes()).await?);
    ensure!(found.iter().all(|code| matches!(code, 400 | 421)), "no host: {found:?}");
    Ok(())
}
