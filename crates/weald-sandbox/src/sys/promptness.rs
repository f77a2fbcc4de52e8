//! Getting to the processor among many processes that are all newer.

use std::mem::size_of;

/// As the kernel takes it: `struct sched_attr`, without what is not set.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// What this process starts is scheduled as usual.
const RESET_ON_FORK: u64 = 1;

/// The shortest slice that the kernel gives, in nanoseconds.
const SLICE: u64 = 100_000;

/// Lets this thread run soon whenever it has something to do, by short slices of its usual share: a storm of new processes
/// must not keep those waiting who end it. Where that can't be had it is scheduled as everybody else.
pub fn be_prompt() {
    let nice = rustix::process::getpriority_process(None).unwrap_or_default();
    set(libc::SCHED_OTHER, nice, 0, SLICE);
}

/// The same in real time, for those who may.
pub fn be_first() {
    if !set(libc::SCHED_RR, 0, 1, 0) {
        be_prompt();
    }
}

fn set(policy: libc::c_int, nice: i32, priority: u32, runtime: u64) -> bool {
    let wanted = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: policy as u32,
        flags: RESET_ON_FORK,
        nice,
        priority,
        runtime,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the structure outlives the call and says its size.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(&wanted), 0) == 0 }
}
