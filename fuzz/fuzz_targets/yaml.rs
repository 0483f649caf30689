//! Feeds made-up texts to the reader of manifests, the command line's own.
#![no_main]

#[allow(dead_code, reason = "each target uses one of the checks")]
#[path = "../checks.rs"]
mod checks;

#[allow(dead_code, reason = "what is read is not looked at here")]
#[path = "../../crates/trainyard/src/yaml/parse.rs"]
mod parse;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Ok(documents) = parse::parse(input) {
        for document in documents {
            checks::comes_back(&document.value);
        }
    }
});
