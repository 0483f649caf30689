//! Prints the cases and what our own evaluation answers.
use std::io::Write;
fn main() -> std::io::Result<()> {
    let cases: Vec<_> = trainyard_api::cases::validation_cases()
        .into_iter()
        .map(|c| {
            let own: Option<Vec<String>> = trainyard_api::validate(&c.object, c.old.as_ref())
                .err()
                .map(|v| v.iter().map(ToString::to_string).collect());
            serde_json::json!({"name": c.name, "object": c.object, "old": c.old, "refused": c.refused, "own": own})
        })
        .collect();
    writeln!(std::io::stdout(), "{}", serde_json::Value::Array(cases))
}
