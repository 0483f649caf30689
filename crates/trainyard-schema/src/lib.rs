//! The grammar of the Kubernetes API, without a server: quantities, field errors, structural schemas
//! and their rules, patches, selectors and paths; and the words of kubelets that several crates read alike.
//!
//! Pure: values in, values out. It must not know any kind, any job, a clock, a file or a client.

pub mod field;
pub mod golang;
pub mod jsonpath;
pub mod patch;
pub mod quantity;
pub mod refusal;
pub mod select;
pub mod structural;

pub use field::{Fault, FieldError};
