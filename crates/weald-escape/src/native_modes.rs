//! Attempts to leave something in the tree that others would run with the rights of the user who made it, to use calls that are
//! newer than the filter, and to outlive the run.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::time::{Duration, Instant};

use super::surroundings::{NativeAttempt, check, opened, outside_c};

const SET_USER: u32 = libc::S_ISUID | 0o755;
const SET_GROUP: u32 = libc::S_ISGID | 0o755;
const FCHMODAT2: libc::c_long = 452;

/// Its name in the tree, where an attempt starts.
const NAME: &CStr = c"planted";

pub const MODES: &[NativeAttempt] = &[
    ("set-user-id-chmod", || {
        fs::write("planted", "x")?;
        fs::set_permissions("planted", fs::Permissions::from_mode(SET_USER))?;
        has_bit(libc::S_ISUID)
    }),
    ("set-user-id-fchmod", || {
        File::create("planted")?.set_permissions(fs::Permissions::from_mode(SET_USER))?;
        has_bit(libc::S_ISUID)
    }),
    ("set-user-id-fchmodat2", || {
        fs::write("planted", "x")?;
        // SAFETY: the name outlives the call.
        check(unsafe { libc::syscall(FCHMODAT2, libc::AT_FDCWD, NAME.as_ptr(), SET_USER, 0) })?;
        has_bit(libc::S_ISUID)
    }),
    ("set-user-id-open", || {
        created(SET_USER).and_then(|()| has_bit(libc::S_ISUID))
    }),
    ("set-user-id-openat2", openat2),
    ("set-user-id-tmpfile", tmpfile),
    ("set-user-id-mknod", || {
        // SAFETY: the name outlives the call.
        check(unsafe { libc::mknod(NAME.as_ptr(), libc::S_IFREG | SET_USER, 0) })?;
        has_bit(libc::S_ISUID)
    }),
    ("set-group-id-open", || {
        created(SET_GROUP).and_then(|()| has_bit(libc::S_ISGID))
    }),
    ("file-capabilities", file_capabilities),
    ("file-setattr", file_setattr),
    ("fork-storm", fork_storm),
];

fn created(mode: u32) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true).mode(mode);
    options.open("planted").map(drop)
}

fn has_bit(bit: u32) -> io::Result<()> {
    match fs::metadata("planted")?.mode() & bit {
        0 => Err(io::ErrorKind::Other.into()),
        _ => Ok(()),
    }
}

/// The mode is in memory, where a filter does not see it.
fn openat2() -> io::Result<()> {
    let how = [
        (libc::O_CREAT | libc::O_WRONLY) as u64,
        u64::from(SET_USER),
        0,
    ];
    // SAFETY: name and structure outlive the call, and the structure's size is passed with it.
    let made = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            libc::AT_FDCWD,
            NAME.as_ptr(),
            how.as_ptr(),
            size_of_val(&how),
        )
    };
    opened(made)?;
    has_bit(libc::S_ISUID)
}

fn tmpfile() -> io::Result<()> {
    // SAFETY: the name outlives the call, and nobody else has the new descriptor.
    let file = unsafe {
        let flags = libc::O_TMPFILE | libc::O_WRONLY;
        let fd = libc::open(c".".as_ptr(), flags, SET_USER);
        check(fd)?;
        File::from_raw_fd(fd)
    };
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both names outlive the call.
    check(unsafe { libc::linkat(here, from.as_ptr(), here, NAME.as_ptr(), follow) })?;
    has_bit(libc::S_ISUID)
}

/// `cap_setuid`, permitted and effective.
fn file_capabilities() -> io::Result<()> {
    fs::write("planted", "x")?;
    let value: [u32; 5] = [0x0200_0001, 1 << 7, 0, 0, 0];
    // SAFETY: names and value outlive the call, and the value's size is passed with it.
    check(unsafe {
        libc::setxattr(
            NAME.as_ptr(),
            c"security.capability".as_ptr(),
            value.as_ptr().cast(),
            size_of_val(&value),
            0,
        )
    })
}

/// Sets "no dump" of a file outside by a call of Linux 6.17.
fn file_setattr() -> io::Result<()> {
    const NO_DUMP: u64 = 0x80;
    let file = outside_c("file");
    let mut attributes = [0u64; 3];
    let size = size_of_val(&attributes);
    // SAFETY: the name and the structure of 24 bytes outlive both calls, and its size is passed with it.
    unsafe {
        let at = libc::AT_FDCWD;
        let structure = attributes.as_mut_ptr();
        check(libc::syscall(468, at, file.as_ptr(), structure, size, 0))?;
        *structure |= NO_DUMP;
        check(libc::syscall(469, at, file.as_ptr(), structure, size, 0))
    }
}

/// How many chains of processes a storm is, and when they end by themselves.
const CHAINS: usize = 30;
const STORM: Duration = Duration::from_secs(40);

/// Starts chains of processes in which each forks and exits, so that nobody holds still, and ends.
fn fork_storm() -> io::Result<()> {
    let end = Instant::now() + STORM;
    for _ in 0..CHAINS {
        // SAFETY: this process has one thread.
        if unsafe { libc::fork() } == 0 {
            hop(end);
        }
    }
    // They have to be many before the first one ends.
    std::thread::sleep(Duration::from_millis(300));
    Ok(())
}

fn hop(end: Instant) -> ! {
    while Instant::now() < end {
        // SAFETY: this process has one thread, and its child goes on with the loop.
        unsafe {
            if libc::fork() > 0 {
                libc::_exit(0);
            }
            libc::setsid();
        }
    }
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) }
}
