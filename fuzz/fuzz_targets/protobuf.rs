//! Feeds made-up bytes to the reader of binary bodies, the server's own.
#![no_main]

#[allow(dead_code, reason = "only what reading binary bodies needs of it")]
#[path = "../../crates/trainyard-apiserver/src/failure.rs"]
mod failure;

#[allow(dead_code, reason = "only what reading binary bodies needs of it")]
#[path = "."]
mod openapi {
    #[path = "../../crates/trainyard-apiserver/src/openapi/types/mod.rs"]
    pub(crate) mod types;
}

#[allow(dead_code, reason = "only what reading binary bodies needs of it")]
#[path = "."]
mod request {
    #[path = "../../crates/trainyard-apiserver/src/request/body.rs"]
    pub(crate) mod body;
    #[path = "../../crates/trainyard-apiserver/src/request/protobuf/mod.rs"]
    pub(crate) mod protobuf;
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(envelope) = request::protobuf::Envelope::open(input) else { return };
    if let Ok(object) = envelope.object() {
        request::body::read(object.to_string().as_bytes()).expect("what was read is JSON");
    }
});
