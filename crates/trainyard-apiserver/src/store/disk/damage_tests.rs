//! Files that end in the midst of something, and files that were damaged.

use super::frame::{FileHead, Sort, UNIT};
use super::platter::Platter;
use super::testing::{Bed, Deal, Model, deal};
use super::*;

/// Two batches that were acknowledged, the model before and after a third, and where that begins
/// and ends.
struct Torn {
    platter: Platter,
    name: String,
    before: Model,
    after: Model,
    begin: usize,
    end: usize,
}

fn torn() -> Torn {
    let bed = Bed::new();
    let before = bed.write(&[
        vec![deal("pods", "ns/a", "1"), deal("pods", "ns/b", "2")],
        vec![Deal::Delete("pods", "ns/a".to_owned()), deal("jobs", "ns/c", "3")],
    ]);
    let name = bed.name("log-");
    let end = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let begin = end(&bed.platter.bytes(&name));
    let after = bed.write(&[vec![
        deal("pods", "ns/a", &"4".repeat(700)),
        deal("jobs", "ns/d", &"5".repeat(300)),
    ]]);
    let end = end(&bed.platter.bytes(&name));
    Torn { platter: bed.platter, name, before, after, begin, end }
}

#[test]
fn a_batch_that_breaks_off_at_any_byte_never_was() {
    let torn = torn();
    let whole = torn.platter.bytes(&torn.name);
    Bed::on(torn.platter.copy()).holds(&torn.after);
    let bed = Bed::on(torn.platter.copy());
    for at in torn.begin..torn.end {
        let mut zeros = whole.clone();
        zeros[at..].fill(0);
        for bytes in [&whole[..at], &zeros] {
            bed.platter.replace(&torn.name, bytes);
            if at % 16 == 0 {
                bed.holds(&torn.before);
            } else {
                assert_eq!(bed.open().unwrap().1, torn.before, "byte {at}");
            }
        }
    }
    // What is behind it is room.
    let bed = Bed::on(torn.platter.copy());
    bed.platter.replace(&torn.name, &whole[..torn.end]);
    bed.holds(&torn.after);
}

#[test]
fn a_batch_of_which_any_sectors_are_missing_never_was() {
    let torn = torn();
    let whole = torn.platter.bytes(&torn.name);
    let sectors: Vec<(usize, usize)> = (torn.begin / 512..=(torn.end - 1) / 512)
        .map(|sector| ((sector * 512).max(torn.begin), (sector * 512 + 512).min(torn.end)))
        .collect();
    assert!((3..7).contains(&sectors.len()), "{}", sectors.len());
    for missing in 0..1_u32 << sectors.len() {
        let mut bytes = whole.clone();
        for (number, (from, to)) in sectors.iter().enumerate() {
            if missing & 1 << number != 0 {
                bytes[*from..*to].fill(0);
            }
        }
        let bed = Bed::on(torn.platter.copy());
        bed.platter.replace(&torn.name, &bytes);
        bed.holds(if missing == 0 { &torn.after } else { &torn.before });
    }
}

/// Opens, is told of damage in a file at a byte, and finds everything as it was.
fn is_damaged(bed: &Bed, name: &str) -> String {
    let before = bed.platter.all();
    let error = bed.open().err().unwrap();
    assert_eq!(error.kind(), "corrupt", "{error}");
    let text = error.to_string();
    assert!(text.contains(name) && text.contains("is damaged: at byte "), "{text}");
    assert!(text.contains("restore the whole folder from a copy, or move it away"), "{text}");
    assert_eq!(bed.platter.all(), before, "something was changed");
    text
}

#[test]
fn a_flipped_bit_anywhere_is_told_and_changes_nothing() {
    let torn = torn();
    let whole = torn.platter.bytes(&torn.name);
    let bed = Bed::on(torn.platter.copy());
    for at in 0..torn.end {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        bed.platter.replace(&torn.name, &bytes);
        let text = is_damaged(&bed, &torn.name);
        if at >= torn.begin {
            assert!(text.contains(&format!("at byte {}: ", torn.begin)), "{text}");
        }
    }
    // There is nothing to lose behind the end.
    for at in [torn.end, torn.end + 30, torn.end + 32, torn.end + 5000] {
        let mut bytes = whole.clone();
        bytes[at] = 1;
        let bed = Bed::on(torn.platter.copy());
        bed.platter.replace(&torn.name, &bytes);
        bed.holds(&torn.after);
    }
}

#[test]
fn a_flipped_bit_in_a_snapshot_is_told_too() {
    let bed = Bed::new();
    let model = bed.write(&[vec![deal("pods", "ns/a", "1"), deal("jobs", "ns/b", "2")]]);
    let (mut disk, _) = bed.open().unwrap();
    disk.condensed(&model);
    drop(disk);
    let name = bed.name("snapshot-");
    let whole = bed.platter.bytes(&name);
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        bed.platter.replace(&name, &bytes);
        is_damaged(&bed, &name);
    }
    for len in 0..whole.len() {
        bed.platter.replace(&name, &whole[..len]);
        is_damaged(&bed, &name);
    }
    bed.platter.replace(&name, &whole);
    bed.holds(&model);
}

#[test]
fn only_the_last_segment_may_break_off_and_none_may_be_missing() {
    let bed = Bed::new();
    let mut model = bed.write(&[vec![deal("pods", "ns/a", "1")]]);
    let first = bed.name("log-");
    let bytes = bed.platter.bytes(&first);
    let (mut disk, _) = bed.open().unwrap();
    disk.condensed(&model);
    let (after, writes) = model.after(&[deal("pods", "ns/b", "2")]);
    disk.write(&writes).unwrap();
    model = after;
    drop(disk);
    let (snapshot, second) = (bed.name("snapshot-"), bed.name("log-"));
    // As if the snapshot had not come about: both segments count.
    bed.platter.replace(&first, &bytes);
    bed.platter.remove(&snapshot).unwrap();
    bed.open().map(drop).unwrap();
    assert_eq!(bed.open().unwrap().1, model);
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bed.platter.replace(&first, &bytes[..end]);
    is_damaged(&bed, &first);
    bed.platter.remove(&first).unwrap();
    let text = bed.open().err().unwrap().to_string();
    assert!(text.contains(&first) && text.contains("it is missing"), "{text}");
    bed.platter.replace(&first, &bytes);
    bed.platter.remove(&second).unwrap();
    // Nothing says that there was more.
    assert_eq!(bed.open().unwrap().1.revision, 2);
}

#[test]
fn a_newer_format_is_left_alone_and_a_former_one_too() {
    let torn = torn();
    let bed = Bed::on(torn.platter.copy());
    let mut bytes = bed.platter.bytes(&torn.name);
    bytes[..UNIT].copy_from_slice(&FileHead { format: 2, revision: 2 }.bytes(Sort::Log));
    bed.platter.replace(&torn.name, &bytes);
    let before = bed.platter.all();
    let error = bed.open().err().unwrap();
    let text = error.to_string();
    assert_eq!(error.kind(), "other-format");
    assert!(text.contains("has data of format 2, and this program knows format 1"), "{text}");
    assert_eq!(bed.platter.all(), before);

    let bed = Bed::new();
    bed.platter.replace(FORMER, b"redb");
    let error = bed.open().err().unwrap();
    assert_eq!(error.kind(), "former");
    assert!(error.to_string().contains("is from before the first release"), "{error}");
    assert_eq!(bed.platter.names().unwrap(), [FORMER]);
}
