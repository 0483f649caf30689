//! Texts as Go writes them: values in messages, quoted texts, and what is wrong with a JSON text.
//!
//! The API server's messages quote values and parsers this way, and clients read them. Must not know
//! which message a text goes into.

mod encode;
mod json;
mod print;

pub use encode::json;
pub(crate) use json::mismatch;
pub use json::{JsonFault, json_fault};
pub use print::{number, print, quote, type_name};
