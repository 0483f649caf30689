//! `render` and `simpletfjob`: files, machines, and what is refused.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::process::{Ended, command};

const JOB: &str = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: m-{{.type}}-{{.index}}\n\
                   spec:\n  nodeName: {{.host}}\n";

/// A folder with a template in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(template: &str) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        folder.write("mnist.yaml", template);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    /// Names of everything in the folder.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("a folder");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Runs `render` in the folder; words are separated by spaces.
    fn render(&self, words: &str) -> Ended {
        let words: Vec<_> = std::iter::once("render").chain(words.split_whitespace()).collect();
        let mut command = command(&words);
        // No cluster of this machine is meant.
        command.current_dir(self.0.path()).env("HOME", self.0.path());
        command.output().expect("the command starts").into()
    }

    /// Runs `render` and expects it to be refused with nothing written.
    fn refused(&self, words: &str, code: i32) -> String {
        let before = self.names();
        let ended = self.render(words);
        assert_eq!(ended.code, code, "{words}: {}", ended.err);
        assert_eq!(ended.out, "", "{words}");
        assert_eq!(self.names(), before, "{words}");
        ended.err
    }
}

fn data(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trainyard-render/tests/data");
    fs::read_to_string(folder.join(name)).expect("a file of the repository")
}

#[test]
fn the_known_example_gives_the_known_file() {
    let folder = Folder::with(&data("mnist.yaml"));
    let ended = folder.render("mnist.yaml -N 3 --nodes h10,h100,h14,h15");
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.err.ends_with("mnist_tfjob.yaml: 1 ps, 2 workers\n"), "{}", ended.err);
    assert_eq!(folder.read("mnist_tfjob.yaml"), Some(data("mnist_tfjob.yaml")));
    assert_eq!(folder.names(), ["mnist.yaml", "mnist_tfjob.yaml"]);
}

#[test]
fn a_link_named_simpletfjob_takes_the_original_command_line() {
    let folder = Folder::with(&data("mnist.yaml"));
    let program = folder.path("simpletfjob");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_trainyard"), &program).expect("a link");
    folder.write("nodes", "h10\nh100\nh14\n");
    let run = |words: &str| -> Ended {
        let mut command = std::process::Command::new(&program);
        command.current_dir(folder.0.path()).args(words.split_whitespace());
        command.env_remove("KUBECONFIG").env("HOME", folder.0.path());
        command.output().expect("the link starts").into()
    };
    let ended = run("mnist.yaml -N 3 --nodes-file nodes");
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(folder.read("mnist_tfjob.yaml"), Some(data("mnist_tfjob.yaml")));
    let help = run("--help");
    assert_eq!(help.code, 0);
    assert!(help.out.contains("Usage: simpletfjob"), "{}", help.out);
    for row in ["--exc   -E", "--num   -N", "--psn   none", "--psf   none", "--help  -h"] {
        assert!(help.out.contains(row), "{row}: {}", help.out);
    }
    // Without a cluster and without a list there is nothing to render for.
    assert_eq!(run("mnist.yaml").code, 1);
    assert_eq!(run("").code, 2);
}

#[test]
fn excluded_hosts_are_left_out() {
    let folder = Folder::with(JOB);
    folder.write("exc", "h10\n h14 \nh99\n");
    folder.write("busy", "# by others\nh1\n");
    let nodes = "--nodes h1,h10,h11,h12,h14 -o -";
    let ended = folder.render(&format!("mnist.yaml -N 3 -E {nodes}"));
    assert_eq!(ended.code, 0, "{}", ended.err);
    let hosts = |text: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("  nodeName: "));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(hosts(&ended.out), ["h1", "h11", "h12"]);
    assert!(ended.err.contains("h99 is excluded, but there is no such machine"), "{}", ended.err);
    let ended = folder.render(&format!("--exc=busy mnist.yaml {nodes}"));
    assert_eq!(hosts(&ended.out), ["h10", "h11", "h12", "h14"], "{}", ended.err);
}

#[test]
fn parameter_servers_can_be_named_and_the_other_roles_asked_for() {
    let folder = Folder::with("a: {{.type}}-{{.index}}@{{.host}}");
    folder.write("ps", "c\na\n");
    let ended = folder.render("mnist.yaml -N 4 --psf ps --nodes a,b,c,d,e -o -");
    let lines: Vec<_> = ended.out.split("\n---\n").collect();
    assert_eq!(lines, ["a: ps-0@c", "a: ps-1@a", "a: worker-0@b", "a: worker-1@d"]);
    let ended = folder.render("mnist.yaml --chief --evaluator --nodes a,b,c,d -o -");
    let lines: Vec<_> = ended.out.split("\n---\n").collect();
    assert_eq!(lines, ["a: ps-0@a", "a: chief-0@b", "a: worker-0@c", "a: evaluator-0@d"]);
    let folder = Folder::with("a: >\n{{.TF_CONFIG}}");
    let ended = folder.render("mnist.yaml --port 4000 --nodes a,b -o -");
    assert!(ended.out.contains("\"ps\": [\"a:4000\"]"), "{}", ended.out);
}

#[test]
fn machines_that_are_not_there_are_refused() {
    let folder = Folder::with(JOB);
    folder.write("exc", "h1\n");
    folder.write("empty", "\n# nobody\n");
    folder.write("ps", "h7\n");
    folder.write("ps-excluded", "h1\n");
    folder.write("ps-twice", "h2\nh2\n");
    for (words, said) in [
        ("-N 4 --nodes h1,h2,h3", "asked for 4 machines; there are 3 (0 excluded)"),
        ("-N 3 -E --nodes h1,h2,h3", "asked for 3 machines; there are 3 (1 excluded)"),
        ("-N -5 --nodes h1,h2", "-N -5 is not a number of machines"),
        ("--psn 3 --nodes h1,h2,h3", "and a worker is needed"),
        ("--psn 2 --psf ps --nodes h1,h2,h3", "cannot be used with"),
        ("--psf ps --nodes h1,h2", "the parameter server h7 is not in the cluster"),
        ("-E --psf ps-excluded --nodes h1,h2,h3", "the parameter server h1 is excluded"),
        ("--psf ps-twice --nodes h1,h2,h3", "ps-twice: line 2: h2 stands there already"),
        ("--nodes h1,h2,h1", "h1 stands there already"),
        ("--nodes h1,H2", "\"H2\" is not the name of a machine"),
        ("--exc=empty --nodes h1,h2", "empty: there is no host in it"),
        ("--exc=none --nodes h1,h2", "cannot read none: No such file"),
        ("--nodes-file none", "cannot read none: No such file"),
        ("--port 0 --nodes h1,h2", "invalid value '0'"),
        ("-o none/out.yaml --nodes h1,h2", "cannot write none/out.yaml: No such file"),
        ("-o mnist.yaml --nodes h1,h2", "is the template itself"),
        ("-o . --nodes h1,h2", "cannot write"),
    ] {
        let err = folder.refused(&format!("mnist.yaml {words}"), 2);
        assert!(err.contains(said), "{words}: {err}");
    }
    assert!(folder.refused("none.yaml --nodes a,b", 2).contains("cannot read none.yaml"));
}

#[test]
fn templates_that_cannot_be_used_are_refused_with_their_place() {
    for (template, said) in [
        (
            "a: 1\nb: {{.hots}}",
            "mnist.yaml: line 2, column 6: unknown variable .hots; there are .type",
        ),
        ("a: 1\n\nb: {{.host", "mnist.yaml: line 3, column 11: unclosed action"),
        ("a: {{if true}}\nb", "a block is not closed by {{end}}"),
        ("a: {{nope .host}}", "function \"nope\" not defined"),
        ("a: {{index .host 99}}", "mnist.yaml: line 1, column 6"),
        ("a: [{{.index}}", "is not YAML"),
        ("a: 1\na: {{.host}}", "line 2 of the rendered text is not YAML"),
    ] {
        let folder = Folder::with(template);
        folder.write("mnist_tfjob.yaml", "old");
        let err = folder.refused("mnist.yaml --nodes a,b,c", 3);
        assert!(err.contains(said), "{template}: {err}");
        assert!(err.contains("nothing was written"), "{template}: {err}");
        assert_eq!(folder.read("mnist_tfjob.yaml").as_deref(), Some("old"));
    }
}

#[test]
fn a_repeated_name_is_warned_of() {
    let folder = Folder::with(&JOB.replace("-{{.index}}", ""));
    let ended = folder.render("mnist.yaml --nodes a,b,c -o -");
    assert_eq!(ended.code, 0);
    let said = "warning: mnist.yaml: rendered text, line 18: Job m-worker stands there already, in \
                line 11\n";
    assert_eq!(ended.err, said);
}

#[test]
fn missing_variables_can_be_allowed() {
    let folder = Folder::with("a: {{.nope}}");
    let ended = folder.render("mnist.yaml --nodes a,b --allow-missing -o -");
    assert_eq!(ended.out, "a: <no value>\n---\na: <no value>");
}
