//! Our rendering against Go's own text/template, whose answers are kept as data.
//!
//! `go_still_answers_so` asks Go again; `cargo xtask test --tier render` runs it. With
//! `RECORD=1` in its environment it writes the answers down.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use serde::Deserialize;
use trainyard_render::template::{Missing, Template};

#[derive(Debug, Deserialize)]
struct Cases {
    variables: BTreeMap<String, String>,
    cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
struct Case {
    name: String,
    template: String,
    #[serde(default)]
    missing: String,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Answer {
    name: String,
    output: Option<String>,
    #[serde(default)]
    phase: String,
    #[serde(default)]
    line: usize,
    #[serde(default)]
    error: String,
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn cases() -> Cases {
    let text = fs::read(file("data/templates.json")).expect("a file of the repository");
    serde_json::from_slice(&text).expect("cases")
}

fn answers() -> Vec<Answer> {
    let text = fs::read(file("data/answers.json")).expect("a file of the repository");
    serde_json::from_slice(&text).expect("answers")
}

/// What we make of a case: the text, or the phase and line of the mistake.
fn ours(
    case: &Case,
    variables: &BTreeMap<String, String>,
) -> Result<String, (String, usize, String)> {
    let names = ["type", "index", "host", "TF_CONFIG"];
    let variables = names.map(|name| (name, Arc::from(variables[name].as_str())));
    let missing = if case.missing == "refused" { Missing::Refused } else { Missing::Allowed };
    let said = |phase: &str, error: &trainyard_render::template::Error| {
        (phase.to_owned(), error.line, error.to_string())
    };
    let template =
        Template::parse(&case.template, missing).map_err(|error| said("parse", &error))?;
    let mut out = String::new();
    template.render(&variables, &mut out).map_err(|error| said("execute", &error))?;
    Ok(out)
}

fn compare(variables: &BTreeMap<String, String>, cases: &[Case], answers: &[Answer]) {
    assert_eq!(cases.len(), answers.len(), "record the answers again");
    let mut wrong = Vec::new();
    for (case, answer) in cases.iter().zip(answers) {
        assert_eq!(case.name, answer.name, "record the answers again");
        let ours = ours(case, variables);
        let same = match (&ours, &answer.output) {
            (Ok(ours), Some(theirs)) => ours == theirs,
            (Err((phase, line, _)), None) => (phase, line) == (&answer.phase, &answer.line),
            _ => false,
        };
        if !same {
            let template = &case.template;
            wrong.push(format!("{}: {template:?}\n  ours {ours:?}\n  Go   {answer:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn every_template_gives_what_go_gives() {
    let Cases { variables, cases } = cases();
    compare(&variables, &cases, &answers());
}

/// Asks Go for its answers.
fn ask_go(input: &[u8]) -> Vec<u8> {
    let mut go = Command::new("go")
        .args(["run", "main.go"])
        .current_dir(file("go"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Go is installed");
    go.stdin.take().expect("standard input is piped").write_all(input).expect("Go reads");
    let output = go.wait_with_output().expect("Go ends");
    assert!(output.status.success());
    output.stdout
}

#[test]
#[ignore = "needs Go"]
fn go_still_answers_so() {
    let output = ask_go(&fs::read(file("data/templates.json")).unwrap());
    if std::env::var_os("RECORD").is_some() {
        fs::write(file("data/answers.json"), &output).unwrap();
    }
    let said: Vec<Answer> = serde_json::from_slice(&output).unwrap();
    assert_eq!(said, answers());
}

#[test]
#[ignore = "needs Go"]
fn go_agrees_on_made_up_templates() {
    let variables = cases().variables;
    let mut chance = Chance(2_463_534_242);
    let cases: Vec<_> = (0..20_000)
        .map(|at| Case {
            name: at.to_string(),
            template: if at % 2 == 0 { chance.format() } else { chance.template(4) },
            missing: String::new(),
        })
        .collect();
    let asked: Vec<_> = cases
        .iter()
        .map(|case| serde_json::json!({"name": case.name, "template": case.template}))
        .collect();
    let asked = serde_json::json!({"variables": variables, "cases": asked});
    let said: Vec<Answer> = serde_json::from_slice(&ask_go(asked.to_string().as_bytes())).unwrap();
    compare(&variables, &cases, &said);
}

/// Numbers that look random and are the same every time.
struct Chance(u32);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 as usize % end
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// A call of `printf` with one to three directives.
    fn format(&mut self) -> String {
        let mut format = String::new();
        let count = 1 + self.below(3);
        for _ in 0..count {
            format += "%";
            for _ in 0..self.below(3) {
                format += self.pick(&["#", "0", "+", "-", " "]);
            }
            format += self.pick(&["", "", "", "1", "5", "12", "*", "[1]", "[2]", "[2]*"]);
            format += self.pick(&["", "", "", ".", ".0", ".1", ".3", ".10", ".*", ".[1]*"]);
            format += self.pick(&["", "", "", "", "[1]", "[3]", "[0]", "["]);
            format += self.pick(&[
                "v", "s", "d", "q", "x", "X", "o", "O", "b", "c", "U", "f", "F", "e", "E", "g",
                "G", "t", "T", "z", "%", "é", "w",
            ]);
            format += self.pick(&["", "|", " ", "日"]);
        }
        let mut call = format!("{{{{printf {}", serde_json::Value::from(format));
        for _ in 0..self.below(4) {
            call += " ";
            call += self.pick(&[
                "0",
                "1",
                "-7",
                "42",
                "1234567",
                "0x1F",
                "'x'",
                "3.14159",
                "-0.5",
                "0.0",
                "1e21",
                "2.5",
                "1e-7",
                "100000.0",
                "123456789.125",
                "true",
                "nil",
                ".host",
                "\"\"",
                "\"é日本\"",
                "\"a\\tb\"",
                "`x\"y`",
                ".nope",
                "(index .host 0)",
                "(len .host)",
            ]);
        }
        call + "}}|"
    }

    /// A template of actions, some of them wrong.
    fn template(&mut self, depth: usize) -> String {
        let mut text = String::new();
        for _ in 0..=self.below(3) {
            text += self.pick(&["", "a", "\n", "  \n ", "b: "]);
            let (open, close) = self.delimiters();
            let value = self.value(2);
            if depth == 0 || self.below(3) == 0 {
                text.extend([open, &value, close]);
                continue;
            }
            let word =
                self.pick(&["if", "with", "range", "range $v :=", "range $k, $v :=", "if $c :="]);
            let body = self.template(depth - 1);
            let after = match self.below(5) {
                0 => format!("{open}else{close}{}", self.template(depth - 1)),
                1 if word.starts_with("if") => {
                    format!("{open}else if {}{close}{}", self.value(1), self.template(depth - 1))
                }
                2 if self.below(4) == 0 => {
                    self.pick(&["{{else}}{{else}}", "{{break}}", "{{nope}}"]).to_owned()
                }
                _ => String::new(),
            };
            let end = if self.below(40) == 0 { "" } else { "{{end}}" };
            text.extend([open, word, " ", &value, close, &body, &after, end]);
        }
        text
    }

    fn delimiters(&mut self) -> (&'static str, &'static str) {
        [("{{", "}}"), ("{{", "}}"), ("{{- ", "}}"), ("{{", " -}}"), ("{{- ", " -}}")]
            [self.below(5)]
    }

    fn value(&mut self, depth: usize) -> String {
        if depth == 0 || self.below(2) == 0 {
            let plain = [
                ".", ".host", ".type", ".index", ".nope", "$", "$.host", "$v", "$k", "$c", "3",
                "0", "1.5", "\"x\"", "\"\"", "true", "false", "nil", "'a'", "2", "4", ".host.x",
            ];
            return self.pick(&plain).to_owned();
        }
        let function = self.pick(&[
            "len",
            "print",
            "printf \"%v-%v\"",
            "index",
            "slice",
            "eq",
            "ne",
            "lt",
            "ge",
            "and",
            "or",
            "not",
            "html",
            "println",
            "urlquery",
            "js",
            "call",
        ]);
        let mut call = function.to_owned();
        for _ in 0..=self.below(3) {
            let argument = self.value(depth - 1);
            let (before, after) = if argument.contains(' ') { (" (", ")") } else { (" ", "") };
            call.extend([before, &argument, after]);
        }
        match self.below(6) {
            0 => format!(
                "{call} | {}",
                self.pick(&["len", "print", "printf \"%q\"", "not", "html", ".host"])
            ),
            1 => format!("({call})"),
            _ => call,
        }
    }
}
