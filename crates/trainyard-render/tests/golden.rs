//! The example that people know: its template and three machines give exactly its output; and what
//! rendering for thousands of machines costs.

use std::{fs, path::Path, time::Instant};

use trainyard_render::{
    crew::{Crew, Wanted},
    rendering::{PORT, Rendered, render},
    template::Missing,
};

fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    fs::read_to_string(path).expect("a file of the repository")
}

fn rendered(template: &str, nodes: &[String], wanted: &Wanted) -> Rendered {
    let crew = Crew::choose(nodes, wanted).expect("enough machines");
    render(template, Missing::Refused, &crew, PORT).expect("a good template")
}

#[test]
fn three_machines_give_the_known_text() {
    let nodes = ["h10", "h100", "h14", "h15"].map(str::to_owned);
    let wanted = Wanted { machines: Some(3), ..Wanted::default() };
    let rendered = rendered(&data("mnist.yaml"), &nodes, &wanted);
    assert_eq!(rendered.text, data("mnist_tfjob.yaml"));
    assert_eq!(rendered.check(), Ok(vec![]));
}

/// Seconds for each of so many things.
#[expect(clippy::cast_precision_loss, reason = "a ratio of measured times")]
fn per(started: Instant, count: usize) -> f64 {
    started.elapsed().as_secs_f64() / count as f64
}

/// The text grows with the square of the machines, since each names all others; the time must
/// grow no faster than the text. Ratios only: the machine may be slow or busy.
#[test]
fn the_time_follows_the_length_of_the_text() {
    let template = data("mnist.yaml");
    let per_byte = |machines: usize| {
        let nodes: Vec<_> = (0..machines).map(|at| format!("h{at}")).collect();
        let times = (0..3).map(|_| {
            let started = Instant::now();
            let rendered = rendered(&template, &nodes, &Wanted::default());
            per(started, rendered.text.len())
        });
        times.fold(f64::INFINITY, f64::min)
    };
    let (few, many) = (per_byte(100), per_byte(1600));
    assert!(many < 8.0 * few, "{few} s per byte for 100 machines, {many} for 1600");
}

/// Without `TF_CONFIG` in the template the text grows with the machines, and so must the time.
#[test]
fn the_time_follows_the_number_of_machines() {
    let template = data("mnist.yaml").replace("{{.TF_CONFIG}}", "                none");
    let per_machine = |machines: usize| {
        let nodes: Vec<_> = (0..machines).map(|at| format!("h{at}")).collect();
        let times = (0..3).map(|_| {
            let started = Instant::now();
            let rendered = rendered(&template, &nodes, &Wanted::default());
            assert_eq!(rendered.parts.len(), machines);
            per(started, machines)
        });
        times.fold(f64::INFINITY, f64::min)
    };
    let (few, many) = (per_machine(300), per_machine(3000));
    assert!(many < 8.0 * few, "{few} s per machine for 300 machines, {many} for 3000");
}

/// 5,000 machines take less than a second. As each names all others their text is some hundred megabytes,
/// and the time follows its length: both sizes are beyond what a processor keeps close by, which would
/// flatter the smaller one.
#[test]
#[ignore = "a measurement, for an optimised build"]
#[expect(clippy::cast_precision_loss, reason = "a ratio of measured times")]
fn five_thousand_machines() {
    let least = |template: &str, machines: usize| {
        let nodes: Vec<_> = (0..machines).map(|at| format!("h{at}")).collect();
        let mut seconds = f64::INFINITY;
        let mut bytes = 0;
        for _ in 0..3 {
            let started = Instant::now();
            let rendered = rendered(template, &nodes, &Wanted::default());
            seconds = seconds.min(per(started, 1));
            assert_eq!(rendered.parts.len(), machines);
            bytes = rendered.text.len();
        }
        (seconds, bytes as f64)
    };
    let whole = data("mnist.yaml");
    let ((half, short_text), (many, long_text)) = (least(&whole, 2500), least(&whole, 5000));
    let per_byte = (many / long_text) / (half / short_text);
    println!(
        "5,000 machines that name each other: {many:.3} s for {:.0} MB, {per_byte:.2} times as long \
         for each byte as 2,500",
        long_text / 1e6
    );
    assert!(per_byte < 1.5, "{half} s for 2,500 machines, {many} for 5,000");
    assert!(many < 1.0, "{many} s for 5,000 machines");
}
