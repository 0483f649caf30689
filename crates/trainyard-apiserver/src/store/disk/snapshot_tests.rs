//! Snapshots: what they leave, and what is found when their making ends at any step.

use proptest::prelude::*;

use super::platter::Room;
use super::testing::{Bed, Deal, Model, deal};
use super::*;

fn many() -> Vec<Vec<Deal>> {
    let name = |number: usize| format!("ns/{}", number % 7);
    (0..20)
        .map(|number| {
            let first = deal("pods", &name(number), &"x".repeat(number * 40));
            let second = match number % 5 {
                3 => Deal::Delete("pods", name(number / 2)),
                4 => Deal::Drop("jobs"),
                _ => deal("jobs", &name(number), "y"),
            };
            vec![first, second]
        })
        .collect()
}

#[test]
fn a_snapshot_takes_the_place_of_the_log_before_it() {
    let bed = Bed::new();
    let mut model = bed.write(&many());
    for round in 0..3 {
        let (mut disk, found) = bed.open().unwrap();
        assert_eq!(found, model);
        disk.condensed(&model);
        let names = bed.platter.names().unwrap();
        let (at, next) = (model.revision, model.revision + 1);
        assert_eq!(names, [log::name(next), snapshot::name(at)], "round {round}");
        let (after, writes) = model.after(&[deal("pods", "ns/more", "z")]);
        disk.write(&writes).unwrap();
        model = after;
    }
    bed.holds(&model);
}

#[test]
fn a_snapshot_of_many_frames_is_read_back() {
    let bed = Bed::new();
    let large = |number: usize| deal("pods", &format!("ns/{number}"), &"x".repeat(400_000));
    let model = bed.write(&[(0..12).map(large).collect()]);
    let (mut disk, _) = bed.open().unwrap();
    disk.condensed(&model);
    drop(disk);
    bed.holds(&model);
}

#[test]
fn one_that_is_stopped_leaves_the_log() {
    let bed = Bed::new();
    let model = bed.write(&many());
    let stop = AtomicBool::new(true);
    snapshot::make(&bed.platter, &model.everything(), &stop).unwrap();
    bed.name("log-");
    assert!(!bed.platter.names().unwrap().iter().any(|name| name.starts_with("snapshot")));
    bed.holds(&model);
}

#[test]
fn the_end_at_any_step_of_it_loses_nothing() {
    let seed = Bed::new();
    let mut model = seed.write(&many());
    let (mut disk, _) = seed.open().unwrap();
    disk.condensed(&model);
    let (after, writes) = model.after(&[deal("pods", "ns/0", "between")]);
    disk.write(&writes).unwrap();
    model = after;
    drop(disk);
    let begin = seed.platter.steps();
    let mut fuse = 0;
    loop {
        let bed = Bed::on(seed.platter.copy());
        let (mut disk, _) = bed.open().unwrap();
        bed.platter.set_fuse(fuse);
        disk.condensed(&model);
        let done = bed.platter.steps() - begin < fuse;
        // What is written on before the end is found too.
        let (after, writes) = model.after(&[deal("pods", "ns/1", "behind")]);
        let written = disk.write(&writes).is_ok();
        drop(disk);
        let wanted = if written { &after } else { &model };
        Bed::on(bed.platter.after_the_kill()).holds_either(wanted, &after);
        for chance in 1..10 {
            Bed::on(bed.platter.after_the_cut(chance * 77_777)).holds_either(wanted, &after);
        }
        if done {
            break;
        }
        fuse += 1;
    }
    assert!(fuse > 10, "only {fuse} steps");
}

impl Bed {
    fn holds_either(&self, one: &Model, other: &Model) {
        let (_, found) = self.open().unwrap();
        self.holds(if found == *other { other } else { one });
    }
}

#[test]
fn without_room_for_one_the_log_goes_on_and_it_is_tried_again() {
    let bed = Bed::new();
    let mut model = bed.write(&many());
    let (mut disk, _) = bed.open().unwrap();
    (disk.floor, disk.next) = (1000, 1000);
    let mut write = |disk: &mut Disk| {
        let (after, writes) = model.after(&[deal("pods", "ns/on", &"x".repeat(300))]);
        disk.write(&writes).unwrap();
        model = after;
        model.clone()
    };
    bed.platter.set_room(Room::NoGrowth);
    assert!(!disk.is_outgrown(1 << 20), "the objects are as large");
    assert!(disk.is_outgrown(10));
    let now = write(&mut disk);
    disk.condensed(&now);
    bed.name("log-");
    assert!(!disk.is_outgrown(10), "not at once");
    bed.platter.set_room(Room::Free);
    while !disk.is_outgrown(10) {
        write(&mut disk);
    }
    let now = write(&mut disk);
    disk.condensed(&now);
    assert_eq!(bed.name("snapshot-"), snapshot::name(now.revision));
    assert!(!disk.is_outgrown(10));
    let now = write(&mut disk);
    drop(disk);
    bed.holds(&now);
}

#[test]
fn a_batch_that_finds_no_room_leaves_no_trace() {
    for room in [Room::NoGrowth, Room::Half] {
        let bed = Bed::new();
        let model = bed.write(&many());
        let (mut disk, _) = bed.open().unwrap();
        for _ in 0..3 {
            bed.platter.set_room(room);
            let large = deal("pods", "ns/large", &"x".repeat(50 << 10));
            let (_, writes) = model.after(&[large]);
            assert!(matches!(disk.write(&writes), Err(WriteError::Full(_))));
            bed.platter.set_room(Room::Free);
            Bed::on(bed.platter.after_the_kill()).holds(&model);
            Bed::on(bed.platter.after_the_cut(7)).holds(&model);
        }
        let (after, writes) = model.after(&[deal("pods", "ns/small", "x")]);
        disk.write(&writes).unwrap();
        drop(disk);
        bed.holds(&after);
    }
}

#[test]
fn after_a_failed_sync_nothing_is_written_any_more() {
    let bed = Bed::new();
    let model = bed.write(&many());
    let (mut disk, _) = bed.open().unwrap();
    let (after, writes) = model.after(&[deal("pods", "ns/last", "x")]);
    // The write is done, the sync is not.
    bed.platter.set_fuse(1);
    assert!(matches!(disk.write(&writes), Err(WriteError::Broken(_))));
    let back = bed.platter.after_the_kill();
    assert!(matches!(disk.write(&writes), Err(WriteError::Broken(_))));
    assert!(!disk.is_outgrown(0));
    Bed::on(back).holds(&after);
}

#[derive(Debug, Clone)]
enum Step {
    Batch(Vec<Deal>),
    /// Perhaps by a kill, even if it is the power that is to go.
    Reopen(bool),
    Condense,
    /// The power goes after so many steps of the next batch or snapshot.
    Cut(u32, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let storage = || prop_oneof![Just("pods"), Just("jobs"), Just("jobs.batch")];
    let path = || (0..9_u8).prop_map(|number| format!("ns/{number}"));
    let write = prop_oneof![
        6 => (storage(), path(), 0..900_usize)
            .prop_map(|(storage, path, len)| Deal::Put(storage, path, "x".repeat(len))),
        3 => (storage(), path()).prop_map(|(storage, path)| Deal::Delete(storage, path)),
        1 => storage().prop_map(Deal::Drop),
    ];
    prop_oneof![
        8 => prop::collection::vec(write, 1..6).prop_map(Step::Batch),
        1 => any::<bool>().prop_map(Step::Reopen),
        1 => Just(Step::Condense),
        2 => (0..14_u32, any::<u64>()).prop_map(|(steps, chance)| Step::Cut(steps, chance)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is read is what was acknowledged, and at most the one batch without an answer.
    #[test]
    fn random_histories_are_read_back(steps in prop::collection::vec(step(), 1..50)) {
        let mut bed = Bed::new();
        let (mut disk, mut model) = bed.open().unwrap();
        prop_assert_eq!(&model, &Model::fresh());
        let (mut fate, mut perhaps) = (0, None);
        for step in steps {
            match step {
                Step::Batch(deals) => {
                    let (after, writes) = model.after(&deals);
                    match disk.write(&writes) {
                        Ok(()) => model = after,
                        Err(_) if perhaps.is_none() => perhaps = Some(after),
                        Err(_) => {}
                    }
                }
                Step::Condense if disk.broken.is_none() => disk.condensed(&model),
                Step::Condense => {}
                Step::Reopen(killed) => {
                    drop(disk);
                    let platter = match fate {
                        _ if killed => bed.platter.after_the_kill(),
                        0 => bed.platter.after_the_kill(),
                        chance => bed.platter.after_the_cut(chance),
                    };
                    bed = Bed::on(platter);
                    let found;
                    (disk, found) = bed.open().unwrap();
                    let known = found == model || perhaps.take().is_some_and(|it| it == found);
                    prop_assert!(known, "{:?} is not {:?}", found, model);
                    (model, fate, perhaps) = (found, 0, None);
                }
                Step::Cut(steps, chance) => {
                    if fate == 0 {
                        bed.platter.set_fuse(steps);
                        fate = chance.max(1);
                    }
                }
            }
        }
    }
}
