//! The holder against the real kernel, as whoever runs the tests and, from root, as an ordinary
//! user too.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests stop at the first thing that is not so, and say what they could not try"
)]

mod bed;
mod ending;
mod limits;
mod network;
mod paths;
mod plain;
mod programs;
mod rights;
mod roots;
mod sub_paths;
mod tether;
