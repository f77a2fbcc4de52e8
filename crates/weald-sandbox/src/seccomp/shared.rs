//! Rules about what processes share without a name: futexes in files, and the limit that keeps cores from the host.

use super::{ENOSYS, EPERM, answer, argument, jump_equal, load, mask, when};
use crate::sys::Instruction;

/// `futex_requeue`, the same number everywhere.
pub const FUTEX_REQUEUE: libc::c_long = 456;

/// Whoever can read a file can share a futex with those who wait in it. By moving them to a futex of its own a run could keep
/// the host's processes asleep for good. Threads of one process move each other by the private kind, which stays; programs
/// wake everybody where the other kind is missing.
pub fn requeues() -> Vec<Instruction> {
    const CLOCK: u32 = libc::FUTEX_CLOCK_REALTIME as u32;
    const REQUEUE: u32 = libc::FUTEX_REQUEUE as u32;
    const COMPARE: u32 = libc::FUTEX_CMP_REQUEUE as u32;
    const INHERIT: u32 = libc::FUTEX_CMP_REQUEUE_PI as u32;
    vec![
        load(argument(1)),
        mask(!CLOCK),
        jump_equal(REQUEUE, 2, 0),
        jump_equal(COMPARE, 1, 0),
        jump_equal(INHERIT, 0, 1),
        answer(ENOSYS),
    ]
}

/// Says "done" to a process that sets the limit of core files, and leaves it: at exactly 1 the kernel gives no core to a program of
/// the host's, and at 0 it would. Programs that want none have none, and some of them end when the call fails. Whoever wants
/// the old limit back in the same call gets an error, because it would not be filled in.
pub fn core_limits() -> Vec<Instruction> {
    const DONE: u32 = libc::SECCOMP_RET_ERRNO;
    // `RLIMIT_CORE`, which each C library has in a type of its own.
    const CORE: u32 = 4;
    let high = |index: u32| load(argument(index) + 4);
    let plain = vec![load(argument(0)), jump_equal(CORE, 0, 1), answer(DONE)];
    let with_old = vec![
        load(argument(1)),
        jump_equal(CORE, 0, 10),
        // Without a new limit it is a question.
        load(argument(2)),
        jump_equal(0, 0, 2),
        high(2),
        jump_equal(0, 6, 0),
        load(argument(3)),
        jump_equal(0, 0, 3),
        high(3),
        jump_equal(0, 0, 1),
        answer(DONE),
        answer(EPERM),
    ];
    let mut all = when(libc::SYS_setrlimit, plain);
    all.extend(when(libc::SYS_prlimit64, with_old));
    all
}
