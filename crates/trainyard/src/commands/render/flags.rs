//! The options: simpletfjob's own, and what it promised or lacked.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{Args, Parser, ValueHint};
use trainyard_render::rendering::PORT;

use super::help;

/// Render one Job per machine from a template (simpletfjob)
///
/// The template is a Go text/template with the variables `{{.type}}`, `{{.index}}`, `{{.host}}` and
/// `{{.TF_CONFIG}}`. It is rendered once per machine of the cluster, parameter servers first, and
/// written beside the template: mnist.yaml becomes `mnist_tfjob.yaml`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[command(after_help = help::TABLE)]
pub(crate) struct Flags {
    /// The template; `-` is standard input
    #[arg(value_name = "TEMPLATE", value_hint = ValueHint::FilePath)]
    pub(super) template: PathBuf,

    /// Number of machines to train on; -1 or 0 for all of them
    #[arg(short = 'N', long, value_name = "NUM", default_value_t = -1, allow_negative_numbers = true)]
    pub(super) num: i64,

    /// File with the hosts to leave out, one per line; alone it is the file `exc` of this folder.
    /// The file is given with `=`, never as the next word
    #[arg(
        short = 'E',
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "exc"
    )]
    pub(super) exc: Option<PathBuf>,

    /// Number of parameter servers: the first machines
    #[arg(long, value_name = "NUM", default_value_t = 1)]
    pub(super) psn: usize,

    /// File with the hosts that become parameter servers, in that order
    #[arg(long, value_name = "FILE", conflicts_with = "psn")]
    pub(super) psf: Option<PathBuf>,

    /// Make the first machine that is no parameter server the chief
    #[arg(long)]
    pub(super) chief: bool,

    /// Make the last machine the evaluator
    #[arg(long)]
    pub(super) evaluator: bool,

    /// Port of every machine in `TF_CONFIG`
    #[arg(long, value_name = "PORT", default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) port: u16,

    /// Use these machines instead of the cluster's: names separated by commas
    #[arg(long, value_name = "HOSTS", conflicts_with = "nodes_file")]
    pub(super) nodes: Option<String>,

    /// Use the machines that this file lists, one per line, instead of the cluster's
    #[arg(long, value_name = "FILE")]
    pub(super) nodes_file: Option<PathBuf>,

    /// Use cordoned nodes and nodes that are not ready as well
    #[arg(long)]
    pub(super) all_nodes: bool,

    /// Kubeconfig to use instead of those that KUBECONFIG names or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,

    /// Render unknown variables as `<no value>`, as Go does, instead of refusing them
    #[arg(long)]
    pub(super) allow_missing: bool,

    /// Write to this file; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Create the objects in the cluster; no file is written unless -o is given
    #[arg(long)]
    pub(super) apply: bool,
}

// What it says about itself stands at its arguments.
#[derive(Debug, Parser)]
#[command(name = "simpletfjob", version)]
pub(crate) struct Simpletfjob {
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// Whether this program was started under the name of the original.
pub(crate) fn called_as_simpletfjob(program: Option<&OsString>) -> bool {
    program.map(Path::new).and_then(Path::file_stem).is_some_and(|name| name == "simpletfjob")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn read(words: &str) -> Flags {
        let words = std::iter::once("simpletfjob").chain(words.split_whitespace());
        Simpletfjob::try_parse_from(words).unwrap().flags
    }

    #[test]
    fn the_original_command_line_is_understood() {
        let flags = read("mnist.yaml -N 3");
        assert_eq!((flags.template.to_str(), flags.num), (Some("mnist.yaml"), 3));
        assert_eq!(read("mnist.yaml -N -1 --psn 2").psn, 2);
        assert_eq!(read("mnist.yaml --num=4").num, 4);
        assert_eq!(read("-N4 mnist.yaml").num, 4);
        assert_eq!(read("mnist.yaml").exc, None);
    }

    #[test]
    fn the_exclusion_file_never_takes_the_next_word() {
        for words in ["-E mnist.yaml", "--exc mnist.yaml", "mnist.yaml -N 3 -E"] {
            let flags = read(words);
            assert_eq!(flags.template.to_str(), Some("mnist.yaml"), "{words}");
            assert_eq!(flags.exc.as_deref(), Some(Path::new("exc")), "{words}");
        }
        assert_eq!(read("a.yaml -E=busy").exc.as_deref(), Some(Path::new("busy")));
        assert_eq!(read("a.yaml --exc=busy").exc.as_deref(), Some(Path::new("busy")));
    }

    #[test]
    fn the_program_is_known_by_its_name_wherever_it_stands() {
        let named = |name: &str| called_as_simpletfjob(Some(&name.into()));
        assert!(
            named("simpletfjob") && named("/usr/local/bin/simpletfjob") && named("./simpletfjob")
        );
        assert!(!named("trainyard") && !named("/simpletfjob/trainyard"));
        assert!(!called_as_simpletfjob(None));
    }

    #[test]
    fn the_help_shows_the_table_of_the_original() {
        Simpletfjob::command().debug_assert();
        let help = Simpletfjob::command().render_long_help().to_string();
        for word in ["--help", "-h", "--exc", "-E", "--num", "-N", "--psn", "--psf", "-1"] {
            assert!(help.contains(word), "{word}");
        }
        assert!(help.contains(help::TABLE.lines().next().unwrap()));
    }
}
