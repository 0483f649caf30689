//! Builds the shim for pods on the host's network: a shared library that the crate embeds.

use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=shim/shim.c");
    let folder = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let library = PathBuf::from(folder).join("shim.so");
    let compiler = cc::Build::new().opt_level(2).pic(true).warnings(true).get_compiler();
    let mut command: Command = compiler.to_command();
    command
        .args(["-shared", "-Wextra", "-Werror", "-o"])
        .arg(&library)
        .arg("shim/shim.c")
        .arg("-ldl");
    let status = command.status().map_err(|error| format!("starting the C compiler: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("the C compiler ended with {status}")) }
}
