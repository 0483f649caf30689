//! Stories on a complete cluster with real kubelets.

fn main() -> std::process::ExitCode {
    trainyard_e2e::real_kubelet::run()
}
