//! The filter of system calls: what no command in a tree needs, and what would reach around the other walls.
//!
//! It denies by errno, so programs that try see a plain refusal. Calls that are newer than this list, and those of x32,
//! answer ENOSYS, as an older kernel would. Calls of another architecture are killed: their numbers mean something else.
//! Decisions rest on registers alone, never on memory that another thread could change.
//!
//! No call that has a mode makes a set-user-id file, and none that creates a file makes it set-group-id. `chmod` may still
//! set the group's bit: directories of shared repositories need it, and a filter can't tell them from files (`set_id`
//! takes it from files afterwards).

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
    // Other processes' memory and registers.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
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
    libc::SYS_personality,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// The newest call that this list was made for (`mseal`, Linux 6.10). From 424 on all architectures count alike.
const NEWEST: u32 = 462;

/// Without an ipc namespace these reach the host's.
const SYSTEM_V: &[c_long] = &[
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_shmat,
];

/// `ioctl` requests that put text into a terminal, or reach its console.
const REFUSED_IOCTLS: [u32; 3] = [0x5412, 0x541c, 0x4b3a];

/// `clone` flags that make a namespace.
const NEW_NAMESPACES: u32 = 0x7e02_0000;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const ASK: u32 = libc::SECCOMP_RET_USER_NOTIF;
const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const EACCES: u32 = libc::SECCOMP_RET_ERRNO | libc::EACCES as u32;
const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

// Where `struct seccomp_data` holds what.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

/// Builds the filter.
pub fn program(sockets: UnixSockets) -> Vec<Instruction> {
    let mut filter = vec![
        load(ARCH),
        jump_equal(ARCHITECTURE, 1, 0),
        answer(KILL),
        load(NUMBER),
        // The numbers of x32 are far above, too.
        jump(JUMP_GREATER, NEWEST, 0, 1),
        answer(ENOSYS),
    ];
    for number in REFUSED {
        filter.extend([jump_equal(*number as u32, 0, 1), answer(EPERM)]);
    }
    // Their flags, modes and slices are in memory, where a filter can't look; programs fall back to `clone`, `openat` and
    // `sched_setscheduler`. With a shorter slice than theirs a run could hold off those who end it.
    for number in [libc::SYS_clone3, libc::SYS_openat2, libc::SYS_sched_setattr] {
        filter.extend([jump_equal(number as u32, 0, 1), answer(ENOSYS)]);
    }
    filter.extend(when(
        libc::SYS_clone,
        vec![
            load(argument(0)),
            jump(JUMP_SET, NEW_NAMESPACES, 0, 1),
            answer(EPERM),
        ],
    ));
    filter.extend(modes());
    filter.extend(when(libc::SYS_ioctl, refused_ioctls()));
    filter.extend(when(libc::SYS_fcntl, refused_fcntls()));
    filter.extend(when(libc::SYS_socket, sockets_by_family(sockets)));
    for (number, which) in ONLY_SELF {
        filter.extend(when(
            *number,
            vec![load(argument(*which)), jump_equal(0, 1, 0), answer(EPERM)],
        ));
    }
    let process = vec![
        load(argument(0)),
        jump_equal(IOPRIO_PROCESS, 1, 0),
        answer(EPERM),
    ];
    filter.extend(when(libc::SYS_ioprio_set, process));
    if sockets != UnixSockets::Ask {
        for number in SYSTEM_V {
            filter.extend([jump_equal(*number as u32, 0, 1), answer(EPERM)]);
        }
    }
    filter.extend(when(
        libc::SYS_socketpair,
        vec![
            load(argument(1)),
            mask(SOCKET_TYPE),
            jump_equal(libc::SOCK_STREAM as u32, 2, 0),
            jump_equal(libc::SOCK_SEQPACKET as u32, 1, 0),
            // A datagram pair could send to any address.
            answer(EACCES),
        ],
    ));
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

/// Refuses modes by which others would run a file with the rights of whoever made it.
fn modes() -> Vec<Instruction> {
    let refuses = |which: u32, bits: u32| {
        vec![
            load(argument(which)),
            jump(JUMP_SET, bits, 0, 1),
            answer(EPERM),
        ]
    };
    let set_id = libc::S_ISUID | libc::S_ISGID;
    let mut all = Vec::new();
    for (number, which) in CHANGE_MODE {
        all.extend(when(*number, refuses(*which, libc::S_ISUID)));
    }
    for (number, which) in CREATE {
        all.extend(when(*number, refuses(*which, set_id)));
    }
    for (number, flags) in OPEN {
        let mut checks = vec![load(argument(*flags)), jump(JUMP_SET, CREATES, 0, 3)];
        checks.extend(refuses(flags + 1, set_id));
        all.extend(when(*number, checks));
    }
    all
}

/// The type of a socket without its flags.
const SOCKET_TYPE: u32 = 0xf;

/// Families that a socket may have; netlink only to ask about interfaces and routes.
fn sockets_by_family(sockets: UnixSockets) -> Vec<Instruction> {
    let mut checks = vec![load(argument(0))];
    match sockets {
        UnixSockets::Deny => {
            checks.extend([jump_equal(libc::AF_UNIX as u32, 0, 1), answer(EACCES)])
        }
        UnixSockets::DenyAll => {
            for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
                checks.extend([jump_equal(family as u32, 0, 1), answer(EACCES)]);
            }
        }
        UnixSockets::Ask => checks.extend([
            jump_equal(libc::AF_UNIX as u32, 0, 6),
            load(argument(1)),
            mask(SOCKET_TYPE),
            jump_equal(libc::SOCK_STREAM as u32, 1, 0),
            jump_equal(libc::SOCK_SEQPACKET as u32, 0, 1),
            answer(ALLOW),
            // A datagram socket (and SOCK_RAW, which is one) needs no connect to send, so nobody would be asked.
            answer(EACCES),
        ]),
    }
    for family in [libc::AF_INET, libc::AF_INET6] {
        checks.extend([jump_equal(family as u32, 0, 1), answer(ALLOW)]);
    }
    checks.extend([
        jump_equal(libc::AF_NETLINK as u32, 0, 3),
        load(argument(2)),
        jump_equal(libc::NETLINK_ROUTE as u32, 0, 1),
        answer(ALLOW),
        answer(EACCES),
    ]);
    checks
}

/// Calls that may be aimed at the caller alone: the argument that names a process must be 0. Otherwise a run could keep the
/// process that ends it from the processor, or touch processes that share its group.
const ONLY_SELF: &[(c_long, u32)] = &[
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_prlimit64, 0),
    (libc::SYS_setpriority, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];

/// `ioprio_set` names what it is aimed at by number; 1 is a process.
const IOPRIO_PROCESS: u32 = 1;

fn refused_ioctls() -> Vec<Instruction> {
    let mut checks = vec![load(argument(1))];
    for request in REFUSED_IOCTLS {
        checks.extend([jump_equal(request, 0, 1), answer(EPERM)]);
    }
    checks
}

/// A lease on a file of the host's makes whoever writes it wait; a notification tells of its folder.
fn refused_fcntls() -> Vec<Instruction> {
    const NOTIFY: u32 = 1026;
    let mut checks = vec![load(argument(1))];
    for command in [libc::F_SETLEASE as u32, NOTIFY] {
        checks.extend([jump_equal(command, 0, 1), answer(EPERM)]);
    }
    checks
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
    Instruction {
        code: 0x20,
        jt: 0,
        jf: 0,
        k: offset,
    }
}

fn mask(bits: u32) -> Instruction {
    Instruction {
        code: 0x54,
        jt: 0,
        jf: 0,
        k: bits,
    }
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
    Instruction {
        code: 0x06,
        jt: 0,
        jf: 0,
        k: action,
    }
}

#[cfg(test)]
mod tests;
