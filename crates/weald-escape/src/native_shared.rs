//! Attempts on what is shared without being written: queues, futexes, terminals, the limit of core files.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

use super::native_calls::{called, key};
use super::surroundings::{NativeAttempt, check, opened, outside_c, queue_name};

pub const SHARED: &[NativeAttempt] = &[
    ("queue-take", queue_take),
    ("futex-requeue", || {
        with_mapped(|place, own| {
            const COMPARE_AND_REQUEUE: i64 = 4;
            // SAFETY: the place is mapped, and as large as a number.
            let value = unsafe { ptr::read_volatile(place as *const i32) };
            // SAFETY: both places are mapped, and the rest are numbers.
            check(unsafe {
                let number = libc::SYS_futex;
                libc::syscall(number, place, COMPARE_AND_REQUEUE, 0, 1, own, value)
            })
        })
    }),
    ("futex-requeue-2", || {
        with_mapped(|place, own| {
            // SAFETY: the place is mapped, and as large as a number.
            let value = unsafe { ptr::read_volatile(place as *const u32) };
            // `struct futex_waitv`, twice: value, address, size of 32 bits.
            let waiters = [value.into(), place as u64, 2, 0, own as u64, 2];
            // SAFETY: the structures outlive the call, and the places are mapped.
            check(unsafe { libc::syscall(456, waiters.as_ptr(), 0, 0, 1) })
        })
    }),
    ("terminal-exclusive", || {
        const EXCLUSIVE: libc::Ioctl = 0x540c;
        let terminal = terminal()?;
        // SAFETY: takes no more.
        check(unsafe { libc::ioctl(terminal.as_raw_fd(), EXCLUSIVE) })
    }),
    ("terminal-discipline", || {
        const DISCIPLINE: libc::Ioctl = 0x5423;
        let (terminal, usual) = (terminal()?, 0i32);
        // SAFETY: the number outlives the call.
        check(unsafe { libc::ioctl(terminal.as_raw_fd(), DISCIPLINE, &raw const usual) })
    }),
    ("core-limit", core_limit),
];

/// A queue of the host's, by its file.
fn queue_take() -> io::Result<()> {
    let name = queue_name(key());
    let file = File::open(format!("/dev/mqueue{}", name.to_string_lossy()))?;
    let mut text = vec![0u8; 1 << 16];
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: text and time outlive the call, and the size is that of the text.
    check(unsafe {
        libc::syscall(
            libc::SYS_mq_timedreceive,
            file.as_raw_fd(),
            text.as_mut_ptr(),
            text.len(),
            ptr::null_mut::<u32>(),
            &raw const now,
        )
    })
}

/// Maps a file outside, to be read, and a page of the own.
fn with_mapped(
    attempt: impl FnOnce(*const libc::c_void, *const libc::c_void) -> io::Result<()>,
) -> io::Result<()> {
    let name = outside_c("file");
    // SAFETY: the name outlives the call; the mappings stay until the process ends.
    unsafe {
        let file = opened(libc::open(name.as_ptr(), libc::O_RDONLY).into())?;
        let (shared, none) = (libc::MAP_SHARED, ptr::null_mut());
        let place = libc::mmap(none, 4096, libc::PROT_READ, shared, file.as_raw_fd(), 0);
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let own = libc::mmap(none, 4096, rights, shared | libc::MAP_ANONYMOUS, -1, 0);
        match [place, own].contains(&libc::MAP_FAILED) {
            true => Err(io::Error::last_os_error()),
            false => attempt(place, own),
        }
    }
}

/// A new terminal: one that is used must not be lost.
fn terminal() -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).open("/dev/ptmx")
}

/// With another limit than weald's the host's program would be started.
fn core_limit() -> io::Result<()> {
    let pattern = fs::read("/proc/sys/kernel/core_pattern")?;
    if !matches!(pattern.first(), Some(b'|' | b'@')) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let core = libc::RLIMIT_CORE.into();
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let mut found = libc::rlimit {
        rlim_cur: 1,
        rlim_max: 1,
    };
    let (none, place) = (&raw const none as i64, &raw mut found as i64);
    called(libc::SYS_setrlimit, [core, none])?;
    called(libc::SYS_getrlimit, [core, place])?;
    match found.rlim_cur {
        1 => Err(io::ErrorKind::PermissionDenied.into()),
        _ => Ok(()),
    }
}
