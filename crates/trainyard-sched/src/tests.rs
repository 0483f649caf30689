//! Tests of the scheduler as a whole; tests of one rule stand beside it.

mod around;
mod aside;
mod explain;
mod explore;
mod fields;
mod history;
mod hold;
mod measure;
mod outside;
mod press;
mod queues;
mod reports;
mod state;
mod volumes;
mod world;
