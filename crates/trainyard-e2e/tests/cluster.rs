//! The operator's scenarios on a real control plane.

fn main() -> std::process::ExitCode {
    trainyard_e2e::suite::run()
}
