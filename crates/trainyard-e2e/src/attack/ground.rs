//! What attacks stand on: a server with tight bounds, and ways to be rude to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::lone::{Lone, Wanted};
use crate::raw::Door;

/// Bounds of the server under attack: tight, so that they are soon reached.
pub(super) const IN_FLIGHT: usize = 20;
pub(super) const LONG: usize = 30;
pub(super) const CONNECTIONS: usize = 150;
pub(super) const SECONDS: u64 = 2;
pub(super) const BODIES_MB: usize = 16;

/// Where attacks write.
pub(super) const MAPS: &str = "/api/v1/namespaces/attack/configmaps";

/// How long an answer to raw bytes may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server under attack.
pub(super) struct Ground {
    pub(super) lone: Lone,
    program: PathBuf,
    folder: TempDir,
}

impl Ground {
    pub(super) async fn open(program: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("trainyard-attack-").tempdir()?;
        let wanted = Wanted {
            folder: Some(folder.path().join("store")),
            in_flight: Some(IN_FLIGHT),
            long: Some(LONG),
            connections: Some(CONNECTIONS),
            patience: Some(SECONDS),
            bodies_mb: Some(BODIES_MB),
        };
        let lone = Lone::start(program, &wanted).await?;
        let ground = Self { lone, program: program.to_owned(), folder };
        let namespace = json!({"metadata": {"name": "attack"}});
        ground.must(Method::POST, "/api/v1/namespaces", &namespace.to_string(), &[201]).await?;
        Ok(ground)
    }

    /// Another server, with the bounds that it has everywhere.
    pub(super) async fn usual(&self) -> Result<Lone> {
        Lone::start(&self.program, &Wanted::default()).await
    }

    pub(super) const fn door(&self) -> &Door {
        self.lone.door()
    }

    /// Where the server keeps its keys.
    pub(super) fn keys(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Asks, and wants one of these codes.
    pub(super) async fn must(
        &self,
        method: Method,
        path: &str,
        body: &str,
        codes: &[u16],
    ) -> Result<serde_json::Value> {
        let shown = path.chars().take(80).collect::<String>();
        let answer = self.door().ask(method, path, body).await.context(shown.clone())?;
        let value = answer.value();
        let said = value["message"].as_str().unwrap_or_default();
        let said: String = said.chars().take(200).collect();
        ensure!(codes.contains(&answer.code), "{shown}: {} {said:?}, not {codes:?}", answer.code);
        if answer.code >= 400 {
            ensure!(value["kind"] == "Status" && !said.is_empty(), "{shown}: no words: {value}");
        }
        Ok(value)
    }

    /// A map of so many bytes; one that is there already is taken.
    pub(super) async fn make_map(&self, name: &str, bytes: usize) -> Result<()> {
        let map = json!({"metadata": {"name": name}, "data": {"text": "x".repeat(bytes)}});
        self.must(Method::POST, MAPS, &map.to_string(), &[201, 409]).await?;
        Ok(())
    }

    /// Sends bytes on a connection of their own and reads whatever comes until it ends.
    pub(super) async fn say(&self, bytes: &[u8]) -> Result<String> {
        let mut stream = self.door().connect().await?;
        // A server that has reply enough may close before all is said.
        let _ = stream.write_all(bytes).await;
        let _ = stream.flush().await;
        hear(&mut stream).await
    }

    /// The head of a request with credentials, to be ended with a blank line.
    pub(super) fn head(&self, method: &str, path: &str) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n",
            self.door().address(),
            self.door().token()
        )
    }
}

/// What comes until the connection ends, or nothing more comes.
pub(super) async fn hear(stream: &mut TlsStream<TcpStream>) -> Result<String> {
    const MOST: usize = 1 << 20;
    let mut reply = Vec::new();
    let reading = async {
        let mut piece = vec![0; 16 * 1024];
        while reply.len() < MOST {
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => return,
                Ok(length) => reply.extend(piece.iter().take(length)),
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.context("the connection is kept open")?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

/// The codes of all answers in a text.
pub(super) fn codes(reply: &str) -> Vec<u16> {
    let heads = reply.split("HTTP/1.1 ").skip(1);
    heads.filter_map(|rest| rest.get(..3)?.parse().ok()).collect()
}
