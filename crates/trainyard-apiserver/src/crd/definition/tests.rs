//! Definitions put to the check, with the answers of a real server of version 1.36.

use serde_json::{Value, json};

use super::*;

fn version(name: &str, stored: bool, schema: &Value) -> Value {
    json!({"name": name, "served": true, "storage": stored, "schema": {"openAPIV3Schema": schema}})
}

fn definition(versions: &Value) -> Value {
    json!({
        "metadata": {"name": "things.probe.example.com"},
        "spec": {
            "group": "probe.example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"}, "versions": versions,
        },
    })
}

fn told(mut definition: Value) -> Vec<String> {
    let rules = DefinitionRules;
    rules.default(&mut definition);
    rules.prepare_create(&mut definition);
    rules.validate_create(&definition).iter().map(ToString::to_string).collect()
}

fn told_of(schema: &Value) -> Vec<String> {
    told(definition(&json!([version("v1", true, schema)])))
}

fn with(edit: impl FnOnce(&mut Value)) -> Value {
    let mut definition = definition(&json!([version("v1", true, &json!({"type": "object"}))]));
    edit(&mut definition);
    definition
}

fn spec(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": schema}})
}

#[test]
fn a_plain_definition_is_accepted() {
    assert_eq!(told_of(&json!({"type": "object"})), Vec::<String>::new());
    let rich = spec(&json!({
        "type": "object", "required": ["name"], "default": {"name": "x"},
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z]+$", "default": "x"},
            "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                     "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}},
                               "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
        },
        "anyOf": [{"required": ["name"]}, {"properties": {"port": {"not": {"enum": [1]}}}}],
        "x-kubernetes-validations": [{"rule": "self.name != 'y'", "fieldPath": ".name", "messageExpression": "'no ' + self.name"}],
    }));
    assert_eq!(told_of(&rich), Vec::<String>::new());
}

/// Schemas of `spec`, and what is wrong with each, from there on.
type Cases = Vec<(Value, Vec<String>)>;

fn refused(cases: Cases) {
    for (schema, wanted) in cases {
        let at = "spec.validation.openAPIV3Schema.properties[spec]";
        let wanted: Vec<_> = wanted.iter().map(|text| format!("{at}{text}")).collect();
        assert_eq!(told_of(&spec(&schema)), wanted, "{schema}");
    }
}

#[test]
fn schemas_are_refused_in_the_words_of_the_real_server() {
    let object = json!({"type": "object"});
    refused(vec![
        (json!({}), vec![".type: Required value: must not be empty for specified object fields".into()]),
        (json!({"type": "thing"}), vec![".type: Unsupported value: \"thing\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"".into()]),
        (json!({"type": "array"}), vec![".items: Required value: must be specified".into()]),
        (json!({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}), vec![".properties[a].default: Invalid value: \"string\":  in body must be of type integer: \"string\"".into()]),
        (json!({"type": "object", "default": {"z": 1}, "properties": {"a": {"type": "integer"}}}), vec![".default: Invalid value: {\"z\":1}: must not have unknown fields".into()]),
        (json!({"type": "object", "properties": {"a": object}, "additionalProperties": object}), vec![".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive".into()]),
        (json!({"type": "string", "pattern": "("}), vec![".pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`".into()]),
        (json!({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}), vec![".x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map".into()]),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"], "items": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            vec![
                ".x-kubernetes-list-map-keys: Invalid value: [\"a\",\"b\"]: entries must all be names of item properties".into(),
                ".items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property".into(),
            ],
        ),
        (json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}), vec![".items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set".into()]),
        (json!({"type": "array", "x-kubernetes-list-type": "odd", "items": {"type": "string"}}), vec![".x-kubernetes-list-type: Unsupported value: \"odd\": supported values: \"atomic\", \"set\", \"map\"".into()]),
        (
            json!({"x-kubernetes-list-type": "set", "items": {"type": "string"}}),
            vec![".type: Required value: must not be empty for specified object fields".into(), ".type: Required value: must be array if x-kubernetes-list-type is specified".into()],
        ),
        (
            json!({"type": "string", "anyOf": [{"type": "string", "description": "x"}]}),
            vec![".anyOf[0].description: Forbidden: must be empty to be structural".into(), ".anyOf[0].type: Forbidden: must be empty to be structural".into()],
        ),
        (json!({"type": "object", "anyOf": [{"properties": {"q": {"minLength": 1}}}]}), vec![]),
        (json!({"$ref": "#/x"}), vec![".$ref: Forbidden: $ref is not supported".into()]),
        (json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}), vec![".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic".into()]),
        (json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}), vec![".x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined".into()]),
        (json!({"type": "object", "x-kubernetes-embedded-resource": true}), vec![".properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields".into()]),
        (json!({"type": "array", "items": [{"type": "string"}]}), vec![".items: Forbidden: items must be a schema object and not an array".into()]),
    ]);
}

#[test]
fn rules_are_refused_in_the_words_of_the_real_server() {
    let rule = |rule: &str| {
        format!(
            "{{\"Rule\":\"{rule}\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}}"
        )
    };
    refused(vec![
        (
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.b > 1"}]}),
            vec![format!(".x-kubernetes-validations[0].rule: Invalid value: {}: compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b > 1\n | ....^", rule("self.b \\u003e 1"))],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.a + 1"}]}),
            vec![format!(".x-kubernetes-validations[0].rule: Invalid value: {}: cel expression must evaluate to a bool", rule("self.a + 1"))],
        ),
        (
            json!({"type": "object", "x-kubernetes-validations": [{"rule": "foo(self)"}, {"rule": "bar == 1"}]}),
            vec![
                format!(".x-kubernetes-validations[0].rule: Invalid value: {}: compilation failed: ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')\n | foo(self)\n | ...^", rule("foo(self)")),
                format!(".x-kubernetes-validations[1].rule: Invalid value: {}: compilation failed: ERROR: <input>:1:1: undeclared reference to 'bar' (in container '')\n | bar == 1\n | ^", rule("bar == 1")),
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.a > 1", "messageExpression": "self.a", "fieldPath": ".q", "reason": "X"}]}),
            vec![
                ".x-kubernetes-validations[0].reason: Unsupported value: \"X\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\"".into(),
                ".x-kubernetes-validations[0].fieldPath: Invalid value: \".q\": must be a valid path".into(),
            ],
        ),
        (
            json!({"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}),
            vec![".items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec]".into()],
        ),
        (
            json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "optionalOldSelf": true}]}),
            vec![".x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule".into()],
        ),
        (json!({"type": "integer", "default": 0, "x-kubernetes-validations": [{"rule": "self > 1", "message": "m"}]}), vec![".default: Invalid value: 0: m".into()]),
    ]);
}

#[test]
fn roots_are_refused_in_the_words_of_the_real_server() {
    let at = "spec.validation.openAPIV3Schema";
    assert_eq!(
        told_of(&json!({"type": "string"})),
        [format!("{at}.type: Invalid value: \"string\": must be object at the root")]
    );
    assert_eq!(
        told_of(&json!({"type": "object", "nullable": true})),
        [format!("{at}.nullable: Forbidden: nullable cannot be true at the root")]
    );
    assert_eq!(
        told_of(
            &json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "default": "a"}}}}})
        ),
        [format!(
            "{at}.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata"
        )]
    );
    assert_eq!(
        told_of(
            &json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}})
        ),
        [format!(
            "{at}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified"
        )]
    );
    let told = told(with(|definition| {
        let version = &mut definition["spec"]["versions"][0];
        version["subresources"] = json!({"status": {}});
        version["schema"]["openAPIV3Schema"] =
            json!({"type": "object", "oneOf": [{"required": ["a"]}]});
    }));
    assert!(told[0].starts_with(&format!("{at}: Invalid value: {{\"ID\":\"\",\"Schema\":\"\",\"Ref\":null,\"Description\":\"\",\"Type\":\"object\",\"Nullable\":false,")), "{told:?}");
    assert!(told[0].contains("\"Required\":[\"a\"],\"Items\":null"), "{told:?}");
    assert!(told[0].ends_with("XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled"), "{told:?}");
}

#[test]
fn versions_are_refused_in_the_words_of_the_real_server() {
    let object = json!({"type": "object"});
    let shown = |name: &str, stored: bool| {
        format!(
            "{{\"Name\":\"{name}\",\"Served\":true,\"Storage\":{stored},\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}"
        )
    };
    let v = |name: &str, stored: bool| version(name, stored, &object);
    assert_eq!(
        told(definition(&json!([v("v1", false)]))),
        [
            format!(
                "spec.versions: Invalid value: [{}]: must have exactly one version marked as storage version",
                shown("v1", false)
            ),
            "status.storedVersions: Invalid value: null: must have at least one stored version"
                .to_owned(),
        ]
    );
    assert_eq!(
        told(definition(&json!([v("v1", true), v("v2", true)]))),
        [
            format!(
                "spec.versions: Invalid value: [{},{}]: must have exactly one version marked as storage version",
                shown("v1", true),
                shown("v2", true)
            ),
            "status.storedVersions: Invalid value: [\"v1\"]: must have the storage version v2"
                .to_owned(),
        ]
    );
    assert_eq!(
        told(definition(&json!([v("v1", true), v("v1", false)]))),
        [format!(
            "spec.versions: Invalid value: [{},{}]: must contain unique version names",
            shown("v1", true),
            shown("v1", false)
        )]
    );
    assert_eq!(
        told(definition(&json!([]))),
        [
            "spec.versions: Invalid value: []: must have exactly one version marked as storage version",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ]
    );
    assert_eq!(
        told(definition(&json!([{"name": "v1", "served": true, "storage": true}]))),
        ["spec.versions[0].schema.openAPIV3Schema: Required value"]
    );
    assert_eq!(
        told(definition(&json!([v("v1", true), version("v2", false, &spec(&json!({})))]))),
        [
            "spec.versions[1].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields"
        ]
    );
    let bad = told(definition(&json!([v("V_1", true)])));
    assert!(
        bad[0].starts_with(
            "spec.versions[0].name: Invalid value: \"V_1\": a DNS-1035 label must consist of"
        ),
        "{bad:?}"
    );
    assert!(
        bad[1].starts_with("spec.version: Invalid value: \"V_1\": a DNS-1035 label"),
        "{bad:?}"
    );
}

#[test]
fn parts_of_versions_are_refused_in_the_words_of_the_real_server() {
    let of = |part: &str, value: Value| {
        told(with(|definition| definition["spec"]["versions"][0][part] = value))
    };
    assert_eq!(
        of(
            "additionalPrinterColumns",
            json!([{"name": "", "type": "odd", "jsonPath": "x", "format": "y"}])
        ),
        [
            "spec.additionalPrinterColumns[0].name: Required value",
            "spec.additionalPrinterColumns[0].type: Invalid value: \"odd\": must be one of boolean,date,integer,number,string",
            "spec.additionalPrinterColumns[0].format: Invalid value: \"y\": must be one of byte,date,date-time,double,float,int32,int64,password",
            "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"x\": must be a simple json path starting with .",
        ]
    );
    assert_eq!(
        of(
            "subresources",
            json!({"scale": {"specReplicasPath": "spec.a", "statusReplicasPath": ".spec.b", "labelSelectorPath": ".x"}})
        ),
        [
            "spec.subresources.scale.specReplicasPath: Invalid value: \"spec.a\": must be a simple json path starting with .",
            "spec.subresources.scale.statusReplicasPath: Invalid value: \".spec.b\": should be a json path under .status",
            "spec.subresources.scale.labelSelectorPath: Invalid value: \".x\": should be a json path under either .spec or .status",
        ]
    );
    assert_eq!(
        of("deprecationWarning", json!("x")),
        [
            "spec.versions[0].deprecationWarning: Invalid value: \"x\": can only be set for deprecated versions"
        ]
    );
    assert_eq!(
        of(
            "selectableFields",
            json!([{"jsonPath": ".spec"}, {"jsonPath": ".x"}, {"jsonPath": "spec['a']"}])
        ),
        [
            "spec.selectableFields[0].jsonPath: Invalid value: \".spec\": is an invalid path: does not refer to a valid field",
            "spec.selectableFields[1].jsonPath: Invalid value: \".x\": is an invalid path: does not refer to a valid field",
            "spec.selectableFields[2].jsonPath: Invalid value: \"spec['a']\": is an invalid path: expected [ or . but got: spec",
        ]
    );
}

#[test]
fn the_rest_is_refused_in_the_words_of_the_real_server() {
    let of = |field: &str, value: Value| told(with(|definition| definition["spec"][field] = value));
    assert_eq!(
        of("scope", json!("X")),
        ["spec.scope: Unsupported value: \"X\": supported values: \"Cluster\", \"Namespaced\""]
    );
    assert_eq!(
        of("conversion", json!({"strategy": "Odd"})),
        [
            "spec.conversion.strategy: Unsupported value: \"Odd\": supported values: \"None\", \"Webhook\""
        ]
    );
    assert_eq!(
        of("preserveUnknownFields", json!(true)),
        [
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        ]
    );
    assert_eq!(
        of("names", json!({"plural": "things", "kind": "Thing", "listKind": "Thing"})),
        ["spec.names.listKind: Invalid value: \"Thing\": kind and listKind may not be the same"]
    );
    let named = |name: &str, group: &str| {
        told(with(|definition| {
            definition["metadata"]["name"] = json!(name);
            definition["spec"]["group"] = json!(group);
        }))
    };
    assert_eq!(
        named("x", "probe.example.com"),
        ["metadata.name: Invalid value: \"x\": must be spec.names.plural+\".\"+spec.group"]
    );
    assert_eq!(
        named("things.nodots", "nodots"),
        ["spec.group: Invalid value: \"nodots\": should be a domain with at least one dot"]
    );
    assert_eq!(
        named("things.x.k8s.io", "x.k8s.io"),
        [
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"
        ]
    );
}

#[test]
fn a_change_may_not_touch_where_objects_are_stored() {
    let mut old = with(|_| ());
    default(&mut old);
    established(&mut old, &[], "now");
    let told = |edit: &dyn Fn(&mut Value)| {
        let mut new = old.clone();
        edit(&mut new);
        let rules = DefinitionRules;
        rules.prepare_update(&mut new, &old, Part::Main);
        let errors = rules.validate_update(&new, &old, Part::Main);
        (errors.iter().map(ToString::to_string).collect::<Vec<_>>(), new)
    };
    assert_eq!(told(&|_| ()).0, Vec::<String>::new());
    assert_eq!(
        told(&|new| new["spec"]["scope"] = json!("Cluster")).0,
        ["spec.scope: Invalid value: \"Cluster\": field is immutable"]
    );
    let (errors, new) = told(&|new| {
        new["spec"]["versions"][0]["storage"] = json!(false);
        let version = version("v2", true, &json!({"type": "object"}));
        new["spec"]["versions"].as_array_mut().unwrap().push(version);
    });
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));
    assert_eq!(new["metadata"]["generation"], 1);
    let gone = told(&|new| new["spec"]["versions"][0]["name"] = json!("v9")).0;
    assert!(gone[0].starts_with("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously"), "{gone:?}");
}

#[test]
fn nothing_breaks_on_nonsense() {
    for spec in [
        json!(null),
        json!(7),
        json!([]),
        json!({"versions": 7, "names": []}),
        json!({"versions": [7, null, {"schema": 1}]}),
    ] {
        let mut definition = json!({"metadata": {"name": "x"}, "spec": spec});
        default(&mut definition);
        established(&mut definition, &[json!(7)], "now");
        assert!(!check(&definition, None).is_empty());
        assert!(!check(&definition, Some(&json!(3))).is_empty());
    }
    let mut deep = json!({"type": "string"});
    for _ in 0..300 {
        deep = json!({"type": "array", "items": deep});
    }
    assert!(!told_of(&spec(&deep)).is_empty());
}

#[test]
fn formats_without_meaning_are_warned_about() {
    let definition = definition(&json!([version(
        "v1",
        true,
        &spec(&json!({"type": "string", "format": "odd"}))
    )]));
    assert_eq!(DefinitionRules.warnings(&definition), ["unrecognized format \"odd\""]);
}
