//! The directives of a format: flags, width, precision, argument index and verb.

use gotmpl::Value;

use super::{Form, NUMBER_MAX, type_name, value};

/// A format with what has been read of it and of its arguments.
pub(super) struct Directives<'a> {
    format: &'a str,
    at: usize,
    args: &'a [Value],
    arg: usize,
    /// Whether an argument was named by its index, so that unused ones are no mistake.
    reordered: bool,
    good_index: bool,
}

impl<'a> Directives<'a> {
    pub(super) const fn new(format: &'a str, args: &'a [Value]) -> Self {
        Self { format, at: 0, args, arg: 0, reordered: false, good_index: true }
    }

    pub(super) fn write(mut self, out: &mut String, most: usize) -> Option<()> {
        while let Some(percent) = self.rest().find('%') {
            out.push_str(&self.rest()[..percent]);
            self.at += percent + 1;
            self.directive(out);
            if out.len() > most {
                return None;
            }
        }
        out.push_str(self.rest());
        if !self.reordered && self.arg < self.args.len() {
            self.extra(out);
        }
        (out.len() <= most).then_some(())
    }

    fn rest(&self) -> &'a str {
        self.format.get(self.at..).unwrap_or_default()
    }

    fn next_is(&self, sign: char) -> bool {
        self.rest().starts_with(sign)
    }

    fn directive(&mut self, out: &mut String) {
        self.good_index = true;
        let mut form = self.flags();
        let mut after_index = self.index();
        if self.next_is('*') {
            self.at += 1;
            self.width_from_argument(out, &mut form);
            after_index = false;
        } else {
            form.width = self.number();
            self.good_index &= !(after_index && form.width.is_some());
        }
        // A point at the very end is a verb.
        if self.next_is('.') && self.rest().len() > 1 {
            self.at += 1;
            self.good_index &= !after_index;
            after_index = self.index();
            if self.next_is('*') {
                self.at += 1;
                self.precision_from_argument(out, &mut form);
                after_index = false;
            } else {
                form.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !after_index {
            self.index();
        }
        let Some(verb) = self.rest().chars().next() else {
            out.push_str("%!(NOVERB)");
            return;
        };
        self.at += verb.len_utf8();
        self.verb(out, verb, form);
    }

    fn verb(&mut self, out: &mut String, verb: char, mut form: Form) {
        if verb == '%' {
            out.push('%');
        } else if !self.good_index {
            out.extend(["%!", verb.encode_utf8(&mut [0; 4]), "(BADINDEX)"]);
        } else if let Some(arg) = self.args.get(self.arg) {
            if matches!(verb, 'v' | 'w') {
                form.source = form.sharp;
                form.sharp = false;
                form.plus = false;
            }
            value(out, arg, verb, form);
            self.arg += 1;
        } else {
            out.extend(["%!", verb.encode_utf8(&mut [0; 4]), "(MISSING)"]);
        }
    }

    fn flags(&mut self) -> Form {
        let mut form = Form::default();
        for flag in self.rest().chars() {
            match flag {
                '#' => form.sharp = true,
                '0' => form.zero = true,
                '+' => form.plus = true,
                '-' => form.minus = true,
                ' ' => form.space = true,
                _ => break,
            }
            self.at += 1;
        }
        form
    }

    /// Digits, if there are any. Far too many of them use up the format.
    fn number(&mut self) -> Option<usize> {
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
        let number = decimal(&rest[..digits]);
        self.at += if digits > 0 && number.is_none() { rest.len() } else { digits };
        number
    }

    /// `[n]`: the argument to go on with. Says whether there was one.
    fn index(&mut self) -> bool {
        let Some(inner) = self.rest().strip_prefix('[') else { return false };
        self.reordered = true;
        let closed = if self.rest().len() < 3 { None } else { inner.find(']') };
        let Some(end) = closed else {
            self.good_index = false;
            self.at += 1;
            return false;
        };
        self.at += end + 2;
        let number = decimal(&inner[..end]);
        match number.and_then(|number| number.checked_sub(1)) {
            Some(index) if index < self.args.len() => self.arg = index,
            _ => self.good_index = false,
        }
        number.is_some()
    }

    fn width_from_argument(&mut self, out: &mut String, form: &mut Form) {
        let width = self.argument();
        form.width = width.map(|width| usize::try_from(width.unsigned_abs()).unwrap_or(0));
        if width.is_none() {
            out.push_str("%!(BADWIDTH)");
        }
        if width.is_some_and(|width| width < 0) {
            form.minus = true;
            form.zero = false;
        }
    }

    fn precision_from_argument(&mut self, out: &mut String, form: &mut Form) {
        form.precision = self.argument().and_then(|precision| usize::try_from(precision).ok());
        if form.precision.is_none() {
            out.push_str("%!(BADPREC)");
        }
    }

    /// The next argument as a width or precision.
    fn argument(&mut self) -> Option<i64> {
        let arg = self.args.get(self.arg)?;
        self.arg += 1;
        let number = match arg {
            Value::Int(number) => *number,
            Value::Uint(number) => i64::try_from(*number).ok()?,
            _ => return None,
        };
        (-NUMBER_MAX..=NUMBER_MAX).contains(&number).then_some(number)
    }

    fn extra(&self, out: &mut String) {
        out.push_str("%!(EXTRA ");
        for (at, arg) in self.args.iter().skip(self.arg).enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            if !matches!(arg, Value::Nil) {
                out.push_str(type_name(arg));
                out.push('=');
            }
            value(out, arg, 'v', Form::default());
        }
        out.push(')');
    }
}

/// Decimal digits, at most one more than a million has.
fn decimal(digits: &str) -> Option<usize> {
    if digits.is_empty() {
        return None;
    }
    digits.bytes().try_fold(0_usize, |number, digit| {
        let small = i64::try_from(number).is_ok_and(|number| number <= NUMBER_MAX);
        (small && digit.is_ascii_digit()).then(|| number * 10 + usize::from(digit - b'0'))
    })
}
