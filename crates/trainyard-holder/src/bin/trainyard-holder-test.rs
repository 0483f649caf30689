//! The holder as a program of its own, for this crate's tests. The product's own program contains
//! the holder; this one is not installed.

fn main() -> std::process::ExitCode {
    trainyard_holder::main()
}
