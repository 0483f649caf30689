//! Tests only: lives of jobs, one file per chapter.

mod commands;
mod crash;
mod happy;
mod pods;
mod policies;
mod restarts;
mod scaling;
mod waiting;
