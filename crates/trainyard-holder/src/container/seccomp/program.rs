//! A filter as the kernel takes it: classic BPF over a call's architecture, number and arguments.
//!
//! Must not know which calls are good.

use std::collections::BTreeMap;

use libc::sock_filter as Instruction;

/// The architectures that containers are filtered on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Architecture {
    X86_64,
    Aarch64,
}

impl Architecture {
    /// The one that this program was built for.
    pub(super) fn here() -> Self {
        if cfg!(target_arch = "x86_64") { Self::X86_64 } else { Self::Aarch64 }
    }

    /// As the kernel names it to a filter: the machine's number, 64 bits, the lowest byte first.
    fn audited(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Allow,
    /// It fails with this error.
    Refuse(i32),
    /// One argument decides; where it says no, the call fails with EPERM.
    Judge {
        /// The first is 0. Only its lower 32 bits are looked at, as the kernel does for those judged.
        argument: u32,
        allowed: Values,
    },
}

/// The values of an argument that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    Only(&'static [u32]),
    AllBut(&'static [u32]),
    /// None of these bits.
    Without(u32),
}

/// Verdicts by the number of the call. Numbers without one, and above the highest that is known, have
/// verdicts together.
#[derive(Debug, Clone)]
pub(super) struct Verdicts {
    pub(super) each: BTreeMap<u32, Verdict>,
    pub(super) others: Verdict,
    pub(super) highest: u32,
    pub(super) above: Verdict,
}

const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

const LOAD: u16 = 0x20;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_NOT_LESS: u16 = 0x35;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

fn instruction(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

/// Goes on after `jt` or `jf` further instructions.
fn branch(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}

fn refused(error: i32) -> Instruction {
    instruction(RETURN, libc::SECCOMP_RET_ERRNO | (error.cast_unsigned() & 0xffff))
}

/// The program. Calls by the numbers of another architecture end the process.
pub(super) fn compiled(verdicts: &Verdicts, architecture: Architecture) -> Vec<Instruction> {
    let mut program = vec![
        instruction(LOAD, ARCHITECTURE),
        branch(IF_EQUAL, architecture.audited(), 1, 0),
        instruction(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
        instruction(LOAD, NUMBER),
    ];
    program.extend(decided(&ranges(verdicts)));
    program
}

/// Each verdict with the first number that it is for; it is for all up to the next.
fn ranges(verdicts: &Verdicts) -> Vec<(u32, Verdict)> {
    let mut ranges: Vec<(u32, Verdict)> = Vec::new();
    let known = (0..=verdicts.highest)
        .map(|number| (number, *verdicts.each.get(&number).unwrap_or(&verdicts.others)));
    for (number, verdict) in known.chain([(verdicts.highest + 1, verdicts.above)]) {
        if ranges.last().is_none_or(|(_, last)| *last != verdict) {
            ranges.push((number, verdict));
        }
    }
    ranges
}

/// Halves the ranges until one is left: the kernel goes through this once for each call there is when
/// a filter is installed, and a list one by one would take it long.
fn decided(ranges: &[(u32, Verdict)]) -> Vec<Instruction> {
    if let [(_, verdict)] = ranges {
        return judged(*verdict);
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let (first, _) = high[0];
    let low = decided(low);
    // A branch reaches 255 instructions, a jump any number.
    let over = u32::try_from(low.len()).unwrap_or(u32::MAX);
    let mut program = vec![branch(IF_NOT_LESS, first, 0, 1), instruction(JUMP, over)];
    program.extend(low);
    program.extend(decided(high));
    program
}

fn judged(verdict: Verdict) -> Vec<Instruction> {
    let allowed = instruction(RETURN, libc::SECCOMP_RET_ALLOW);
    match verdict {
        Verdict::Allow => vec![allowed],
        Verdict::Refuse(error) => vec![refused(error)],
        Verdict::Judge { argument, allowed: values } => {
            let mut program = vec![instruction(LOAD, ARGUMENTS + 8 * argument)];
            let no = refused(libc::EPERM);
            // Each goes on to the next unless it holds.
            let (tests, held, otherwise) = match values {
                Values::Only(values) => (equals(values), allowed, no),
                Values::AllBut(values) => (equals(values), no, allowed),
                Values::Without(bits) => (vec![branch(IF_ANY_BIT, bits, 0, 1)], no, allowed),
            };
            for test in tests {
                program.extend([test, held]);
            }
            program.push(otherwise);
            program
        }
    }
}

fn equals(values: &[u32]) -> Vec<Instruction> {
    values.iter().map(|&value| branch(IF_EQUAL, value, 0, 1)).collect()
}

/// What the kernel would answer.
#[cfg(test)]
pub(super) fn answer(
    program: &[Instruction],
    architecture: Architecture,
    number: u32,
    arguments: [u64; 6],
) -> u32 {
    let mut data = Vec::from(number.to_le_bytes());
    data.extend(architecture.audited().to_le_bytes());
    data.extend([0; 8]);
    data.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
    let (mut at, mut accumulator) = (0, 0);
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        let holds = match code {
            LOAD => {
                let place = usize::try_from(k).unwrap();
                accumulator = u32::from_le_bytes(data[place..place + 4].try_into().unwrap());
                at += 1;
                continue;
            }
            RETURN => return k,
            JUMP => {
                at += 1 + usize::try_from(k).unwrap();
                continue;
            }
            IF_EQUAL => accumulator == k,
            IF_NOT_LESS => accumulator >= k,
            IF_ANY_BIT => accumulator & k != 0,
            other => panic!("instruction {other:#x}"),
        };
        at += 1 + usize::from(if holds { jt } else { jf });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;

    fn error(number: i32) -> u32 {
        libc::SECCOMP_RET_ERRNO | number.cast_unsigned()
    }

    #[test]
    fn every_number_has_its_verdict() {
        // So many that a branch alone would not reach over half of them.
        let each: BTreeMap<u32, Verdict> =
            (0..400).step_by(2).map(|number| (number, Verdict::Allow)).collect();
        let verdicts = Verdicts {
            each,
            others: Verdict::Refuse(libc::EPERM),
            highest: 450,
            above: Verdict::Refuse(libc::ENOSYS),
        };
        let here = Architecture::X86_64;
        let program = compiled(&verdicts, here);
        for number in (0..500).chain([0x4000_0000, u32::MAX]) {
            let wanted = match number {
                0..400 if number % 2 == 0 => ALLOWED,
                0..=450 => error(libc::EPERM),
                _ => error(libc::ENOSYS),
            };
            assert_eq!(answer(&program, here, number, [0; 6]), wanted, "{number}");
        }
        let other = answer(&program, Architecture::Aarch64, 0, [0; 6]);
        assert_eq!(other, libc::SECCOMP_RET_KILL_PROCESS);
    }

    #[test]
    fn one_argument_can_decide() {
        let judged = |allowed| Verdict::Judge { argument: 1, allowed };
        let verdicts = Verdicts {
            each: [
                (0, judged(Values::Only(&[3, 5]))),
                (1, judged(Values::AllBut(&[3, 5]))),
                (2, judged(Values::Without(0b110))),
            ]
            .into(),
            others: Verdict::Allow,
            highest: 3,
            above: Verdict::Allow,
        };
        let here = Architecture::Aarch64;
        let program = compiled(&verdicts, here);
        for (number, value, holds) in [
            (0, 3, true),
            (0, 5, true),
            (0, 4, false),
            (1, 3, false),
            (1, 5, false),
            (1, 4, true),
            // The upper half is not the kernel's business, and not looked at.
            (1, 0xff_0000_0003, false),
            (2, 0b001, true),
            (2, 0b010, false),
            (2, 0b111, false),
            (3, 0b111, true),
        ] {
            let wanted = if holds { ALLOWED } else { error(libc::EPERM) };
            let arguments = [9, value, 9, 9, 9, 9];
            assert_eq!(answer(&program, here, number, arguments), wanted, "{number} {value}");
        }
    }
}
