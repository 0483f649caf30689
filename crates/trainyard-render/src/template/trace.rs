//! Where an execution goes wrong. The engine does not say, so a failed execution is repeated with
//! a note of the place before every step.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gotmpl::{
    TemplateError, Value,
    parse::{ActionNode, CommandNode, Expr, ListNode, Node, Number, PipeNode, Pos},
};

use super::{MAIN, parse::Trees};

/// Not callable by name: notes a place.
const NOTE: &str = "\u{1}note";
/// Takes what noting gives, so that nothing is printed.
const NOTED: &str = "$\u{1}";

/// Executes with notes; gives the error and its place, if there is one.
pub(super) fn execute(
    engine: gotmpl::Template,
    trees: &Trees,
    data: &Value,
) -> Option<(TemplateError, usize)> {
    let place = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&place);
    let mut engine = engine.func(NOTE, move |args| {
        let at = args.first().and_then(Value::as_int).and_then(|at| usize::try_from(at).ok());
        noted.store(at.unwrap_or_default(), Ordering::Relaxed);
        Ok(Value::Nil)
    });
    for (name, tree) in &trees.named {
        engine = engine.add_parse_tree(name, with_notes(tree));
    }
    let mut text = String::new();
    let mut out = super::Output::new(&mut text);
    let error = engine.execute_template_fmt(&mut out, MAIN, data).err()?;
    let at = place.load(Ordering::Relaxed);
    let exact = match &error {
        TemplateError::MissingKey { key } => {
            trees.named.values().find_map(|tree| field(tree, at, key))
        }
        _ => None,
    };
    Some((error, exact.unwrap_or(at)))
}

fn with_notes(list: &ListNode) -> ListNode {
    let mut nodes = Vec::with_capacity(2 * list.nodes.len());
    for node in &list.nodes {
        nodes.extend(pipe_of(node).map(|(pos, _)| note(pos)));
        let mut node = node.clone();
        if let Node::If(branch) | Node::Range(branch) | Node::With(branch) = &mut node {
            branch.body = with_notes(&branch.body);
            branch.else_body = branch.else_body.as_ref().map(with_notes);
        }
        nodes.push(node);
    }
    ListNode { pos: list.pos, nodes }
}

fn note(pos: Pos) -> Node {
    let at = i64::try_from(pos.offset).unwrap_or_default();
    let args = vec![Expr::Identifier(pos, NOTE.into()), Expr::Number(pos, Number::Int(at))];
    let commands = vec![CommandNode { pos, args }];
    let pipe = PipeNode { pos, decl: vec![NOTED.into()], commands, is_assign: false };
    Node::Action(ActionNode { pos, pipe })
}

/// The pipeline that a node evaluates itself.
fn pipe_of(node: &Node) -> Option<(Pos, Option<&PipeNode>)> {
    match node {
        Node::Action(action) => Some((action.pos, Some(&action.pipe))),
        Node::If(branch) | Node::Range(branch) | Node::With(branch) => {
            Some((branch.pos, Some(&branch.pipe)))
        }
        Node::Template(call) => Some((call.pos, call.pipe.as_ref())),
        _ => None,
    }
}

/// Where the node at a place uses a field of this name.
fn field(list: &ListNode, at: usize, key: &str) -> Option<usize> {
    list.nodes.iter().find_map(|node| {
        if let Some((pos, Some(pipe))) = pipe_of(node)
            && pos.offset == at
        {
            return in_pipe(pipe, key);
        }
        match node {
            Node::If(branch) | Node::Range(branch) | Node::With(branch) => {
                let other = || branch.else_body.as_ref().and_then(|list| field(list, at, key));
                field(&branch.body, at, key).or_else(other)
            }
            _ => None,
        }
    })
}

fn in_pipe(pipe: &PipeNode, key: &str) -> Option<usize> {
    pipe.commands.iter().flat_map(|command| &command.args).find_map(|expr| in_expr(expr, key))
}

fn in_expr(expr: &Expr, key: &str) -> Option<usize> {
    match expr {
        Expr::Field(pos, names) | Expr::Variable(pos, _, names) => {
            names.iter().any(|name| name == key).then_some(pos.offset)
        }
        Expr::Pipe(_, pipe) => in_pipe(pipe, key),
        Expr::Chain(pos, inner, names) => in_expr(inner, key)
            .or_else(|| names.iter().any(|name| name == key).then_some(pos.offset)),
        _ => None,
    }
}
