//! One template, rendered once per machine.
//!
//! Owns the order of the parts, what stands between them and where each part begins.

use std::{ops::Range, sync::Arc};

use crate::{
    crew::Crew,
    template::{Error, Missing, Template},
    tf_config::Cluster,
};

/// Where a machine listens for the others unless told otherwise.
pub const PORT: u16 = 2222;
/// What stands between two parts.
const BETWEEN: &str = "\n---\n";
/// The text of all parts at most.
const TEXT_BYTES_MAX: usize = 2 << 30;

/// A rendered text and its parts, one per machine.
#[derive(Debug)]
pub struct Rendered {
    /// Everything, as it is to be written.
    pub text: String,
    /// Where the parts stand in it.
    pub parts: Vec<Part>,
    pub(crate) cluster: Cluster,
    pub(crate) stand_in: Cluster,
}

/// What one machine gets.
#[derive(Debug, Clone)]
pub struct Part {
    /// The bytes of the whole text.
    pub bytes: Range<usize>,
    /// The line it starts in, counted from 1.
    pub line: usize,
    pub(crate) role: &'static str,
}

impl Rendered {
    /// The text of a part.
    #[must_use]
    pub fn text_of(&self, part: &Part) -> &str {
        self.text.get(part.bytes.clone()).unwrap_or_default()
    }
}

/// Renders a template for every machine of a crew. White space around the template does not count.
pub fn render(text: &str, missing: Missing, crew: &Crew, port: u16) -> Result<Rendered, Error> {
    let (trimmed, before) = trim(text);
    let shift = |error: Error| shifted(error, before);
    let template = Template::parse(trimmed, missing).map_err(shift)?;
    let cluster = Cluster::new(crew, port);
    let mut out = String::new();
    let mut parts = Vec::with_capacity(crew.len());
    let mut line = 1;
    for (role, index, host) in crew.members() {
        if !parts.is_empty() {
            out.push_str(BETWEEN);
            line += 2;
        }
        let variables = [
            ("type", Arc::from(role)),
            ("index", Arc::from(index.to_string())),
            ("host", Arc::from(host)),
            ("TF_CONFIG", Arc::from(cluster.block(role, index))),
        ];
        let start = out.len();
        template.render(&variables, &mut out).map_err(shift)?;
        let bytes = start..out.len();
        if parts.is_empty() {
            // All parts are about as long as the first.
            let all = bytes.len().saturating_add(64).saturating_mul(crew.len());
            out.reserve(all.min(TEXT_BYTES_MAX));
        }
        let lines = out[bytes.clone()].matches('\n').count();
        parts.push(Part { bytes, line, role });
        line += lines;
    }
    Ok(Rendered { text: out, parts, stand_in: Cluster::stand_in(crew, port), cluster })
}

/// The name of the output for the name of a template.
#[must_use]
pub fn output_name(template: &str) -> String {
    format!("{}_tfjob.yaml", template.strip_suffix(".yaml").unwrap_or(template))
}

/// The text without the white space around it, and the white space before it.
fn trim(text: &str) -> (&str, &str) {
    let start = text.len() - text.trim_start().len();
    (text.trim(), &text[..start])
}

/// The same mistake in the text as it was given.
fn shifted(mut error: Error, before: &str) -> Error {
    if error.line == 1 {
        let last = before.rsplit('\n').next().unwrap_or_default();
        error.column += last.chars().count();
    }
    error.line += before.matches('\n').count();
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crew() -> Crew {
        Crew {
            ps: vec!["a".to_owned()],
            workers: vec!["b".to_owned(), "c".to_owned()],
            ..Crew::default()
        }
    }

    #[test]
    fn parts_are_joined_without_a_newline_at_the_end() {
        let text = " \n{{.type}}-{{.index}}\n@{{.host}}\n\n";
        let rendered = render(text, Missing::Refused, &crew(), PORT).unwrap();
        assert_eq!(rendered.text, "ps-0\n@a\n---\nworker-0\n@b\n---\nworker-1\n@c");
        let lines: Vec<_> = rendered.parts.iter().map(|part| part.line).collect();
        assert_eq!(lines, [1, 4, 7]);
        assert_eq!(rendered.text_of(&rendered.parts[2]), "worker-1\n@c");
    }

    #[test]
    fn mistakes_are_placed_in_the_text_as_it_was_given() {
        let said = |text| render(text, Missing::Refused, &crew(), PORT).unwrap_err().to_string();
        assert_eq!(
            said("\n\n  a {{.hots}}"),
            "line 3, column 7: unknown variable .hots; there are .type, .index, .host, .TF_CONFIG"
        );
        assert!(said("\na\n{{.host").starts_with("line 3, column 8: unclosed action"));
    }

    #[test]
    fn the_output_stands_beside_the_template() {
        assert_eq!(output_name("jobs/mnist.yaml"), "jobs/mnist_tfjob.yaml");
        assert_eq!(output_name("mnist.yml"), "mnist.yml_tfjob.yaml");
    }
}
