//! Attempts on the process that started them, by what debuggers may do; and on objects that processes share.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::mem::{size_of_val, zeroed};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::native_calls::{call, called, key, process_vm, schedule, take_descriptor};
use super::surroundings::{NativeAttempt, check, command, opened, queue_name, variable};

/// Whose priority is meant; each C library has these numbers in a type of its own.
const PROCESS: u32 = 0;
const GROUP: u32 = 1;
const USER: u32 = 2;

pub const TRACING: &[NativeAttempt] = &[
    ("sysv-shm-remove", || {
        remove_by_number("shm", libc::SYS_shmctl)
    }),
    ("sysv-msg-remove", || {
        remove_by_number("msg", libc::SYS_msgctl)
    }),
    ("queue-open", || {
        let name = queue_name(key());
        // SAFETY: the name outlives the call.
        opened(unsafe { libc::mq_open(name.as_ptr(), libc::O_RDWR) }.into()).map(drop)
    }),
    ("queue-remove", || {
        let name = queue_name(key());
        // SAFETY: the name outlives the call.
        check(unsafe { libc::mq_unlink(name.as_ptr()) })
    }),
    ("trace-starter", || {
        called(libc::SYS_ptrace, [libc::PTRACE_SEIZE as i32, starter()])
    }),
    ("read-starter", || {
        process_vm(libc::SYS_process_vm_readv, starter())
    }),
    ("starter-memory", || {
        fs::File::open(format!("/proc/{}/mem", starter())).map(drop)
    }),
    ("starter-descriptors", || {
        fs::read_link(format!("/proc/{}/fd/0", starter())).map(drop)
    }),
    ("starter-take", || take_descriptor(starter())),
    ("starter-compare", || {
        called(libc::SYS_kcmp, [std::process::id() as i32, starter(), 1])
    }),
    ("starter-nice", || nice(PROCESS, starter())),
    ("first-nice", || nice(PROCESS, 1)),
    ("group-nice", || nice(GROUP, 0)),
    ("user-nice", || {
        // Of a user without processes: any other call would change all of the user's.
        let nobody = u32::MAX - 7;
        match called(libc::SYS_setpriority, [USER, nobody]) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            called => called,
        }
    }),
    ("starter-io", || {
        called(libc::SYS_ioprio_set, [1, starter()])
    }),
    ("group-io", || called(libc::SYS_ioprio_set, [2])),
    ("starter-processors", starter_processors),
    ("starter-scheduler", || {
        schedule(starter(), libc::SCHED_OTHER)
    }),
    ("starter-limit", starter_limit),
    ("starter-oom", starter_oom),
    ("tracer-call", tracer_call),
    ("tracer-suspend", tracer_suspend),
    ("connect-raced", connect_raced),
    ("peer-descriptor", peer_descriptor),
    ("fixed-then-other-user", fixed_then_other_user),
];

/// Who started this process.
fn starter() -> libc::pid_t {
    std::os::unix::process::parent_id() as libc::pid_t
}

/// Finds an object's number by its key in the list that everybody may read, and removes it.
fn remove_by_number(kind: &str, number: libc::c_long) -> io::Result<()> {
    let list = fs::read_to_string(format!("/proc/sysvipc/{kind}"))?;
    let found = list.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let is_it = fields.next()?.parse() == Ok(key());
        is_it.then(|| fields.next()?.parse().ok())?
    });
    let object = found.ok_or(io::ErrorKind::NotFound)?;
    called(number, [object, libc::IPC_RMID])
}

/// Sets a priority to what it is.
fn nice(kind: u32, who: libc::pid_t) -> io::Result<()> {
    let (kind, who) = (i64::from(kind), i64::from(who));
    // The call itself answers 20 less than it.
    let found = call(libc::SYS_getpriority, [kind, who]);
    check(found)?;
    called(libc::SYS_setpriority, [kind, who, 20 - found])
}

fn starter_processors() -> io::Result<()> {
    // SAFETY: the set outlives both calls, and its size is passed with it.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        let size = size_of_val(&set);
        check(libc::sched_getaffinity(starter(), size, &mut set))?;
        check(libc::sched_setaffinity(starter(), size, &set))
    }
}

fn starter_limit() -> io::Result<()> {
    let process = starter();
    // SAFETY: the structure outlives both calls.
    unsafe {
        let mut limit: libc::rlimit = zeroed();
        check(libc::prlimit(
            process,
            libc::RLIMIT_NOFILE,
            ptr::null(),
            &mut limit,
        ))?;
        check(libc::prlimit(
            process,
            libc::RLIMIT_NOFILE,
            &limit,
            ptr::null_mut(),
        ))
    }
}

fn starter_oom() -> io::Result<()> {
    let path = format!("/proc/{}/oom_score_adj", starter());
    let score = fs::read_to_string(&path)?;
    let mut file = OpenOptions::new().write(true).open(&path)?;
    io::Write::write_all(&mut file, score.as_bytes())
}

/// A child that has asked to be traced, and has stopped.
fn traced_child() -> io::Result<libc::pid_t> {
    // SAFETY: this process has one thread; the child makes plain system calls only, for ever.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::raise(libc::SIGSTOP);
            loop {
                libc::syscall(libc::SYS_getppid);
            }
        }
        check(child)?;
        let mut status = 0;
        check(libc::waitpid(child, &mut status, libc::WUNTRACED))?;
        Ok(child)
    }
}

fn end(child: libc::pid_t) {
    // SAFETY: takes numbers, and a place that is not wanted.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, ptr::null_mut(), 0);
    }
}

/// Has a tracer turn a harmless call of its child into one that the filter refuses.
#[cfg(target_arch = "x86_64")]
fn tracer_call() -> io::Result<()> {
    let child = traced_child()?;
    let step = || {
        // SAFETY: takes numbers, and a place for the status.
        unsafe {
            check(libc::ptrace(libc::PTRACE_SYSCALL, child, 0, 0))?;
            let mut status = 0;
            check(libc::waitpid(child, &mut status, 0))
        }
    };
    let turned = || {
        step()?;
        // SAFETY: the structure has the kernel's layout and outlives the calls.
        let mut registers: libc::user_regs_struct = unsafe { zeroed() };
        // SAFETY: as above.
        check(unsafe { libc::ptrace(libc::PTRACE_GETREGS, child, 0, &raw mut registers) })?;
        registers.orig_rax = libc::SYS_unshare as u64;
        registers.rdi = libc::CLONE_NEWUSER as u64;
        // SAFETY: as above.
        check(unsafe { libc::ptrace(libc::PTRACE_SETREGS, child, 0, &raw const registers) })?;
        step()?;
        // SAFETY: as above.
        check(unsafe { libc::ptrace(libc::PTRACE_GETREGS, child, 0, &raw mut registers) })?;
        match registers.rax {
            0 => Ok(()),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    };
    let result = turned();
    end(child);
    result
}

/// There is no register for it that all kernels have.
#[cfg(not(target_arch = "x86_64"))]
fn tracer_call() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn tracer_suspend() -> io::Result<()> {
    const SUSPEND_SECCOMP: libc::c_long = 1 << 21;
    let child = traced_child()?;
    // SAFETY: takes numbers.
    let result = check(unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, child, 0, SUSPEND_SECCOMP) });
    end(child);
    result
}

/// How long a connect is tried while its address changes.
const RACE: Duration = Duration::from_millis(400);

/// Connects to a socket of the own again and again, while another thread puts the address of one outside in its place.
fn connect_raced() -> io::Result<()> {
    let own = variable("TREE").join("raced.sock");
    let _listener = UnixListener::bind(&own)?;
    let outside = variable("OUT").join("stream.sock");
    let (own, outside) = (address(&own)?, address(&outside)?);
    let place = Box::leak(Box::new(own));
    let place: *mut libc::sockaddr_un = place;
    let (from, done) = (place as usize, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let place = from as *mut libc::sockaddr_un;
            while !done.load(Ordering::Relaxed) {
                for next in [&outside, &own] {
                    // SAFETY: the place is leaked, so it is there; that both threads use it is what is tried.
                    unsafe { ptr::write_volatile(place, *next) };
                }
            }
        });
        let end = Instant::now() + RACE;
        let mut reached = false;
        while !reached && Instant::now() < end {
            reached = reaches_outside(place);
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
        reached
            .then_some(())
            .ok_or_else(|| io::ErrorKind::PermissionDenied.into())
    })
}

fn address(path: &std::path::Path) -> io::Result<libc::sockaddr_un> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: zeros are an address.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= address.sun_path.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(address)
}

fn reaches_outside(place: *const libc::sockaddr_un) -> bool {
    // SAFETY: the place outlives the call; the descriptor is new, and closed with the stream.
    unsafe {
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
        let Ok(socket) = opened(libc::socket(libc::AF_UNIX, kind, 0).into()) else {
            return false;
        };
        let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        let connected = libc::connect(socket.as_raw_fd(), place.cast(), size) == 0;
        let peer = UnixStream::from(socket).peer_addr();
        let peer = peer
            .ok()
            .and_then(|peer| peer.as_pathname().map(|path| path.to_owned()));
        connected && peer.is_some_and(|path| path.ends_with("out/stream.sock"))
    }
}

fn peer_descriptor() -> io::Result<()> {
    const PEER_DESCRIPTOR: libc::c_int = 77;
    let (one, _two) = UnixStream::pair()?;
    let (mut found, mut size) = (0i32, 4 as libc::socklen_t);
    // SAFETY: both places outlive the call, and the size is that of the first.
    check(unsafe {
        libc::getsockopt(
            one.as_raw_fd(),
            libc::SOL_SOCKET,
            PEER_DESCRIPTOR,
            (&raw mut found).cast(),
            &mut size,
        )
    })?;
    opened(found.into()).map(drop)
}

/// Starts a set-user-id program with addresses that are known beforehand. It waits for a password.
fn fixed_then_other_user() -> io::Result<()> {
    const NO_RANDOMIZATION: i64 = 0x0004_0000;
    called(libc::SYS_personality, [NO_RANDOMIZATION])?;
    // SAFETY: takes nothing, can't fail.
    if unsafe { libc::geteuid() } == 0 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut child = command("su").stdin(Stdio::piped()).spawn()?;
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut is_other = false;
    while !is_other && Instant::now() < deadline {
        let mut status = String::new();
        let _ = fs::File::open(format!("/proc/{}/status", child.id()))?.read_to_string(&mut status);
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        is_other = line.and_then(|ids| ids.split_ascii_whitespace().nth(1)) == Some("0");
    }
    drop(child.stdin.take());
    child.wait()?;
    is_other
        .then_some(())
        .ok_or_else(|| io::ErrorKind::PermissionDenied.into())
}
