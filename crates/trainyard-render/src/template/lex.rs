//! From text to tokens, by the rules of Go's text/template.
//!
//! Owns delimiters, trim markers, comments and what a word, number or string looks like; must not
//! know which tokens may follow each other.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Outside actions; printed as it is.
    Text,
    LeftDelim,
    RightDelim,
    Space,
    Assign,
    Declare,
    Pipe,
    LeftParen,
    RightParen,
    /// Any other printable character, such as a comma.
    Char,
    Dot,
    /// `.name`
    Field,
    /// `$name`
    Variable,
    Identifier,
    Bool,
    Nil,
    Number,
    CharConstant,
    /// Of the form `1+2i`.
    Complex,
    /// In double quotes.
    Quoted,
    /// In back quotes.
    Raw,
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
    Eof,
    /// The text cannot be cut further; the token's text says why.
    Error,
}

/// A piece of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    /// Where it starts, in bytes.
    pub(super) at: usize,
    pub(super) text: &'a str,
}

const LEFT: &str = "{{";
const RIGHT: &str = "}}";
/// A trim marker with its space.
const MARKER: usize = 2;
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

/// Cuts a text piece by piece, so that a mistake is found in the order of reading.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    start: usize,
    inside: bool,
    parens: usize,
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0, start: 0, inside: false, parens: 0 }
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        if self.inside { self.action() } else { self.outside() }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn accept(&mut self, valid: &str) -> bool {
        let accepted = self.peek().is_some_and(|next| valid.contains(next));
        if accepted {
            self.advance();
        }
        accepted
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    fn emit(&mut self, kind: Kind) -> Token<'a> {
        let text = self.text.get(self.start..self.at).unwrap_or_default();
        let token = Token { kind, at: self.start, text };
        self.start = self.at;
        token
    }

    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
        self.start = self.at;
    }

    const fn error(&self, problem: &'static str) -> Token<'a> {
        Token { kind: Kind::Error, at: self.start, text: problem }
    }

    fn outside(&mut self) -> Token<'a> {
        loop {
            let rest = self.rest();
            let Some(left) = rest.find(LEFT) else {
                self.at = self.text.len();
                return self.emit(if rest.is_empty() { Kind::Eof } else { Kind::Text });
            };
            let after = &rest[left + LEFT.len()..];
            let trims = has_left_marker(after);
            let before = &rest[..left];
            let kept = if trims { before.trim_end_matches(SPACES) } else { before };
            if !kept.is_empty() {
                self.at += kept.len();
                let token = self.emit(Kind::Text);
                // White space that is trimmed is no token of its own.
                self.skip(before.len() - kept.len());
                return token;
            }
            self.skip(before.len());
            let marker = if trims { MARKER } else { 0 };
            if !after[marker..].starts_with("/*") {
                self.at += LEFT.len();
                let token = self.emit(Kind::LeftDelim);
                self.skip(marker);
                self.inside = true;
                self.parens = 0;
                return token;
            }
            self.skip(LEFT.len() + marker);
            if let Some(error) = self.comment() {
                return error;
            }
        }
    }

    /// Steps over a comment and the delimiter after it.
    fn comment(&mut self) -> Option<Token<'a>> {
        let Some(end) = self.rest()[2..].find("*/") else {
            return Some(self.error("unclosed comment"));
        };
        let comment = 2 + end + 2;
        let after = &self.rest()[comment..];
        let Some(trims) = right_delimiter(after) else {
            return Some(self.error("comment ends before closing delimiter"));
        };
        self.skip(comment);
        self.close(trims);
        None
    }

    /// Steps over a closing delimiter, with its marker and the space that it trims.
    fn close(&mut self, trims: bool) -> Token<'a> {
        if trims {
            self.skip(MARKER);
        }
        self.at += RIGHT.len();
        let token = self.emit(Kind::RightDelim);
        if trims {
            let rest = self.rest();
            self.skip(rest.len() - rest.trim_start_matches(SPACES).len());
        }
        token
    }

    fn action(&mut self) -> Token<'a> {
        if let Some(trims) = right_delimiter(self.rest()) {
            if self.parens > 0 {
                return self.error("unclosed left paren");
            }
            self.inside = false;
            return self.close(trims);
        }
        let Some(next) = self.advance() else { return self.error("unclosed action") };
        match next {
            ' ' | '\t' | '\r' | '\n' => self.space(),
            '=' => self.emit(Kind::Assign),
            ':' if self.accept("=") => self.emit(Kind::Declare),
            ':' => self.error("expected :="),
            '|' => self.emit(Kind::Pipe),
            '"' => self.quoted('"', Kind::Quoted, "unterminated quoted string"),
            '\'' => self.quoted('\'', Kind::CharConstant, "unterminated character constant"),
            '`' => self.raw(),
            '$' => self.name(Kind::Variable, Kind::Variable),
            '.' if !self.rest().starts_with(|next: char| next.is_ascii_digit()) => {
                // At the very end a dot starts a number to Go; both are mistakes.
                self.name(Kind::Field, Kind::Dot)
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.at = self.start;
                self.number()
            }
            _ if is_alphanumeric(next) => self.word(),
            '(' => {
                self.parens += 1;
                self.emit(Kind::LeftParen)
            }
            ')' if self.parens == 0 => self.error("unexpected right paren"),
            ')' => {
                self.parens -= 1;
                self.emit(Kind::RightParen)
            }
            '!'..='~' => self.emit(Kind::Char),
            _ => self.error("unrecognized character in action"),
        }
    }

    fn space(&mut self) -> Token<'a> {
        self.accept_run(" \t\r\n");
        // The last space belongs to the marker of a closing delimiter.
        if self.rest().starts_with("-}}") {
            self.at -= 1;
        }
        self.emit(Kind::Space)
    }

    fn quoted(&mut self, quote: char, kind: Kind, problem: &'static str) -> Token<'a> {
        loop {
            match self.advance() {
                Some('\\') if self.peek().is_some_and(|next| next != '\n') => {
                    self.advance();
                }
                None | Some('\\' | '\n') => return self.error(problem),
                Some(next) if next == quote => return self.emit(kind),
                Some(_) => {}
            }
        }
    }

    fn raw(&mut self) -> Token<'a> {
        match self.rest().find('`') {
            Some(end) => {
                self.at += end + 1;
                self.emit(Kind::Raw)
            }
            None => self.error("unterminated raw quoted string"),
        }
    }

    /// A field or a variable, or the bare sign.
    fn name(&mut self, kind: Kind, bare: Kind) -> Token<'a> {
        if self.at_terminator() {
            return self.emit(bare);
        }
        while self.peek().is_some_and(is_alphanumeric) {
            self.advance();
        }
        if self.at_terminator() { self.emit(kind) } else { self.error("bad character in a name") }
    }

    fn word(&mut self) -> Token<'a> {
        while self.peek().is_some_and(is_alphanumeric) {
            self.advance();
        }
        if !self.at_terminator() {
            return self.error("bad character after a word");
        }
        let kind = match self.text.get(self.start..self.at).unwrap_or_default() {
            "true" | "false" => Kind::Bool,
            "nil" => Kind::Nil,
            "block" => Kind::Block,
            "break" => Kind::Break,
            "continue" => Kind::Continue,
            "define" => Kind::Define,
            "else" => Kind::Else,
            "end" => Kind::End,
            "if" => Kind::If,
            "range" => Kind::Range,
            "template" => Kind::Template,
            "with" => Kind::With,
            _ => Kind::Identifier,
        };
        self.emit(kind)
    }

    /// Whether a word may end here.
    fn at_terminator(&self) -> bool {
        let rest = self.rest();
        rest.is_empty()
            || rest.starts_with([' ', '\t', '\r', '\n', '.', ',', '|', ':', ')', '('])
            || rest.starts_with(RIGHT)
    }

    fn number(&mut self) -> Token<'a> {
        if !self.scan_number() {
            return self.error("bad number syntax");
        }
        if !self.rest().starts_with(['+', '-']) {
            return self.emit(Kind::Number);
        }
        if self.scan_number() && self.text[..self.at].ends_with('i') {
            self.emit(Kind::Complex)
        } else {
            self.error("bad number syntax")
        }
    }

    fn scan_number(&mut self) -> bool {
        const DECIMAL: &str = "0123456789_";
        const HEX: &str = "0123456789abcdefABCDEF_";
        self.accept("+-");
        let mut digits = DECIMAL;
        if self.accept("0") {
            if self.accept("xX") {
                digits = HEX;
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        let exponent = match digits {
            DECIMAL => self.accept("eE"),
            HEX => self.accept("pP"),
            _ => false,
        };
        if exponent {
            self.accept("+-");
            self.accept_run(DECIMAL);
        }
        self.accept("i");
        !self.peek().is_some_and(is_alphanumeric)
    }
}

fn has_left_marker(after: &str) -> bool {
    after.strip_prefix('-').is_some_and(|rest| rest.starts_with(SPACES))
}

/// Whether an action ends here, and if so whether the white space after it is trimmed.
fn right_delimiter(rest: &str) -> Option<bool> {
    if rest.starts_with(RIGHT) {
        return Some(false);
    }
    let marked = rest.strip_prefix(SPACES)?.strip_prefix('-')?;
    marked.starts_with(RIGHT).then_some(true)
}

/// Letters, digits and the underscore. Rust counts a few more signs as numbers than Go does; they
/// have no place in a name.
fn is_alphanumeric(sign: char) -> bool {
    sign == '_' || sign.is_alphabetic() || sign.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        let mut lexer = Lexer::new(text);
        let mut found = Vec::new();
        loop {
            let token = lexer.next();
            if token.kind == Kind::Eof {
                return found;
            }
            found.push((token.kind, token.text));
            if token.kind == Kind::Error {
                return found;
            }
        }
    }

    #[test]
    fn markers_trim_the_white_space_around_an_action() {
        let expected = [
            (Kind::Text, "a"),
            (Kind::LeftDelim, "{{"),
            (Kind::Field, ".x"),
            (Kind::RightDelim, "}}"),
            (Kind::Text, "b"),
        ];
        assert_eq!(kinds("a \n{{- .x -}}\t b"), expected);
    }

    #[test]
    fn comments_leave_nothing_but_what_stands_around_them() {
        assert_eq!(kinds("a {{/* x */}}b"), [(Kind::Text, "a "), (Kind::Text, "b")]);
        assert_eq!(kinds("a {{- /* x */ -}} b"), [(Kind::Text, "a"), (Kind::Text, "b")]);
    }

    #[test]
    fn a_word_ends_only_where_it_may() {
        assert_eq!(kinds("{{.a+}}").last().map(|token| token.0), Some(Kind::Error));
        assert_eq!(kinds("{{3k}}").last().map(|token| token.0), Some(Kind::Error));
        assert_eq!(kinds("{{.x").last(), Some(&(Kind::Error, "unclosed action")));
    }
}
