//! Reading an object by its type: what the real server's decoder and encoder together make of it.
//!
//! Owns the words for values of the wrong type and for unknown fields. Must not know any kind.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{
    scalar,
    table::{Field, Form, Node, TABLE},
};

/// No more unknown fields are told.
const MOST_UNKNOWN: usize = 100;

/// One reading.
#[derive(Default)]
pub(super) struct Reader {
    unknown: Vec<String>,
    /// The first value of a wrong type; reading goes on after it.
    wrong: Option<String>,
    /// Where we are, for unknown fields: `spec.containers[0]`.
    path: String,
    /// Where we are, for wrong types: `spec.containers`.
    stack: Vec<&'static str>,
    /// The type whose field we are in.
    within: Box<str>,
    /// Inside a part that reads itself nothing is unknown.
    lenient: bool,
}

/// Ends the reading at once.
type Abort = String;

impl Reader {
    /// Reads a whole object; the unknown fields are told.
    pub(super) fn object(mut self, node: &Node, object: &mut Value) -> Result<Vec<String>, String> {
        self.value(node, object)?;
        match self.wrong {
            Some(wrong) => Err(wrong),
            None => Ok(self.unknown),
        }
    }

    fn value(&mut self, node: &Node, value: &mut Value) -> Result<(), Abort> {
        match &node.form {
            Form::Any => {}
            Form::Struct(fields) => return self.fields(node, fields, value),
            Form::List(element) => return self.list(node, TABLE.node(*element), value),
            Form::Map(element) => return self.map(node, TABLE.node(*element), value),
            Form::OrBool | Form::OrArray | Form::OrStrings => {
                return self.schema_or_else(&node.form, value);
            }
            Form::Time | Form::MicroTime | Form::Quantity | Form::IntOrString => {
                return self.speaking(&node.form, value);
            }
            Form::Text if matches!(value, Value::String(_)) => {}
            Form::Boolean if matches!(value, Value::Bool(_)) => {}
            Form::Bytes => self.bytes(node, value),
            Form::Int32 | Form::Int64 | Form::Float => self.number(node, value),
            Form::Text | Form::Boolean => self.mismatch(node, value),
        }
        Ok(())
    }

    fn fields(&mut self, node: &Node, fields: &[Field], value: &mut Value) -> Result<(), Abort> {
        let Value::Object(object) = value else {
            self.mismatch(node, value);
            return Ok(());
        };
        if self.has_unknown(fields, object) {
            object.retain(|key, _| place_of(fields, key).is_some());
        }
        let name = node.told.rsplit('.').next().unwrap_or_default();
        for field in fields {
            let child = TABLE.node(field.node);
            let Some(mut found) = object.remove(field.name) else {
                self.absent(field, child, object)?;
                continue;
            };
            if found.is_null() {
                self.absent(field, child, object)?;
                continue;
            }
            let above = std::mem::replace(&mut self.within, name.into());
            let (path, depth) = (self.path.len(), self.stack.len());
            self.enter(field.name);
            self.stack.extend(field.within.split('@').filter(|word| !word.is_empty()));
            self.stack.push(field.name);
            self.value(child, &mut found)?;
            self.path.truncate(path);
            self.stack.truncate(depth);
            self.within = above;
            if is_kept(field, child, &found) {
                object.insert(field.name.to_owned(), written(field, child, found));
            }
        }
        Ok(())
    }

    /// What is written for a field that is not there.
    fn absent(
        &mut self,
        field: &Field,
        child: &Node,
        object: &mut Map<String, Value>,
    ) -> Result<(), Abort> {
        if field.pointer {
            if !field.omit_empty && !field.omit_zero {
                object.insert(field.name.to_owned(), Value::Null);
            }
            return Ok(());
        }
        if field.omit_zero {
            return Ok(());
        }
        let zero = match &child.form {
            Form::Struct(fields) => {
                let mut zero = json!({});
                // Nothing in it can be wrong or unknown.
                self.fields(child, fields, &mut zero)?;
                zero
            }
            Form::Quantity => json!("0"),
            Form::IntOrString => scalar::zero_number(),
            Form::Time | Form::MicroTime => Value::Null,
            _ if field.omit_empty => return Ok(()),
            Form::Text => json!(""),
            Form::Boolean => json!(false),
            Form::Int32 | Form::Int64 | Form::Float => scalar::zero_number(),
            _ => Value::Null,
        };
        object.insert(field.name.to_owned(), zero);
        Ok(())
    }

    fn has_unknown(&mut self, fields: &[Field], object: &Map<String, Value>) -> bool {
        let mut found = false;
        for key in object.keys().filter(|key| place_of(fields, key).is_none()) {
            found = true;
            if !self.lenient && self.unknown.len() < MOST_UNKNOWN {
                let dot = if self.path.is_empty() { "" } else { "." };
                self.unknown.push(format!("{}{dot}{key}", self.path));
            }
        }
        found
    }

    fn list(&mut self, node: &Node, element: &Node, value: &mut Value) -> Result<(), Abort> {
        let Value::Array(items) = value else {
            self.mismatch(node, value);
            return Ok(());
        };
        let path = self.path.len();
        for (at, item) in items.iter_mut().enumerate() {
            // Writing into a text cannot fail.
            let _ = write!(self.path, "[{at}]");
            self.element(element, item)?;
            self.path.truncate(path);
        }
        Ok(())
    }

    fn map(&mut self, node: &Node, element: &Node, value: &mut Value) -> Result<(), Abort> {
        let Value::Object(entries) = value else {
            self.mismatch(node, value);
            return Ok(());
        };
        let path = self.path.len();
        for (key, item) in entries.iter_mut() {
            self.enter(key);
            self.element(element, item)?;
            self.path.truncate(path);
        }
        Ok(())
    }

    /// An element of a list or map: null stands for the zero of its type.
    fn element(&mut self, node: &Node, item: &mut Value) -> Result<(), Abort> {
        if item.is_null() {
            *item = match &node.form {
                Form::Struct(_) => json!({}),
                Form::Text | Form::Bytes => json!(""),
                Form::Boolean => json!(false),
                Form::Int32 | Form::Int64 | Form::Float | Form::IntOrString => {
                    scalar::zero_number()
                }
                Form::Quantity => json!("0"),
                _ => return Ok(()),
            };
        }
        self.value(node, item)
    }

    fn enter(&mut self, key: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
    }

    fn bytes(&mut self, node: &Node, value: &mut Value) {
        match value {
            Value::String(text) => match scalar::bytes(text) {
                Ok(canonical) => *text = canonical,
                Err(wrong) => self.note(wrong),
            },
            _ => self.mismatch(node, value),
        }
    }

    fn number(&mut self, node: &Node, value: &Value) {
        let Value::Number(number) = value else { return self.mismatch(node, value) };
        let fits = match node.form {
            Form::Int32 => scalar::is_integer(number, i32::MIN.into(), i32::MAX.into()),
            Form::Int64 => scalar::is_integer(number, i64::MIN, i64::MAX),
            _ => true,
        };
        if !fits {
            self.mismatch_as(node, &format!("number {number}"));
        }
    }

    /// Values whose types read themselves; what they say against one ends the reading.
    fn speaking(&mut self, form: &Form, value: &mut Value) -> Result<(), Abort> {
        let canonical = match (form, &*value) {
            (Form::Quantity, value) => scalar::quantity(value)?,
            (Form::Time, Value::String(text)) => scalar::time(text)?,
            (Form::MicroTime, Value::String(text)) => scalar::micro_time(text)?,
            (Form::IntOrString, Value::String(_)) => return Ok(()),
            (Form::IntOrString, Value::Number(number)) => {
                if scalar::is_integer(number, i32::MIN.into(), i32::MAX.into()) {
                    return Ok(());
                }
                return Err(self.misfit(&format!("number {number}"), "int32"));
            }
            (form, value) => {
                let wanted = if *form == Form::IntOrString { "int32" } else { "string" };
                return Err(self.misfit(told(value), wanted));
            }
        };
        *value = Value::String(canonical);
        Ok(())
    }

    fn schema_or_else(&mut self, form: &Form, value: &mut Value) -> Result<(), Abort> {
        let Some(schema) = TABLE.named("apiextensions.JSONSchemaProps") else { return Ok(()) };
        // Such a part is read on its own: messages start anew and unknown fields pass silently.
        let outer = std::mem::take(self);
        self.lenient = true;
        let done = match value {
            Value::Object(_) => self.value(schema, value),
            Value::Array(items) if *form == Form::OrArray => {
                items.iter_mut().try_for_each(|item| self.value(schema, item))
            }
            Value::Bool(_) if *form == Form::OrBool => Ok(()),
            _ if *form == Form::OrBool => Err("boolean or JSON schema expected".to_owned()),
            _ => Ok(()),
        };
        let inner = std::mem::replace(self, outer);
        done?;
        inner.wrong.map_or(Ok(()), Err)
    }

    fn mismatch(&mut self, node: &Node, value: &Value) {
        self.mismatch_as(node, told(value));
    }

    fn mismatch_as(&mut self, node: &Node, what: &str) {
        let wrong = self.misfit(what, &node.told);
        self.note(wrong);
    }

    fn misfit(&self, what: &str, wanted: &str) -> String {
        let place = if self.stack.is_empty() {
            "value".to_owned()
        } else {
            format!("struct field {}.{}", self.within, self.stack.join("."))
        };
        format!("json: cannot unmarshal {what} into Go {place} of type {wanted}")
    }

    fn note(&mut self, wrong: String) {
        self.wrong.get_or_insert(wrong);
    }
}

fn place_of(fields: &[Field], name: &str) -> Option<usize> {
    fields.iter().position(|field| field.name == name)
}

/// Whether a field that is there is written again.
fn is_kept(field: &Field, child: &Node, value: &Value) -> bool {
    if field.pointer || !field.omit_empty {
        return true;
    }
    match (&child.form, value) {
        (Form::Struct(_), Value::Object(object)) => !(field.omit_zero && object.is_empty()),
        (_, Value::Object(object)) => !object.is_empty(),
        (_, Value::Array(items)) => !items.is_empty(),
        (Form::Text | Form::Bytes, Value::String(text)) => !text.is_empty(),
        (_, Value::Bool(is)) => *is,
        (Form::Int32 | Form::Int64 | Form::Float, Value::Number(number)) => {
            number.as_f64() != Some(0.0)
        }
        (_, Value::Null) => false,
        _ => true,
    }
}

/// An empty list that is always written is written as none: the real store does not tell them apart.
fn written(field: &Field, child: &Node, value: Value) -> Value {
    match (&child.form, &value) {
        (Form::List(_), Value::Array(items)) if items.is_empty() && !field.pointer => Value::Null,
        (Form::Map(_), Value::Object(entries)) if entries.is_empty() && !field.pointer => {
            Value::Null
        }
        _ => value,
    }
}

/// A value's type in the words of the real decoder.
fn told(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
