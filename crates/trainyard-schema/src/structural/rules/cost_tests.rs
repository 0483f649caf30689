//! What rules may cost: attacks end soon, and what people write is not refused.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::structural::Schema;

/// Long for a test on a busy machine without optimization, and nothing beside what these took before.
const SOON: Duration = Duration::from_secs(20);
const OUT: &str = "running out of cost budget";

fn schema(rule: &str) -> Schema {
    Schema::parse(&json!({"type": "object",
        "properties": {
            "s": {"type": "string"},
            "n": {"type": "integer"},
            "l": {"type": "array", "items": {"type": "integer"}},
            "t": {"type": "array", "items": {"type": "string"}},
            "o": {"type": "array", "items": {"type": "object", "properties": {
                "name": {"type": "string"}, "image": {"type": "string"}, "ports": {"type": "array", "items": {"type": "integer"}}}}},
        },
        "x-kubernetes-validations": [{"rule": rule, "message": "m"}]}))
    .unwrap()
}

/// What is said of an object, and how long it took.
fn told(rule: &str, object: &Value) -> (String, Duration) {
    let schema = schema(rule);
    let began = Instant::now();
    let errors = schema.rules(object, None);
    let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
    (told.join("; "), began.elapsed())
}

fn large() -> Value {
    let numbers: Vec<u32> = (0..3_000).collect();
    json!({"s": "x".repeat(200_000), "l": numbers})
}

/// Seen to succeed before: the first took over 15 seconds and 837 MB, the second 9 seconds and 2.6 GB.
#[test]
fn texts_that_grow_are_paid_for() {
    let doubled = (0..12).fold("[self.s]".to_owned(), |text, _| format!("{text}.map(a, a + a)"));
    for rule in [
        "self.l.map(a, self.s + self.s + self.s + self.s).size() > 0".to_owned(),
        format!("{doubled}.size() > 0"),
        "self.l.all(a, (self.s + self.s).contains('y') || true)".to_owned(),
        "self.l.map(a, self.l.map(b, 'some text that is built').join(',')).size() > 0".to_owned(),
        "[self.s.substring(0, 50000).split('')].all(l, self.l.all(a, l.join('xxxxxxxxxxxxxxxxxxxxxxxx') != ''))"
            .to_owned(),
        "self.l.map(a, '%s%s'.format([self.s, self.s])).size() > 0".to_owned(),
        "self.l.map(a, {'a': self.s, 'b': self.s}).size() > 0".to_owned(),
        "self.l.map(a, self.s.upperAscii()).size() > 0".to_owned(),
        "self.l.map(a, base64.encode(bytes(self.s))).size() > 0".to_owned(),
    ] {
        let (said, took) = told(&rule, &large());
        assert!(said.contains(OUT), "{rule}: {said}");
        assert!(took < SOON, "{rule} took {took:?}");
    }
}

#[test]
fn work_on_what_was_built_is_paid_for() {
    for rule in [
        "[self.s + self.s].all(s, lists.range(100000).all(i, !s.contains('y')))",
        "lists.range(100000).map(i, i).all(a, lists.range(100000).all(b, a + b >= 0))",
        "self.l.map(a, lists.range(100000)).size() > 0",
        "lists.range(100000).all(i, !'x'.matches('(a{1,50}){1,50}' + string(i)))",
        "lists.range(100000).all(i, 'x'.find('(a{1,50}){1,50}' + string(i)) == '')",
        "sets.equivalent(lists.range(100000), lists.range(100000))",
        "lists.range(100000).distinct().size() > 0",
    ] {
        let (said, took) = told(rule, &large());
        assert!(said.contains(OUT), "{rule}: {said}");
        assert!(took < SOON, "{rule} took {took:?}");
    }
}

#[test]
fn single_calls_have_bounds() {
    for (rule, why) in [
        ("self.s.split('').size() > 0", "the list becomes too long"),
        ("self.s.findAll('x').size() > 0", "the list becomes too long"),
        ("self.l.map(a, 'a').join(self.s) != ''", "the text becomes too long"),
        ("'%.1000000000f'.format([1.0]) != ''", "the precision is too large"),
    ] {
        let (said, took) = told(rule, &large());
        assert!(said.contains(why), "{rule}: {said}");
        assert!(took < SOON, "{rule} took {took:?}");
    }
}

/// A list that a loop builds was copied at every turn, twice.
#[test]
fn long_lists_are_built_in_one_go() {
    let numbers: Vec<u32> = (0..50_000).collect();
    let (said, took) =
        told("self.l.map(a, a + 1).filter(a, a > 7).size() == 49993", &json!({"l": numbers}));
    assert_eq!(said, "");
    assert!(took < SOON, "{took:?}");
}

#[test]
fn what_people_write_is_not_refused() {
    let container = |n: u32| json!({"name": format!("c-{n}"), "image": "registry.example/team/image:1.2.3", "ports": [n, n + 1]});
    let containers: Vec<Value> = (0..30).map(container).collect();
    let object =
        json!({"s": "a-name", "n": 3, "o": containers, "t": ["b", "a", "c"], "l": [3, 1, 2]});
    for rule in [
        "self.o.all(c, c.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && c.image.contains(':'))",
        "self.o.all(a, self.o.exists_one(b, b.name == a.name))",
        "self.o.map(c, c.name).filter(n, n.startsWith('c-')).size() == 30",
        "self.o.map(c, c.ports).flatten().all(p, p >= 0)",
        "self.o.filter(c, c.ports.exists(p, p > 29)).map(c, c.name + '/' + c.image).join(',').split(',').size() == 1",
        "self.t.sort() == ['a', 'b', 'c'] && self.t.distinct().size() == 3",
        "sets.contains(self.t, ['a']) && self.l.sum() == 6 && self.l.map(a, a * 2).exists(a, a == 6)",
        "self.l.filter(a, a > 1).map(a, string(a)).join('-') == '3-2'",
        "self.t.map(a, a == 'a', a + a) == ['aa']",
        "'%s has %d of %.2f'.format([self.s, self.n, 1.5]) == 'a-name has 3 of 1.50'",
        "'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b22'.find('[0-9]+') == '1'",
        "'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'a,b'.split(',', -1) == ['a', 'b'] && 'a'.split(',', 0) == []",
        "[self.s].all(x, x + x + x == x + (x + x))",
        "self.l.map(a, self.l.map(b, a * b)) == [[9, 3, 6], [3, 1, 2], [6, 2, 4]]",
        "{'a': self.s}.map(k, k) == ['a']",
        "self.l.map(a, self.l.filter(b, b < a)).map(l, l.size()) == [2, 0, 1]",
        "self.l.exists(a, a == 9) || self.l.map(a, a > 0 ? a : 0).size() == 3",
    ] {
        let (said, took) = told(rule, &object);
        assert_eq!(said, "", "{rule}");
        assert!(took < SOON, "{rule} took {took:?}");
    }
}

#[test]
fn a_long_chain_of_sums_needs_no_large_stack() {
    let chain = vec!["self.s"; 150].join(" + ");
    let rule = format!("({chain}).size() == 300");
    let play = move || told(&rule, &json!({"s": "ab"})).0;
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(play).unwrap();
    assert_eq!(thread.join().unwrap(), "");
}
