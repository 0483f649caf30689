//! Hostile clients and lost power against the embedded server.

fn main() -> std::process::ExitCode {
    trainyard_e2e::attack::run(env!("CARGO_BIN_EXE_embedded-api-server"))
}
