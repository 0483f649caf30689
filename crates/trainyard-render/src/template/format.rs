//! Values as text, as Go's `fmt` package writes them.
//!
//! Owns the directives of `printf` and the default form of a value. It stands in for the
//! formatting of the `gotmpl` crate, which differs from Go in floats, maps and rarer verbs. It
//! knows the kinds of values that a template can hold: text, numbers, bytes, truth, the map of
//! variables, and nothing.

mod directive;
mod float;
mod integer;
mod quote;

use gotmpl::Value;

use self::directive::Directives;

/// Width and precision at most; more is not taken for a number.
const NUMBER_MAX: i64 = 1_000_000;

/// How one value is to be written.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a directive are independent")]
struct Form {
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    /// `%#v`: as it stands in a Go program.
    source: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

impl Form {
    /// Appends text, filled up to the width.
    fn pad(&self, out: &mut String, text: &str, zeros: bool) {
        let missing = self.width.unwrap_or(0).saturating_sub(text.chars().count());
        if self.minus {
            out.push_str(text);
            self.fill(out, missing, zeros);
        } else {
            self.fill(out, missing, zeros);
            out.push_str(text);
        }
    }

    fn fill(&self, out: &mut String, count: usize, zeros: bool) {
        let sign = if zeros && self.zero && !self.minus { '0' } else { ' ' };
        out.extend(std::iter::repeat_n(sign, count));
    }

    /// The text as far as the precision allows.
    fn cut<'a>(&self, text: &'a str) -> &'a str {
        let end = self.precision.and_then(|most| text.char_indices().nth(most));
        end.map_or(text, |(end, _)| &text[..end])
    }
}

/// `fmt.Sprintf`. Gives nothing when the text grows beyond `most` bytes.
pub(super) fn printf(format: &str, args: &[Value], most: usize) -> Option<String> {
    let mut out = String::new();
    Directives::new(format, args).write(&mut out, most)?;
    Some(out)
}

/// `fmt.Sprint`: a space stands between operands when neither is text.
pub(super) fn print(args: &[Value]) -> String {
    let mut out = String::new();
    let mut text_before = true;
    for (at, arg) in args.iter().enumerate() {
        let text = matches!(arg, Value::String(_));
        if at > 0 && !text && !text_before {
            out.push(' ');
        }
        value(&mut out, arg, 'v', Form::default());
        text_before = text;
    }
    out
}

/// `fmt.Sprintln`.
pub(super) fn println(args: &[Value]) -> String {
    let mut out = String::new();
    for (at, arg) in args.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        value(&mut out, arg, 'v', Form::default());
    }
    out.push('\n');
    out
}

/// The name of a value's type in Go.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        // Bytes of a text; nothing else is without a sign.
        Value::Uint(_) => "uint8",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Map(_) => "map[string]string",
        Value::List(_) => "[]string",
        Value::Function(_) => "func()",
        Value::Nil => "<nil>",
    }
}

/// Appends one value by one verb.
fn value(out: &mut String, value: &Value, verb: char, form: Form) {
    match (value, verb) {
        (Value::Nil, 'T' | 'v') => form.pad(out, "<nil>", true),
        (_, 'T') => form.pad(out, form.cut(type_name(value)), true),
        (Value::Bool(truth), 't' | 'v') => {
            form.pad(out, if *truth { "true" } else { "false" }, true);
        }
        (
            Value::Int(_) | Value::Uint(_),
            'v' | 'd' | 'b' | 'o' | 'O' | 'x' | 'X' | 'c' | 'q' | 'U',
        ) => {
            integer::write(out, value, verb, form);
        }
        (Value::Float(float), 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') => {
            float::write(out, *float, verb, form);
        }
        (Value::String(text), 'v' | 's' | 'q' | 'x' | 'X') => string(out, text, verb, form),
        (Value::Map(map), verb) if verb != 'p' => {
            let (open, between, close) =
                if form.source { ("map[string]string{", ", ", "}") } else { ("map[", " ", "]") };
            out.push_str(open);
            for (at, (key, item)) in map.iter().enumerate() {
                if at > 0 {
                    out.push_str(between);
                }
                self::value(out, &Value::String(key.clone()), verb, form);
                out.push(':');
                self::value(out, item, verb, form);
            }
            out.push_str(close);
        }
        _ => wrong_verb(out, value, verb, form),
    }
}

fn wrong_verb(out: &mut String, wrong: &Value, verb: char, form: Form) {
    out.push_str("%!");
    out.push(verb);
    out.push('(');
    if matches!(wrong, Value::Nil) {
        out.push_str("<nil>");
    } else {
        out.push_str(type_name(wrong));
        out.push('=');
        match wrong {
            // No template can make one of these.
            Value::List(_) | Value::Function(_) => out.push('?'),
            wrong => value(out, wrong, 'v', form),
        }
    }
    out.push(')');
}

fn string(out: &mut String, text: &str, verb: char, form: Form) {
    match verb {
        'q' => quote::write(out, form.cut(text), form),
        'v' if form.source => quote::write(out, form.cut(text), form),
        'x' => hexadecimal(out, text, false, form),
        'X' => hexadecimal(out, text, true, form),
        _ => form.pad(out, form.cut(text), true),
    }
}

/// The bytes of a text.
fn hexadecimal(out: &mut String, text: &str, capitals: bool, form: Form) {
    let most = form.precision.unwrap_or(usize::MAX);
    let prefix = if capitals { "0X" } else { "0x" };
    let mut digits = String::new();
    for (at, byte) in text.bytes().take(most).enumerate() {
        if at > 0 && form.space {
            digits.push(' ');
        }
        if form.sharp && (at == 0 || form.space) {
            digits.push_str(prefix);
        }
        let pair = if capitals { format!("{byte:02X}") } else { format!("{byte:02x}") };
        digits.push_str(&pair);
    }
    form.pad(out, &digits, true);
}
