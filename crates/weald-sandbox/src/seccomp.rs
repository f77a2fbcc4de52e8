//! The filter of system calls: what no command in a tree needs, and what would reach around the other walls.
//!
//! It denies by errno, so programs that try see a plain refusal. Calls that are newer than this list, those of x32, and
//! those of another architecture (32-bit programs, whose numbers mean something else) answer ENOSYS, as a kernel without
//! them would. Decisions rest on registers alone, never on memory that another thread could change.
//!
//! No call that has a mode makes a set-user-id file, and none that creates a file makes it set-group-id. `chmod` may still
//! set the group's bit: directories of shared repositories need it, and a filter can't distinguish them from files (`set_id`
//! takes it from files afterwards).

mod shared;
mod sockets;

use libc::c_long;

use crate::sys::Instruction;

/// How unix sockets are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnixSockets {
    /// Stream sockets may be made; every connect is put to the launcher.
    Ask,
    /// None may be made; pairs may.
    Deny,
    /// Nor may any other that reaches somebody: for a run without network and without a namespace for it.
    DenyAll,
}

/// System calls that are refused with EPERM, whatever their arguments.
const REFUSED: &[c_long] = &[
    // Other processes' memory and descriptors, by calls that no debugger needs.
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    // The file-system tree.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Queues that make system calls for somebody.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Keys of the session outside.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// What debuggers and profilers need. The kernel allows each only on processes that may be traced: those of the own pid
/// namespace and Landlock domain, and never one that is not dumpable, as the first process.
const TRACING: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
];

/// The newest call that this list was made for (`mseal`, Linux 6.10). From 424 on all architectures count alike.
const NEWEST: u32 = 462;

/// Without an ipc namespace these reach the host's objects: by a key or name, or by a number that /proc lists.
const SHARED_OBJECTS: &[c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // A queue is also a file, which a plain `open` opens.
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_notify,
    libc::SYS_mq_getsetattr,
];

/// `ioctl` requests that put text into a terminal, reach its console, or leave it useless after the run: closed to everybody
/// else (`TIOCEXCL`), without the discipline that passes keys on (`TIOCSETD`), and the like on a console (`KDSETMODE`,
/// `KDSKBMODE`, `KDSKBMUTE`, `VT_SETMODE`).
const REFUSED_IOCTLS: [u32; 8] = [
    0x5412, 0x541c, 0x540c, 0x5423, 0x4b3a, 0x4b45, 0x4b51, 0x5602,
];

/// `tcflow`: stops a terminal's output or input, or starts it again.
const TCXONC: u32 = 0x540a;

/// `clone` flags that make a namespace.
const NEW_NAMESPACES: u32 = 0x7e02_0000;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Calls of 32-bit programs that are let through: `exit`, `write`, `writev`, `exit_group`.
#[cfg(target_arch = "x86_64")]
const LAST_WORDS: [u32; 4] = [1, 4, 146, 252];
#[cfg(target_arch = "aarch64")]
const LAST_WORDS: [u32; 4] = [1, 4, 146, 248];

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const ASK: u32 = libc::SECCOMP_RET_USER_NOTIF;
const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const EACCES: u32 = libc::SECCOMP_RET_ERRNO | libc::EACCES as u32;
const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
const ENOPROTOOPT: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOPROTOOPT as u32;

// Where `struct seccomp_data` holds what.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

/// What a filter depends on.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'r> {
    /// How unix sockets are treated.
    pub sockets: UnixSockets,
    /// Where no unix socket may be made, the launcher is asked for connections to the broker.
    pub broker: bool,
    /// Processes of the run may trace, schedule and limit each other; that takes a pid namespace.
    pub debugs: bool,
    /// Unix datagram sockets may have names, where stream sockets may be made.
    pub datagrams: bool,
    /// Processes of weald's own in that namespace, besides the first one.
    pub own: &'r [u32],
    /// A core would go to a program of the host's, if it were not for the run's limit.
    pub keeps_core_limit: bool,
}

pub fn program(rules: &Rules<'_>) -> Vec<Instruction> {
    let Rules {
        sockets,
        debugs,
        datagrams,
        ..
    } = *rules;
    let mut filter = vec![
        load(ARCH),
        jump_equal(ARCHITECTURE, LAST_WORDS.len() as u8 + 3, 0),
        load(NUMBER),
    ];
    // What is left of the program: to say what is wrong, and to end.
    for (index, number) in LAST_WORDS.iter().enumerate() {
        filter.push(jump_equal(*number, (LAST_WORDS.len() - index) as u8, 0));
    }
    filter.extend([
        answer(ENOSYS),
        answer(ALLOW),
        load(NUMBER),
        // The numbers of x32 are far above, too.
        jump(JUMP_GREATER, NEWEST, 0, 1),
        answer(ENOSYS),
    ]);
    let tracing = if debugs { &[] } else { TRACING };
    let shared = match sockets {
        UnixSockets::Ask => &[],
        UnixSockets::Deny | UnixSockets::DenyAll => SHARED_OBJECTS,
    };
    for number in REFUSED.iter().chain(tracing).chain(shared) {
        filter.extend([jump_equal(*number as u32, 0, 1), answer(EPERM)]);
    }
    // Their flags, modes and slices are in memory, where a filter can't look; programs fall back to `clone`, `openat`,
    // `sched_setscheduler` and `futex`. With a shorter slice than theirs a run could hold off those who end it.
    for number in [
        libc::SYS_clone3,
        libc::SYS_openat2,
        libc::SYS_sched_setattr,
        shared::FUTEX_REQUEUE,
    ] {
        filter.extend([jump_equal(number as u32, 0, 1), answer(ENOSYS)]);
    }
    let namespaces = [jump(JUMP_SET, NEW_NAMESPACES, 0, 1), answer(EPERM)];
    filter.extend(when(libc::SYS_clone, with_argument(0, &namespaces)));
    filter.extend(when(libc::SYS_personality, personalities()));
    filter.extend(modes(sockets));
    filter.extend(when(libc::SYS_ioctl, refused_ioctls()));
    filter.extend(when(libc::SYS_fcntl, refused_fcntls()));
    filter.extend(when(libc::SYS_socket, sockets::families(rules)));
    filter.extend(other_processes(rules));
    filter.extend(when(libc::SYS_futex, shared::requeues()));
    if rules.keeps_core_limit {
        filter.extend(shared::core_limits());
    }
    filter.extend(when(
        libc::SYS_socketpair,
        sockets::pairs(sockets, datagrams),
    ));
    filter.extend(when(libc::SYS_getsockopt, sockets::peers(sockets)));
    if sockets == UnixSockets::Ask {
        filter.extend([jump_equal(libc::SYS_connect as u32, 0, 1), answer(ASK)]);
    }
    filter.push(answer(ALLOW));
    filter
}

/// Calls that change a mode, and which argument it is.
const CHANGE_MODE: &[(c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
];

/// `fchmodat2`, the same number everywhere.
const FCHMODAT2: c_long = 452;

/// Calls that always create a file, and which argument its mode is.
const CREATE: &[(c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];

/// Calls that create a file if their flags say so: which argument the flags are; the mode comes next.
const OPEN: &[(c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

/// `O_CREAT`, and the bit of `O_TMPFILE` that is its own.
const CREATES: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;

const WRITES: u32 = (libc::O_WRONLY | libc::O_RDWR) as u32;

/// Refuses modes by which others would run a file with the rights of the user who made it. The launcher is asked about files that
/// are opened for writing and not created: it has some of /proc's, which is read-only inside.
fn modes(sockets: UnixSockets) -> Vec<Instruction> {
    let refuses =
        |which: u32, bits: u32| with_argument(which, &[jump(JUMP_SET, bits, 0, 1), answer(EPERM)]);
    let set_id = libc::S_ISUID | libc::S_ISGID;
    let mut all = Vec::new();
    for (number, which) in CHANGE_MODE {
        all.extend(when(*number, refuses(*which, libc::S_ISUID)));
    }
    for (number, which) in CREATE {
        all.extend(when(*number, refuses(*which, set_id)));
    }
    for (number, flags) in OPEN {
        let mut checks = vec![load(argument(*flags)), jump(JUMP_SET, CREATES, 2, 0)];
        let asks = if sockets == UnixSockets::Ask {
            ASK
        } else {
            ALLOW
        };
        checks.extend([jump(JUMP_SET, WRITES, 0, 4), answer(asks)]);
        checks.extend(refuses(flags + 1, set_id));
        all.extend(when(*number, checks));
    }
    all
}

/// Calls that name a process, and by which argument. Without a pid namespace that may be the caller alone (0): otherwise a
/// run could keep the process that ends it from the processor, or touch processes that share its group. With one it may be
/// any of the run's, but for weald's own: the first, which ends the run, and the one that connects.
const NAMED: &[(c_long, u32)] = &[
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_prlimit64, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];

/// Calls that say by their first argument what the next one names, and the number of "a process". Groups and users reach
/// beyond the namespace.
const KINDS: &[(c_long, u32)] = &[(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)];

/// The number of the process that ends the run, in its namespace.
const FIRST: u32 = 1;

fn other_processes(rules: &Rules<'_>) -> Vec<Instruction> {
    let mut all = Vec::new();
    for (number, process) in KINDS {
        let only = [jump_equal(*process, 1, 0), answer(EPERM)];
        all.extend(when(*number, with_argument(0, &only)));
    }
    for (number, which) in NAMED {
        let own = [FIRST].into_iter().chain(rules.own.iter().copied());
        let checks: Vec<_> = match rules.debugs {
            true => own
                .flat_map(|process| [jump_equal(process, 0, 1), answer(EPERM)])
                .collect(),
            false => vec![jump_equal(0, 1, 0), answer(EPERM)],
        };
        all.extend(when(*number, with_argument(*which, &checks)));
    }
    all
}

/// What a process may be like: without random addresses (debuggers), of 32 bits or of an old version by name. Others weaken
/// what the kernel does for it.
fn personalities() -> Vec<Instruction> {
    const NO_RANDOMIZATION: u32 = 0x0004_0000;
    const OLD_VERSION: u32 = 0x0002_0000;
    const BITS_32: u32 = 8;
    const QUESTION: u32 = u32::MAX;
    with_argument(
        0,
        &[
            jump_equal(QUESTION, 2, 0),
            jump(JUMP_SET, !(NO_RANDOMIZATION | OLD_VERSION | BITS_32), 0, 1),
            answer(EPERM),
        ],
    )
}

fn with_argument(which: u32, checks: &[Instruction]) -> Vec<Instruction> {
    let mut all = vec![load(argument(which))];
    all.extend_from_slice(checks);
    all
}

fn refused_ioctls() -> Vec<Instruction> {
    let mut checks = vec![load(argument(1))];
    for request in REFUSED_IOCTLS {
        checks.extend([jump_equal(request, 0, 1), answer(EPERM)]);
    }
    // Whoever stops a terminal's output by a call has to start it by one: no key does.
    let stops = [
        load(argument(2)),
        jump_equal(libc::TCOOFF as u32, 1, 0),
        jump_equal(libc::TCIOFF as u32, 0, 1),
        answer(EPERM),
    ];
    checks.push(jump_equal(TCXONC, 0, stops.len() as u8));
    checks.extend(stops);
    checks
}

/// A lease on a file of the host's makes its writers wait.
fn refused_fcntls() -> Vec<Instruction> {
    let is_lease = jump_equal(libc::F_SETLEASE as u32, 0, 1);
    vec![load(argument(1)), is_lease, answer(EPERM)]
}

/// Runs `checks` for one system call; what they don't answer goes on, with the number loaded again.
fn when(number: c_long, mut checks: Vec<Instruction>) -> Vec<Instruction> {
    checks.push(load(NUMBER));
    let length = u8::try_from(checks.len()).expect("a jump passes at most 255 checks");
    let mut all = vec![jump_equal(number as u32, 0, length)];
    all.extend(checks);
    all
}

const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_SET: u16 = 0x45;

fn load(offset: u32) -> Instruction {
    jump(0x20, offset, 0, 0)
}

fn mask(bits: u32) -> Instruction {
    jump(0x54, bits, 0, 0)
}

/// Goes on after `hit` instructions if equal, after `miss` otherwise.
fn jump_equal(value: u32, hit: u8, miss: u8) -> Instruction {
    jump(JUMP_EQUAL, value, hit, miss)
}

/// The same by another comparison: greater, or with one of these bits.
fn jump(code: u16, value: u32, hit: u8, miss: u8) -> Instruction {
    Instruction {
        code,
        jt: hit,
        jf: miss,
        k: value,
    }
}

fn answer(action: u32) -> Instruction {
    jump(0x06, action, 0, 0)
}

#[cfg(test)]
mod tests;
