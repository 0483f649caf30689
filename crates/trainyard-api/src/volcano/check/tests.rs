//! What only the reading of a specification can refuse.

use serde_json::json;

use super::*;

fn told(spec: Value) -> String {
    let checked = JobSpec::parse(spec).and_then(|spec| spec.check());
    checked.map_or_else(|error| error.to_string(), |()| String::new())
}

fn task(name: &str, depends_on: &[&str]) -> Value {
    json!({"name": name, "replicas": 1, "template": {}, "dependsOn": {"name": depends_on}})
}

#[test]
fn long_circles_are_found() {
    let told = told(json!({"tasks": [
        task("a", &["c"]), task("b", &["a"]), task("c", &["b"]), task("d", &["c"]), task("e", &[]),
    ]}));
    assert!(told.starts_with("spec.tasks[*].dependsOn: job has dependencies between tasks"));
    assert!(told.ends_with("can never start: a, b, c, d"), "{told}");
}

#[test]
fn long_ways_are_no_circles() {
    let names: Vec<_> = (0..50).map(|index| format!("t{index}")).collect();
    let tasks: Vec<_> = (0..50)
        .map(|index| match index {
            0 => task(&names[0], &[]),
            _ => task(&names[index], &[&names[index - 1], &names[0]]),
        })
        .collect();
    assert_eq!(told(json!({"tasks": tasks})), "");
}

#[test]
fn names_that_are_filled_in_count_too() {
    let mut first = task("", &[]);
    assert_eq!(told(json!({"tasks": [first, task("b", &["default0"])]})), "");
    first = task("", &[]);
    assert!(
        told(json!({"tasks": [first, task("default0", &[])]})).contains("duplicated task name"),
    );
    assert!(told(json!({"tasks": [task("b", &["default7"])]})).contains("no task \"default7\""));
}

#[test]
fn memory_is_given_to_whole_cpus() {
    let spec = |cpu: Value| {
        let resources = json!({"requests": {"cpu": cpu}});
        json!({"tasks": [{
            "replicas": 1, "topologyPolicy": "restricted",
            "template": {"spec": {"containers": [{"name": "a", "resources": resources}]}},
        }]})
    };
    for whole in [json!(2), json!("2"), json!("3000m")] {
        assert_eq!(told(spec(whole)), "");
    }
    let told = told(spec(json!("1500m")));
    assert!(told.contains("the cpu request isn't an integer in spec.task[0] container[0]."));
}

#[test]
fn a_part_that_cannot_be_read_is_named() {
    let task = |policy: Value| json!({"tasks": [{"name": "a", "policies": [policy]}]});
    let rain = told(task(json!({"event": "Rain", "action": "AbortJob"})));
    assert!(rain.starts_with("spec.tasks[0].policies[0]: unknown variant `Rain`"), "{rain}");
    let count = told(json!({"tasks": [{"replicas": "two"}]}));
    assert!(count.starts_with("spec.tasks[0]: invalid type: string"), "{count}");
}
