//! Tests only: lives of jobs, one file per chapter.

mod commands;
mod crash;
mod happy;
mod large;
mod lost_nodes;
mod pods;
mod policies;
mod refusals;
mod restarts;
mod scaling;
mod waiting;
