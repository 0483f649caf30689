//! The command as people and scripts meet it: output, errors, exit codes.

mod convert;
mod following;
mod job_logs;
mod mnist;
mod objects;
mod operator;
mod partial;
mod printing;
mod process;
mod render;
mod server;
mod volcano;
mod yard;
