//! Flags of the reference operators that mean nothing here.
//!
//! They are accepted, so that an existing command line goes on working, and each one given is
//! answered by one line in the log. Must not change how the operator works.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, parser::ValueSource};

/// One such flag.
#[derive(Debug)]
struct Known {
    name: &'static str,
    /// Why it means nothing here.
    why: &'static str,
}

const fn value(name: &'static str, why: &'static str) -> Known {
    Known { name, why }
}

const NO_WEBHOOK: &str =
    "there is no webhook: the validation rules are in the custom resource definition";
const ONLY_TFJOB: &str = "of the reference operator's kinds only TFJob is run";
const NO_POLLING: &str = "nothing is polled: every deadline has its own timer";

const KNOWN: [Known; 14] = [
    value("webhook-server-port", NO_WEBHOOK),
    value("webhook-service-name", NO_WEBHOOK),
    value("webhook-secret-name", NO_WEBHOOK),
    value("pytorch-init-container-image", ONLY_TFJOB),
    value("pytorch-init-container-template-file", ONLY_TFJOB),
    value("pytorch-init-container-max-tries", ONLY_TFJOB),
    value("mpi-kubectl-delivery-image", ONLY_TFJOB),
    value("monitoring-port", "metrics are served at --metrics-bind-address"),
    value("resyc-period", NO_POLLING),
    value("gc-interval", NO_POLLING),
    value("chaos-level", "there is no mode that kills pods at random"),
    value("controller-config-file", "mount what a pod needs in its template"),
    value("zap-stacktrace-level", "log lines carry no stack traces"),
    value("zap-time-encoding", "times in the log are RFC 3339"),
];

/// Those that were given.
#[derive(Debug, Default)]
pub(super) struct Inherited(Vec<&'static Known>);

impl Inherited {
    /// One line for each.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|flag| format!("--{} has no effect: {}", flag.name, flag.why))
    }
}

impl FromArgMatches for Inherited {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given =
            |flag: &&Known| matches.value_source(flag.name) == Some(ValueSource::CommandLine);
        Ok(Self(KNOWN.iter().filter(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Inherited {
    fn augment_args(command: Command) -> Command {
        command.args(KNOWN.iter().map(|flag| {
            Arg::new(flag.name)
                .long(flag.name)
                .help(flag.why)
                .value_name("IGNORED")
                .help_heading("Accepted from the reference operator, without effect")
                .action(ArgAction::Append)
                .allow_hyphen_values(true)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
