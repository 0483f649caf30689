//! `$(NAME)` in values, commands and paths; `$$` stands for one dollar sign.
//!
//! Must not know where names get their values from.

/// Replaces every `$(NAME)` by what `lookup` says, and every `$$` by `$`.
///
/// Everything else stays as written: a dollar sign before another character, an opening without an
/// end. What is put in is not looked at again.
pub(crate) fn expand(input: &str, mut lookup: impl FnMut(&str) -> String) -> String {
    let mut output = String::with_capacity(input.len());
    let mut rest = input;
    // Behind the last one nothing is a reference; not searched for again and again.
    let last_end = input.rfind(')').unwrap_or(0);
    while let Some(dollar) = rest.find('$') {
        output.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        let closed = input.len() - after.len() <= last_end;
        let opened = if closed { after.strip_prefix('(') } else { None };
        let reference = opened.and_then(|inner| inner.split_once(')'));
        if let Some((name, beyond)) = reference {
            output.push_str(&lookup(name));
            rest = beyond;
        } else if let Some(beyond) = after.strip_prefix('$') {
            output.push('$');
            rest = beyond;
        } else {
            output.push('$');
            rest = after;
        }
    }
    output.push_str(rest);
    output
}

/// As written: what a reference to an unknown name stays.
pub(crate) fn reference(name: &str) -> String {
    format!("$({name})")
}

#[cfg(test)]
mod tests {
    use super::{expand, reference};

    #[test]
    fn references_are_replaced_as_kubernetes_does() {
        let lookup = |name: &str| match name {
            "A" => "1".to_owned(),
            "EMPTY" => String::new(),
            "LOOP" => "$(A)".to_owned(),
            "a b" => "spaced".to_owned(),
            other => reference(other),
        };
        for (input, output) in [
            ("", ""),
            ("plain", "plain"),
            ("$(A)", "1"),
            ("x$(A)y$(A)", "x1y1"),
            ("$(EMPTY)|", "|"),
            ("$(LOOP)", "$(A)"),
            ("$(NO)", "$(NO)"),
            ("$()", "$()"),
            ("$(a b)", "spaced"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$$$$(A)", "$$(A)"),
            ("$A ${A} $", "$A ${A} $"),
            ("$(A", "$(A"),
            ("$(A$(A)", "$(A$(A)"),
            ("$$", "$"),
            ("$ä$(A)", "$ä1"),
            ("a$(", "a$("),
            ("$(A)$", "1$"),
            ("((A))", "((A))"),
            ("$((A))", "$((A))"),
        ] {
            assert_eq!(expand(input, lookup), output, "{input}");
        }
    }

    #[test]
    fn a_flood_of_openings_takes_linear_time() {
        let hostile = "$(".repeat(200_000);
        assert_eq!(expand(&hostile, reference), hostile);
    }
}
