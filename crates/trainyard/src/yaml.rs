//! YAML in and out.
//!
//! Owns reading a text of several documents into JSON values and printing values so that every
//! reader gets the same values back, those of YAML 1.1 included (kubectl is one). It must not know
//! any kind of object.

mod emit;
mod parse;

pub(crate) use emit::to_string;
pub(crate) use parse::{Document, TEXT_BYTES_MAX, parse};
