//! Bytes that are no HTTP, or HTTP that two readers might read differently.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::ground::{Ground, MAPS, codes};
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!["bytes":
        noise_instead_of_tls,
        noise_inside_tls,
        two_lengths,
        a_length_and_chunks,
        broken_chunks,
        lengths_that_are_none,
        heads_too_long,
        odd_heads,
        odd_methods,
        upgrades_where_there_are_none,
        second_protocol_with_noise,
    ]
}

/// Numbers that look random and are the same every time.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

async fn noise_instead_of_tls(ground: &Ground) -> Result<()> {
    for seed in 1..50 {
        let mut stream = TcpStream::connect(ground.door().address()).await?;
        let mut bytes = noise(seed, 2_000);
        if seed % 2 == 0 {
            // What looks like the start of a handshake.
            bytes.splice(0..5, [0x16, 3, 1, 7, 0xff]);
        } else if seed % 5 == 0 {
            bytes = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec();
        }
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
        let mut rest = Vec::new();
        let reading = stream.read_to_end(&mut rest);
        let _ = tokio::time::timeout(Duration::from_secs(15), reading).await?;
        ensure!(rest.len() < 1_000, "{} bytes in answer to noise", rest.len());
    }
    Ok(())
}

async fn noise_inside_tls(ground: &Ground) -> Result<()> {
    for seed in 1..50 {
        let reply = ground.say(&noise(seed, 5_000)).await?;
        let codes = codes(&reply);
        ensure!(codes.iter().all(|code| (400..500).contains(code)), "{codes:?}");
    }
    Ok(())
}

/// A second request, which nobody is to see who takes the first one as a whole.
fn hidden(ground: &Ground) -> String {
    format!("{}\r\n", ground.head("GET", "/version"))
}

async fn two_lengths(ground: &Ground) -> Result<()> {
    for lengths in ["2\r\nContent-Length: 40", "40\r\nContent-Length: 2", "2, 40"] {
        let head = ground.head("POST", MAPS);
        let asked = format!("{head}Content-Length: {lengths}\r\n\r\n{{}}{}", hidden(ground));
        let reply = ground.say(asked.as_bytes()).await?;
        ensure!(codes(&reply) == [400], "{lengths}: {reply:.300}");
    }
    Ok(())
}

async fn a_length_and_chunks(ground: &Ground) -> Result<()> {
    let head = ground.head("POST", MAPS);
    let body = "2\r\n{}\r\n0\r\n\r\n";
    for order in [
        "Content-Length: 2\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 2",
        "Transfer-Encoding: identity, chunked\r\nContent-Length: 2",
    ] {
        let asked = format!("{head}Connection: close\r\n{order}\r\n\r\n{body}{}", hidden(ground));
        let codes = codes(&ground.say(asked.as_bytes()).await?);
        ensure!(codes.len() <= 1 && codes.iter().all(|code| *code >= 400), "{order}: {codes:?}");
    }
    for coding in ["chunked, identity", "x", "chunked, chunked"] {
        let asked = format!("{head}Connection: close\r\nTransfer-Encoding: {coding}\r\n\r\n{body}");
        let codes = codes(&ground.say(asked.as_bytes()).await?);
        ensure!(codes.iter().all(|code| *code >= 400), "{coding}: {codes:?}");
    }
    Ok(())
}

async fn broken_chunks(ground: &Ground) -> Result<()> {
    for chunk in ["zz\r\n{}\r\n", "-1\r\n{}", "ffffffffffffffffff\r\n", "2\r\n{}xx", "2;\n{}\r\n"] {
        let head = ground.head("POST", MAPS);
        let end = format!("Transfer-Encoding: chunked\r\n\r\n{chunk}{}", hidden(ground));
        let codes = codes(&ground.say(format!("{head}{end}").as_bytes()).await?);
        ensure!(codes.len() <= 1 && codes.iter().all(|code| *code >= 400), "{chunk:?}: {codes:?}");
    }
    Ok(())
}

async fn lengths_that_are_none(ground: &Ground) -> Result<()> {
    for length in ["-1", "x", "99999999999999999999999", "+2", "0x2", ""] {
        let head = ground.head("POST", MAPS);
        let asked = format!("{head}Content-Length: {length}\r\n\r\n{{}}");
        let codes = codes(&ground.say(asked.as_bytes()).await?);
        ensure!(codes == [400] || codes.is_empty(), "{length:?}: {codes:?}");
    }
    let asked = format!("{}Content-Length: 9999999999\r\n\r\n{{}}", ground.head("POST", MAPS));
    let codes = codes(&ground.say(asked.as_bytes()).await?);
    ensure!(codes == [413] || codes == [408], "{codes:?}");
    Ok(())
}

async fn heads_too_long(ground: &Ground) -> Result<()> {
    let long = "a".repeat(200_000);
    let path = ground.head("GET", &format!("{MAPS}?x={long}"));
    let header = format!("{}X-Long: {long}\r\n", ground.head("GET", MAPS));
    let many = (0..2_000).fold(ground.head("GET", MAPS), |head, n| format!("{head}X-{n}: a\r\n"));
    let line = "GET ".to_owned() + &long;
    for head in [path, header, many, line] {
        let codes = codes(&ground.say(format!("{head}\r\n").as_bytes()).await?);
        let refused = codes.iter().all(|code| matches!(code, 400 | 414 | 431));
        ensure!(codes.len() <= 1 && refused, "{codes:?}");
    }
    Ok(())
}

async fn odd_heads(ground: &Ground) -> Result<()> {
    let head = ground.head("GET", MAPS);
    for odd in [
        format!("{head}A: b\0c\r\n\r\n"),
        format!("{head}A: b\r\n folded\r\n\r\n"),
        format!("{head}A : b\r\n\r\n"),
        format!("{head}: b\r\n\r\n"),
        "GET /\r\n\r\n".to_owned(),
        "GET / HTTP/3.7\r\n\r\n".to_owned(),
        "\r\n\r\n\r\nGET".to_owned(),
    ] {
        let reply = ground.say(format!("{odd}\r\n").as_bytes()).await?;
        ensure!(codes(&reply).iter().all(|code| *code == 400), "{odd:?}: {reply:.200}");
    }
    Ok(())
}

async fn odd_methods(ground: &Ground) -> Result<()> {
    for method in ["TRACE", "OPTIONS", "PROPFIND", "HEAD"] {
        let asked = format!("{}Connection: close\r\n\r\n", ground.head(method, MAPS));
        let codes = codes(&ground.say(asked.as_bytes()).await?);
        ensure!(codes.iter().all(|code| *code >= 400), "{method}: {codes:?}");
    }
    let asked = ground.head("CONNECT", "evil.example:443");
    let codes = codes(&ground.say(format!("{asked}Connection: close\r\n\r\n").as_bytes()).await?);
    ensure!(codes.iter().all(|code| *code >= 400), "CONNECT: {codes:?}");
    Ok(())
}

async fn upgrades_where_there_are_none(ground: &Ground) -> Result<()> {
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    for path in [MAPS, "/version", "/api", "/api/v1/namespaces/attack/pods/none/exec?command=a"] {
        let mut stream = ground.door().connect().await?;
        stream.write_all(format!("{}{upgrade}", ground.head("GET", path)).as_bytes()).await?;
        let mut start = [0; 12];
        stream.read_exact(&mut start).await?;
        ensure!(!start.ends_with(b"101"), "{path}: {}", String::from_utf8_lossy(&start));
    }
    Ok(())
}

async fn second_protocol_with_noise(ground: &Ground) -> Result<()> {
    for seed in 1..30 {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
        bytes.extend(noise(seed, 3_000));
        ground.say(&bytes).await?;
    }
    Ok(())
}
