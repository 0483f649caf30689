//! From tokens to the tree that is executed, by the grammar of Go's text/template.
//!
//! Owns which action may stand where and on which line a mistake is reported. The `gotmpl` crate
//! has a parser too, but it accepts what Go refuses (blocks that are not closed, unknown
//! functions and variables); its executor is used on the tree made here.

mod pipeline;

use std::collections::BTreeMap;

use gotmpl::parse::{
    ActionNode, BranchNode, ListNode, Node, PipeNode, Pos, TemplateNode, TextNode,
};

use super::{
    functions::{FAIL, NOTHING, SHOW},
    lex::{Kind, Lexer, Token},
    literal,
    place::Lines,
};

/// How deep blocks may stand in each other. The executor has a limit of its own above this.
const BLOCKS_MAX: usize = 150;
/// How deep parentheses may stand in each other.
const PARENS_MAX: usize = 100;

/// A mistake in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mistake {
    /// Where, in bytes.
    pub(super) at: usize,
    pub(super) problem: String,
}

/// The templates of a text by name; its own is [`super::MAIN`].
#[derive(Debug, Default)]
pub(super) struct Trees {
    pub(super) named: BTreeMap<String, ListNode>,
    /// Whether a template is called without data.
    pub(super) calls_without_data: bool,
}

impl Trees {
    /// An empty definition gives way to one that is not; two that are not empty are a mistake.
    fn add(&mut self, name: &str, tree: ListNode) -> Result<(), String> {
        match self.named.get(name) {
            Some(old) if !old.is_empty_tree() => {
                if tree.is_empty_tree() {
                    return Ok(());
                }
                Err(format!("multiple definition of template {name:?}"))
            }
            _ => {
                self.named.insert(name.to_owned(), tree);
                Ok(())
            }
        }
    }
}

/// Parses a whole text.
pub(super) fn parse(text: &str) -> Result<Trees, Mistake> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        lines: Lines::of(text),
        read: Vec::new(),
        next: 0,
        scope: Scope::default(),
        blocks: 0,
        parens: 0,
        trees: Trees::default(),
    };
    parser.whole()?;
    Ok(parser.trees)
}

/// What is visible inside one template.
#[derive(Debug)]
struct Scope {
    /// Names in order of appearance, and whether they were declared rather than assigned to.
    variables: Vec<(String, bool)>,
    ranges: usize,
}

impl Default for Scope {
    fn default() -> Self {
        Self { variables: vec![("$".to_owned(), true)], ranges: 0 }
    }
}

/// How a list of nodes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    End,
    Else,
}

impl Ending {
    const fn written(self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

enum Item {
    Node(Node),
    Ending(Ending),
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    lines: Lines,
    /// All tokens so far; some are taken back.
    read: Vec<Token<'a>>,
    next: usize,
    scope: Scope,
    blocks: usize,
    parens: usize,
    trees: Trees,
}

impl<'a> Parser<'a> {
    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn peek(&mut self) -> Token<'a> {
        while self.read.len() <= self.next {
            let token = self.lexer.next();
            self.read.push(token);
        }
        self.read[self.next]
    }

    const fn back(&mut self) {
        self.next = self.next.saturating_sub(1);
    }

    fn take_word(&mut self) -> Token<'a> {
        self.peek_word();
        self.take()
    }

    /// The next token that is no space.
    fn peek_word(&mut self) -> Token<'a> {
        while self.peek().kind == Kind::Space {
            self.next += 1;
        }
        self.peek()
    }

    /// A mistake at the token that was read last, which is where Go reports it.
    fn mistake(&self, problem: impl Into<String>) -> Mistake {
        Mistake { at: self.read.last().map_or(0, |token| token.at), problem: problem.into() }
    }

    fn unexpected(&self, token: Token<'_>, context: &str) -> Mistake {
        self.mistake(match token.kind {
            Kind::Error => token.text.to_owned(),
            Kind::Eof => format!("unexpected end of the template in {context}"),
            Kind::RightDelim => format!("unexpected \"}}}}\" in {context}"),
            _ => format!("unexpected {:?} in {context}", token.text),
        })
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Result<Token<'a>, Mistake> {
        let token = self.take_word();
        if token.kind == kind { Ok(token) } else { Err(self.unexpected(token, context)) }
    }

    fn position(&self, at: usize) -> Pos {
        Pos::new(at, self.lines.line(at))
    }

    fn whole(&mut self) -> Result<(), Mistake> {
        let pos = self.position(0);
        let mut nodes = Vec::new();
        loop {
            let token = self.peek();
            if token.kind == Kind::Eof {
                break;
            }
            if token.kind == Kind::LeftDelim {
                let before = self.next;
                self.take();
                if self.take_word().kind == Kind::Define {
                    self.definition()?;
                    continue;
                }
                self.next = before;
            }
            match self.text_or_action()? {
                Item::Node(node) => nodes.push(node),
                Item::Ending(ending) => {
                    return Err(self.mistake(format!("unexpected {}", ending.written())));
                }
            }
        }
        let added = self.trees.add(super::MAIN, ListNode { pos, nodes });
        added.map_err(|problem| self.mistake(problem))
    }

    fn definition(&mut self) -> Result<(), Mistake> {
        const CONTEXT: &str = "define clause";
        let name = self.name(CONTEXT)?;
        self.expect(Kind::RightDelim, CONTEXT)?;
        let outer = std::mem::take(&mut self.scope);
        let (list, ending) = self.list()?;
        self.scope = outer;
        if ending == Ending::Else {
            return Err(self.mistake(format!("unexpected {{{{else}}}} in {CONTEXT}")));
        }
        let added = self.trees.add(&name, list);
        added.map_err(|problem| self.mistake(problem))
    }

    fn name(&mut self, context: &str) -> Result<String, Mistake> {
        let token = self.take_word();
        match token.kind {
            Kind::Raw => Ok(literal::raw(token.text)),
            Kind::Quoted => literal::quoted(token.text).map_err(|problem| self.mistake(problem)),
            _ => Err(self.unexpected(token, context)),
        }
    }

    fn list(&mut self) -> Result<(ListNode, Ending), Mistake> {
        self.blocks += 1;
        if self.blocks > BLOCKS_MAX {
            return Err(self.mistake(format!("more than {BLOCKS_MAX} blocks inside each other")));
        }
        let first = self.peek_word();
        let pos = self.position(first.at);
        let mut nodes = Vec::new();
        while self.peek_word().kind != Kind::Eof {
            match self.text_or_action()? {
                Item::Node(node) => nodes.push(node),
                Item::Ending(ending) => {
                    self.blocks -= 1;
                    return Ok((ListNode { pos, nodes }, ending));
                }
            }
        }
        Err(self.mistake("unexpected end of the template: a block is not closed by {{end}}"))
    }

    fn text_or_action(&mut self) -> Result<Item, Mistake> {
        let token = self.take_word();
        match token.kind {
            Kind::Text => {
                let pos = self.position(token.at);
                Ok(Item::Node(Node::Text(TextNode { pos, text: token.text.into() })))
            }
            Kind::LeftDelim => self.action(),
            _ => Err(self.unexpected(token, "input")),
        }
    }

    fn action(&mut self) -> Result<Item, Mistake> {
        let token = self.take_word();
        let pos = self.position(token.at);
        let node = match token.kind {
            Kind::Block => self.block(pos)?,
            Kind::Break | Kind::Continue => {
                let end = self.take_word();
                let word = if token.kind == Kind::Break { "{{break}}" } else { "{{continue}}" };
                if end.kind != Kind::RightDelim {
                    return Err(self.unexpected(end, word));
                }
                if self.scope.ranges == 0 {
                    return Err(self.mistake(format!("{word} outside {{{{range}}}}")));
                }
                if token.kind == Kind::Break { Node::Break(pos) } else { Node::Continue(pos) }
            }
            Kind::Else => {
                // `else if` and `else with` are looked at by the block that they belong to.
                if !matches!(self.peek_word().kind, Kind::If | Kind::With) {
                    self.expect(Kind::RightDelim, "else")?;
                }
                return Ok(Item::Ending(Ending::Else));
            }
            Kind::End => {
                self.expect(Kind::RightDelim, "end")?;
                return Ok(Item::Ending(Ending::End));
            }
            Kind::If => Node::If(self.control("if", pos)?),
            Kind::Range => Node::Range(self.control("range", pos)?),
            Kind::With => Node::With(self.control("with", pos)?),
            Kind::Template => self.call(pos)?,
            _ => {
                self.back();
                let pipe = self.pipeline("command", Kind::RightDelim)?;
                let mut pipe = self.checked_assignment(pipe);
                if pipe.decl.is_empty() {
                    pipe.commands.extend(calling(pos, SHOW, None).commands);
                }
                Node::Action(ActionNode { pos, pipe })
            }
        };
        Ok(Item::Node(node))
    }

    fn control(&mut self, context: &str, pos: Pos) -> Result<BranchNode, Mistake> {
        let visible = self.scope.variables.len();
        let pipe = self.pipeline(context, Kind::RightDelim)?;
        let pipe = self.checked_assignment(pipe);
        let ranges = context == "range";
        self.scope.ranges += usize::from(ranges);
        let (body, ending) = self.list()?;
        self.scope.ranges -= usize::from(ranges);
        let else_body = if ending == Ending::Else { Some(self.otherwise(context)?) } else { None };
        self.scope.variables.truncate(visible);
        Ok(BranchNode { pos, pipe, body, else_body })
    }

    fn otherwise(&mut self, context: &str) -> Result<ListNode, Mistake> {
        let token = self.peek();
        let pos = self.position(token.at);
        let chained = match (context, token.kind) {
            ("if", Kind::If) | ("with", Kind::With) => true,
            // A word that starts another kind of block is found where text should be.
            _ => false,
        };
        if chained {
            self.take();
            self.blocks += 1;
            if self.blocks > BLOCKS_MAX {
                return Err(self.mistake(format!("more than {BLOCKS_MAX} blocks in a chain")));
            }
            let branch = self.control(context, pos)?;
            self.blocks -= 1;
            let node = if context == "if" { Node::If(branch) } else { Node::With(branch) };
            return Ok(ListNode { pos, nodes: vec![node] });
        }
        let (list, ending) = self.list()?;
        if ending == Ending::Else {
            return Err(self.mistake("expected end; found {{else}}"));
        }
        Ok(list)
    }

    fn block(&mut self, pos: Pos) -> Result<Node, Mistake> {
        const CONTEXT: &str = "block clause";
        let name = self.name(CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, Kind::RightDelim)?;
        let opening = self.mistake(format!("unexpected {{{{else}}}} in {CONTEXT}"));
        let outer = std::mem::take(&mut self.scope);
        let (list, ending) = self.list()?;
        self.scope = outer;
        if ending == Ending::Else {
            return Err(opening);
        }
        let added = self.trees.add(&name, list);
        added.map_err(|problem| self.mistake(problem))?;
        Ok(Node::Template(TemplateNode { pos, name: name.as_str().into(), pipe: Some(pipe) }))
    }

    fn call(&mut self, pos: Pos) -> Result<Node, Mistake> {
        const CONTEXT: &str = "template clause";
        let name = self.name(CONTEXT)?;
        let pipe = if self.take_word().kind == Kind::RightDelim {
            self.trees.calls_without_data = true;
            // The executor would hand on the caller's data; Go hands on nothing.
            calling(pos, NOTHING, None)
        } else {
            self.back();
            self.pipeline(CONTEXT, Kind::RightDelim)?
        };
        Ok(Node::Template(TemplateNode { pos, name: name.as_str().into(), pipe: Some(pipe) }))
    }

    /// The first name that a pipeline assigns to without its being declared.
    fn undeclared(&self, pipe: &PipeNode) -> Option<String> {
        let declared = |name: &str| {
            self.scope.variables.iter().any(|(known, declared)| *declared && known == name)
        };
        let name = pipe.decl.iter().find(|name| !declared(name))?;
        pipe.is_assign.then(|| name.to_string())
    }

    /// Assigning to what is not declared is a mistake only when it is executed.
    fn checked_assignment(&self, pipe: PipeNode) -> PipeNode {
        match self.undeclared(&pipe) {
            Some(name) => failing_pipe(pipe.pos, &name),
            None => pipe,
        }
    }
}

fn failing_pipe(pos: Pos, name: &str) -> PipeNode {
    calling(pos, FAIL, Some(format!("undefined variable: {name}")))
}

/// A pipeline of one call.
fn calling(pos: Pos, function: &'static str, argument: Option<String>) -> PipeNode {
    use gotmpl::parse::{CommandNode, Expr};
    let mut args = vec![Expr::Identifier(pos, function.into())];
    args.extend(argument.map(|text| Expr::String(pos, text.into())));
    let commands = vec![CommandNode { pos, args }];
    PipeNode { pos, decl: Vec::new(), commands, is_assign: false }
}
