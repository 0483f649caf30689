//! Quantities against tables of what Kubernetes reads and writes.

use super::{Quantity, QuantityError, parse};

fn read(text: &str) -> Quantity {
    parse(text).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn amounts_are_exact_and_rounded_up() {
    for (text, value, millis) in [
        ("0", 0, 0),
        ("-0", 0, 0),
        ("1", 1, 1000),
        ("+7", 7, 7000),
        ("100m", 1, 100),
        ("1500m", 2, 1500),
        ("0.1", 1, 100),
        (".5", 1, 500),
        ("1.", 1, 1000),
        ("0.0001", 1, 1),
        ("1n", 1, 1),
        ("250u", 1, 1),
        ("0.1n", 1, 1),
        ("2k", 2000, 2_000_000),
        ("1Ki", 1024, 1_024_000),
        ("1.5Gi", 1_610_612_736, 1_610_612_736_000),
        ("0.1Mi", 104_858, 104_857_600),
        ("128974848", 128_974_848, 128_974_848_000),
        ("129e6", 129_000_000, 129_000_000_000),
        ("129E6", 129_000_000, 129_000_000_000),
        ("5e-3", 1, 5),
        ("1e+2", 100, 100_000),
        ("1E", 1_000_000_000_000_000_000, i64::MAX),
        ("7Ei", 8_070_450_532_247_928_832, i64::MAX),
        ("8Ei", i64::MAX, i64::MAX),
        ("-1500m", -2, -1500),
        ("-9Ei", i64::MIN, i64::MIN),
        ("00012", 12, 12_000),
        ("9223372036854775807", i64::MAX, i64::MAX),
        ("99999999999999999999999999999999999999999999999999", i64::MAX, i64::MAX),
        ("0.00000000000000000000000000000000000000000000000000001", 1, 1),
        ("1e999999999999", i64::MAX, i64::MAX),
        ("1e-999999999999", 1, 1),
        ("0e999999999999", 0, 0),
    ] {
        let quantity = read(text);
        assert_eq!((quantity.value(), quantity.millis()), (value, millis), "{text}");
    }
}

#[test]
fn what_is_no_quantity_says_so() {
    for text in ["", "+", "-", ".", " 1", "1 ", "abc", "1.2.3", "--1", "0x10", "1,5", "١", "1Gi!"]
    {
        assert!(matches!(parse(text), Err(QuantityError::Format { .. })), "{text:?}");
    }
    for text in ["1K", "1mm", "1e", "1Gi3", "1ki", "1iG", "1k3", "1e3e", "1e9999999999999999999999"]
    {
        assert!(parse(text).is_err(), "{text:?}");
    }
    let error = parse("1K").unwrap_err();
    assert_eq!(error.kind(), "quantity_suffix");
    assert!(error.to_string().contains("\"K\""), "{error}");
}

#[test]
fn written_in_canonical_form() {
    for (text, canonical) in [
        ("0", "0"),
        ("0Gi", "0"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("1000Ki", "1000Ki"),
        ("0.5Ki", "512"),
        ("0.0001Ki", "102400u"),
        ("2000", "2k"),
        ("1e3", "1e3"),
        ("12e4", "120e3"),
        ("1e0", "1"),
        ("5e-3", "5e-3"),
        ("1.1n", "2n"),
        ("-1500Mi", "-1500Mi"),
        ("1000E", "1000E"),
    ] {
        assert_eq!(read(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    for text in ["1", "1500m", "3n", "77Ki", "1e3", "-5Gi", "123456789u", "1025", "7E", "3Ei"] {
        let quantity = read(text);
        let again = read(&quantity.to_string());
        assert_eq!(quantity, again, "{text}");
        assert_eq!(quantity.to_string(), again.to_string(), "{text}");
    }
}

#[test]
fn compared_and_added_by_amount() {
    assert_eq!(read("1Gi"), read("1073741824"));
    assert!(read("1G") < read("1Gi"));
    assert!(read("-1") < read("0"));
    assert_eq!((read("500m") + read("1")).to_string(), "1500m");
    assert_eq!((read("1Gi") - read("1Mi")).to_string(), "1023Mi");
    let total: Quantity = ["1Gi", "512Mi"].into_iter().map(read).sum();
    assert_eq!(total.to_string(), "1536Mi");
    assert_eq!(Quantity::from_bytes(1 << 30).to_string(), "1Gi");
    assert_eq!(Quantity::from_millis(3920).to_string(), "3920m");
    assert_eq!(Quantity::from_value(110).to_string(), "110");
    let most = read("1e40");
    assert_eq!(most + most, most);
    let least = read("-1e40") - read("1e40");
    assert_eq!(least.value(), i64::MIN);
    assert!(!least.to_string().is_empty());
}
