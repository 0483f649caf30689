//! Running the command.

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

/// The command, not yet started, with nothing of this machine's settings.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainyard"));
    command.args(args).stdin(Stdio::null());
    for variable in ["KUBECONFIG", "KUBEFLOW_NAMESPACE", "MY_POD_NAMESPACE", "RUST_LOG"] {
        command.env_remove(variable);
    }
    command
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("ended by a signal"),
            out: String::from_utf8(output.stdout).expect("standard output is text"),
            err: String::from_utf8(output.stderr).expect("standard error is text"),
        }
    }
}

/// Runs it to its end.
pub(crate) fn run(args: &[&str]) -> Ended {
    command(args).output().expect("the command starts").into()
}

/// Runs it to its end with a text on standard input.
pub(crate) fn run_with(args: &[&str], input: &str) -> Ended {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("standard input is piped");
    let input = input.to_owned();
    // In a thread of its own: the command may answer before it has read everything.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("the command ends");
    let _ = writer.join();
    output.into()
}
