//! The scenarios of Volcano Jobs on Volcano itself.

fn main() -> std::process::ExitCode {
    trainyard_e2e::referee::run()
}
