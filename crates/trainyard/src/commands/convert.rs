//! `trainyard convert`: old TFJob manifests become `kubeflow.org/v1`.
//!
//! Owns files, documents and where a problem is; how a job is rewritten is `trainyard-api`'s.

mod remarks;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::Value;
use trainyard_api::{
    convert::{ConvertError, convert},
    names::{API_VERSION, GROUP},
};

use crate::{
    failure::Failure,
    output,
    yaml::{self, Document},
};

/// Rewrite TFJob manifests of v1alpha1, v1alpha2, v1beta1 and v1beta2 as kubeflow.org/v1
///
/// Reads YAML or JSON with any number of documents and prints them all as YAML. Objects of other
/// kinds keep their values; TFJobs inside a List are rewritten too. Comments and the order of
/// fields are not kept. When anything is wrong nothing is printed and the exit code is 3.
#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// Files to read; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Convert {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut stdin = 0;
        for file in &self.files {
            stdin += usize::from(file.as_os_str() == "-");
        }
        if stdin > 1 {
            return Err(Failure::usage("standard input (`-`) can be read only once"));
        }
        let mut converted = Converted::default();
        for file in &self.files {
            converted.read(file)?;
        }
        converted.warnings.iter().for_each(|warning| output::warn(warning));
        if converted.problems.is_empty() {
            output::print(&yaml::to_string(&converted.objects))
        } else {
            Err(Failure::invalid(converted.problems).hint("nothing was printed"))
        }
    }
}

/// What has been read so far.
#[derive(Debug, Default)]
struct Converted {
    objects: Vec<Value>,
    warnings: Vec<String>,
    problems: Vec<String>,
}

impl Converted {
    fn read(&mut self, file: &Path) -> Result<(), Failure> {
        let name = if file.as_os_str() == "-" {
            "standard input".into()
        } else {
            file.display().to_string()
        };
        let text =
            contents(file).map_err(|error| Failure::other(format!("reading {name}"), &error))?;
        match yaml::parse(&text) {
            Ok(documents) if documents.is_empty() => {
                self.warnings.push(format!("{name}: there is nothing in it"));
            }
            Ok(documents) => {
                for Document { number, value } in documents {
                    let value = self.document(&format!("{name}: document {number}"), value);
                    self.objects.push(value);
                }
            }
            Err(error) => self.problems.push(format!("{name}: {error}")),
        }
        Ok(())
    }

    /// Converts a job, or the jobs of a list; anything else stays what it is.
    fn document(&mut self, place: &str, mut value: Value) -> Value {
        if !is_list(&value) {
            return self.object(place, value);
        }
        // Here rather than as a whole, so that every problem is found and says which item has it.
        if let Some(Value::Array(items)) = value.get_mut("items") {
            for (at, item) in items.iter_mut().enumerate() {
                *item = self.object(&format!("{place}, items[{at}]"), item.take());
            }
        }
        if value["kind"] == "TFJobList" {
            value["apiVersion"] = API_VERSION.into();
        }
        value
    }

    fn object(&mut self, place: &str, value: Value) -> Value {
        match convert(value.clone()) {
            Ok(converted) => {
                let remarks = remarks::about(&value, &converted);
                self.warnings.extend(remarks.map(|remark| format!("{place}: {remark}")));
                converted
            }
            Err(ConvertError::Invalid(violations)) => {
                self.problems.extend(violations.iter().map(|one| format!("{place}: {one}")));
                value
            }
            Err(error) => {
                self.problems.push(format!("{place}: {error}"));
                value
            }
        }
    }
}

/// Whether kubectl would take the object for a list of objects that may be jobs.
fn is_list(value: &Value) -> bool {
    let group = value["apiVersion"].as_str().and_then(|version| version.split_once('/'));
    (value["kind"] == "List" && value["apiVersion"] == "v1")
        || (value["kind"] == "TFJobList" && group.is_some_and(|(group, _)| group == GROUP))
}

fn contents(file: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    // One byte more than is accepted, so that the limit is noticed and memory is bounded.
    let limit = yaml::TEXT_BYTES_MAX as u64 + 1;
    if file.as_os_str() == "-" {
        io::stdin().lock().take(limit).read_to_end(&mut text)?;
    } else {
        File::open(file)?.take(limit).read_to_end(&mut text)?;
    }
    Ok(text)
}
