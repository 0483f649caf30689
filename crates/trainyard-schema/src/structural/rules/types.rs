//! What a rule looks at, told from the schema without evaluating anything.
//!
//! Owns the types of expressions as far as they matter: which fields there are, and whether whole
//! objects are compared or handed on. It is not a complete checker of the language.

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};

use super::{
    super::{
        metadata,
        node::{Additional, Marks, Node, Type},
    },
    Place, estimate,
    functions::TYPES,
    names::escaped,
};

/// The type of an expression.
#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    /// Described by a node.
    Of(Place<'a>),
    /// What `optionalOldSelf` makes of it.
    Maybe(Place<'a>),
    Bool,
    Text,
    /// Another scalar.
    Scalar,
    /// Not known.
    Any,
}

/// What was found.
#[derive(Default)]
pub(super) struct Look {
    /// Fields and names that are not there.
    pub(super) faults: Vec<Missing>,
    /// A whole object is compared or handed on.
    pub(super) whole: bool,
    /// How often `self` and `oldSelf` are named.
    pub(super) mentions: u64,
    /// How often loops over what the schema describes may turn.
    pub(super) turns: u64,
}

/// Something that a rule names and that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Missing {
    Field(String),
    Name(String),
    Function(String),
}

/// Looks through a rule.
pub(super) fn look<'a>(
    expression: &IdedExpr,
    place: Place<'a>,
    optional_old: bool,
    has_function: &dyn Fn(&str) -> bool,
) -> (Kind<'a>, Look) {
    let old = if optional_old { Kind::Maybe(place) } else { Kind::Of(place) };
    let mut walk = Walk {
        scope: vec![("self".to_owned(), Kind::Of(place)), ("oldSelf".to_owned(), old)],
        look: Look::default(),
        turns: 1,
        has_function,
    };
    let kind = walk.visit(expression);
    (kind, walk.look)
}

struct Walk<'a, 'f> {
    scope: Vec<(String, Kind<'a>)>,
    look: Look,
    /// How often loops around this place may turn.
    turns: u64,
    has_function: &'f dyn Fn(&str) -> bool,
}

impl<'a> Walk<'a, '_> {
    fn visit(&mut self, expression: &IdedExpr) -> Kind<'a> {
        match &expression.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => Kind::Bool,
                LiteralValue::String(_) => Kind::Text,
                _ => Kind::Scalar,
            },
            Expr::Ident(name) => self.ident(name),
            Expr::Select(select) => {
                if let Some(name) = qualified(&select.operand)
                    && !self
                        .scope
                        .iter()
                        .any(|(known, _)| known == name.split('.').next().unwrap_or_default())
                {
                    // A name of a type, as `google.protobuf.Duration`.
                    return Kind::Any;
                }
                let operand = self.visit(&select.operand);
                let field = self.field(operand, &select.field);
                if select.test { Kind::Bool } else { field }
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                for element in &list.elements {
                    self.handed_on(element);
                }
                Kind::Any
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.handed_on(&entry.key);
                        self.handed_on(&entry.value);
                    }
                }
                Kind::Any
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(_) | Expr::Unspecified => Kind::Any,
        }
    }

    fn ident(&mut self, name: &str) -> Kind<'a> {
        self.look.mentions += u64::from(matches!(name, "self" | "oldSelf"));
        let known = self.scope.iter().rev().find(|(known, _)| known == name);
        if let Some((_, kind)) = known {
            return *kind;
        }
        if !TYPES.contains(&name) {
            self.look.faults.push(Missing::Name(name.to_owned()));
        }
        Kind::Any
    }

    /// A part whose value is used as a whole.
    fn handed_on(&mut self, expression: &IdedExpr) -> Kind<'a> {
        let kind = self.visit(expression);
        self.look.whole |= holds_objects(kind);
        kind
    }

    fn field(&mut self, operand: Kind<'a>, name: &str) -> Kind<'a> {
        let Kind::Of(place) = operand else { return Kind::Any };
        let node = place.node;
        if node.kind != Some(Type::Object) && node.kind.is_some() {
            return Kind::Any;
        }
        if node.properties.is_empty()
            && !place.resource
            && let Additional::Of(child) = node.additional()
        {
            return of(child);
        }
        let child = (node.properties.iter())
            .find(|(known, _)| escaped(known).as_deref() == Some(name))
            .map(|(_, child)| &**child);
        let head = || match name {
            "metadata" if place.resource => Some(metadata::visible()),
            "apiVersion" | "kind" if place.resource => Some(metadata::text()),
            _ => None,
        };
        let Some(child) = child.filter(|child| is_typed(child)).or_else(head) else {
            self.look.faults.push(Missing::Field(name.to_owned()));
            return Kind::Any;
        };
        of(child)
    }

    fn call(&mut self, call: &CallExpr) -> Kind<'a> {
        let name = call.func_name.as_str();
        match (name, call.args.as_slice(), &call.target) {
            (operators::INDEX | operators::OPT_INDEX, [operand, index], _) => {
                let kind = self.visit(operand);
                self.visit(index);
                return if name == operators::INDEX { element(kind) } else { Kind::Any };
            }
            (operators::OPT_SELECT, [operand, _], _) => {
                let kind = self.visit(operand);
                self.look.whole |= holds_objects(kind);
                return Kind::Any;
            }
            (operators::CONDITIONAL, [condition, yes, no], _) => {
                self.visit(condition);
                let (yes, no) = (self.handed_on(yes), self.handed_on(no));
                return match (yes, no) {
                    (Kind::Bool, Kind::Bool) => Kind::Bool,
                    (Kind::Text, Kind::Text) => Kind::Text,
                    _ => Kind::Any,
                };
            }
            (operators::IN, [element, container], _) => {
                self.handed_on(element);
                let kind = self.visit(container);
                self.look.whole |= !is_map(kind) && holds_objects(kind);
                return Kind::Bool;
            }
            ("size", [container], None) => {
                self.visit(container);
                return Kind::Scalar;
            }
            ("size", [], Some(container)) => {
                self.visit(container);
                return Kind::Scalar;
            }
            ("hasValue", [], Some(target)) => {
                self.visit(target);
                return Kind::Bool;
            }
            ("value", [], Some(target)) => {
                let kind = self.visit(target);
                return if let Kind::Maybe(place) = kind { Kind::Of(place) } else { Kind::Any };
            }
            _ => {}
        }
        self.other_call(call)
    }

    fn other_call(&mut self, call: &CallExpr) -> Kind<'a> {
        let name = call.func_name.as_str();
        let mut known = name.contains(['_', '@', '!', '-']) || (self.has_function)(name);
        if let Some(target) = &call.target {
            let space = match &target.expr {
                Expr::Ident(space) if !self.scope.iter().any(|(known, _)| known == space) => {
                    Some(space)
                }
                _ => None,
            };
            match space {
                Some(space) => known |= (self.has_function)(&format!("{space}.{name}")),
                None => {
                    self.handed_on(target);
                }
            }
        }
        if !known {
            self.look.faults.push(Missing::Function(name.to_owned()));
        }
        let kinds: Vec<_> = call.args.iter().map(|argument| self.handed_on(argument)).collect();
        result_of(name, &kinds)
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Kind<'a> {
        let range = self.visit(&comprehension.iter_range);
        let element = if is_map(range) { Kind::Text } else { element(range) };
        let start = self.visit(&comprehension.accu_init);
        let depth = self.scope.len();
        self.scope.push((comprehension.accu_var.clone(), start));
        self.scope.push((comprehension.iter_var.clone(), element));
        if let Some(second) = &comprehension.iter_var2 {
            self.scope.push((second.clone(), Kind::Any));
        }
        let around = self.turns;
        if let Kind::Of(place) = range {
            self.turns = around.saturating_mul(estimate::most(place.node));
            self.look.turns = self.look.turns.max(self.turns);
        }
        self.visit(&comprehension.loop_cond);
        self.visit(&comprehension.loop_step);
        self.turns = around;
        let result = self.visit(&comprehension.result);
        self.scope.truncate(depth);
        result
    }
}

/// The type of a list's elements or a map's values.
fn element(kind: Kind<'_>) -> Kind<'_> {
    let Kind::Of(place) = kind else { return Kind::Any };
    let child = match (place.node.items(), place.node.additional()) {
        (Some(items), _) => Some(items),
        (None, Additional::Of(child)) => Some(&**child),
        _ => None,
    };
    child.map_or(Kind::Any, of)
}

fn of(node: &Node) -> Kind<'_> {
    Kind::Of(Place { node, resource: node.has(Marks::EMBEDDED) })
}

/// Fields without a type cannot be seen by rules.
fn is_typed(node: &Node) -> bool {
    node.kind.is_some() || node.has(Marks::INT_OR_STRING)
}

fn is_map(kind: Kind<'_>) -> bool {
    matches!(kind, Kind::Of(place) if place.node.properties.is_empty()
        && !place.resource && matches!(place.node.additional(), Additional::Of(_)))
}

/// Whether a value may hold objects whose fields are not named in the rule.
fn holds_objects(kind: Kind<'_>) -> bool {
    fn any(node: &Node, depth: usize) -> bool {
        if depth > super::limits::DEPTH_MAX || !node.properties.is_empty() {
            return true;
        }
        let entries = match node.additional() {
            Additional::Of(child) => any(child, depth + 1),
            _ => false,
        };
        entries || node.items().is_some_and(|items| any(items, depth + 1))
    }
    match kind {
        Kind::Of(place) | Kind::Maybe(place) => place.resource || any(place.node, 0),
        _ => false,
    }
}

/// The type of a call's result, where it is plain.
fn result_of(name: &str, kinds: &[Kind<'_>]) -> Kind<'static> {
    const TESTS: [&str; 12] = [
        operators::EQUALS,
        operators::NOT_EQUALS,
        operators::GREATER,
        operators::GREATER_EQUALS,
        operators::LESS,
        operators::LESS_EQUALS,
        operators::LOGICAL_AND,
        operators::LOGICAL_OR,
        operators::LOGICAL_NOT,
        "matches",
        "startsWith",
        "endsWith",
    ];
    if TESTS.contains(&name) {
        return Kind::Bool;
    }
    let text = |kind: &Kind<'_>| match kind {
        Kind::Text => true,
        Kind::Of(place) => {
            place.node.kind == Some(Type::Text)
                && place.node.more().is_none_or(|more| more.format.is_empty())
        }
        _ => false,
    };
    match (name, kinds) {
        (operators::ADD, [one, other]) if text(one) && text(other) => Kind::Text,
        (operators::ADD, [Kind::Scalar, _] | [_, Kind::Scalar])
        | (operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO, _) => {
            Kind::Scalar
        }
        ("format" | "string" | "lowerAscii" | "upperAscii" | "trim" | "join", _) => Kind::Text,
        ("int" | "uint" | "double", _) => Kind::Scalar,
        _ => Kind::Any,
    }
}

/// Whether an expression may be of a type.
pub(super) fn may_be_bool(kind: Kind<'_>) -> bool {
    match kind {
        Kind::Bool | Kind::Any => true,
        Kind::Of(place) => matches!(place.node.kind, Some(Type::Boolean)),
        Kind::Maybe(_) | Kind::Text | Kind::Scalar => false,
    }
}

/// Whether an expression may be a text.
pub(super) fn may_be_text(kind: Kind<'_>) -> bool {
    match kind {
        Kind::Text | Kind::Any => true,
        Kind::Of(place) => matches!(place.node.kind, Some(Type::Text)),
        Kind::Maybe(_) | Kind::Bool | Kind::Scalar => false,
    }
}

fn qualified(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified(&select.operand)?, select.field))
        }
        _ => None,
    }
}
