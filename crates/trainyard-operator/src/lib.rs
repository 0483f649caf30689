//! The operator: watches, compact caches, work queue, executing plans, events, metrics, lease.
//!
//! Owns everything between a `kube::Client` and the pure planners: what is there is read from
//! watches, what to do next is asked of `trainyard-core`, and the plan is carried out. It must not
//! know rules of a job's life (they are the planners') and nothing of terminals.

mod backoff;
mod beside;
mod cache;
mod calls;
mod clock;
mod connect;
mod definition;
mod error;
mod event_memory;
mod events;
mod execute;
#[cfg(test)]
mod fake;
mod ground;
mod health;
mod kind;
mod leader;
mod lease;
mod limit;
mod lines;
mod metrics;
mod nodes;
mod operator;
mod options;
mod queue;
mod reference;
mod schedule;
pub mod scheduler;
pub mod serve;
mod shared;
mod tfjob;
#[cfg(test)]
mod toy;
#[cfg(test)]
mod toy_server;
mod volcano;
mod watch;
mod writes;
mod yard;

pub use connect::{connect, connect_each};
pub use error::{Denied, Error};
pub use health::Health;
pub use metrics::Metrics;
pub use operator::Operator;
pub use options::{LeaderOptions, Options, Time, VolcanoJobs};
