//! Pipelines: declarations, commands, operands and terms.

use gotmpl::parse::{CommandNode, Expr, Number, PipeNode, SmolStr};

use super::{Mistake, PARENS_MAX, Parser};
use crate::template::{functions, lex::Kind, literal};

impl Parser<'_> {
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Result<PipeNode, Mistake> {
        let first = self.peek_word();
        let pos = self.position(first.at);
        let (decl, is_assign) = self.declarations(context)?;
        let mut commands = Vec::new();
        loop {
            let token = self.take_word();
            match token.kind {
                kind if kind == end => break,
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::Raw
                | Kind::Quoted
                | Kind::Variable
                | Kind::LeftParen => {
                    self.back();
                    commands.push(self.command()?);
                }
                _ => return Err(self.unexpected(token, context)),
            }
        }
        if commands.is_empty() {
            return Err(self.mistake(format!("missing value for {context}")));
        }
        for (stage, command) in (2..).zip(commands.iter().skip(1)) {
            let constant = matches!(
                command.args.first(),
                Some(
                    Expr::Bool(..)
                        | Expr::Dot(..)
                        | Expr::Nil(..)
                        | Expr::Number(..)
                        | Expr::String(..)
                )
            );
            if constant {
                let problem = format!("non executable command in pipeline stage {stage}");
                return Err(self.mistake(problem));
            }
        }
        Ok(PipeNode { pos, decl, commands, is_assign })
    }

    /// Variables before `:=` or `=`, and whether it is the latter.
    fn declarations(&mut self, context: &str) -> Result<(Vec<SmolStr>, bool), Mistake> {
        let mut names: Vec<SmolStr> = Vec::new();
        loop {
            let variable = self.peek_word();
            if variable.kind != Kind::Variable {
                return Ok((names, false));
            }
            let before = self.next;
            self.take();
            let sign = self.peek_word();
            match sign.kind {
                Kind::Assign | Kind::Declare => {
                    self.take();
                    names.push(variable.text.into());
                    let declared = sign.kind == Kind::Declare;
                    let visible = names.iter().map(|name| (name.to_string(), declared));
                    self.scope.variables.extend(visible);
                    return Ok((names, !declared));
                }
                Kind::Char if sign.text == "," => {
                    self.take();
                    names.push(variable.text.into());
                    if context != "range" || names.len() > 1 {
                        return Err(self.mistake(format!("too many declarations in {context}")));
                    }
                    let next = self.peek_word().kind;
                    if !matches!(next, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
                        return Err(self.mistake("range can only initialize variables"));
                    }
                }
                _ => {
                    // No declaration: the variable is an operand.
                    self.next = before;
                    return Ok((names, false));
                }
            }
        }
    }

    fn command(&mut self) -> Result<CommandNode, Mistake> {
        let first = self.peek_word();
        let pos = self.position(first.at);
        let mut args = Vec::new();
        loop {
            self.peek_word();
            args.extend(self.operand()?);
            let token = self.take();
            match token.kind {
                Kind::Space => {}
                Kind::RightDelim | Kind::RightParen => {
                    self.back();
                    break;
                }
                Kind::Pipe => break,
                _ => return Err(self.unexpected(token, "operand")),
            }
        }
        if args.is_empty() {
            return Err(self.mistake("empty command"));
        }
        Ok(CommandNode { pos, args })
    }

    /// A term with the fields behind it.
    fn operand(&mut self) -> Result<Option<Expr>, Mistake> {
        let Some(term) = self.term()? else { return Ok(None) };
        let mut fields: Vec<SmolStr> = Vec::new();
        while self.peek().kind == Kind::Field {
            fields.push(field_name(self.take().text));
        }
        if fields.is_empty() {
            return Ok(Some(term));
        }
        Ok(Some(match term {
            Expr::Field(pos, mut names) => {
                names.extend(fields);
                Expr::Field(pos, names)
            }
            Expr::Variable(pos, name, mut names) => {
                names.extend(fields);
                Expr::Variable(pos, name, names)
            }
            Expr::Bool(..)
            | Expr::String(..)
            | Expr::Number(..)
            | Expr::Nil(..)
            | Expr::Dot(..) => {
                return Err(self.mistake("unexpected . after a term that has no fields"));
            }
            term => Expr::Chain(term.pos(), Box::new(term), fields),
        }))
    }

    fn term(&mut self) -> Result<Option<Expr>, Mistake> {
        let token = self.take_word();
        let pos = self.position(token.at);
        let wrong = |problem| Mistake { at: token.at, problem };
        Ok(Some(match token.kind {
            Kind::Identifier => {
                if !functions::NAMES.contains(&token.text) {
                    return Err(self.mistake(format!("function {:?} not defined", token.text)));
                }
                Expr::Identifier(pos, token.text.into())
            }
            Kind::Dot => Expr::Dot(pos),
            Kind::Nil => Expr::Nil(pos),
            Kind::Variable => {
                if !self.scope.variables.iter().any(|(name, _)| name == token.text) {
                    return Err(self.mistake(format!("undefined variable {:?}", token.text)));
                }
                Expr::Variable(pos, token.text.into(), Vec::new())
            }
            Kind::Field => Expr::Field(pos, vec![field_name(token.text)]),
            Kind::Bool => Expr::Bool(pos, token.text == "true"),
            Kind::CharConstant => {
                Expr::Number(pos, Number::Int(literal::character(token.text).map_err(wrong)?))
            }
            Kind::Complex | Kind::Number => {
                Expr::Number(pos, literal::number(token.text).map_err(wrong)?)
            }
            Kind::LeftParen => {
                self.parens += 1;
                if self.parens > PARENS_MAX {
                    return Err(self
                        .mistake(format!("more than {PARENS_MAX} parentheses inside each other")));
                }
                let pipe = self.pipeline("parenthesized pipeline", Kind::RightParen)?;
                let pipe = self.checked_assignment(pipe);
                self.parens -= 1;
                Expr::Pipe(pos, pipe)
            }
            Kind::Quoted => Expr::String(pos, literal::quoted(token.text).map_err(wrong)?.into()),
            Kind::Raw => Expr::String(pos, literal::raw(token.text).into()),
            _ => {
                self.back();
                return Ok(None);
            }
        }))
    }
}

fn field_name(token: &str) -> SmolStr {
    token.trim_start_matches('.').into()
}
