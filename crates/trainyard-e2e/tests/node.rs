//! Pods as processes of this machine, under a real control plane.

fn main() -> std::process::ExitCode {
    trainyard_e2e::node::run()
}
