//! `trainyard up` as people use it.

fn main() -> std::process::ExitCode {
    trainyard_e2e::yard::run()
}
