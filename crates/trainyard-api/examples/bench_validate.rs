//! Times validate.
use std::io::Write;
fn main() -> std::io::Result<()> {
    let mut job: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string("/tmp/bench.json")?)?;
    job["metadata"]["name"] = "mnist".into();
    let t = std::time::Instant::now();
    assert!(trainyard_api::validate(&job, None).is_ok());
    let first = t.elapsed();
    let t = std::time::Instant::now();
    for _ in 0..2000 {
        assert!(trainyard_api::validate(&job, None).is_ok());
    }
    writeln!(
        std::io::stdout(),
        "first {first:?}, each {:?}",
        t.elapsed() / 2000
    )?;
    let t = std::time::Instant::now();
    for _ in 0..2000 {
        assert!(trainyard_api::validate(&job, Some(&job)).is_ok());
    }
    writeln!(std::io::stdout(), "update each {:?}", t.elapsed() / 2000)
}
