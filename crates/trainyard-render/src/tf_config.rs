//! `TF_CONFIG` as the template gets it.
//!
//! Owns the bytes of the block: every line is indented by 16 spaces and ends in a newline, so that
//! it stands at column 0 under `value: >`.

use crate::crew::Crew;

/// The part of the block that all machines share.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    /// The lines of the roles, as most machines see them.
    common: String,
    /// As the evaluator sees them. It is no member of the training cluster, so that only its own
    /// block names it.
    evaluator: String,
}

const INDENT: &str = "                ";

impl Cluster {
    pub(crate) fn new(crew: &Crew, port: u16) -> Self {
        Self::with_hosts(crew, port, usize::MAX)
    }

    /// The same with one host per role: what it means to YAML is the same.
    pub(crate) fn stand_in(crew: &Crew, port: u16) -> Self {
        Self::with_hosts(crew, port, 1)
    }

    fn with_hosts(crew: &Crew, port: u16, most: usize) -> Self {
        let line = |role: &str, hosts: &[String]| {
            let hosts: Vec<_> =
                hosts.iter().take(most).map(|host| format!("\"{host}:{port}\"")).collect();
            format!("{INDENT}    \"{role}\": [{}]", hosts.join(","))
        };
        let roles = |evaluator: &[String]| {
            let roles = [
                ("chief", crew.chief.as_slice()),
                ("evaluator", evaluator),
                ("ps", crew.ps.as_slice()),
                ("worker", crew.workers.as_slice()),
            ];
            let lines: Vec<_> = roles
                .into_iter()
                .filter(|(_, hosts)| !hosts.is_empty())
                .map(|(role, hosts)| line(role, hosts))
                .collect();
            lines.join(",\n")
        };
        Self { common: roles(&[]), evaluator: roles(crew.evaluator.as_slice()) }
    }

    /// The lines of the roles for a machine of this role.
    pub(crate) fn roles(&self, role: &str) -> &str {
        if role == "evaluator" { &self.evaluator } else { &self.common }
    }

    /// The whole block for one machine.
    pub(crate) fn block(&self, role: &str, index: usize) -> String {
        let roles = self.roles(role);
        let mut block = String::with_capacity(roles.len() + 256);
        for part in [
            INDENT,
            "{\n",
            INDENT,
            "  \"cluster\": {\n",
            roles,
            "\n",
            INDENT,
            "  },\n",
            INDENT,
            "  \"task\": {\n",
            INDENT,
            "    \"index\": ",
            &index.to_string(),
            ",\n",
            INDENT,
            "    \"type\": \"",
            role,
            "\"\n",
            INDENT,
            "  }\n",
            INDENT,
            "}\n",
        ] {
            block.push_str(part);
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crew() -> Crew {
        Crew {
            ps: vec!["h10".to_owned()],
            workers: vec!["h100".to_owned(), "h14".to_owned()],
            ..Crew::default()
        }
    }

    #[test]
    fn every_line_is_indented_and_ends() {
        let expected = r#"                {
                  "cluster": {
                    "ps": ["h10:2222"],
                    "worker": ["h100:2222","h14:2222"]
                  },
                  "task": {
                    "index": 1,
                    "type": "worker"
                  }
                }
"#;
        assert_eq!(Cluster::new(&crew(), 2222).block("worker", 1), expected);
    }

    #[test]
    fn chief_comes_first_and_the_evaluator_sees_itself_only() {
        let crew = Crew { chief: Some("c".to_owned()), evaluator: Some("e".to_owned()), ..crew() };
        let cluster = Cluster::new(&crew, 80);
        let worker = cluster.block("worker", 0);
        assert!(worker.contains("    \"chief\": [\"c:80\"],\n                    \"ps\""));
        assert!(!worker.contains("evaluator"));
        assert!(cluster.block("evaluator", 0).contains("\"evaluator\": [\"e:80\"],"));
        for block in [worker, cluster.block("evaluator", 0)] {
            let value: serde_json::Value = serde_json::from_str(&block).unwrap();
            assert_eq!(value["cluster"]["worker"][1], "h14:80");
        }
    }
}
