//! The command as people and scripts meet it: output, errors, exit codes.

mod convert;
mod job_logs;
mod objects;
mod operator;
mod partial;
mod printing;
mod process;
mod render;
mod volcano;
mod yard;
