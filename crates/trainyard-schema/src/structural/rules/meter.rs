//! Makes a compiled rule pay for what it does.
//!
//! Owns where the calls of the account stand: at each turn of a loop, around what builds a value, and in
//! the place of the lists that loops build. Pure.

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};

use super::{
    budget,
    functions::{DYNAMIC_MATCHES, OPTIONAL_FIELD, PRECISE},
    program::{call, children},
};

/// Calls whose result may be as large as what they are given, or larger.
const BUILDERS: [&str; 21] = [
    operators::ADD,
    "replace",
    "join",
    "format",
    "split",
    "string",
    "bytes",
    "lowerAscii",
    "upperAscii",
    "trim",
    "substring",
    "quote",
    "encode",
    "decode",
    "find",
    "findAll",
    "reverse",
    "slice",
    "flatten",
    "sort",
    "range",
];
/// A loop that names what it is about more often pays for that: it is copied each time.
const FEW: i64 = 8;
/// Of the sums in a chain (`a + b + c`) one in so many pays.
const CHAIN: usize = 4;

/// Makes an expression pay.
pub(super) fn metered(expression: &mut IdedExpr) {
    Meter::default().visit(expression);
}

/// How far it has come.
#[derive(Default)]
struct Meter {
    /// How many loops there were.
    loops: i64,
}

impl Meter {
    fn visit(&mut self, expression: &mut IdedExpr) {
        match &mut expression.expr {
            Expr::Call(_) => self.call(expression, 0),
            Expr::Select(select) => self.visit(&mut select.operand),
            Expr::List(list) => list.elements.iter_mut().for_each(|one| self.element(one)),
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                        self.element(&mut entry.key);
                        self.element(&mut entry.value);
                    }
                }
            }
            Expr::Comprehension(inner) => self.comprehension(inner),
            _ => {}
        }
    }

    /// Part of a list or map: it is copied into it.
    fn element(&mut self, expression: &mut IdedExpr) {
        self.visit(expression);
        let is_paid =
            matches!(&expression.expr, Expr::Call(call) if call.func_name == budget::MADE);
        if !is_paid && !matches!(expression.expr, Expr::Literal(_)) {
            wrap(expression, budget::MADE);
        }
    }

    /// A call, which stands so deep in a chain of sums.
    fn call(&mut self, expression: &mut IdedExpr, chain: usize) {
        let Expr::Call(inner) = &mut expression.expr else { return };
        if let Some(target) = &mut inner.target {
            self.visit(target);
        }
        let is_sum = inner.func_name == operators::ADD;
        for (at, argument) in inner.args.iter_mut().enumerate() {
            match &argument.expr {
                Expr::Call(first) if is_sum && at == 0 && first.func_name == operators::ADD => {
                    self.call(argument, chain + 1);
                }
                _ => self.visit(argument),
            }
        }
        match inner.func_name.as_str() {
            // The library's own takes a missing field for an error.
            operators::OPT_SELECT => OPTIONAL_FIELD.clone_into(&mut inner.func_name),
            "format" => {
                if let Some(target) = &mut inner.target {
                    wrap(target, PRECISE);
                }
            }
            "matches" if !matches!(inner.args.last(), Some(last) if is_literal(last)) => {
                DYNAMIC_MATCHES.clone_into(&mut inner.func_name);
            }
            "distinct" => inner.target.iter_mut().for_each(|target| wrap(target, budget::PAIRS)),
            _ if is_of_sets(inner) => {
                inner.args.iter_mut().for_each(|argument| wrap(argument, budget::PAIRS));
            }
            _ => {}
        }
        // Each call takes room on the stack, and chains may be long.
        if BUILDERS.contains(&inner.func_name.as_str()) && chain.is_multiple_of(CHAIN) {
            wrap(expression, budget::MADE);
        }
    }

    fn comprehension(&mut self, inner: &mut ComprehensionExpr) {
        self.visit(&mut inner.iter_range);
        let own = [inner.iter_var.as_str(), inner.accu_var.as_str()];
        let named = mentions(&inner.loop_step, &own) + mentions(&inner.loop_cond, &own);
        let steps = steps(&inner.loop_step);
        let about = mentions(&inner.loop_step, &[]) - mentions(&inner.loop_step, &own[..1]);
        self.visit(&mut inner.loop_step);
        self.list(inner);
        let condition = std::mem::take(&mut inner.loop_cond);
        let turn = call(budget::TURN, vec![number(named), number(steps)]);
        inner.loop_cond = guarded(turn, condition);
        if about > FEW {
            let variable = IdedExpr { id: 0, expr: Expr::Ident(inner.iter_var.clone()) };
            let item = call(budget::ITEM, vec![variable, number(about)]);
            let step = std::mem::take(&mut inner.loop_step);
            inner.loop_step = guarded(item, step);
        }
    }

    /// A loop that builds a list (`map`, `filter`) builds it in one place: by the library every turn copies
    /// all of it.
    fn list(&mut self, inner: &mut ComprehensionExpr) {
        self.loops += 1;
        let number_of_loop = || number(self.loops);
        let is_list = matches!(&inner.accu_init.expr, Expr::List(list) if list.elements.is_empty());
        if !is_list || !is_named(&inner.result, &inner.accu_var) {
            return;
        }
        let grows = match &mut inner.loop_step.expr {
            Expr::Call(choice) if choice.func_name == operators::CONDITIONAL => {
                choice.args.get_mut(1)
            }
            _ => Some(&mut inner.loop_step),
        };
        let Some(grows) = grows else { return };
        let Some(element) = grown(grows, &inner.accu_var) else { return };
        *grows = call(budget::PUSH, vec![number_of_loop(), element]);
        inner.accu_init = call(budget::BEGIN, vec![number_of_loop()]);
        inner.result = call(budget::LIST, vec![number_of_loop()]);
    }
}

/// The element in `list + [element]`, when that is what an expression says.
fn grown(expression: &IdedExpr, list: &str) -> Option<IdedExpr> {
    let Expr::Call(made) = &expression.expr else { return None };
    let inner = match made.args.as_slice() {
        [inner] if made.func_name == budget::MADE => inner,
        _ => expression,
    };
    let Expr::Call(added) = &inner.expr else { return None };
    let [first, second] = added.args.as_slice() else { return None };
    let Expr::List(second) = &second.expr else { return None };
    let [element] = second.elements.as_slice() else { return None };
    let is_it = added.func_name == operators::ADD && is_named(first, list);
    // What is added is paid for when it is added.
    let element = match &element.expr {
        Expr::Call(made) if made.func_name == budget::MADE => made.args.first()?,
        _ => element,
    };
    is_it.then(|| element.clone())
}

fn is_named(expression: &IdedExpr, name: &str) -> bool {
    matches!(&expression.expr, Expr::Ident(named) if named == name)
}

fn is_literal(expression: &IdedExpr) -> bool {
    matches!(expression.expr, Expr::Literal(_))
}

fn is_of_sets(inner: &CallExpr) -> bool {
    matches!(&inner.target, Some(target) if is_named(target, "sets"))
}

/// How often an expression names something that is not its own: each may copy it.
fn mentions(expression: &IdedExpr, own: &[&str]) -> i64 {
    match &expression.expr {
        Expr::Ident(name) => i64::from(!own.contains(&name.as_str())),
        // Loops inside pay for their own turns.
        Expr::Comprehension(inner) => mentions(&inner.iter_range, own),
        _ => children(expression).into_iter().map(|child| mentions(child, own)).sum(),
    }
}

/// How much an expression does besides: its calls and the texts that it holds.
fn steps(expression: &IdedExpr) -> i64 {
    match &expression.expr {
        Expr::Comprehension(inner) => 1 + steps(&inner.iter_range),
        Expr::Literal(LiteralValue::String(text)) => {
            i64::try_from(budget::of_text(text.inner().len())).unwrap_or(i64::MAX)
        }
        Expr::Ident(_) | Expr::Literal(_) => 0,
        _ => children(expression).into_iter().map(steps).fold(1, i64::saturating_add),
    }
}

fn guarded(guard: IdedExpr, expression: IdedExpr) -> IdedExpr {
    let no = literal(LiteralValue::Boolean(false.into()));
    call(operators::CONDITIONAL, vec![guard, expression, no])
}

fn literal(value: LiteralValue) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Literal(value) }
}

fn number(value: i64) -> IdedExpr {
    literal(LiteralValue::Int(value.into()))
}

/// Puts a call of one argument around an expression.
fn wrap(expression: &mut IdedExpr, name: &str) {
    let inner = std::mem::take(expression);
    *expression = call(name, vec![inner]);
}
