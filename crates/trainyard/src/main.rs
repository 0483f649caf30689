//! The `trainyard` command: reads the command line, runs one command, says how it ended.
//!
//! Owns the terminal and the exit code; every decision is made in the library crates.

mod cli;
mod cluster;
mod commands;
mod failure;
mod memory;
mod output;
mod present;
mod run;
mod yaml;
mod yard;

use std::process::ExitCode;

fn main() -> ExitCode {
    // The holder of a node's pods is this program again: small, with no runtime and no threads.
    if std::env::args_os().nth(1).is_some_and(|word| word == commands::node::HOLDER) {
        return trainyard_holder::main();
    }
    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        // Help and version end here too, with exit code 0; a reader that has left is no error.
        Err(answer) => {
            let _ = answer.print();
            return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(failure::USAGE));
        }
    };
    match commands::run(&cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_told() {
                output::report(&failure);
            }
            ExitCode::from(failure.exit_code())
        }
    }
}
