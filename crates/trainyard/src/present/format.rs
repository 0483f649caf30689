//! What `-o` may say.

use std::str::FromStr;

use serde_json::{Value, json};

use super::columns::Columns;
use super::custom::Custom;
use super::harmless::harmless_json;
use super::template::Template;
use super::{at, text};
use crate::failure::Failure;
use crate::yaml;

/// How objects are printed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Format {
    /// The table with its less important columns.
    Wide,
    Yaml,
    Json,
    /// `kind/name`.
    Name,
    JsonPath(Template),
    Custom(Custom),
}

const FORMATS: &str = "wide, yaml, json, name, jsonpath=TEMPLATE or custom-columns=NAME:PATH,…";

impl FromStr for Format {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match (name, value) {
            ("wide", "") => Ok(Self::Wide),
            ("yaml", "") => Ok(Self::Yaml),
            ("json", "") => Ok(Self::Json),
            ("name", "") => Ok(Self::Name),
            ("jsonpath" | "custom-columns", "") => {
                Err(format!("{name} needs a value: write {name}=…"))
            }
            ("jsonpath", template) => Template::parse(template)
                .map(Self::JsonPath)
                .map_err(|error| format!("{template:?} is no template: {error}")),
            ("custom-columns", columns) => Custom::parse(columns).map(Self::Custom),
            _ => Err(format!("write one of {FORMATS}")),
        }
    }
}

impl Format {
    /// One object, or several as a list.
    pub(crate) fn print(&self, objects: &[Value], single: bool) -> Result<String, Failure> {
        self.print_with(objects, single, true, &mut Columns::default())
    }

    /// The same, for output that comes bit by bit.
    pub(crate) fn print_with(
        &self,
        objects: &[Value],
        single: bool,
        headers: bool,
        layout: &mut Columns,
    ) -> Result<String, Failure> {
        match self {
            Self::Name | Self::Wide => Ok(objects.iter().map(|one| name(one) + "\n").collect()),
            Self::Custom(custom) => Ok(custom.print(objects, headers, layout)),
            Self::Yaml => Ok(yaml::to_string([&whole(objects, single)])),
            Self::Json => Ok(pretty(&whole(objects, single))),
            Self::JsonPath(template) => template
                .fill(&whole(objects, single))
                .map_err(|error| Failure::usage(format!("the path does not fit: {error}"))),
        }
    }
}

/// What is printed: the object, or a list of all.
fn whole(objects: &[Value], single: bool) -> Value {
    match objects {
        [one] if single => one.clone(),
        several => json!({
            "apiVersion": "v1", "kind": "List",
            "items": several, "metadata": {"resourceVersion": ""},
        }),
    }
}

/// JSON with kubectl's indentation.
fn pretty(value: &Value) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut writer = serde_json::Serializer::with_formatter(&mut out, formatter);
    // Values in memory can always be written to memory.
    let _ = serde::Serialize::serialize(value, &mut writer);
    out.push(b'\n');
    harmless_json(&String::from_utf8(out).unwrap_or_default())
}

/// `tfjob.kubeflow.org/mnist`.
pub(crate) fn name(object: &Value) -> String {
    let kind = text(object, &["kind"]).to_lowercase();
    let group = text(object, &["apiVersion"]).split_once('/').map(|(group, _)| group);
    let name = text(object, &["metadata", "name"]);
    match group {
        Some(group) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

/// Removes what the server notes about who wrote which field.
pub(crate) fn drop_managed_fields(object: &mut Value) {
    if at(object, &["metadata", "managedFields"]).is_array()
        && let Some(metadata) = object["metadata"].as_object_mut()
    {
        metadata.remove("managedFields");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read() {
        assert_eq!("wide".parse(), Ok(Format::Wide));
        assert!(matches!("jsonpath={.a}".parse(), Ok(Format::JsonPath(_))));
        for (word, said) in [
            ("xml", "write one of wide, yaml"),
            ("jsonpath", "needs a value"),
            ("jsonpath={.a", "is no template"),
            ("custom-columns=A", "NAME:PATH"),
        ] {
            let problem = word.parse::<Format>().unwrap_err();
            assert!(problem.contains(said), "{problem}");
        }
    }

    #[test]
    fn one_object_stands_alone_and_several_in_a_list() {
        let one =
            json!({"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "m"}});
        assert_eq!(
            Format::Name.print(std::slice::from_ref(&one), true).unwrap(),
            "tfjob.kubeflow.org/m\n"
        );
        let text = Format::Json.print(std::slice::from_ref(&one), true).unwrap();
        assert!(text.starts_with("{\n    \"apiVersion\": \"kubeflow.org/v1\",\n"), "{text}");
        let text = Format::Yaml.print(std::slice::from_ref(&one), false).unwrap();
        assert!(
            text.starts_with("apiVersion: v1\nitems:\n- apiVersion: kubeflow.org/v1\n"),
            "{text}"
        );
        let template: Format = "jsonpath={.items[*].metadata.name}".parse().unwrap();
        assert_eq!(template.print(&[one.clone(), one], false).unwrap(), "m m");
    }
}
