//! The operator's scenarios on the embedded server, in paused time.

use std::process::ExitCode;

use tokio::runtime::Builder;

fn main() -> ExitCode {
    trainyard_e2e::embedded::run(|| {
        Builder::new_current_thread().enable_all().start_paused(true).build()
    })
}
