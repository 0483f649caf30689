//! The test tiers: what each is for, what it runs, what it needs first and what it takes of the machine.
//! Pure; running them is `play`'s.

use std::fmt;

use trainyard_testbed::control_plane::Program;

use super::schedule::Demand;

/// A test tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Tier {
    Fmt,
    Tidy,
    Clippy,
    /// What the tiers below run; chosen with them.
    #[value(skip)]
    Build,
    Unit,
    Render,
    Embedded,
    Attack,
    Cluster,
    Controllers,
    Differential,
    Image,
    Node,
    Run,
    Yard,
    Examples,
    Kubelet,
    Referee,
}

/// What a tier does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Cargo, with these words.
    Cargo(&'static [&'static str]),
    /// The house rules.
    Tidy,
    /// Compiles the test programs and the binary.
    Build,
    /// The tests that need nothing but Rust.
    Unit,
    /// One test program.
    Program(TestProgram),
}

/// A test target and what it cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    /// Its package.
    pub(crate) package: &'static str,
    /// Its name.
    pub(crate) test: &'static str,
    /// Words for its harness.
    pub(crate) words: &'static [&'static str],
    /// A program of the machine without which it has nothing to do, and the word that tries it.
    pub(crate) tool: Option<(&'static str, &'static str)>,
}

impl Tier {
    /// From cheap to dear.
    pub(crate) const ALL: [Self; 18] = [
        Self::Fmt,
        Self::Tidy,
        Self::Clippy,
        Self::Build,
        Self::Unit,
        Self::Render,
        Self::Embedded,
        Self::Attack,
        Self::Cluster,
        Self::Controllers,
        Self::Differential,
        Self::Image,
        Self::Node,
        Self::Run,
        Self::Yard,
        Self::Examples,
        Self::Kubelet,
        Self::Referee,
    ];

    /// Between two edits.
    pub(crate) const QUICK: [Self; 4] = [Self::Fmt, Self::Tidy, Self::Unit, Self::Embedded];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Tidy => "tidy",
            Self::Clippy => "clippy",
            Self::Build => "build",
            Self::Unit => "unit",
            Self::Render => "render",
            Self::Embedded => "embedded",
            Self::Attack => "attack",
            Self::Cluster => "cluster",
            Self::Controllers => "controllers",
            Self::Differential => "differential",
            Self::Image => "image",
            Self::Node => "node",
            Self::Run => "run",
            Self::Yard => "yard",
            Self::Examples => "examples",
            Self::Kubelet => "kubelet",
            Self::Referee => "referee",
        }
    }

    pub(crate) fn purpose(self) -> &'static str {
        match self {
            Self::Fmt => "the code is formatted",
            Self::Tidy => {
                "lengths, headers, arrows, features, licences and sources of dependencies"
            }
            Self::Clippy => "lints, with warnings as errors",
            Self::Build => "the test programs and the binary",
            Self::Unit => "everything that needs nothing but Rust",
            Self::Render => "the answers of Go's text/template, asked again",
            Self::Embedded => "the operator on the embedded server, in paused time",
            Self::Attack => "hostile clients and lost power against the embedded server",
            Self::Cluster => "the operator on a real Kubernetes control plane",
            Self::Controllers => "the yard's controllers, on the embedded server and a real one",
            Self::Differential => "the embedded server's answers, against the real one's",
            Self::Image => "Python environments, really made",
            Self::Node => "pods as processes, with real TensorFlow, under a real control plane",
            Self::Run => "`trainyard run` in a pipe and in a terminal, with real TensorFlow",
            Self::Yard => "`trainyard up` with the real kubectl, the Python SDK and TensorFlow",
            Self::Examples => "the examples, as their READMEs tell them, and a browser",
            Self::Kubelet => {
                "the operator and scheduler on a real cluster of two nodes, with real TensorFlow"
            }
            Self::Referee => "the scenarios of Volcano Jobs, on Volcano itself",
        }
    }

    pub(crate) fn work(self) -> Work {
        match self {
            Self::Fmt => Work::Cargo(&["fmt", "--all", "--check"]),
            Self::Tidy => Work::Tidy,
            Self::Clippy => {
                Work::Cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
            }
            Self::Build => Work::Build,
            Self::Unit => Work::Unit,
            Self::Render => Work::Program(TestProgram {
                package: "trainyard-render",
                test: "differential",
                words: &["--include-ignored"],
                tool: Some(("go", "version")),
            }),
            Self::Image => Work::Program(TestProgram {
                package: "trainyard-image",
                test: "environments",
                words: &["--ignored", "--test-threads=1"],
                tool: Some(("python3", "--version")),
            }),
            _ => Work::Program(TestProgram {
                package: "trainyard-e2e",
                test: self.name(),
                words: &[],
                tool: None,
            }),
        }
    }

    /// What it takes while it runs. Tiers with a control plane or with training wait most of their time.
    pub(crate) fn demand(self) -> Demand {
        match self {
            Self::Clippy | Self::Build | Self::Unit | Self::Cluster | Self::Referee => Demand::ALL,
            Self::Node | Self::Run | Self::Yard | Self::Examples => Demand::NODE,
            Self::Kubelet => Demand::NODES,
            _ => Demand::ONE,
        }
    }

    /// Programs of Kubernetes, which are built by Go before it starts.
    pub(crate) fn programs(self) -> &'static [Program] {
        match self {
            Self::Kubelet => &Program::ALL,
            Self::Cluster | Self::Node | Self::Yard => &Program::CONTROL_PLANE,
            Self::Controllers | Self::Differential | Self::Referee => {
                &[Program::Etcd, Program::ApiServer, Program::ControllerManager, Program::Kubectl]
            }
            Self::Run | Self::Examples => &[Program::Kubectl],
            _ => &[],
        }
    }

    /// Does it run the binary?
    pub(crate) fn runs_binary(self) -> bool {
        matches!(
            self,
            Self::Cluster
                | Self::Node
                | Self::Run
                | Self::Yard
                | Self::Examples
                | Self::Kubelet
                | Self::Referee
        )
    }

    /// Does it run what [`Self::Build`] compiles? It also consists of tests with names then.
    pub(crate) fn runs_tests(self) -> bool {
        matches!(self.work(), Work::Unit | Work::Program(_))
    }

    /// Is it left out unless it is named? It builds another project for minutes to ask it.
    pub(crate) fn only_by_name(self) -> bool {
        self == Self::Referee
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Without names every tier that need not be named; with a filter only those that have tests to filter.
/// What they run is compiled by a tier of its own.
pub(crate) fn selected(named: &[Tier], filtered: bool) -> Vec<Tier> {
    let wanted = |tier: &Tier| {
        if named.is_empty() {
            !tier.only_by_name() && (!filtered || tier.runs_tests())
        } else {
            named.contains(tier)
        }
    };
    let mut tiers: Vec<_> =
        Tier::ALL.into_iter().filter(|tier| *tier != Tier::Build && wanted(tier)).collect();
    if tiers.iter().any(|tier| tier.runs_tests()) {
        tiers.push(Tier::Build);
        tiers.sort_unstable();
    }
    tiers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_run_from_cheap_to_dear_whatever_the_order_of_names() {
        let unnamed: Vec<_> = Tier::ALL.into_iter().filter(|tier| !tier.only_by_name()).collect();
        assert_eq!(selected(&[], false), unnamed);
        assert_eq!(selected(&[Tier::Tidy, Tier::Fmt], false), [Tier::Fmt, Tier::Tidy]);
    }

    #[test]
    fn what_is_run_is_compiled_first() {
        assert_eq!(selected(&[Tier::Referee], false), [Tier::Build, Tier::Referee]);
        assert_eq!(
            selected(&Tier::QUICK, false),
            [Tier::Fmt, Tier::Tidy, Tier::Build, Tier::Unit, Tier::Embedded]
        );
        assert_eq!(selected(&[Tier::Clippy], false), [Tier::Clippy]);
    }

    #[test]
    fn a_filter_leaves_the_tiers_that_have_named_tests() {
        let named: Vec<_> = Tier::ALL[3..17].to_vec();
        assert_eq!(named.first(), Some(&Tier::Build));
        assert_eq!(selected(&[], true), named);
        assert_eq!(selected(&[Tier::Cluster], true), [Tier::Build, Tier::Cluster]);
    }

    #[test]
    fn names_on_the_command_line_are_the_names_in_the_report() {
        for tier in Tier::ALL.into_iter().filter(|tier| *tier != Tier::Build) {
            let name = clap::ValueEnum::to_possible_value(&tier).unwrap();
            assert_eq!(name.get_name(), tier.to_string());
        }
    }
}
