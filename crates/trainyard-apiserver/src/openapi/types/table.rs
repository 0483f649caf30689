//! The table of types, read from the embedded text when it is first asked for.
//!
//! Owns the text's grammar: a line with the name of a type, then one line per field, indented: name
//! (with `@Embedded` when it comes from an embedded type), options and numbers, type, merge strategy,
//! merge key.

use std::{collections::HashMap, sync::LazyLock};

/// Raw deflate, made by `data/make.py`.
static PACKED: &[u8] = include_bytes!("../../../data/types.z");

/// No table is larger; a broken one is empty.
const LARGEST: usize = 1 << 20;

pub(crate) static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let text = miniz_oxide::inflate::decompress_to_vec_with_limit(PACKED, LARGEST)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default();
    Table::read(Box::leak(text.into_boxed_str()))
});

/// Where a type stands in the table.
pub(crate) type At = u16;

pub(crate) struct Table {
    nodes: Vec<Node>,
    named: HashMap<&'static str, At>,
    /// What stands for a type that is not there.
    unknown: Node,
}

/// A type, together with how a field of it is merged.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) form: Form,
    /// Its name in messages, as `v1.PodSpec`.
    pub(crate) told: Box<str>,
    pub(crate) strategy: Strategy,
    pub(crate) merge_key: &'static str,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Strategy {
    #[default]
    Replace,
    Merge,
    RetainKeys,
    MergeRetainKeys,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Boolean,
    Int32,
    Int64,
    Float,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    Any,
    /// A schema or `true`/`false`.
    OrBool,
    /// A schema or several.
    OrArray,
    /// A schema or names of fields.
    OrStrings,
    List(At),
    Map(At),
    Struct(std::sync::Arc<[Field]>),
}

/// A field of a type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// The embedded type it comes from, if so.
    pub(crate) within: &'static str,
    pub(crate) node: At,
    /// Left out when empty.
    pub(crate) omit_empty: bool,
    /// Left out when zero, structs too.
    pub(crate) omit_zero: bool,
    /// Empty is not absent.
    pub(crate) pointer: bool,
    /// Its number in the binary form, after those of the embedded types it is in. Empty when it has
    /// none there.
    pub(crate) numbers: Box<[u8]>,
}

impl Table {
    pub(crate) fn named(&self, name: &str) -> Option<&Node> {
        self.named.get(name).map(|at| self.node(*at))
    }

    pub(crate) fn node(&self, at: At) -> &Node {
        self.nodes.get(usize::from(at)).unwrap_or(&self.unknown)
    }

    fn read(text: &'static str) -> Self {
        let mut builder = Builder::default();
        for line in text.lines() {
            match line.strip_prefix(' ') {
                None => builder.bodies.push((line, Vec::new())),
                Some(field) => {
                    if let Some((_, fields)) = builder.bodies.last_mut() {
                        fields.push(field);
                    }
                }
            }
        }
        builder.places =
            builder.bodies.iter().enumerate().map(|(place, (name, _))| (*name, place)).collect();
        let names: Vec<&'static str> = builder.bodies.iter().map(|(name, _)| *name).collect();
        for name in names {
            builder.type_of(name, "", "");
        }
        let by_name = builder
            .known
            .iter()
            .filter_map(|(key, at)| {
                Some((builder.bodies.get(*builder.places.get(key.as_str())?)?.0, *at))
            })
            .collect();
        Self { nodes: builder.nodes, named: by_name, unknown: Node::new(Form::Any, "") }
    }
}

impl Node {
    fn new(form: Form, told: &str) -> Self {
        Self { form, told: told.into(), strategy: Strategy::Replace, merge_key: "" }
    }
}

/// The table while it is read.
#[derive(Default)]
struct Builder {
    bodies: Vec<(&'static str, Vec<&'static str>)>,
    places: HashMap<&'static str, usize>,
    nodes: Vec<Node>,
    /// By expression, strategy and key.
    known: HashMap<String, At>,
}

impl Builder {
    /// The place of a type; made when it is not there yet. The place is taken before the parts are
    /// read, since types may lead back to themselves.
    fn type_of(
        &mut self,
        expression: &'static str,
        strategy: &'static str,
        merge_key: &'static str,
    ) -> At {
        let key = if strategy.is_empty() {
            expression.to_owned()
        } else {
            format!("{expression} {strategy} {merge_key}")
        };
        if let Some(at) = self.known.get(&key) {
            return *at;
        }
        let at = At::try_from(self.nodes.len()).unwrap_or(At::MAX);
        self.known.insert(key, at);
        self.nodes.push(Node::new(Form::Any, ""));
        let form = self.form(expression);
        let node = Node {
            form,
            told: told(expression).into(),
            strategy: strategy_of(strategy),
            merge_key,
        };
        if let Some(place) = self.nodes.get_mut(usize::from(at)) {
            *place = node;
        }
        at
    }

    fn form(&mut self, expression: &'static str) -> Form {
        if let Some(element) = expression.strip_prefix("[]") {
            return Form::List(self.type_of(element.trim_start_matches('*'), "", ""));
        }
        if let Some(rest) = expression.strip_prefix("map[") {
            let value = rest.split_once(']').map_or("!any", |(_, value)| value);
            return Form::Map(self.type_of(value.trim_start_matches('*'), "", ""));
        }
        match expression {
            "string" => Form::Text,
            "bool" => Form::Boolean,
            "int32" => Form::Int32,
            "int64" | "int" => Form::Int64,
            "float64" => Form::Float,
            "!bytes" => Form::Bytes,
            "!time" => Form::Time,
            "!microtime" => Form::MicroTime,
            "!quantity" => Form::Quantity,
            "!intorstring" => Form::IntOrString,
            "!orbool" => Form::OrBool,
            "!orarray" => Form::OrArray,
            "!orstrings" => Form::OrStrings,
            name => self.named_form(name),
        }
    }

    fn named_form(&mut self, name: &'static str) -> Form {
        let Some((_, lines)) = self.places.get(name).and_then(|place| self.bodies.get(*place))
        else {
            return Form::Any;
        };
        let lines = lines.clone();
        if let Some(alias) = lines.first().and_then(|line| line.strip_prefix("= ")) {
            return self.form(alias);
        }
        // The same type under another strategy shares its fields.
        let shared = self.known.get(name).and_then(|at| self.nodes.get(usize::from(*at)));
        if let Some(Form::Struct(fields)) = shared.map(|node| &node.form) {
            return Form::Struct(std::sync::Arc::clone(fields));
        }
        Form::Struct(lines.into_iter().map(|line| self.field(line)).collect())
    }

    fn field(&mut self, line: &'static str) -> Field {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let options = words.next().unwrap_or_default();
        let expression = words.next().unwrap_or_default();
        let strategy = words.next().unwrap_or_default();
        let merge_key = words.next().unwrap_or_default();
        let (name, within) = name.split_once('@').unwrap_or((name, ""));
        let (options, numbers) = options.split_once(':').unwrap_or((options, ""));
        let pointed = expression.strip_prefix('*');
        Field {
            name,
            within,
            node: self.type_of(pointed.unwrap_or(expression), strategy, merge_key),
            omit_empty: options.contains('o'),
            omit_zero: options.contains('z'),
            pointer: pointed.is_some(),
            numbers: numbers.split('.').filter_map(|number| number.parse().ok()).collect(),
        }
    }
}

fn strategy_of(word: &str) -> Strategy {
    match word {
        "merge" => Strategy::Merge,
        "retainKeys" => Strategy::RetainKeys,
        "merge,retainKeys" => Strategy::MergeRetainKeys,
        _ => Strategy::Replace,
    }
}

/// A type as the language's messages name it: by its package's last word.
fn told(expression: &str) -> String {
    let start = expression.rfind(']').map_or(0, |at| at + 1);
    let (before, name) = expression.split_at(start);
    let before = before.replace("core.", "v1.");
    let name = match name {
        "!bytes" => "[]uint8".to_owned(),
        "!quantity" => "resource.Quantity".to_owned(),
        "!intorstring" => "intstr.IntOrString".to_owned(),
        "!time" => "v1.Time".to_owned(),
        "!microtime" => "v1.MicroTime".to_owned(),
        _ => match name.split_once('.') {
            Some(("types", word)) => format!("types.{word}"),
            Some((_, word)) => format!("v1.{word}"),
            None => name.to_owned(),
        },
    };
    before + &name
}
