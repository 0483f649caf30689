//! The rules for keys and values of labels, and for the DNS names inside keys.
//!
//! Each answers with what is wrong, in the API server's words, and with nothing when all is well.
//! Must not know where the text stands.

/// How long the name part of a key and a value may be.
pub const LABEL_MOST: usize = 63;
/// How long a DNS subdomain may be.
pub const SUBDOMAIN_MOST: usize = 253;

const KEY_PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const KEY_EXAMPLES: &str = "'MyName',  or 'my.name',  or '123-abc', ";

/// What is wrong with the key of a label, an annotation or a finalizer (`example.com/name`).
#[must_use]
pub fn label_key(key: &str) -> Vec<String> {
    let rule =
        format!("{KEY_RULE} (e.g. {KEY_EXAMPLES}regex used for validation is '{KEY_PATTERN}')");
    let mut faults = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
        (name, None, _) => name,
        (prefix, Some(name), None) => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                let wrong = subdomain(prefix).into_iter();
                faults.extend(wrong.map(|fault| format!("prefix part {fault}")));
            }
            name
        }
        _ => {
            let optional =
                "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {rule} {optional}")];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MOST {
        faults.push(format!("name part must be no more than {LABEL_MOST} bytes"));
    }
    if !is_name(name) {
        faults.push(format!("name part {rule}"));
    }
    faults
}

/// What is wrong with the value of a label.
#[must_use]
pub fn label_value(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > LABEL_MOST {
        faults.push(format!("must be no more than {LABEL_MOST} bytes"));
    }
    if !value.is_empty() && !is_name(value) {
        faults.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({KEY_PATTERN})?')"
        ));
    }
    faults
}

/// What is wrong with a DNS subdomain (`example.com`), the form of most names.
#[must_use]
pub fn subdomain(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > SUBDOMAIN_MOST {
        faults.push(format!("must be no more than {SUBDOMAIN_MOST} bytes"));
    }
    if !text.split('.').all(is_dns_label) {
        faults.push("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')".to_owned());
    }
    faults
}

/// Letters and digits at both ends, and between them also `-`, `_` and `.`.
fn is_name(text: &str) -> bool {
    bounded(text, |byte| byte.is_ascii_alphanumeric(), |byte| matches!(byte, b'-' | b'_' | b'.'))
}

/// Lower-case letters and digits at both ends, and between them also `-`.
fn is_dns_label(text: &str) -> bool {
    let end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bounded(text, end, |byte| byte == b'-')
}

fn bounded(text: &str, at_ends: impl Fn(u8) -> bool, between: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    at_ends(*first) && at_ends(*last) && bytes.iter().all(|byte| at_ends(*byte) || between(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        for key in ["a", "a.b_c-d", "example.com/A", "1", &"x".repeat(63)] {
            assert_eq!(label_key(key), Vec::<String>::new(), "{key}");
        }
        let rule = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        assert_eq!(
            label_key(""),
            ["name part must be non-empty".to_owned(), format!("name part {rule}")]
        );
        assert_eq!(label_key("-a"), [format!("name part {rule}")]);
        assert_eq!(label_key("/a"), ["prefix part must be non-empty"]);
        assert_eq!(label_key(&"x".repeat(64)), ["name part must be no more than 63 bytes"]);
        assert_eq!(
            label_key("a/b/c"),
            [format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )]
        );
        let [wrong] = label_key("UP.com/a").try_into().unwrap();
        assert!(wrong.starts_with("prefix part a lowercase RFC 1123 subdomain must"), "{wrong}");
    }

    #[test]
    fn values() {
        for value in ["", "a", "a.b_c-D", &"x".repeat(63)] {
            assert_eq!(label_value(value), Vec::<String>::new(), "{value}");
        }
        assert_eq!(label_value(&"x".repeat(64)), ["must be no more than 63 bytes"]);
        for value in ["-", "a-", "a b", "é", "a/b"] {
            assert_eq!(label_value(value).len(), 1, "{value}");
        }
    }

    #[test]
    fn subdomains() {
        for text in ["a", "a-1.b", "0"] {
            assert!(subdomain(text).is_empty(), "{text}");
        }
        for text in ["", ".", "a..b", "A", "a-", "-a", "a_b"] {
            assert_eq!(subdomain(text).len(), 1, "{text}");
        }
        assert_eq!(subdomain(&"a".repeat(254)), ["must be no more than 253 bytes"]);
    }
}
