//! The binary form against what the reference writes: the same objects in both forms.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;
use crate::openapi::types::Form;
use crate::request::body;

/// Made by `data/make.py`: a line for each object, with both its forms.
static PAIRS: &[u8] = include_bytes!("../../../data/pairs.z");

static READ: LazyLock<Vec<(Vec<u8>, Value)>> = LazyLock::new(|| {
    let text = miniz_oxide::inflate::decompress_to_vec(PAIRS).unwrap();
    let text = String::from_utf8(text).unwrap();
    text.lines()
        .map(|line| {
            let mut pair = body::read(line.as_bytes()).unwrap().value;
            let binary = STANDARD.decode(pair["binary"].as_str().unwrap()).unwrap();
            (binary, pair["object"].take())
        })
        .collect()
});

fn read(bytes: &[u8]) -> Result<Value, ProtobufError> {
    Envelope::open(bytes)?.object()
}

#[test]
fn both_forms_of_every_kind_are_the_same_object() {
    assert!(READ.len() > 60, "{}", READ.len());
    for (binary, object) in READ.iter() {
        let mut object = object.clone();
        let kind = object["kind"].as_str().unwrap().to_owned();
        let api_version = object["apiVersion"].as_str().unwrap().to_owned();
        let name = type_name(&api_version, &kind).unwrap();
        types::read_type(&name, &mut object).unwrap();
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
        let decoded = read(binary).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(differences(&decoded, &object, ""), Vec::<String>::new(), "{name}");
    }
}

fn differences(a: &Value, b: &Value, path: &str) -> Vec<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let keys: std::collections::BTreeSet<_> = x.keys().chain(y.keys()).collect();
            let of = |key: &String| differences(&a[key], &b[key], &format!("{path}.{key}"));
            keys.into_iter().flat_map(of).collect()
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            let both = x.iter().zip(y).enumerate();
            both.flat_map(|(at, (a, b))| differences(a, b, &format!("{path}[{at}]"))).collect()
        }
        _ if a == b => Vec::new(),
        _ => vec![format!("{path}: {a} instead of {b}")],
    }
}

#[test]
fn what_is_cut_off_is_told_and_never_a_panic() {
    for (binary, _) in READ.iter() {
        let step = (binary.len() / 200).max(1);
        for end in (0..binary.len()).step_by(step) {
            // Some ends are ends of fields: what stands before is an object too.
            let _ = read(binary.get(..end).unwrap_or_default());
        }
    }
    let (pod, _) = READ.first().unwrap();
    assert_eq!(read(b"").unwrap_err().to_string(), "empty data");
    assert_eq!(read(b"k8s\0").unwrap_err().to_string(), "empty body");
    assert_eq!(read(pod.get(1..).unwrap()).unwrap_err().kind(), "prefix");
    assert_eq!(read(pod.get(..pod.len() - 10).unwrap()).unwrap_err().kind(), "wire");
}

/// An envelope around a message.
fn envelope(kind: &str, message: &[u8]) -> Vec<u8> {
    let mut inner = vec![0x0a, 2];
    inner.extend_from_slice(b"v1\x12");
    inner.push(u8::try_from(kind.len()).unwrap());
    inner.extend_from_slice(kind.as_bytes());
    let mut bytes = PREFIX.to_vec();
    bytes.extend(field(1, &inner));
    bytes.extend(field(2, message));
    bytes
}

fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = varint(number << 3 | 2);
    out.extend(varint(bytes.len() as u64));
    out.extend_from_slice(bytes);
    out
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap());
    out
}

#[test]
fn parts_of_one_message_are_put_together() {
    let metadata = [field(1, &field(1, b"a")), field(1, &field(3, b"n"))].concat();
    let object = read(&envelope("ConfigMap", &metadata)).unwrap();
    assert_eq!(object["metadata"]["name"], "a");
    assert_eq!(object["metadata"]["namespace"], "n");
}

#[test]
fn lists_of_numbers_may_be_packed_or_not() {
    let security = [vec![0x20, 5], field(4, &[1, 0xac, 2]), vec![0x20, 7]].concat();
    let pod = field(2, &field(14, &security));
    let object = read(&envelope("Pod", &pod)).unwrap();
    assert_eq!(object["spec"]["securityContext"]["supplementalGroups"], json!([5, 1, 300, 7]));
}

#[test]
fn a_message_is_bounded_in_depth_and_in_values() {
    let many = field(2, &[0x12, 0].repeat(1 << 20));
    assert_eq!(read(&envelope("Pod", &many)).unwrap_err().kind(), "bounds");
    let not_number = types::TABLE.named("apiextensions.JSONSchemaProps").unwrap();
    let Form::Struct(fields) = &not_number.form else { panic!("no struct") };
    let not_number = fields.iter().find(|field| field.name == "not").unwrap().numbers[0];
    let nested = |levels: usize| {
        let schema = (0..levels).fold(Vec::new(), |inner, _| field(not_number.into(), &inner));
        let version = field(4, &field(1, &schema));
        let meta = [field(1, b"apiextensions.k8s.io/v1"), field(2, b"CustomResourceDefinition")];
        [PREFIX.to_vec(), field(1, &meta.concat()), field(2, &field(2, &field(7, &version)))]
            .concat()
    };
    assert!(read(&nested(20)).is_ok());
    assert_eq!(read(&nested(2_000)).unwrap_err().kind(), "bounds");
}

#[test]
fn other_forms_than_the_types_are_refused() {
    let number_for_metadata = envelope("Pod", &[0x08, 1]);
    let told = read(&number_for_metadata).unwrap_err().to_string();
    assert_eq!(told, "proto: wrong wireType = 0 for field ObjectMeta");
    let told = read(&envelope("Nothing", b"")).unwrap_err().to_string();
    assert!(told.starts_with("no kind \"Nothing\" is registered for version \"v1\""), "{told}");
    let told = read(&envelope("Pod", &field(1, b"\x0c"))).unwrap_err().to_string();
    assert_eq!(told, "proto: ObjectMeta: wiretype end group for non-group");
}

#[test]
fn another_kind_than_the_expected_one_is_refused() {
    let bytes = envelope("Pod", b"");
    let pod = Envelope::open(&bytes).unwrap();
    pod.must_be("v1", "Pod").unwrap();
    let told = pod.must_be("v1", "ConfigMap").unwrap_err().to_string();
    assert_eq!(told, "converting (v1.Pod) to (core.ConfigMap): unknown conversion");
    assert_eq!(pod.must_be("v1", "DeleteOptions").unwrap_err().kind(), "unknown");
}

#[test]
fn the_kept_corpus_is_replayed() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/protobuf");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        if let Ok(object) = read(&std::fs::read(entry.unwrap().path()).unwrap()) {
            body::read(object.to_string().as_bytes()).unwrap();
        }
        count += 1;
    }
    assert!(count > 5);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(kind in 0_usize..64, at in any::<usize>(), byte: u8, more: Vec<u8>) {
        let (mut binary, _) = READ.get(kind).cloned().unwrap_or_default();
        let at = at.checked_rem(binary.len()).unwrap_or(0);
        if let Some(place) = binary.get_mut(at) {
            *place = byte;
        }
        let _ = read(&binary);
        binary.truncate(at);
        binary.extend(more);
        let _ = read(&binary);
    }
}
