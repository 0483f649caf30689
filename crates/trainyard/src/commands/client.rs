//! The connection to the API server.
//!
//! Owns where the address and the credentials come from, in the order of the reference operator:
//! flag, `KUBECONFIG`, the pod's own account, the home folder.

use std::path::Path;

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tracing::warn;

use crate::failure::Failure;

const HINT: &str = "name a kubeconfig with --kubeconfig or KUBECONFIG, \
    or run in a pod with a service account";

/// Where the API server is, and who we are to it.
pub(super) async fn config(
    kubeconfig: Option<&Path>,
    master: Option<&str>,
) -> Result<Config, Failure> {
    let mut config = match load(kubeconfig).await {
        Ok(config) => config,
        Err(failure) => match master.filter(|_| kubeconfig.is_none()) {
            Some(master) => Config::new(address(master)?),
            None => return Err(failure),
        },
    };
    if let Some(master) = master {
        config.cluster_url = address(master)?;
    }
    if config.accept_invalid_certs {
        warn!("the API server's certificate is not checked: the kubeconfig says so");
    }
    // Whoever connects has a back-off of its own and must know of every attempt.
    config.default_retry = false;
    Ok(config)
}

/// Connects. Nothing is sent yet, so an API server that is away is found out later and waited for.
pub(super) fn connect(config: Config) -> Result<Client, Failure> {
    let server = config.cluster_url.clone();
    trainyard_operator::connect(config)
        .map_err(|error| Failure::other(format!("preparing the connection to {server}"), &error))
}

fn address(master: &str) -> Result<http::Uri, Failure> {
    master
        .parse::<http::Uri>()
        .ok()
        .filter(|uri| uri.scheme().is_some() && uri.host().is_some())
        .ok_or_else(|| {
            Failure::usage(format!("--master {master:?} is not an address"))
                .hint("write it like https://127.0.0.1:6443")
        })
}

async fn load(kubeconfig: Option<&Path>) -> Result<Config, Failure> {
    let options = KubeConfigOptions::default();
    if let Some(path) = kubeconfig {
        let reading = format!("reading the kubeconfig {}", path.display());
        let file = Kubeconfig::read_from(path).map_err(|error| Failure::other(&reading, &error))?;
        return Config::from_custom_kubeconfig(file, &options)
            .await
            .map_err(|error| Failure::other(&reading, &error));
    }
    if std::env::var_os("KUBECONFIG").is_some_and(|path| !path.is_empty()) {
        return Config::from_kubeconfig(&options).await.map_err(|error| {
            Failure::other("reading the kubeconfig that KUBECONFIG names", &error)
        });
    }
    match Config::incluster() {
        Ok(config) => Ok(config),
        Err(_) => Config::from_kubeconfig(&options)
            .await
            .map_err(|error| Failure::other("no cluster found", &error).hint(HINT)),
    }
}
