//! A plain TCP forward: what pods say to one address is carried to another, as the API server's service
//! address is to the API server. Must not know what is spoken.

use std::{
    net::{IpAddr, TcpListener},
    time::Duration,
};

use tokio::{net::TcpStream, time::timeout};
use tracing::debug;

use super::{
    NetError,
    accept::{self, Room, notice_death},
};

/// Connections carried at a time.
const CONNECTIONS: usize = 512;
/// How long the target has to accept.
const PATIENCE: Duration = Duration::from_secs(10);

/// Carries connections to `target` (`host:port`, looked up anew for each) until dropped, everybody's or only
/// those of `from`. An end of one direction is passed on and the other goes on; a target that cannot be
/// reached closes the connection.
pub(crate) async fn serve(
    listener: TcpListener,
    target: String,
    from: Option<IpAddr>,
) -> Result<(), NetError> {
    let listener = accept::ready(listener, "forward")?;
    accept::serve(listener, CONNECTIONS, |stream, room| {
        let target = target.clone();
        let peer = stream.peer_addr().ok().map(|peer| peer.ip());
        let welcome = from.is_none() || from == peer;
        async move {
            if room == Room::Free && welcome {
                carry(stream, &target).await;
            }
        }
    })
    .await;
    Ok(())
}

async fn carry(mut near: TcpStream, target: &str) {
    let mut far = match timeout(PATIENCE, TcpStream::connect(target)).await {
        Ok(Ok(far)) => far,
        Ok(Err(error)) => return debug!(target, %error, "cannot connect"),
        Err(_) => return debug!(target, "no answer"),
    };
    notice_death(&near);
    notice_death(&far);
    if let Err(error) = tokio::io::copy_bidirectional(&mut near, &mut far).await {
        debug!(target, %error, "connection broke");
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener as Listener,
    };

    use super::*;

    fn local() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").unwrap()
    }

    #[tokio::test]
    async fn carries_both_ways_and_passes_on_an_end() {
        let far = Listener::bind("127.0.0.1:0").await.unwrap();
        let target = far.local_addr().unwrap().to_string();
        let near = local();
        let address = near.local_addr().unwrap();
        let serving = tokio::spawn(serve(near, target, None));
        let peer = tokio::spawn(async move {
            let (mut stream, _) = far.accept().await.unwrap();
            let mut asked = String::new();
            // Ends only if the near side's end is passed on.
            stream.read_to_string(&mut asked).await.unwrap();
            stream.write_all(format!("heard {asked}").as_bytes()).await.unwrap();
        });
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "heard hello");
        peer.await.unwrap();
        serving.abort();
    }

    #[tokio::test]
    async fn closes_when_the_target_is_not_there() {
        let gone = local();
        let target = gone.local_addr().unwrap().to_string();
        drop(gone);
        let near = local();
        let address = near.local_addr().unwrap();
        let serving = tokio::spawn(serve(near, target, None));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut heard = Vec::new();
        let read = timeout(Duration::from_secs(5), stream.read_to_end(&mut heard)).await.unwrap();
        assert!(matches!(read, Ok(0) | Err(_)), "{heard:?}");
        serving.abort();
    }

    #[tokio::test]
    async fn strangers_are_not_carried() {
        let far = Listener::bind("127.0.0.1:0").await.unwrap();
        let target = far.local_addr().unwrap().to_string();
        let near = local();
        let address = near.local_addr().unwrap();
        let serving = tokio::spawn(serve(near, target, Some("10.1.2.3".parse().unwrap())));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut heard = Vec::new();
        let read = timeout(Duration::from_secs(5), stream.read_to_end(&mut heard)).await.unwrap();
        assert!(matches!(read, Ok(0) | Err(_)), "{heard:?}");
        assert!(timeout(Duration::from_millis(100), far.accept()).await.is_err());
        serving.abort();
    }
}
