//! Feeds made-up input to `checks::template`.
#![no_main]

#[allow(dead_code, reason = "each target uses one of the checks")]
#[path = "../render_checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::template(input));
