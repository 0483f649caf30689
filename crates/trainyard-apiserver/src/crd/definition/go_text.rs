//! Parts of a definition as the real server prints them in its refusals: with the names and the
//! order of the fields of its own types.
//!
//! Owns nothing but that form.

use serde_json::Value;
use trainyard_schema::{Fault, FieldError, golang};

use super::parts::list;

/// How the value of a field is printed.
enum Form {
    Text,
    Flag,
    /// As it is, or null.
    Plain,
    Schema,
    Schemas,
    Named,
    Items,
    OrFlag,
    Rules,
}

const SCHEMA: [(&str, &str, Form); 44] = [
    ("ID", "id", Form::Text),
    ("Schema", "$schema", Form::Text),
    ("Ref", "$ref", Form::Plain),
    ("Description", "description", Form::Text),
    ("Type", "type", Form::Text),
    ("Nullable", "nullable", Form::Flag),
    ("Format", "format", Form::Text),
    ("Title", "title", Form::Text),
    ("Default", "default", Form::Plain),
    ("Maximum", "maximum", Form::Plain),
    ("ExclusiveMaximum", "exclusiveMaximum", Form::Flag),
    ("Minimum", "minimum", Form::Plain),
    ("ExclusiveMinimum", "exclusiveMinimum", Form::Flag),
    ("MaxLength", "maxLength", Form::Plain),
    ("MinLength", "minLength", Form::Plain),
    ("Pattern", "pattern", Form::Text),
    ("MaxItems", "maxItems", Form::Plain),
    ("MinItems", "minItems", Form::Plain),
    ("UniqueItems", "uniqueItems", Form::Flag),
    ("MultipleOf", "multipleOf", Form::Plain),
    ("Enum", "enum", Form::Plain),
    ("MaxProperties", "maxProperties", Form::Plain),
    ("MinProperties", "minProperties", Form::Plain),
    ("Required", "required", Form::Plain),
    ("Items", "items", Form::Items),
    ("AllOf", "allOf", Form::Schemas),
    ("OneOf", "oneOf", Form::Schemas),
    ("AnyOf", "anyOf", Form::Schemas),
    ("Not", "not", Form::Schema),
    ("Properties", "properties", Form::Named),
    ("AdditionalProperties", "additionalProperties", Form::OrFlag),
    ("PatternProperties", "patternProperties", Form::Named),
    ("Dependencies", "dependencies", Form::Named),
    ("AdditionalItems", "additionalItems", Form::OrFlag),
    ("Definitions", "definitions", Form::Named),
    ("ExternalDocs", "externalDocs", Form::Plain),
    ("Example", "example", Form::Plain),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Form::Plain),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Form::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Form::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Form::Plain),
    ("XListType", "x-kubernetes-list-type", Form::Plain),
    ("XMapType", "x-kubernetes-map-type", Form::Plain),
    ("XValidations", "x-kubernetes-validations", Form::Rules),
];

/// The keywords of a schema in the order of the real server's type, with its names for them.
pub(super) fn keywords() -> impl Iterator<Item = (&'static str, &'static str)> {
    SCHEMA.iter().map(|(name, keyword, _)| (*name, *keyword))
}

/// A refusal that shows a value in this form.
pub(super) fn refused(path: String, shown: &str, words: &str) -> FieldError {
    FieldError { fault: Fault::Invalid, path, value: None, detail: format!("{shown}: {words}") }
}

/// A schema.
pub(super) fn schema(schema: &Value) -> String {
    let fields: Vec<String> = SCHEMA
        .iter()
        .map(|(name, keyword, form)| {
            let value = schema.get(*keyword).unwrap_or(&Value::Null);
            format!("\"{name}\":{}", shown(value, form))
        })
        .collect();
    format!("{{{}}}", fields.join(","))
}

fn shown(value: &Value, form: &Form) -> String {
    match (form, value) {
        (Form::Text, Value::Null) => "\"\"".to_owned(),
        (Form::Flag, Value::Null) => "false".to_owned(),
        (_, Value::Null) => "null".to_owned(),
        (Form::Text | Form::Flag | Form::Plain, value) => golang::json(value),
        (Form::Schema, value) => schema(value),
        (Form::Schemas, value) => joined(list(value).iter().map(schema)),
        (Form::Items, Value::Array(schemas)) => {
            format!("{{\"Schema\":null,\"JSONSchemas\":{}}}", joined(schemas.iter().map(schema)))
        }
        (Form::Items, value) => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", schema(value)),
        (Form::OrFlag, Value::Bool(allows)) => {
            format!("{{\"Allows\":{allows},\"Schema\":null}}")
        }
        (Form::OrFlag, value) => format!("{{\"Allows\":true,\"Schema\":{}}}", schema(value)),
        (Form::Rules, value) => joined(list(value).iter().map(rule)),
        (Form::Named, value) => {
            let members = value.as_object().into_iter().flatten();
            let members = members.map(|(name, child)| {
                format!("{}:{}", golang::json(&Value::from(name.as_str())), schema(child))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
    }
}

fn joined(texts: impl Iterator<Item = String>) -> String {
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}

/// A rule.
pub(super) fn rule(rule: &Value) -> String {
    let text = |keyword: &str| shown(rule.get(keyword).unwrap_or(&Value::Null), &Form::Text);
    let plain = |keyword: &str| shown(rule.get(keyword).unwrap_or(&Value::Null), &Form::Plain);
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\
         \"OptionalOldSelf\":{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        plain("reason"),
        text("fieldPath"),
        plain("optionalOldSelf"),
    )
}

/// All versions; what they share is printed as missing, since it stands above them there.
pub(super) fn versions(versions: &[Value], is_shared: &dyn Fn(&str) -> bool) -> String {
    joined(versions.iter().map(|version| {
        let flag = |name: &str| shown(&version[name], &Form::Flag);
        let own = |name: &str| -> &Value {
            if is_shared(name) { &Value::Null } else { version.get(name).unwrap_or(&Value::Null) }
        };
        let described = match own("schema") {
            Value::Null => "null".to_owned(),
            own => {
                format!("{{\"OpenAPIV3Schema\":{}}}", shown(&own["openAPIV3Schema"], &Form::Schema))
            }
        };
        format!(
            "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\
             \"DeprecationWarning\":{},\"Schema\":{described},\"Subresources\":{},\
             \"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
            shown(&version["name"], &Form::Text),
            flag("served"),
            flag("storage"),
            flag("deprecated"),
            shown(&version["deprecationWarning"], &Form::Plain),
            shown(own("subresources"), &Form::Plain),
            shown(own("additionalPrinterColumns"), &Form::Plain),
            shown(own("selectableFields"), &Form::Plain),
        )
    }))
}
