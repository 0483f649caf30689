//! A container's probes, made on the real thing: connections from its pod's network, programs inside
//! it. What their results mean is said in `probes`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use k8s_openapi::api::core::v1::Container;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::container::grace_of;
use super::{Context, exec, reach};
use crate::events::Weight;
use crate::probes::{ContainerProbes, Plan, Report, Target, drive};

/// Bytes of a command's output that a probe can use.
const OUTPUT: usize = 10 << 10;

/// Makes the probes of a container that has just started; returns, with the time it has to end, when
/// they want it ended. Never returns otherwise.
pub(crate) async fn watch(context: &Context<'_>, container: &Container) -> Duration {
    let plans = Plan::of(container);
    if plans.is_empty() {
        std::future::pending::<()>().await;
    }
    let kill_grace = |kind| {
        let own = plans.iter().find(|plan| plan.kind == kind).and_then(|plan| plan.grace);
        own.unwrap_or_else(|| grace_of(&context.live.pod()))
    };
    let probes = ContainerProbes::new(plans.clone(), Instant::now());
    let target = Reached { context, container };
    let (reports, mut told) = mpsc::channel(8);
    let driving = drive(probes, &target, reports);
    let hearing = async {
        while let Some(report) = told.recv().await {
            match report {
                Report::Event { reason, message } => {
                    context.tell(container, Weight::Warning, reason, message);
                }
                Report::Change { change, started, ready } => {
                    context.change(container, |record| {
                        record.started = started;
                        record.ready = ready;
                    });
                    let restarts = context.restart_policy() != "Never";
                    if let Some(words) = change.killing(&container.name, restarts)
                        && let crate::probes::Change::Unhealthy(kind) = change
                    {
                        context.tell(container, Weight::Normal, "Killing", words);
                        return kill_grace(kind);
                    }
                }
            }
        }
        std::future::pending().await
    };
    let driving = async {
        driving.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        grace = hearing => grace,
        () = driving => std::future::pending().await,
    }
}

struct Reached<'a> {
    context: &'a Context<'a>,
    container: &'a Container,
}

impl Target for Reached<'_> {
    fn address(&self) -> IpAddr {
        IpAddr::V4(self.context.facts.pod_ip.unwrap_or(self.context.facts.host_ip))
    }

    async fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let address: Ipv4Addr = match host.parse() {
            Ok(address) => address,
            Err(_) => self.context.shared.resolve(host).ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, format!("there is no host {host}"))
            })?,
        };
        let address = SocketAddrV4::new(address, port);
        reach::connected(&self.context.shared.yard, &self.context.live.uid, address).await
    }

    async fn exec(&self, command: &[String]) -> Result<(i32, Vec<u8>), String> {
        let run = self.context.live.run(&self.container.name);
        let run = run.ok_or_else(|| "the container is not running".to_owned())?;
        exec::output(&self.context.shared.yard, &run, command, OUTPUT).await
    }
}
