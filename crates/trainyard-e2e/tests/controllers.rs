//! The embedded server's controllers, there and on a real server.

fn main() -> std::process::ExitCode {
    trainyard_e2e::controllers::run()
}
