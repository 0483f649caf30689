//! The answer to `/metrics/resource`, which the metrics server reads: Prometheus' text format.

use std::fmt::Write;

use jiff::Timestamp;

use super::stats::{CpuStats, MemoryStats, Summary};

/// The format's media type.
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes all measurements; `None` says that there are none because of an error.
pub(super) fn text(summary: Option<&Summary>) -> String {
    let mut out = String::new();
    let errors = if summary.is_some() { 0.0 } else { 1.0 };
    if let Some(summary) = summary {
        containers(&mut out, summary);
        node_and_pods(&mut out, summary);
    }
    let words = "1 if there was an error while getting container metrics, 0 otherwise";
    family(&mut out, "resource_scrape_error", "gauge", words, [(String::new(), errors, None)]);
    out
}

/// Labels in braces, value, and when it was measured.
type Sample = (String, f64, Option<Timestamp>);

fn family(
    out: &mut String,
    name: &str,
    kind: &str,
    words: &str,
    samples: impl IntoIterator<Item = Sample>,
) {
    let mut samples = samples.into_iter().peekable();
    if samples.peek().is_none() {
        return;
    }
    // Writing to a string cannot fail.
    let _infallible = writeln!(out, "# HELP {name} {words}\n# TYPE {name} {kind}");
    for (labels, value, time) in samples {
        let _infallible = write!(out, "{name}{labels} {value}");
        if let Some(time) = time {
            let _infallible = write!(out, " {}", time.as_millisecond());
        }
        out.push('\n');
    }
}

fn containers(out: &mut String, summary: &Summary) {
    let each = || {
        summary.pods.iter().flat_map(|pod| {
            pod.containers.iter().map(move |container| {
                let labels = format!(
                    "{{container=\"{}\",namespace=\"{}\",pod=\"{}\"}}",
                    escape(&container.name),
                    escape(&pod.pod_ref.namespace),
                    escape(&pod.pod_ref.name)
                );
                (labels, container)
            })
        })
    };
    family(
        out,
        "container_cpu_usage_seconds_total",
        "counter",
        "Cumulative cpu time consumed by the container in core-seconds",
        each().filter_map(|(labels, container)| cpu(labels, container.cpu?)),
    );
    family(
        out,
        "container_memory_working_set_bytes",
        "gauge",
        "Current working set of the container in bytes",
        each().filter_map(|(labels, container)| memory(labels, container.memory?)),
    );
    family(
        out,
        "container_start_time_seconds",
        "gauge",
        "Start time of the container since unix epoch in seconds",
        each().map(|(labels, container)| (labels, as_seconds(container.start_time), None)),
    );
}

fn node_and_pods(out: &mut String, summary: &Summary) {
    let each = || {
        summary.pods.iter().map(|pod| {
            let labels = format!(
                "{{namespace=\"{}\",pod=\"{}\"}}",
                escape(&pod.pod_ref.namespace),
                escape(&pod.pod_ref.name)
            );
            (labels, pod)
        })
    };
    family(
        out,
        "node_cpu_usage_seconds_total",
        "counter",
        "Cumulative cpu time consumed by the node in core-seconds",
        summary.node.cpu.and_then(|stats| cpu(String::new(), stats)),
    );
    family(
        out,
        "node_memory_working_set_bytes",
        "gauge",
        "Current working set of the node in bytes",
        summary.node.memory.and_then(|stats| memory(String::new(), stats)),
    );
    family(
        out,
        "pod_cpu_usage_seconds_total",
        "counter",
        "Cumulative cpu time consumed by the pod in core-seconds",
        each().filter_map(|(labels, pod)| cpu(labels, pod.cpu?)),
    );
    family(
        out,
        "pod_memory_working_set_bytes",
        "gauge",
        "Current working set of the pod in bytes",
        each().filter_map(|(labels, pod)| memory(labels, pod.memory?)),
    );
}

fn cpu(labels: String, stats: CpuStats) -> Option<Sample> {
    Some((labels, as_float(stats.usage_core_nano_seconds?) / 1e9, Some(stats.time)))
}

fn memory(labels: String, stats: MemoryStats) -> Option<Sample> {
    Some((labels, as_float(stats.working_set_bytes?), Some(stats.time)))
}

#[expect(clippy::cast_precision_loss, reason = "the format has floating-point numbers only")]
const fn as_float(number: u64) -> f64 {
    number as f64
}

fn as_seconds(time: Timestamp) -> f64 {
    time.as_duration().as_secs_f64()
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::fake::summary;

    #[test]
    fn measurements_have_names_labels_and_times() {
        let text = text(Some(&summary()));
        for line in [
            "# TYPE container_cpu_usage_seconds_total counter",
            "container_cpu_usage_seconds_total{container=\"main\",namespace=\"default\",pod=\"p\"} 1.5 1800000000000",
            "container_memory_working_set_bytes{container=\"main\",namespace=\"default\",pod=\"p\"} 4096 1800000000000",
            "container_start_time_seconds{container=\"main\",namespace=\"default\",pod=\"p\"} 1799999990",
            "node_cpu_usage_seconds_total 3 1800000000000",
            "pod_memory_working_set_bytes{namespace=\"default\",pod=\"p\"} 4096 1800000000000",
            "resource_scrape_error 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        // Not measured: neither a line nor a heading.
        assert!(!text.contains("node_memory"), "{text}");
        assert_eq!(escape("a\"b\\c\n"), "a\\\"b\\\\c\\n");
    }

    #[test]
    fn an_error_is_a_measurement_too() {
        assert!(text(None).ends_with("resource_scrape_error 1\n"));
    }
}
