//! The command as people and scripts meet it: output, errors, exit codes.

mod convert;
mod operator;
mod printing;
mod process;
