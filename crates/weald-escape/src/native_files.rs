//! Attempts on files and sockets outside, and on what was inherited.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

use super::surroundings::{
    INHERITED_DIRECTORY, INHERITED_FILE, NativeAttempt, abstract_name, check, outside, outside_c,
    variable,
};

pub const FILES: &[NativeAttempt] = &[
    ("exchange", exchange),
    ("bind-outside", || {
        UnixListener::bind(outside("bound.sock")).map(drop)
    }),
    ("setxattr", setxattr),
    ("setflags", setflags),
    ("utimensat", utimensat),
    ("truncate", truncate),
    ("open-trunc", || {
        OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(outside("file"))
            .map(drop)
    }),
    ("tmpfile-link", tmpfile_link),
    ("mknod-fifo", mknod_fifo),
    ("inherited-file", inherited_file),
    ("inherited-directory", inherited_directory),
    ("connect-stream", || {
        UnixStream::connect(outside("stream.sock")).map(drop)
    }),
    ("connect-home", || {
        UnixStream::connect(variable("HOME").join("stream.sock")).map(drop)
    }),
    ("connect-through-link", connect_through_link),
    ("send-datagram", || {
        UnixDatagram::unbound()?
            .send_to(b"x", outside("datagram.sock"))
            .map(drop)
    }),
    ("send-from-pair", send_from_pair),
    ("connect-abstract", connect_abstract),
];

fn exchange() -> io::Result<()> {
    let (one, two) = (outside_c("file"), outside_c("other"));
    // SAFETY: both names outlive the call.
    check(unsafe {
        // By its number: not every C library has a function for it.
        libc::syscall(
            libc::SYS_renameat2,
            libc::AT_FDCWD,
            one.as_ptr(),
            libc::AT_FDCWD,
            two.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    })
}

fn setxattr() -> io::Result<()> {
    let file = outside_c("file");
    // SAFETY: names and value outlive the call.
    check(unsafe {
        libc::setxattr(
            file.as_ptr(),
            c"user.weald".as_ptr(),
            c"x".as_ptr().cast(),
            1,
            0,
        )
    })
}

/// Sets "no dump", which an owner may.
fn setflags() -> io::Result<()> {
    let file = File::open(outside("file"))?;
    let mut flags: libc::c_long = 0;
    // SAFETY: the kernel reads and writes one number.
    unsafe {
        check(libc::ioctl(
            file.as_raw_fd(),
            libc::FS_IOC_GETFLAGS,
            &raw mut flags,
        ))?;
        flags |= 0x40;
        check(libc::ioctl(
            file.as_raw_fd(),
            libc::FS_IOC_SETFLAGS,
            &raw const flags,
        ))
    }
}

fn utimensat() -> io::Result<()> {
    let file = outside_c("file");
    // SAFETY: name and times outlive the call.
    unsafe {
        let times: [libc::timespec; 2] = zeroed();
        check(libc::utimensat(
            libc::AT_FDCWD,
            file.as_ptr(),
            times.as_ptr(),
            0,
        ))
    }
}

fn truncate() -> io::Result<()> {
    let file = outside_c("file");
    // SAFETY: the name outlives the call.
    check(unsafe { libc::truncate(file.as_ptr(), 0) })
}

fn tmpfile_link() -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .open(variable("TREE"))?;
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = outside_c("linked-tmpfile");
    // SAFETY: both names outlive the call.
    check(unsafe {
        libc::linkat(
            libc::AT_FDCWD,
            from.as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            libc::AT_SYMLINK_FOLLOW,
        )
    })
}

fn mknod_fifo() -> io::Result<()> {
    let path = outside_c("made-fifo");
    // SAFETY: the name outlives the call.
    check(unsafe { libc::mknod(path.as_ptr(), libc::S_IFIFO | 0o600, 0) })
}

fn inherited_file() -> io::Result<()> {
    let text = b"through an old descriptor\n";
    // SAFETY: the text outlives the call; if nothing is there, writing fails.
    check(unsafe { libc::write(INHERITED_FILE, text.as_ptr().cast(), text.len()) } as i64)
}

fn inherited_directory() -> io::Result<()> {
    fs::write(format!("/proc/self/fd/{INHERITED_DIRECTORY}/new"), "x")
}

fn connect_through_link() -> io::Result<()> {
    let link = variable("TREE").join("link.sock");
    std::os::unix::fs::symlink(outside("stream.sock"), &link)?;
    UnixStream::connect(link).map(drop)
}

/// What the other end of the pair gets has not gone out.
fn send_from_pair() -> io::Result<()> {
    let (one, two) = UnixDatagram::pair()?;
    one.send_to(b"x", outside("datagram.sock"))?;
    two.set_nonblocking(true)?;
    match two.recv(&mut [0; 1]) {
        Ok(_) => Err(io::ErrorKind::PermissionDenied.into()),
        Err(_) => Ok(()),
    }
}

fn connect_abstract() -> io::Result<()> {
    use std::os::linux::net::SocketAddrExt;
    let name = abstract_name(&variable("ROOT").canonicalize()?);
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
    UnixStream::connect_addr(&address).map(drop)
}
