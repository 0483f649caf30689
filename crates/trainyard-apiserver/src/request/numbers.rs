//! Numbers as they are kept: one without a fraction is a whole one, however it was written.
//!
//! Only for objects without types of their own; where a type says whole, `1.0` is refused.

use serde_json::{Number, Value};

/// Beyond this a fraction cannot be told any more.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Writes `1.0` as `1`, everywhere in a value.
pub(crate) fn whole(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(whole),
        Value::Object(members) => members.values_mut().for_each(whole),
        Value::Number(number) => {
            if let Some(plain) = number.as_f64().filter(|_| number.is_f64()).and_then(integer) {
                *number = plain;
            }
        }
        _ => {}
    }
}

fn integer(number: f64) -> Option<Number> {
    let is_minus_zero = number == 0.0 && number.is_sign_negative();
    let is_whole = number.fract() == 0.0 && number.abs() <= EXACT && !is_minus_zero;
    // Within these bounds the text is that of a whole number.
    is_whole.then(|| format!("{number:.0}").parse::<i64>().ok().map(Number::from)).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_numbers_lose_their_point() {
        let mut value = json!({"a": [1.0, -2.0, 1.5, 1e3, 1e300, -0.0, 0.0, 7], "b": "1.0"});
        whole(&mut value);
        assert_eq!(value.to_string(), r#"{"a":[1,-2,1.5,1000,1e+300,-0.0,0,7],"b":"1.0"}"#);
    }
}
