//! Gives memory back that a process does not need while it only waits.
//!
//! All processes of a yard come from one large program. What of its code has been touched once, to start
//! or to set a pod up, would stay mapped for as long as they live. Owns how that is given back, and when a process that polls
//! does so. Must not know what is waited for.
#![allow(unsafe_code, reason = "the C library has no safe wrapper for these")]

use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec};

/// As large as any machine's.
const PAGE: usize = 64 << 10;

/// Unmaps the pages of programs and libraries that cannot have been written to. Whatever is needed
/// again is read again, nearly always from the page cache.
pub fn forget_code() {
    // SAFETY: the callback neither keeps what it is shown nor unwinds.
    unsafe { libc::dl_iterate_phdr(Some(forget_object), std::ptr::null_mut()) };
}

/// Hands freed memory of the heap back to the system, which it otherwise keeps for itself.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: may be called at any time, from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// How long a process works before its code is forgotten.
const SOON: Duration = Duration::from_secs(1);
/// How often that is done while there is always something to do.
const OFTEN: Duration = Duration::from_mins(1);

/// Waits like `poll`, and forgets the code in between that what came needed.
#[derive(Debug)]
pub(crate) struct Idle {
    /// Something was done since code was last forgotten.
    has_worked: bool,
    due: Instant,
}

impl Idle {
    pub(crate) fn new() -> Self {
        Self { has_worked: true, due: Instant::now() + SOON }
    }

    /// Waits for one of these, or for no longer than `most`.
    pub(crate) fn poll(
        &mut self,
        sources: &mut [PollFd<'_>],
        most: Option<Duration>,
    ) -> rustix::io::Result<usize> {
        if self.has_worked {
            let left = self.due.saturating_duration_since(Instant::now());
            if most.is_some_and(|most| most <= left) {
                return poll_for(sources, most);
            }
            let found = if left.is_zero() { 0 } else { poll_for(sources, Some(left))? };
            if found > 0 {
                return Ok(found);
            }
            forget_code();
            *self = Self { has_worked: false, due: Instant::now() + OFTEN };
        }
        let found = poll_for(sources, most)?;
        if found > 0 {
            self.has_worked = true;
            self.due = self.due.max(Instant::now() + SOON);
        }
        Ok(found)
    }
}

fn poll_for(sources: &mut [PollFd<'_>], most: Option<Duration>) -> rustix::io::Result<usize> {
    let most = most.and_then(|most| Timespec::try_from(most).ok());
    rustix::event::poll(sources, most.as_ref())
}

unsafe extern "C" fn forget_object(
    object: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    _given: *mut c_void,
) -> c_int {
    // SAFETY: the loader shows a whole entry, with as many headers as it says.
    let (base, headers) = unsafe {
        let object = &*object;
        if object.dlpi_phdr.is_null() {
            return 0;
        }
        let count = usize::from(object.dlpi_phnum);
        (object.dlpi_addr, std::slice::from_raw_parts(object.dlpi_phdr, count))
    };
    for header in headers {
        if let Some((start, length)) = unwritten(base, header) {
            // SAFETY: these pages are mapped privately from a file and were never writable, so what is
            // read from them after this is what was read before.
            unsafe { libc::madvise(start as *mut c_void, length, libc::MADV_DONTNEED) };
        }
    }
    0
}

/// The whole pages of a segment that is never written to, the loader's relocations included: those
/// stand in writable segments, even where they are protected afterwards.
fn unwritten(base: libc::Elf64_Addr, header: &libc::Elf64_Phdr) -> Option<(usize, usize)> {
    if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_W != 0 {
        return None;
    }
    let start = usize::try_from(base.wrapping_add(header.p_vaddr)).ok()?;
    let end = start.checked_add(usize::try_from(header.p_memsz).ok()?)?;
    let (start, end) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
    (start < end).then(|| (start, end - start))
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// Held by a test that forgets code or measures it: the tests of a program share its memory.
    fn alone() -> MutexGuard<'static, ()> {
        static CODE: Mutex<()> = Mutex::new(());
        CODE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resident kilobytes of code of this program.
    fn code() -> u64 {
        let own = std::env::current_exe().unwrap();
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_own = false;
        let mut sum = 0;
        for line in maps.lines() {
            let is_head = line.as_bytes()[0].is_ascii_hexdigit() && line.contains('-');
            if is_head && !line.starts_with("Rss") {
                is_own = line.contains(" r-xp ") && line.ends_with(own.to_str().unwrap());
            }
            if let Some(size) = line.strip_prefix("Rss:").filter(|_| is_own) {
                sum += size.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
            }
        }
        sum
    }

    /// Reads a byte of every page of this program's code.
    fn touch() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let own = std::env::current_exe().unwrap();
        for line in maps.lines() {
            if !line.contains(" r-xp ") || !line.ends_with(own.to_str().unwrap()) {
                continue;
            }
            let (start, rest) = line.split_once('-').unwrap();
            let end = rest.split_once(' ').unwrap().0;
            let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).unwrap());
            for address in (start..end).step_by(4096) {
                // SAFETY: the map says that it can be read.
                let _: u8 = unsafe { std::ptr::read_volatile(address as *const u8) };
            }
        }
    }

    #[test]
    fn code_that_is_not_run_goes_and_comes_back() {
        let _alone = alone();
        touch();
        let before = code();
        forget_code();
        let after = code();
        assert!(before > 400, "{before} kB of code are little");
        assert!(after < before, "{before} kB before, {after} kB after");
        trim_heap();
        touch();
        assert!(code() >= before, "all of it can be read again");
    }

    #[test]
    fn a_wait_ends_when_there_is_something() {
        let _alone = alone();
        let (mine, yours) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut idle = Idle::new();
        let wait = |idle: &mut Idle, most| {
            idle.poll(&mut [PollFd::new(&mine, rustix::event::PollFlags::IN)], most).unwrap()
        };
        let short = Some(Duration::from_millis(1));
        assert_eq!(wait(&mut idle, short), 0);
        assert!(idle.has_worked, "not yet");
        idle.due = Instant::now();
        assert_eq!(wait(&mut idle, short), 0);
        assert!(!idle.has_worked && idle.due > Instant::now() + SOON);
        std::io::Write::write_all(&mut &yours, b"x").unwrap();
        assert_eq!(wait(&mut idle, None), 1);
        assert!(idle.has_worked);
        assert_eq!(wait(&mut idle, None), 1, "it is still there");
    }

    #[test]
    fn what_may_have_been_written_is_left_alone() {
        // SAFETY: plain numbers.
        let mut header: libc::Elf64_Phdr = unsafe { std::mem::zeroed() };
        header.p_vaddr = 100;
        header.p_memsz = 4 * PAGE as u64;
        let read = libc::PF_R;
        let pages = |kind, flags| {
            let header = libc::Elf64_Phdr { p_type: kind, p_flags: flags, ..header };
            unwritten(0x10_0000, &header)
        };
        assert_eq!(pages(libc::PT_LOAD, read), Some((0x11_0000, 3 * PAGE)));
        assert_eq!(pages(libc::PT_LOAD, read | libc::PF_X), Some((0x11_0000, 3 * PAGE)));
        assert_eq!(pages(libc::PT_LOAD, read | libc::PF_W), None);
        assert_eq!(pages(libc::PT_GNU_RELRO, read), None);
        let small = libc::Elf64_Phdr { p_type: libc::PT_LOAD, p_memsz: 4000, ..header };
        assert_eq!(unwritten(0x10_0000, &small), None, "less than a page");
    }
}
