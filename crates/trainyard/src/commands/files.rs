//! Manifests from files, folders and standard input.
//!
//! Owns finding and reading them, and saying where in them something is. Everything is read before
//! anything is done with it. Must not know what is done.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use crate::failure::Failure;
use crate::output;
use crate::present::text;
use crate::yaml::{self, Document};

/// How deep folders are looked into.
const DEEPEST: usize = 16;

/// Which manifests.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Files {
    /// File or folder with manifests; `-` is standard input. May be given several times
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Look into folders inside folders too
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
}

/// An object and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    /// `job.yaml: document 2`.
    pub(crate) place: String,
    pub(crate) object: Value,
}

impl Files {
    /// Reads everything, or says all that is wrong with it.
    pub(crate) fn read(&self) -> Result<Vec<Manifest>, Failure> {
        let stdin = self.files.iter().filter(|file| file.as_os_str() == "-").count();
        if stdin > 1 {
            return Err(Failure::usage("standard input (`-`) can be read only once"));
        }
        let mut reading = Reading::default();
        for file in &self.files {
            for file in self.expand(file)? {
                reading.file(&file)?;
            }
        }
        if !reading.problems.is_empty() {
            return Err(Failure::invalid(reading.problems).hint("nothing was sent"));
        }
        if reading.manifests.is_empty() {
            return Err(Failure::usage("there is nothing in the files"));
        }
        Ok(reading.manifests)
    }

    fn expand(&self, file: &Path) -> Result<Vec<PathBuf>, Failure> {
        let name = file.to_string_lossy();
        if name.starts_with("http://") || name.starts_with("https://") {
            return Err(Failure::usage(format!("{name} is an address: only files are read"))
                .hint("fetch it first and pipe it in with `-f -`"));
        }
        if file.as_os_str() == "-" || !file.is_dir() {
            return Ok(vec![file.to_owned()]);
        }
        let mut found = Vec::new();
        collect(file, if self.recursive { DEEPEST } else { 0 }, &mut found)
            .map_err(|error| Failure::other(format!("looking into {name}"), &error))?;
        if found.is_empty() {
            output::warn(&format!("{name}: no .yaml, .yml or .json file in it"));
        }
        Ok(found)
    }
}

/// Manifests of a folder, in the order of their names.
fn collect(folder: &Path, deeper: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            if deeper > 0 {
                collect(&path, deeper - 1, found)?;
            }
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json")
        {
            found.push(path);
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Reading {
    manifests: Vec<Manifest>,
    problems: Vec<String>,
}

impl Reading {
    fn file(&mut self, file: &Path) -> Result<(), Failure> {
        let is_stdin = file.as_os_str() == "-";
        let name = if is_stdin { "standard input".to_owned() } else { file.display().to_string() };
        let mut bytes = Vec::new();
        // One byte more than is accepted, so that the limit is noticed and memory is bounded.
        let limit = yaml::TEXT_BYTES_MAX as u64 + 1;
        let read = if is_stdin {
            io::stdin().lock().take(limit).read_to_end(&mut bytes)
        } else {
            File::open(file).and_then(|file| file.take(limit).read_to_end(&mut bytes))
        };
        read.map_err(|error| Failure::other(format!("reading {name}"), &error))?;
        self.text(&name, &bytes);
        Ok(())
    }

    fn text(&mut self, name: &str, bytes: &[u8]) {
        match yaml::parse(bytes) {
            Ok(documents) => {
                let lines = first_lines(bytes);
                let known = lines.len() == documents.len();
                for Document { number, value } in documents {
                    let line = lines.get(number - 1).filter(|line| known && **line > 1);
                    let from = line.map_or(String::new(), |line| format!(" (from line {line})"));
                    self.object(&format!("{name}: document {number}{from}"), value);
                }
            }
            Err(error) => self.problems.push(format!("{name}: {error}")),
        }
    }

    /// Takes an object, or those of a list, after a look at what every object must have.
    fn object(&mut self, place: &str, mut object: Value) {
        let kind = text(&object, &["kind"]).to_owned();
        if kind.ends_with("List") && object["items"].is_array() {
            let items = object.get_mut("items").map(Value::take);
            for (at, item) in
                items.as_ref().and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                self.object(&format!("{place}, items[{at}]"), item.clone());
            }
            return;
        }
        let before = self.problems.len();
        if !object.is_object() {
            self.problems.push(format!("{place}: not an object: it has no fields"));
            return;
        }
        for field in ["apiVersion", "kind"] {
            if text(&object, &[field]).is_empty() {
                self.problems.push(format!("{place}: {field} is missing"));
            }
        }
        if !object["metadata"].is_object() {
            self.problems.push(format!("{place}: metadata is missing"));
        } else if text(&object, &["metadata", "name"]).is_empty()
            && text(&object, &["metadata", "generateName"]).is_empty()
        {
            self.problems.push(format!("{place}: metadata.name is missing"));
        }
        if self.problems.len() == before {
            self.manifests.push(Manifest { place: place.to_owned(), object });
        }
    }
}

/// The first line of each document that has something in it, counted from 1.
fn first_lines(bytes: &[u8]) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut begun = false;
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let marker = line.starts_with(b"---") && line.get(3).is_none_or(u8::is_ascii_whitespace);
        let rest = if marker { &line[3..] } else { line };
        if marker || line.starts_with(b"...") {
            begun = false;
        }
        let first = rest.iter().find(|byte| !byte.is_ascii_whitespace());
        let directive = line.starts_with(b"%") && !begun;
        let says = first.is_some_and(|byte| *byte != b'#');
        let content = says && !directive && !line.starts_with(b"...");
        if content && !begun {
            begun = true;
            lines.push(number + 1);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Reading {
        let mut reading = Reading::default();
        reading.text("f.yaml", text.as_bytes());
        reading
    }

    #[test]
    fn documents_and_lists_are_taken_apart() {
        let reading = read(
            "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n\
             apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n",
        );
        let places: Vec<&str> =
            reading.manifests.iter().map(|manifest| manifest.place.as_str()).collect();
        assert_eq!(places, ["f.yaml: document 1", "f.yaml: document 2 (from line 3), items[0]"]);
        assert_eq!(reading.problems, [""; 0]);
    }

    #[test]
    fn every_problem_says_where_it_is() {
        let reading = read("{kind: Pod, metadata: {}}\n---\n[1]\n---\n{apiVersion: v1, kind: X}\n");
        assert_eq!(
            reading.problems,
            [
                "f.yaml: document 1: apiVersion is missing",
                "f.yaml: document 1: metadata.name is missing",
                "f.yaml: document 2 (from line 3): not an object: it has no fields",
                "f.yaml: document 3 (from line 5): metadata is missing",
            ]
        );
        let reading = read("a: [1\nb: 2\n");
        assert!(reading.problems[0].starts_with("f.yaml: document 1, line "), "{reading:?}");
    }

    #[test]
    fn documents_begin_where_they_say_something() {
        let text = b"# head\n---\n# only a comment\n---\n\na: 1\nb: |\n  x\n--- {c: 1}\n...\n%YAML 1.1\n---\nd: 1\n";
        assert_eq!(first_lines(text), [6, 9, 13]);
        assert_eq!(first_lines(b"{\n}\n"), [1]);
        assert_eq!(first_lines(b""), [0_usize; 0]);
        assert_eq!(first_lines(b"---x: 1\n"), [1]);
    }

    #[test]
    fn folders_are_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("sub");
        fs::create_dir(&deep).unwrap();
        for name in ["b.yml", "a.yaml", "notes.txt", "sub/c.json"] {
            let text = format!("{{apiVersion: v1, kind: Pod, metadata: {{name: {name:?}}}}}");
            fs::write(folder.path().join(name), text).unwrap();
        }
        let names = |recursive| {
            let files = Files { files: vec![folder.path().to_owned()], recursive };
            let manifests = files.read().unwrap();
            let name =
                |manifest: &Manifest| text(&manifest.object, &["metadata", "name"]).to_owned();
            manifests.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(names(false), ["a.yaml", "b.yml"]);
        assert_eq!(names(true), ["a.yaml", "b.yml", "sub/c.json"]);
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let missing = Files { files: vec!["/nowhere/job.yaml".into()], recursive: false };
        assert!(missing.read().unwrap_err().to_string().contains("reading /nowhere/job.yaml"));
        let address = Files { files: vec!["https://example.org/x".into()], recursive: false };
        assert!(address.read().unwrap_err().to_string().contains("only files are read"));
    }
}
