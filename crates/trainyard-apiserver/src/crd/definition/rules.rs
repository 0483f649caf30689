//! The rules of a schema: whether each can be read and asked where it stands.

use std::collections::HashMap;

use serde_json::Value;
use trainyard_schema::{
    FieldError,
    structural::{RuleReport, Schema},
};

use super::{
    go_text,
    openapi::Place,
    parts::{is_given, list, text},
};

const KEYWORD: &str = "x-kubernetes-validations";
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// What is known of all rules of a schema.
#[derive(Default)]
pub(super) struct RuleBook {
    reports: HashMap<String, Vec<RuleReport>>,
}

impl RuleBook {
    /// Compiles the rules of a schema that is structural.
    pub(super) fn read(written: &Value) -> Self {
        let mut reports: HashMap<String, Vec<RuleReport>> = HashMap::new();
        let read = Schema::parse(written).map(|schema| schema.rule_reports()).unwrap_or_default();
        for report in read {
            reports.entry(report.path.clone()).or_default().push(report);
        }
        Self { reports }
    }

    /// What is wrong with what they say.
    pub(super) fn faults(&self, written: &Value, place: &Place) -> Vec<FieldError> {
        let reports = place.steps.as_ref().and_then(|steps| self.reports.get(steps));
        let mut errors = Vec::new();
        for report in reports.into_iter().flatten() {
            let Some(rule) = list(&written[KEYWORD]).get(report.index) else { continue };
            let path = format!("{}.{KEYWORD}[{}]", place.path, report.index);
            let shown = go_text::rule(rule);
            if let Some(fault) = &report.rule_fault {
                errors.push(go_text::refused(format!("{path}.rule"), &shown, fault));
            }
            if let Some(fault) = &report.cost_fault {
                errors.push(FieldError::forbidden(format!("{path}.rule"), fault.as_str()));
            }
            if let Some(fault) = &report.message_fault {
                errors.push(go_text::refused(format!("{path}.messageExpression"), &shown, fault));
            }
            if report.compares
                && let Some(unmatched) = &place.unmatched
            {
                let words = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {unmatched}"
                );
                let path = format!("{path}.rule");
                errors.push(FieldError::invalid(path, text(&rule["rule"]), words));
            } else if !report.compares
                && report.rule_fault.is_none()
                && is_given(rule, "optionalOldSelf")
            {
                let words = "may not be set if oldSelf is not used in rule";
                let path = format!("{path}.optionalOldSelf");
                errors.push(FieldError::invalid(path, rule["optionalOldSelf"].clone(), words));
            }
        }
        errors
    }
}

/// What is wrong with the form of the rules of a schema.
pub(super) fn form_faults(written: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, rule) in list(&written[KEYWORD]).iter().enumerate() {
        form(written, rule, &format!("{path}.{KEYWORD}[{index}]"), &mut errors);
    }
    errors
}

fn form(written: &Value, rule: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let at = |field: &str| format!("{path}.{field}");
    let breaks = |text: &str| text.contains(['\n', '\r']);
    let (expression, message) = (text(&rule["rule"]).trim(), text(&rule["message"]));
    if expression.is_empty() {
        errors.push(FieldError::required(at("rule"), "rule is not specified"));
    } else if !message.is_empty() && message.trim().is_empty() {
        let words = "must be non-empty if specified";
        errors.push(FieldError::invalid(at("message"), message, words));
    } else if breaks(message.trim()) {
        errors.push(FieldError::invalid(at("message"), message, "must not contain line breaks"));
    } else if breaks(expression) && message.is_empty() {
        let words = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(at("message"), words));
    }
    let computed = text(&rule["messageExpression"]);
    if !computed.is_empty() && computed.trim().is_empty() {
        let words = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(at("messageExpression"), words));
    }
    if is_given(rule, "reason") && !REASONS.contains(&text(&rule["reason"])) {
        let reason = text(&rule["reason"]);
        errors.push(FieldError::not_supported(at("reason"), reason, &REASONS));
    }
    let field = text(&rule["fieldPath"]);
    if field.is_empty() {
        return;
    }
    if field.trim().is_empty() {
        let words = "must be non-empty if specified";
        errors.push(FieldError::invalid(at("fieldPath"), field, words));
    }
    if breaks(field) {
        errors.push(FieldError::invalid(at("fieldPath"), field, "must not contain line breaks"));
    }
    let leads = Schema::parse_part(written).map(|schema| schema.field_path(field).is_ok());
    if leads == Ok(false) {
        errors.push(FieldError::invalid(at("fieldPath"), field, "must be a valid path"));
    }
}
