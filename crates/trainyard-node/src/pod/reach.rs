//! A pod's port that this machine's programs may reach, such as a browser: the pod asks for it by an
//! annotation, and is told the address by another. Must not know what listens there.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::sleep;
use trainyard_api::names::{ANNOTATION_ADDRESS as ADDRESS, ANNOTATION_EXPOSE as EXPOSE};
use trainyard_holder::protocol::Place;

use super::Context;
use crate::events::Weight;
use crate::net::door;
use crate::shared::Shared;
use crate::yard::Yard;

const RETRY: Duration = Duration::from_secs(2);

/// Opens a door to the pod where it asks for one, as long as the pod runs; never returns.
pub(crate) async fn keep_open(context: &Context<'_>, pod: &Pod) -> Infallible {
    let wish = pod.metadata.annotations.as_ref().and_then(|all| all.get(EXPOSE));
    if let Some(wish) = wish {
        let told = |weight, reason, words: String| {
            context.shared.events.pod(pod, None, weight, reason, words);
        };
        match port_of(pod.spec.as_ref(), wish) {
            Ok(port) => {
                if let Err(error) = Box::pin(open(context, pod, port)).await {
                    let words = format!("port {port} cannot be reached from this machine: {error}");
                    told(Weight::Warning, "NotReachable", words);
                }
            }
            Err(words) => told(Weight::Warning, "NotReachable", words),
        }
    }
    std::future::pending().await
}

/// The port that is meant.
fn port_of(spec: Option<&PodSpec>, wish: &str) -> Result<u16, String> {
    let wish = wish.trim();
    if let Ok(port) = wish.parse::<u16>()
        && port > 0
    {
        return Ok(port);
    }
    let ports = spec.into_iter().flat_map(|spec| &spec.containers).flat_map(|c| &c.ports).flatten();
    ports
        .filter(|port| port.name.as_deref() == Some(wish))
        .find_map(|port| u16::try_from(port.container_port).ok())
        .ok_or_else(|| {
            format!(
                "the annotation {EXPOSE} says {wish:?}, which is neither a port from 1 to 65535 nor \
                 the name of a port of the pod's containers"
            )
        })
}

/// Opens the door and says where; returns only by failing.
async fn open(context: &Context<'_>, pod: &Pod, port: u16) -> io::Result<()> {
    let live = context.live;
    let (listener, address) = door::open(&format!("{}/{}", live.namespace, live.name))?;
    let url = format!("http://{address}");
    let words = format!("Port {port} of the pod is reachable on this machine at {url}");
    context.shared.events.pod(pod, None, Weight::Normal, "Reachable", words);
    let own = context.facts.pod_ip.unwrap_or(context.facts.host_ip);
    let behind = Behind::new(context.shared, &live.uid, own, port);
    let (served, ()) = tokio::join!(door::serve(listener, behind), tell(context, &url));
    served.map_err(io::Error::other)
}

/// Writes the address to the pod's object. By its status: that is the part of a pod that is a node's to
/// write.
async fn tell(context: &Context<'_>, url: &str) {
    let live = context.live;
    let api: Api<Pod> =
        Api::namespaced(context.shared.client_of(&live.pod()).clone(), &live.namespace);
    let patch = json!({"metadata": {"uid": live.uid, "annotations": {ADDRESS: url}}});
    while !live.gone.is_cancelled() {
        let params = PatchParams::default();
        match api.patch_status(&live.name, &params, &Patch::Strategic(&patch)).await {
            Ok(_) => return,
            Err(kube::Error::Api(answer)) if (400..500).contains(&answer.code) => {
                tracing::warn!(pod = live.name, %answer, "its address could not be written");
                return;
            }
            Err(error) => {
                tracing::warn!(pod = live.name, %error, "its address could not be written");
                sleep(RETRY).await;
            }
        }
    }
}

/// A port inside a pod.
#[derive(Clone)]
pub(crate) struct Behind {
    yard: Yard,
    pod: String,
    addresses: Vec<Ipv4Addr>,
    port: u16,
}

impl Behind {
    /// A port of the pod that has this uid and this address. Programs that listen for the pod alone are
    /// found too, where it has a network of its own.
    pub(crate) fn new(shared: &Shared, uid: &str, own: Ipv4Addr, port: u16) -> Self {
        let addresses = match shared.shim {
            Some(_) => vec![own],
            None => vec![own, Ipv4Addr::LOCALHOST],
        };
        Self { yard: shared.yard.clone(), pod: uid.to_owned(), addresses, port }
    }

    /// A connection to it.
    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in &self.addresses {
            let address = SocketAddrV4::new(*address, self.port);
            match connected(&self.yard, &self.pod, address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl door::Behind for Behind {
    fn connect(&self) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(self.connect())
    }
}

/// A connection that a pod's own network makes.
pub(crate) async fn connected(
    yard: &Yard,
    pod: &str,
    address: SocketAddrV4,
) -> io::Result<TcpStream> {
    let socket = yard.connect(Place::Pod(pod.to_owned()), address).await;
    let socket = socket.map_err(|refusal| io::Error::other(refusal.to_string()))?;
    let stream = std::net::TcpStream::from(socket);
    stream.set_nonblocking(true)?;
    let stream = TcpStream::from_std(stream)?;
    // It is connecting still; what came of it is known when it can be written to.
    stream.writable().await?;
    match stream.take_error()? {
        Some(error) => Err(error),
        None => Ok(stream),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_meant_by_number_or_by_name() {
        let spec: PodSpec = serde_json::from_value(json!({"containers": [
            {"name": "a"},
            {"name": "b", "ports": [{"containerPort": 80}, {"name": "web", "containerPort": 8080}]},
        ]}))
        .unwrap();
        assert_eq!(port_of(Some(&spec), "6006"), Ok(6006));
        assert_eq!(port_of(Some(&spec), " web "), Ok(8080));
        for wrong in ["", "0", "65536", "-1", "other", "80 81"] {
            let words = port_of(Some(&spec), wrong).unwrap_err();
            assert!(words.contains("trainyard.dev/expose"), "{words}");
        }
        assert!(port_of(None, "web").is_err());
    }
}
