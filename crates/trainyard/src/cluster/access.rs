//! Which API server is meant: the flags that say so, and where they are read from otherwise.
//!
//! The order is kubectl's, with the yard of this user at its end: flag, `KUBECONFIG`, the home
//! folder, the yard's own kubeconfig, the pod's account.

use std::path::PathBuf;

use clap::Args;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::Cluster;
use crate::failure::Failure;
use crate::yard::folder::Folder;
use crate::yard::kubeconfig::EXTENSION;

const START: &str = "start a yard with `trainyard up`, or name a kubeconfig with --kubeconfig";

/// Where to connect to.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Where")]
pub(crate) struct Access {
    /// The kubeconfig to use, instead of KUBECONFIG or the one in the home folder
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The namespace, instead of the context's
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

impl Access {
    /// Connects. Nothing is sent yet.
    pub(crate) async fn connect(&self) -> Result<Cluster, Failure> {
        let (config, folder) = self.config().await?;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let namespace = match &self.namespace {
            Some(namespace) if namespace.is_empty() || namespace.contains(['/', '%', '.']) => {
                return Err(Failure::usage(format!("{namespace:?} is no namespace"))
                    .hint("a name holds lower-case letters, digits and dashes"));
            }
            Some(namespace) => namespace.clone(),
            None => config.default_namespace.clone(),
        };
        let client = trainyard_operator::connect(config.clone()).map_err(|error| {
            Failure::other(format!("preparing the connection to {server}"), &error)
        })?;
        Ok(Cluster::new(client, Some(config), server, namespace, folder))
    }

    /// Where the server is, and its folder if it is a yard.
    async fn config(&self) -> Result<Found, Failure> {
        if let Some(path) = &self.kubeconfig {
            let doing = format!("reading the kubeconfig {}", path.display());
            let failed = |error| Failure::other(&doing, &error).hint(START);
            let file = Kubeconfig::read_from(path).map_err(failed)?;
            return self.choose(file, &doing).await;
        }
        let doing = "reading the kubeconfig";
        match Kubeconfig::read() {
            Ok(file) if self.context.is_some() || file.current_context_is_set() => {
                self.choose(file, doing).await
            }
            Ok(file) => match own_yard().await {
                Some(found) => Ok(found),
                None => self.choose(file, doing).await,
            },
            Err(error) => match own_yard().await {
                Some(found) => Ok(found),
                None => Config::incluster()
                    .map(|config| (config, None))
                    .map_err(|_| Failure::other(doing, &error).hint(START)),
            },
        }
    }

    async fn choose(&self, file: Kubeconfig, doing: &str) -> Result<Found, Failure> {
        let names: Vec<String> = file.contexts.iter().map(|context| context.name.clone()).collect();
        if let Some(wanted) = self.context.as_ref().filter(|wanted| !names.contains(wanted)) {
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(Failure::usage(format!(
                "there is no context {wanted:?} in the kubeconfig"
            ))
            .hint(format!("contexts are: {there}")));
        }
        if self.context.is_none() && !file.current_context_is_set() {
            let hint = if names.is_empty() {
                START.to_owned()
            } else {
                format!("choose one with --context: {}", names.join(", "))
            };
            return Err(Failure::usage("the kubeconfig has no current context").hint(hint));
        }
        load(file, self.context.clone())
            .await
            .map_err(|error| Failure::other(doing, &error).hint(START))
    }
}

/// Whether a kubeconfig says which context is meant.
trait Current {
    fn current_context_is_set(&self) -> bool;
}

impl Current for Kubeconfig {
    fn current_context_is_set(&self) -> bool {
        self.current_context.as_ref().is_some_and(|name| !name.is_empty())
    }
}

/// A server, and the folder of the yard that it is.
type Found = (Config, Option<PathBuf>);

/// The yard that this user keeps in the usual folder, if there is one.
async fn own_yard() -> Option<Found> {
    let path = Folder::usual().ok()?.join("kubeconfig");
    load(Kubeconfig::read_from(path).ok()?, None).await.ok()
}

async fn load(file: Kubeconfig, context: Option<String>) -> Result<Found, KubeconfigError> {
    let folder = folder(&file, context.as_ref().or(file.current_context.as_ref()));
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    Ok((Config::from_custom_kubeconfig(file, &options).await?, folder))
}

/// The folder that a yard's entry names.
fn folder(file: &Kubeconfig, context: Option<&String>) -> Option<PathBuf> {
    let context = file.contexts.iter().find(|one| Some(&one.name) == context)?;
    let name = &context.context.as_ref()?.cluster;
    let cluster = file.clusters.iter().find(|one| one.name == *name)?.cluster.as_ref()?;
    let entry = cluster.extensions.iter().flatten().find(|one| one.name == EXTENSION)?;
    entry.extension["folder"].as_str().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yards_entry_names_its_folder() {
        let file = Kubeconfig::from_yaml(
            "clusters:\n- name: c\n  cluster:\n    server: https://127.0.0.1:1\n    extensions:\n    \
             - {name: trainyard.dev/yard, extension: {folder: /yard}}\n\
             contexts:\n- {name: x, context: {cluster: c, user: u}}\n- {name: y, context: {cluster: z, user: u}}\n\
             current-context: x\n",
        )
        .unwrap();
        let of = |context: &str| folder(&file, Some(&context.to_owned()));
        assert_eq!(of("x"), Some(PathBuf::from("/yard")));
        assert_eq!(of("y"), None);
        assert_eq!(of("z"), None);
    }
}
