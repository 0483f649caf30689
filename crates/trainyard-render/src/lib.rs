//! simpletfjob: one Job template and a list of machines become one Job per machine.
//!
//! Owns the choice of machines, their roles, `TF_CONFIG`, the template language and the checks on
//! what was rendered. Template and node list in, text out: it must not know files, clusters,
//! terminals or any other crate of this project.

pub mod check;
pub mod crew;
pub mod hosts;
pub mod rendering;
pub mod template;
mod tf_config;
