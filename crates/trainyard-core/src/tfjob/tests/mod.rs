//! Table tests of whole passes: what a job looks like after this and that has happened.

mod availability;
mod causes;
mod departed;
mod ends;
mod gang_rules;
mod gangs;
mod large;
mod lifecycle;
mod limits;
mod lost_nodes;
mod refusals;
mod restarts;
mod scaling;
mod suspension;
mod tensorboard;
