//! Whole manifests before and after conversion, as files beside this one.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;
use trainyard_api::{TfJobSpec, convert, validate};

#[test]
fn every_manifest_becomes_what_is_written() {
    let read = |path: &Path| -> Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let names: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".in.json").map(str::to_owned))
        .collect();
    assert!(names.len() >= 7, "{names:?}");
    for name in names {
        let before = read(&folder.join(format!("{name}.in.json")));
        let after = read(&folder.join(format!("{name}.out.json")));
        let result = convert(before).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(result, after, "{name}");
        assert_eq!(convert(result).as_ref(), Ok(&after), "{name}");
        assert_eq!(validate(&after, None), Ok(()), "{name}");
        assert!(TfJobSpec::parse(after["spec"].clone()).is_ok(), "{name}");
    }
}
