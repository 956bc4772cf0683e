//! Counts the bytes that the program holds, so that `evaluate` and `bench` can say what a method needs, and so that no
//! file takes more than it may: what would is refused before the system is asked for it.

use crate::terminal::bytes;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static START: AtomicUsize = AtomicUsize::new(0);
/// What may be held at most.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The system's allocator with a count of what is held.
pub struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; the counters are atomic and allocate nothing.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grown(size);
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn grown(size: usize) {
    let held = HELD.fetch_add(size, Relaxed) + size;
    if held > PEAK.load(Relaxed) {
        PEAK.fetch_max(held, Relaxed);
    }
    if held > LIMIT.load(Relaxed) {
        end_for_memory(size);
    }
}

/// Ends the program, because an allocation of this size is one too many. There is nobody to return an error to: what
/// allocates expects to succeed.
#[cold]
fn end_for_memory(size: usize) {
    // From here on allocations succeed: the message needs some, and another thread may be on its way here.
    if LIMIT.swap(usize::MAX, Relaxed) == usize::MAX {
        return;
    }
    HELD.fetch_sub(size, Relaxed);
    let held = bytes(HELD.load(Relaxed) as u64);
    crate::terminal::complain(&format!(
        "error: out of memory: {} more than the {held} that are held are not allowed",
        bytes(size as u64)
    ));
    crate::terminal::complain("hint: if the file is to be trusted, allow more with `--max-memory`");
    std::process::exit(5);
}

/// Allows four fifths of the machine's memory from now on: an error is better than a machine that stands still.
pub fn limit_to_machine() {
    LIMIT.store(usize::try_from(m3impute_io::most_of_machine()).unwrap_or(usize::MAX), Relaxed);
}

/// Allows the work so many bytes beyond what is held now.
pub fn within<T>(bytes: u64, work: impl FnOnce() -> T) -> T {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    LIMIT.store(HELD.load(Relaxed).saturating_add(bytes), Relaxed);
    let done = work();
    limit_to_machine();
    done
}

/// The most that was held at once since the start, beyond what was held then.
#[derive(Debug)]
pub struct MemoryProbe;

impl m3impute_eval::Probe for MemoryProbe {
    fn start(&self) {
        let held = HELD.load(Relaxed);
        START.store(held, Relaxed);
        PEAK.store(held, Relaxed);
    }

    fn peak_bytes(&self) -> Option<u64> {
        Some(PEAK.load(Relaxed).saturating_sub(START.load(Relaxed)) as u64)
    }
}

/// The most memory that the process ever had, as the system counts it (Linux).
pub fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(1024 * line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?)
}
