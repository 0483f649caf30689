//! The flags about Volcano Jobs and gangs, those of the reference operators included.
//!
//! What a gang is and who schedules it is the business of the planner.

use clap::{Args, ValueEnum};
use trainyard_core::Gang;
use trainyard_operator::VolcanoJobs;

use super::go_syntax::boolean;

/// What `--enable-gang-scheduling` means without a name, as in the older operators.
const USUAL: &str = "volcano";

/// Flags about Volcano Jobs and gangs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Gangs and Volcano Jobs")]
pub(crate) struct Gangs {
    /// Who starts the pods of a TFJob all together or not at all: trainyard or volcano (by Volcano's
    /// PodGroup), or another scheduler (by the PodGroup of the scheduler plugins); none for nobody
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    gang_scheduler_name: Option<String>,
    /// The older operators' way to ask for it; with --gang-scheduler-name=volcano unless named otherwise
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
        value_parser = boolean, value_name = "BOOL")]
    enable_gang_scheduling: Option<bool>,
    /// Whether Volcano Jobs are run: always (the same as no value), never, or auto: unless their
    /// definition is Volcano's own
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_value = "auto",
        default_missing_value = "always", value_name = "WHEN", hide_possible_values = true)]
    volcano_jobs: When,
}

/// Whether Volcano Jobs are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    Auto,
    #[value(alias = "true")]
    Always,
    #[value(alias = "false")]
    Never,
}

impl Gangs {
    /// Whose PodGroups are made for TFJobs.
    pub(super) fn gang(&self) -> Gang {
        let name = self.gang_scheduler_name.as_deref().map(str::trim);
        match self.enable_gang_scheduling {
            Some(false) => Gang::Off,
            Some(true) => Gang::by_scheduler(name.unwrap_or(USUAL)),
            None => Gang::by_scheduler(name.unwrap_or_default()),
        }
    }

    /// Whether Volcano Jobs are run.
    pub(super) const fn volcano_jobs(&self) -> VolcanoJobs {
        match self.volcano_jobs {
            When::Auto => VolcanoJobs::Auto,
            When::Always => VolcanoJobs::Always,
            When::Never => VolcanoJobs::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{self, Command};

    fn read(line: &str) -> (Gang, VolcanoJobs) {
        let args = ["trainyard", "operator"].into_iter().chain(line.split_whitespace());
        match cli::parse(args.map(Into::into)).unwrap().command {
            Command::Operator(flags) => {
                let options = flags.options().unwrap();
                (options.planner.gang, options.volcano_jobs)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_schedulers_name_decides_whose_groups_are_made() {
        let volcanos = |name: &str| Gang::PodGroup { scheduler: name.to_owned() };
        let plugins = Gang::PluginsPodGroup { scheduler: "Scheduler-Plugins".to_owned() };
        for (line, gang) in [
            ("", Gang::Off),
            ("--gang-scheduler-name=", Gang::Off),
            ("--gang-scheduler-name None", Gang::Off),
            ("-gang-scheduler-name=Volcano", volcanos("volcano")),
            ("--gang-scheduler-name=trainyard", volcanos("trainyard")),
            ("--gang-scheduler-name=Scheduler-Plugins", plugins.clone()),
            ("--enable-gang-scheduling", volcanos("volcano")),
            ("--enable-gang-scheduling=true --gang-scheduler-name=Scheduler-Plugins", plugins),
            ("--enable-gang-scheduling=false --gang-scheduler-name=volcano", Gang::Off),
        ] {
            assert_eq!(read(line).0, gang, "{line}");
        }
    }

    #[test]
    fn volcano_jobs_are_left_to_volcano_unless_told() {
        for (line, when) in [
            ("", VolcanoJobs::Auto),
            ("--volcano-jobs", VolcanoJobs::Always),
            ("-volcano-jobs=true", VolcanoJobs::Always),
            ("--volcano-jobs=never", VolcanoJobs::Never),
            ("--volcano-jobs=auto", VolcanoJobs::Auto),
        ] {
            assert_eq!(read(line).1, when, "{line}");
        }
    }
}
