//! `trainyard run` as people run it.

fn main() -> std::process::ExitCode {
    trainyard_e2e::run::run()
}
