//! What the server counts about itself, for `/metrics`.

use std::sync::Mutex;
use std::time::Duration;

use http::Method;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::{counter::Counter, family::Family, histogram::Histogram};
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    verb: &'static str,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Verb {
    verb: &'static str,
}

/// The counters.
pub(crate) struct Metrics {
    requests: Family<Request, Counter>,
    durations: Family<Verb, Histogram>,
    registry: Mutex<Registry>,
}

impl Default for Metrics {
    fn default() -> Self {
        let requests = Family::<Request, Counter>::default();
        let durations = Family::<Verb, Histogram>::new_with_constructor(|| {
            Histogram::new([0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0])
        });
        let mut registry = Registry::default();
        registry.register("apiserver_request", "Requests by verb and code", requests.clone());
        registry.register(
            "apiserver_request_duration_seconds",
            "Time until the answer began, by verb",
            durations.clone(),
        );
        Self { requests, durations, registry: Mutex::new(registry) }
    }
}

impl Metrics {
    /// Counts an answered request.
    pub(crate) fn count(&self, verb: &'static str, _method: &Method, code: u16, took: Duration) {
        self.requests.get_or_create(&Request { verb, code }).inc();
        self.durations.get_or_create(&Verb { verb }).observe(took.as_secs_f64());
    }

    /// All of it as text.
    pub(crate) fn text(&self) -> String {
        let registry = self.registry.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut out = String::new();
        // Writing into a text cannot fail.
        let _ = text::encode(&mut out, &registry);
        out
    }
}
