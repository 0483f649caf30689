//! `kubectl port-forward` as a person runs it: started, listened to, connected through, ended.
//! Knows no case.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;

use crate::kubectl::Kubectl;

const PATIENCE: Duration = Duration::from_secs(30);

/// A running `kubectl port-forward`; ends with this.
#[derive(Debug)]
pub(crate) struct Forwarded {
    child: Child,
    address: SocketAddr,
}

impl Forwarded {
    /// Starts it for a port of a pod or service, at a port of this machine that is free.
    pub(crate) async fn start(kubectl: &Kubectl, what: &[&str], port: u16) -> Result<Self> {
        let port = format!(":{port}");
        let words = [&["port-forward", "--address=127.0.0.1"], what, &[&*port]].concat();
        let mut child = kubectl
            .command(&words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("its output")?).lines();
        let first = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let Some(line) = first.context("kubectl port-forward says nothing")?? else {
            let mut said = String::new();
            child.stderr.take().context("its errors")?.read_to_string(&mut said).await?;
            bail!("kubectl port-forward ended: {said}");
        };
        // It writes a line for each connection, and would wait for a reader.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let address = line.strip_prefix("Forwarding from ").and_then(|rest| rest.split(' ').next());
        let address = address.and_then(|address| address.parse().ok());
        Ok(Self { child, address: address.with_context(|| format!("no address in {line:?}"))? })
    }

    /// Says something through it and ends, and gives the whole answer.
    pub(crate) async fn ask(&self, text: &[u8]) -> Result<Vec<u8>> {
        let asked = async {
            let mut stream = TcpStream::connect(self.address).await?;
            let (mut read, mut write) = stream.split();
            let mut answer = Vec::new();
            let said = async {
                write.write_all(text).await?;
                write.shutdown().await
            };
            let (said, heard) = tokio::join!(said, read.read_to_end(&mut answer));
            said.and(heard.map(drop))?;
            anyhow::Ok(answer)
        };
        tokio::time::timeout(PATIENCE, asked).await.context("no answer through port-forward")?
    }

    /// What it says of a port where nothing listens.
    pub(crate) async fn complaint(mut self) -> Result<String> {
        // The connection is closed in one way or another.
        let _ = self.ask(b"").await;
        let stderr = self.child.stderr.take().context("its errors")?;
        let mut lines = BufReader::new(stderr).lines();
        let line = tokio::time::timeout(PATIENCE, lines.next_line())
            .await
            .context("it does not complain")??;
        line.context("it does not complain")
    }
}

/// A program that sends back what it heard, once the other side has ended; for a pod's command.
pub(crate) fn echo(port: u16) -> String {
    format!(
        "exec python3 -u -c '
import socket
s = socket.create_server((\"127.0.0.1\", {port}))
print(\"listens\")
while True:
    c, _ = s.accept()
    heard = b\"\"
    while piece := c.recv(65536):
        heard += piece
    c.sendall(heard)
    c.close()
'"
    )
}
