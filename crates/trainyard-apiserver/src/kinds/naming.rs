//! What names, keys and labels may look like, with the real server's words against those that do not.
//!
//! Pure. Must not know where a name stands.

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_WORDS: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_WORDS: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const SERVICE: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const SERVICE_WORDS: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const VALUE_WORDS: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const CONFIG_KEY_WORDS: &str =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";

/// The longest label, and the longest value of a label.
pub(crate) const LONGEST_LABEL: usize = 63;
const LONGEST_SUBDOMAIN: usize = 253;

/// Words about a pattern, with examples.
pub(crate) fn pattern_words(words: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{words} (regex used for validation is '{pattern}')");
    }
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{words} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

/// Words about a text that is too long.
pub(crate) fn too_long(most: usize) -> String {
    format!("must be no more than {most} characters")
}

/// The beginning of a name may end with a dash: what is added makes it right.
pub(crate) fn masked(name: &str, is_prefix: bool) -> String {
    match name.strip_suffix('-') {
        Some(rest) if is_prefix && !rest.is_empty() => {
            let mut masked = rest.to_owned();
            masked.pop();
            masked.push('a');
            masked
        }
        _ => name.to_owned(),
    }
}

fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends =
        bytes.first().is_some_and(|b| is_lower(*b)) && bytes.last().is_some_and(|b| is_lower(*b));
    ends && bytes.iter().all(|b| is_lower(*b) || *b == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// Letters and digits at both ends, `-_.` between.
fn is_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric);
    ends && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

/// What is wrong with a DNS label.
pub(crate) fn label(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > LONGEST_LABEL {
        faults.push(too_long(LONGEST_LABEL));
    }
    if !is_label(text) {
        faults.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            pattern_words(LABEL_WORDS, LABEL, &["my-name", "123-abc"])
        });
    }
    faults
}

/// What is wrong with a DNS subdomain.
pub(crate) fn subdomain(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > LONGEST_SUBDOMAIN {
        faults.push(too_long(LONGEST_SUBDOMAIN));
    }
    if !is_subdomain(text) {
        faults.push(pattern_words(SUBDOMAIN_WORDS, SUBDOMAIN, &["example.com"]));
    }
    faults
}

/// What is wrong with the name of a service.
pub(crate) fn service(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > LONGEST_LABEL {
        faults.push(too_long(LONGEST_LABEL));
    }
    if !is_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        faults.push(pattern_words(SERVICE_WORDS, SERVICE, &["my-name", "abc-123"]));
    }
    faults
}

/// What is wrong with a name that need only fit into a path.
pub(crate) fn path_segment(text: &str, is_prefix: bool) -> Vec<String> {
    if !is_prefix && matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|mark| text.contains(mark))
        .map(|mark| format!("may not contain '{mark}'"))
        .collect()
}

/// What is wrong with a qualified name: the key of a label, a finalizer.
pub(crate) fn qualified(text: &str) -> Vec<String> {
    let words = || pattern_words(KEY_WORDS, KEY, &["MyName", "my.name", "123-abc"]);
    let mut faults = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                faults.extend(
                    subdomain(prefix).into_iter().map(|fault| format!("prefix part {fault}")),
                );
            }
            *name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                words()
            )];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > LONGEST_LABEL {
        faults.push(format!("name part {}", too_long(LONGEST_LABEL)));
    }
    if !is_key(name) {
        faults.push(format!("name part {}", words()));
    }
    faults
}

/// What is wrong with the value of a label.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > LONGEST_LABEL {
        faults.push(too_long(LONGEST_LABEL));
    }
    if !text.is_empty() && !is_key(text) {
        faults.push(pattern_words(VALUE_WORDS, VALUE, &["MyValue", "my_value", "12345"]));
    }
    faults
}

/// What is wrong with a key of a config map or secret.
pub(crate) fn config_key(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > LONGEST_SUBDOMAIN {
        faults.push(too_long(LONGEST_SUBDOMAIN));
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
        let examples = ["key.name", "KEY_NAME", "key-name"];
        faults.push(pattern_words(CONFIG_KEY_WORDS, "[-._a-zA-Z0-9]+", &examples));
    }
    match text {
        "." | ".." => faults.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => faults.push("must not start with '..'".to_owned()),
        _ => {}
    }
    faults
}

/// What is wrong with the name of an environment variable.
pub(crate) fn variable(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.is_empty() {
        faults.push("environment variable name must be non-empty".to_owned());
    }
    if !text.chars().all(|c| (' '..='~').contains(&c) && c != '=') {
        faults.push("a valid environment variable name must consist only of printable ASCII characters other than '='".to_owned());
    }
    faults
}

/// What is wrong with the number of a port.
pub(crate) fn port(number: i64) -> Vec<String> {
    in_range(number, 1, 65_535)
}

/// What is wrong with a number that has bounds.
pub(crate) fn in_range(number: i64, least: i64, most: i64) -> Vec<String> {
    if (least..=most).contains(&number) {
        return Vec::new();
    }
    vec![format!("must be between {least} and {most}, inclusive")]
}

/// What is wrong with the name of a port.
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > 15 {
        faults.push(too_long(15));
    }
    if text.is_empty() || !text.bytes().all(|b| is_lower(b) || b == b'-') {
        faults.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    }
    if !text.bytes().any(|b| b.is_ascii_lowercase()) {
        faults.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        faults.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        faults.push("must not begin or end with a hyphen".to_owned());
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_services_begin_with_a_letter() {
        assert!(service("a-1").is_empty());
        assert_eq!(
            service("1a"),
            [
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
    }

    #[test]
    fn subdomains_and_labels() {
        assert!(subdomain("a.b-c.1").is_empty());
        assert_eq!(subdomain("A").len(), 1);
        assert_eq!(subdomain(&"a".repeat(254)), [too_long(253)]);
        assert_eq!(label("a.b"), ["must not contain dots"]);
        assert!(label("").len() == 1 && label("-a").len() == 1);
    }

    #[test]
    fn keys_have_at_most_one_prefix() {
        assert!(qualified("example.com/my.Name").is_empty());
        assert_eq!(qualified("/x"), ["prefix part must be non-empty"]);
        assert_eq!(qualified("a/").len(), 2);
        assert!(
            qualified("a/b/c").first().is_some_and(|fault| fault.starts_with("a valid label key"))
        );
        assert!(label_value("").is_empty() && !label_value("-").is_empty());
    }

    #[test]
    fn a_prefix_may_end_with_a_dash() {
        assert_eq!(masked("my-", true), "ma");
        assert_eq!(masked("-", true), "-");
        assert_eq!(masked("my-", false), "my-");
    }

    #[test]
    fn ports_have_short_names() {
        assert!(port_name("http").is_empty());
        assert_eq!(port_name("80"), ["must contain at least one letter (a-z)"]);
        assert_eq!(port(0), ["must be between 1 and 65535, inclusive"]);
    }
}
