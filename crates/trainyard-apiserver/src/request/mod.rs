//! What a request asks for: its path, its query, its body and what it wants back.
//!
//! Pure reading of bytes; must not know the store or how an answer is made.

pub(crate) mod accept;
pub(crate) mod body;
pub(crate) mod numbers;
pub(crate) mod path;
pub(crate) mod protobuf;
pub(crate) mod query;
