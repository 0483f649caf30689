//! The examples, as their READMEs tell them.

fn main() -> std::process::ExitCode {
    trainyard_e2e::examples::run()
}
