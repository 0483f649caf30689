//! The table of options that users of simpletfjob know.

/// Shown below the options.
pub(super) const TABLE: &str = "\
The options of simpletfjob:
  long    short  meaning                                         default
  --help  -h     show this help                                  none
  --exc   -E     file whose hosts are left out of the training   none (alone: exc)
  --num   -N     number of machines used for training            -1 (all machines)
  --psn   none   number of parameter servers                     1
  --psf   none   file whose hosts become the parameter servers   none";
