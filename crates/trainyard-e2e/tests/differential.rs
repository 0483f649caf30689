//! The embedded server answers as the real kube-apiserver does.

fn main() -> std::process::ExitCode {
    trainyard_e2e::differential::run()
}
