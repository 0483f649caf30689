//! The flags about a lease, and what they set.

use std::time::Duration;

use clap::Args;
use trainyard_operator::LeaderOptions;

use super::go_syntax::duration;
use crate::failure::Failure;

/// Name of the operator's lease, that of the reference operator: the two never act at the same time.
pub(crate) const LEASE: &str = "1ca428e5.training-operator.kubeflow.org";

/// Where a pod finds its namespace.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Where a lease is, and its timing.
#[derive(Debug, Args)]
#[command(next_help_heading = "Leader election")]
pub(crate) struct Timing {
    /// Namespace of the lease [default: the pod's own, else kubeflow]
    #[arg(long = "leader-election-namespace", env = "MY_POD_NAMESPACE", value_name = "NAMESPACE")]
    lease_namespace: Option<String>,
    /// How long others wait for a holder that does not renew
    #[arg(long = "leader-elect-lease-duration", default_value = "15s", value_parser = duration, value_name = "DURATION")]
    lease_duration: Duration,
    /// A holder that could not renew for this long stops acting
    #[arg(long = "leader-elect-renew-deadline", default_value = "10s", value_parser = duration, value_name = "DURATION")]
    renew_deadline: Duration,
    /// Pause between two attempts
    #[arg(long = "leader-elect-retry-period", default_value = "2s", value_parser = duration, value_name = "DURATION")]
    retry_period: Duration,
}

impl Timing {
    /// The settings of a lease of this name.
    pub(crate) fn options(&self, name: &str) -> Result<LeaderOptions, Failure> {
        let (lease, renew, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        // Otherwise two could hold it, or a single failed attempt would lose it.
        if lease <= renew || renew <= retry || retry.is_zero() {
            let problem = format!(
                "leader election with lease {lease:?}, deadline {renew:?}, retry {retry:?} \
                 cannot work"
            );
            return Err(Failure::usage(problem).hint(
                "choose --leader-elect-lease-duration > --leader-elect-renew-deadline > \
                 --leader-elect-retry-period > 0",
            ));
        }
        let namespace = given(self.lease_namespace.as_deref())
            .or_else(|| given(std::fs::read_to_string(OWN_NAMESPACE).ok().as_deref()))
            .unwrap_or_else(|| "kubeflow".to_owned());
        Ok(LeaderOptions {
            lease_duration: lease,
            renew_deadline: renew,
            retry_period: retry,
            ..LeaderOptions::new(namespace, name, identity())
        })
    }
}

/// A name for this process that no other has, readable in the lease.
fn identity() -> String {
    let host = ["MY_POD_NAME", "HOSTNAME"]
        .iter()
        .find_map(|variable| given(std::env::var(variable).ok().as_deref()))
        .or_else(|| given(std::fs::read_to_string("/proc/sys/kernel/hostname").ok().as_deref()))
        .unwrap_or_else(|| "operator".to_owned());
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_micros();
    format!("{host}_{:x}_{since:x}", std::process::id())
}

/// A value that is not empty. An empty environment variable is one that is not set.
pub(crate) fn given(text: Option<&str>) -> Option<String> {
    text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_differ() {
        let first = identity();
        std::thread::sleep(Duration::from_millis(1));
        assert_ne!(first, identity());
    }
}
