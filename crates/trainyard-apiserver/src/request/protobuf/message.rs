//! Messages by the table of types: what the fields on the wire are in JSON.
//!
//! Owns how each form of a type is written on the wire. Must not know what the fields mean.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Number, Value, json};

use super::ProtobufError;
use super::wire::{Fields, Piece};
use crate::openapi::types::{Field, Form, Node, TABLE};
use crate::request::body;

/// No message nests deeper.
const DEEPEST: usize = 128;
/// No message holds more values: two bytes can be one.
const MOST: usize = body::MOST_VALUES;

/// One reading, within bounds.
pub(super) struct Reading {
    left: usize,
}

impl Reading {
    pub(super) const fn new() -> Self {
        Self { left: MOST }
    }

    /// A whole message.
    pub(super) fn object(&mut self, node: &Node, bytes: &[u8]) -> Result<Value, ProtobufError> {
        let mut value = Value::Null;
        self.merge(node, bytes, DEEPEST, &mut value)?;
        Ok(value)
    }

    /// Adds a message to what an earlier part of it said.
    fn merge(
        &mut self,
        node: &Node,
        bytes: &[u8],
        depth: usize,
        value: &mut Value,
    ) -> Result<(), ProtobufError> {
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
        match (&node.form, value) {
            (Form::Struct(fields), Value::Object(out)) => {
                let name = node.told.rsplit('.').next().unwrap_or_default();
                self.fields(fields, &[], bytes, depth, out).map_err(|error| error.within(name))
            }
            _ => Ok(()),
        }
    }

    /// The fields of a message whose own number is the last of `above` where the language embeds it:
    /// in JSON its fields stand among those of the one around it.
    fn fields(
        &mut self,
        fields: &[Field],
        above: &[u8],
        bytes: &[u8],
        depth: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        let depth = depth.checked_sub(1).ok_or(ProtobufError::Depth(DEEPEST))?;
        let mut wire = Fields::of(bytes);
        while let Some((number, piece)) = wire.next()? {
            let Ok(number) = u8::try_from(number) else { continue };
            let inner = |field: &Field| {
                let rest = field.numbers.strip_prefix(above)?;
                (*rest.first()? == number).then_some(rest.len())
            };
            let Some((field, levels)) =
                fields.iter().find_map(|field| Some((field, inner(field)?)))
            else {
                continue;
            };
            if levels > 1 {
                let bytes = message_of(field.within, &piece)?;
                self.fields(fields, &[above, &[number]].concat(), bytes, depth, out)?;
                continue;
            }
            self.field(field, &piece, depth, out)?;
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &Field,
        piece: &Piece<'_>,
        depth: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        let node = TABLE.node(field.node);
        let known = out.entry(field.name).or_insert(Value::Null);
        match &node.form {
            Form::Struct(_) => {
                self.count()?;
                self.merge(node, message_of(field.name, piece)?, depth, known)
            }
            Form::List(element) => {
                if !known.is_array() {
                    *known = Value::Array(Vec::new());
                }
                let Value::Array(items) = known else { return Ok(()) };
                self.element(field.name, TABLE.node(*element), piece, depth, items)
            }
            Form::Map(element) => {
                let entry = message_of(field.name, piece)?;
                if !known.is_object() {
                    *known = Value::Object(Map::new());
                }
                let Value::Object(members) = known else { return Ok(()) };
                let (key, value) = self.entry(TABLE.node(*element), entry, depth)?;
                members.insert(key, value);
                Ok(())
            }
            _ => {
                *known = self.value(field.name, node, piece, depth)?;
                Ok(())
            }
        }
    }

    /// One element of a list, or several numbers packed into one piece.
    fn element(
        &mut self,
        name: &str,
        node: &Node,
        piece: &Piece<'_>,
        depth: usize,
        items: &mut Vec<Value>,
    ) -> Result<(), ProtobufError> {
        match (&node.form, piece) {
            (Form::Int32 | Form::Int64 | Form::Boolean, Piece::Bytes(packed)) => {
                let mut numbers = Fields::of(packed);
                while !numbers.is_empty() {
                    let number = Piece::Varint(numbers.varint()?);
                    items.push(self.value(name, node, &number, depth)?);
                }
            }
            _ => items.push(self.value(name, node, piece, depth)?),
        }
        Ok(())
    }

    fn entry(
        &mut self,
        node: &Node,
        bytes: &[u8],
        depth: usize,
    ) -> Result<(String, Value), ProtobufError> {
        let mut wire = Fields::of(bytes);
        let (mut key, mut value) = (String::new(), None);
        while let Some((number, piece)) = wire.next()? {
            match number {
                1 => key = text(message_of("key", &piece)?),
                2 => value = Some(self.value("value", node, &piece, depth)?),
                _ => {}
            }
        }
        // What is not there is the zero of its type.
        let value = match value {
            Some(value) => value,
            None => match node.form {
                Form::Int32 | Form::Int64 => json!(0),
                Form::Boolean => json!(false),
                _ => self.value("value", node, &Piece::Bytes(&[]), depth)?,
            },
        };
        Ok((key, value))
    }

    /// A value outside of any other.
    fn value(
        &mut self,
        name: &str,
        node: &Node,
        piece: &Piece<'_>,
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        self.count()?;
        let value = match (&node.form, piece) {
            (Form::Boolean, Piece::Varint(number)) => json!(*number != 0),
            (Form::Int32, Piece::Varint(number)) => json!(low_half(*number)),
            (Form::Int64, Piece::Varint(number)) => json!(number.cast_signed()),
            (Form::Float, Piece::Fixed64(bits)) => fraction(f64::from_bits(*bits))?,
            (form, Piece::Bytes(bytes)) => match form {
                Form::Text => Value::String(text(bytes)),
                Form::Bytes => Value::String(STANDARD.encode(bytes)),
                Form::Time => moment(bytes, false)?,
                Form::MicroTime => moment(bytes, true)?,
                Form::Quantity => Value::String(quantity(bytes)?),
                Form::IntOrString => number_or_text(bytes)?,
                Form::Any => raw(bytes)?,
                Form::OrBool | Form::OrArray | Form::OrStrings => {
                    self.schema_or_else(form, bytes, depth)?
                }
                Form::Struct(_) => {
                    let mut value = Value::Null;
                    self.merge(node, bytes, depth, &mut value)?;
                    value
                }
                Form::List(element) => self.named_list(TABLE.node(*element), bytes, depth)?,
                _ => return Err(wrong(name, piece)),
            },
            _ => return Err(wrong(name, piece)),
        };
        Ok(value)
    }

    /// A list where none can stand is a message of which it is the first field.
    fn named_list(
        &mut self,
        element: &Node,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        let mut items = Vec::new();
        let mut wire = Fields::of(bytes);
        while let Some((number, piece)) = wire.next()? {
            if number == 1 {
                self.element("items", element, &piece, depth, &mut items)?;
            }
        }
        Ok(Value::Array(items))
    }

    /// A schema, or what may stand in its place.
    fn schema_or_else(
        &mut self,
        form: &Form,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        let Some(node) = TABLE.named("apiextensions.JSONSchemaProps") else {
            return Ok(Value::Null);
        };
        let (mut schema, mut items, mut allows) = (None, Vec::new(), false);
        let schema_number = if *form == Form::OrBool { 2 } else { 1 };
        let mut wire = Fields::of(bytes);
        while let Some((number, piece)) = wire.next()? {
            if number == schema_number {
                let bytes = message_of("schema", &piece)?;
                self.merge(node, bytes, depth, schema.get_or_insert(Value::Null))?;
                continue;
            }
            match (form, number, &piece) {
                (Form::OrBool, 1, Piece::Varint(is)) => allows = *is != 0,
                (Form::OrArray, 2, piece) => items.push(self.value("schemas", node, piece, depth)?),
                (Form::OrStrings, 2, piece) => {
                    self.count()?;
                    items.push(Value::String(text(message_of("property", piece)?)));
                }
                _ => {}
            }
        }
        Ok(match (form, schema) {
            (Form::OrBool, None) => json!(allows),
            // Names of fields, or several schemas, go before one schema.
            (Form::OrStrings, Some(schema)) if items.is_empty() => schema,
            (Form::OrBool, Some(schema)) => schema,
            (Form::OrArray, schema) if items.is_empty() => schema.unwrap_or(Value::Null),
            (Form::OrStrings, None) if items.is_empty() => Value::Null,
            _ => Value::Array(items),
        })
    }

    fn count(&mut self) -> Result<(), ProtobufError> {
        self.left = self.left.checked_sub(1).ok_or(ProtobufError::Many(MOST))?;
        Ok(())
    }
}

fn wrong(name: &str, piece: &Piece<'_>) -> ProtobufError {
    // The one field whose name in the language is not that in JSON with a capital.
    let name = if name == "metadata" { "objectMeta" } else { name };
    let mut letters = name.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    ProtobufError::WireType { wire: piece.wire_type(), field: first.chain(letters).collect() }
}

pub(super) fn message_of<'b>(name: &str, piece: &Piece<'b>) -> Result<&'b [u8], ProtobufError> {
    match piece {
        Piece::Bytes(bytes) => Ok(bytes),
        _ => Err(wrong(name, piece)),
    }
}

/// Text that is none is shown as the reference's JSON shows it.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The lower 32 bits with their sign, as the reference takes them.
fn low_half(number: u64) -> i32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Whole numbers are written without a fraction.
fn fraction(number: f64) -> Result<Value, ProtobufError> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        // Shorter than a cast, and as exact within these bounds.
        let whole: Option<i64> = format!("{number:.0}").parse().ok();
        if let Some(whole) = whole {
            return Ok(json!(whole));
        }
    }
    Number::from_f64(number).map(Value::Number).ok_or(ProtobufError::NotFinite)
}

/// Seconds and nanoseconds since 1970; nothing at all is no time.
fn moment(bytes: &[u8], is_micro: bool) -> Result<Value, ProtobufError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    let mut wire = Fields::of(bytes);
    while let Some((number, piece)) = wire.next()? {
        match (number, piece) {
            (1, Piece::Varint(number)) => seconds = number.cast_signed(),
            (2, Piece::Varint(number)) => nanos = low_half(number),
            (1 | 2, piece) => return Err(wrong("seconds", &piece)),
            _ => {}
        }
    }
    let fraction = SignedDuration::from_micros(i64::from(nanos) / 1000);
    let moment = Timestamp::from_second(seconds).and_then(|moment| moment.checked_add(fraction));
    let moment = moment.map_err(|_| ProtobufError::Year)?;
    Ok(if is_micro {
        json!(moment.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
    } else {
        let whole = Timestamp::from_second(seconds).map_err(|_| ProtobufError::Year)?;
        json!(whole.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    })
}

fn quantity(bytes: &[u8]) -> Result<String, ProtobufError> {
    let mut wire = Fields::of(bytes);
    let mut told = None;
    while let Some((number, piece)) = wire.next()? {
        if number == 1 {
            told = Some(text(message_of("string", &piece)?));
        }
    }
    Ok(told.unwrap_or_else(|| "0".to_owned()))
}

fn number_or_text(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut word) = (false, 0, String::new());
    let mut wire = Fields::of(bytes);
    while let Some((place, piece)) = wire.next()? {
        match (place, piece) {
            (1, Piece::Varint(form)) => is_text = form == 1,
            (2, Piece::Varint(value)) => number = low_half(value),
            (3, piece) => word = text(message_of("strVal", &piece)?),
            (1 | 2, piece) => return Err(wrong("intVal", &piece)),
            _ => {}
        }
    }
    Ok(if is_text { json!(word) } else { json!(number) })
}

/// JSON inside of a message.
fn raw(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut wire = Fields::of(bytes);
    let mut value = Value::Null;
    while let Some((number, piece)) = wire.next()? {
        let bytes = match (number, &piece) {
            (1, piece) => message_of("raw", piece)?,
            _ => continue,
        };
        value = match bytes {
            [] => Value::Null,
            bytes => body::read(bytes).map_err(ProtobufError::Json)?.value,
        };
    }
    Ok(value)
}
