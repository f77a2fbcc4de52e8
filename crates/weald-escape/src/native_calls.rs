//! Attempts by single system calls: processes, namespaces, the kernel's interfaces.

use std::ffi::{CStr, CString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::mem::{size_of_val, zeroed};
use std::os::fd::AsRawFd;
use std::ptr;

use libc::{SYS_add_key, SYS_bpf, SYS_clone3, SYS_io_uring_setup, SYS_kcmp, SYS_keyctl, syscall};

use super::surroundings::{NativeAttempt, check, opened, outside_c, variable, victim};

/// A call with numbers only; those left out are zero.
pub(super) fn call<N: Into<i64>, const COUNT: usize>(
    number: libc::c_long,
    given: [N; COUNT],
) -> i64 {
    let mut all = [0; 5];
    for (place, value) in all.iter_mut().zip(given) {
        *place = value.into();
    }
    let [a, b, c, d, e] = all;
    // SAFETY: every use passes numbers, or null for an optional pointer.
    unsafe { syscall(number, a, b, c, d, e) }
}

pub(super) fn called<N: Into<i64>, const COUNT: usize>(
    number: libc::c_long,
    given: [N; COUNT],
) -> io::Result<()> {
    check(call(number, given))
}

pub const CALLS: &[NativeAttempt] = &[
    ("pidfd-signal", pidfd_signal),
    ("sigqueue", sigqueue),
    ("tgkill", || {
        called(libc::SYS_tgkill, [victim(), victim(), libc::SIGKILL])
    }),
    ("prlimit", prlimit),
    ("ptrace-attach", || {
        called(libc::SYS_ptrace, [libc::PTRACE_ATTACH as i32, victim()])
    }),
    ("ptrace-seize", || {
        called(libc::SYS_ptrace, [libc::PTRACE_SEIZE as i32, victim()])
    }),
    ("process-vm-read", || {
        process_vm(libc::SYS_process_vm_readv, victim())
    }),
    ("process-vm-write", || {
        process_vm(libc::SYS_process_vm_writev, victim())
    }),
    ("proc-mem", || {
        OpenOptions::new()
            .write(true)
            .open(format!("/proc/{}/mem", victim()))
            .map(drop)
    }),
    ("pidfd-getfd", || take_descriptor(victim())),
    ("kcmp", || {
        called(SYS_kcmp, [std::process::id() as i32, victim(), 1])
    }),
    ("setscheduler", setscheduler),
    ("setaffinity", setaffinity),
    ("sysv-shm", || called(libc::SYS_shmget, [key()])),
    ("sysv-msg", || called(libc::SYS_msgget, [key()])),
    ("mount-direct", mount_direct),
    ("unshare-user", || {
        called(libc::SYS_unshare, [libc::CLONE_NEWUSER])
    }),
    ("unshare-mount", enter_new_mounts),
    ("clone-user", clone_user),
    ("clone3-user", clone3_user),
    ("setns", setns),
    ("mount", mount),
    ("open-tree", open_tree),
    ("chroot", chroot),
    ("open-by-handle", || handle(Handle::Open)),
    ("name-to-handle", || handle(Handle::Name)),
    ("io-uring", io_uring),
    ("add-key", add_key),
    ("keyctl", || called(SYS_keyctl, [0, -5, 1])),
    ("userfaultfd", || {
        opened(call(libc::SYS_userfaultfd, [1])).map(drop)
    }),
    ("bpf", bpf),
    ("perf", perf),
    ("fanotify", || {
        opened(call(libc::SYS_fanotify_init, [0x200])).map(drop)
    }),
    ("personality", || {
        called(libc::SYS_personality, [0x0040_0000])
    }),
    ("sethostname", sethostname),
    ("read-disk", read_disk),
    ("make-cgroup", make_cgroup),
    ("vsock", || {
        opened(call(libc::SYS_socket, [libc::AF_VSOCK, libc::SOCK_STREAM])).map(drop)
    }),
    ("syslog", || called(libc::SYS_syslog, [10])),
];

fn pidfd_signal() -> io::Result<()> {
    let process = opened(call(libc::SYS_pidfd_open, [victim()]))?;
    called(
        libc::SYS_pidfd_send_signal,
        [process.as_raw_fd(), libc::SIGKILL],
    )
}

fn sigqueue() -> io::Result<()> {
    // SAFETY: takes a value, no pointer.
    check(unsafe { libc::sigqueue(victim(), libc::SIGTERM, zeroed()) })
}

fn prlimit() -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: 4096,
        rlim_max: 4096,
    };
    // SAFETY: the structure outlives the call.
    check(unsafe { libc::prlimit(victim(), libc::RLIMIT_CORE, &limit, ptr::null_mut()) })
}

/// Some address that is mapped in a process and writable: its stack.
fn stack_of(process: libc::pid_t) -> io::Result<usize> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps"))?;
    let line = maps.lines().find(|line| line.ends_with("[stack]"));
    let start = line.and_then(|line| line.split('-').next());
    usize::from_str_radix(start.unwrap_or_default(), 16).map_err(io::Error::other)
}

pub(super) fn process_vm(number: libc::c_long, process: libc::pid_t) -> io::Result<()> {
    let mut byte = [0u8; 1];
    let local = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let remote = libc::iovec {
        iov_base: stack_of(process)? as *mut libc::c_void,
        iov_len: 1,
    };
    // SAFETY: the local buffer outlives the call; the remote address is only used in the other process.
    check(unsafe { syscall(number, process, &local, 1usize, &remote, 1usize, 0usize) })
}

/// The first descriptor of a process.
pub(super) fn take_descriptor(process: libc::pid_t) -> io::Result<()> {
    let process = opened(call(libc::SYS_pidfd_open, [process]))?;
    opened(call(libc::SYS_pidfd_getfd, [process.as_raw_fd()])).map(drop)
}

fn setscheduler() -> io::Result<()> {
    schedule(victim(), libc::SCHED_BATCH)
}

/// By the call itself: the function of some C libraries only says that it does not exist.
pub(super) fn schedule(process: libc::pid_t, policy: libc::c_int) -> io::Result<()> {
    let priority: libc::c_int = 0;
    let call = libc::SYS_sched_setscheduler;
    // SAFETY: the number, which is all of the structure, outlives the call.
    check(unsafe { syscall(call, process, policy, &raw const priority) })
}

fn setaffinity() -> io::Result<()> {
    // SAFETY: the set is initialised and outlives the call.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(0, &mut set);
        check(libc::sched_setaffinity(victim(), size_of_val(&set), &set))
    }
}

/// The field made a segment and a queue under this key.
pub(super) fn key() -> i64 {
    variable("KEY").to_string_lossy().parse().unwrap_or(0)
}

fn mount_direct() -> io::Result<()> {
    let place = outside_c("dir");
    mount_at(&place)?;
    // SAFETY: the name outlives the call.
    check(unsafe { libc::umount(place.as_ptr()) })
}

fn mount_at(place: &CStr) -> io::Result<()> {
    let (source, kind) = (c"none".as_ptr(), c"tmpfs".as_ptr());
    // SAFETY: all texts outlive the call.
    check(unsafe { libc::mount(source, place.as_ptr(), kind, 0, ptr::null()) })
}

fn enter_new_mounts() -> io::Result<()> {
    let flags = libc::CLONE_NEWNS | libc::CLONE_NEWUSER;
    called(libc::SYS_unshare, [flags])
}

/// A child in a new user namespace, which ends at once.
fn clone_user() -> io::Result<()> {
    let flags = i64::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
    match call(libc::SYS_clone, [flags]) {
        0 => std::process::exit(0),
        child => check(child),
    }
}

fn clone3_user() -> io::Result<()> {
    let mut arguments = [0u64; 11];
    arguments[0] = libc::CLONE_NEWUSER as u64;
    arguments[4] = libc::SIGCHLD as u64;
    // SAFETY: the structure outlives the call, and its size is passed with it.
    match unsafe { syscall(SYS_clone3, arguments.as_ptr(), size_of_val(&arguments)) } {
        0 => std::process::exit(0),
        child => check(child),
    }
}

fn setns() -> io::Result<()> {
    let namespace = File::open(format!("/proc/{}/ns/uts", victim()))?;
    called(libc::SYS_setns, [namespace.as_raw_fd()])
}

fn mount() -> io::Result<()> {
    // In a namespace of its own, so that nothing is left behind where it works.
    enter_new_mounts()?;
    mount_at(&outside_c("dir"))
}

fn open_tree() -> io::Result<()> {
    enter_new_mounts()?;
    let (place, here) = (outside_c("dir"), libc::AT_FDCWD);
    let (number, flags) = (libc::SYS_open_tree, libc::OPEN_TREE_CLONE);
    // SAFETY: the name outlives the call.
    opened(unsafe { syscall(number, here, place.as_ptr(), flags) }).map(drop)
}

fn chroot() -> io::Result<()> {
    // SAFETY: the name outlives the call.
    check(unsafe { libc::chroot(c".".as_ptr()) })
}

enum Handle {
    Name,
    Open,
}

fn handle(what: Handle) -> io::Result<()> {
    let file = outside_c("file");
    let mut room = [0u32; 34];
    room[0] = 128;
    let mut mount = 0i32;
    let directory = File::open(variable("OUT"))?;
    // SAFETY: the handle's room is as large as its first word says; everything outlives the calls.
    unsafe {
        check(syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            file.as_ptr(),
            room.as_mut_ptr(),
            &mut mount,
            0,
        ))?;
        match what {
            Handle::Name => Ok(()),
            Handle::Open => {
                let fd = syscall(
                    libc::SYS_open_by_handle_at,
                    directory.as_raw_fd(),
                    room.as_ptr(),
                    libc::O_RDONLY,
                );
                opened(fd).map(drop)
            }
        }
    }
}

fn io_uring() -> io::Result<()> {
    let mut parameters = [0u32; 30];
    // SAFETY: the structure has the kernel's size of 120 bytes and outlives the call.
    opened(unsafe { syscall(SYS_io_uring_setup, 4, parameters.as_mut_ptr()) }).map(drop)
}

fn add_key() -> io::Result<()> {
    // SAFETY: texts and payload outlive the call. -4 is the user's keyring.
    let key = unsafe {
        syscall(
            SYS_add_key,
            c"user".as_ptr(),
            c"weald".as_ptr(),
            c"x".as_ptr(),
            1usize,
            -4,
        )
    };
    check(key)?;
    // Where it works nothing should be left of it.
    called(SYS_keyctl, [9, key, -4])
}

fn bpf() -> io::Result<()> {
    // An array map of one element.
    let attributes = [2u32, 4, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: the structure outlives the call, and its size is passed with it.
    opened(unsafe { syscall(SYS_bpf, 0, attributes.as_ptr(), size_of_val(&attributes)) }).map(drop)
}

fn perf() -> io::Result<()> {
    let mut attributes = [0u64; 14];
    // A software counter (type 1, size 112) that leaves kernel and hypervisor out.
    attributes[0] = 1 | 112 << 32;
    attributes[5] = 1 << 5 | 1 << 6;
    // SAFETY: the structure outlives the call.
    opened(unsafe { syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0) })
        .map(drop)
}

fn sethostname() -> io::Result<()> {
    let name = CString::new(fs::read_to_string("/proc/sys/kernel/hostname")?.trim())?;
    // SAFETY: the name outlives the call; it is the one the host has already.
    check(unsafe { libc::sethostname(name.as_ptr(), name.as_bytes().len()) })
}

fn read_disk() -> io::Result<()> {
    let disks = fs::read_to_string("/proc/partitions")?;
    let names = disks
        .lines()
        .skip(2)
        .filter_map(|line| line.split_ascii_whitespace().nth(3));
    let mut sector = [0; 512];
    let read = |name: &str| {
        File::open(format!("/dev/{name}")).and_then(|mut disk| disk.read_exact(&mut sector))
    };
    match names.map(read).any(|read| read.is_ok()) {
        true => Ok(()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

fn make_cgroup() -> io::Result<()> {
    for base in [
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/memory",
    ] {
        let path = format!("{base}/weald-escape-{}", std::process::id());
        if fs::create_dir(&path).is_ok() {
            return fs::remove_dir(&path);
        }
    }
    Err(io::ErrorKind::PermissionDenied.into())
}
