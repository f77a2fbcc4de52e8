//! Sockets, and the kernel's questions about them.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr;

use super::{c_path, check, check_int};

/// Two ends of a stream, closed on exec.
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors, which are owned by nobody else.
    unsafe {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        check_int(libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Room for one descriptor beside a message, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Ancillary([u8; 24]);

/// Sends a descriptor over a socket.
pub fn send_descriptor(socket: &impl AsRawFd, sent: &OwnedFd) -> io::Result<()> {
    let mut byte = [0u8; 1];
    let mut room = Ancillary([0; 24]);
    // SAFETY: all buffers outlive the call; the control message is written within `room`, which is large enough for one
    // descriptor.
    unsafe {
        let mut part = libc::iovec {
            iov_base: byte.as_mut_ptr().cast(),
            iov_len: 1,
        };
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut room).cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let control = libc::CMSG_FIRSTHDR(&message);
        (*control).cmsg_level = libc::SOL_SOCKET;
        (*control).cmsg_type = libc::SCM_RIGHTS;
        (*control).cmsg_len = libc::CMSG_LEN(4) as usize;
        ptr::write_unaligned(libc::CMSG_DATA(control).cast(), sent.as_raw_fd());
        check(libc::sendmsg(socket.as_raw_fd(), &message, 0) as libc::c_long).map(drop)
    }
}

/// Receives a descriptor; `None` if the other end closed without sending one.
pub fn receive_descriptor(socket: &impl AsRawFd) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0u8; 1];
    let mut room = Ancillary([0; 24]);
    // SAFETY: all buffers outlive the call; a descriptor is taken only from a control message that holds one.
    unsafe {
        let mut part = libc::iovec {
            iov_base: byte.as_mut_ptr().cast(),
            iov_len: 1,
        };
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut room).cast();
        message.msg_controllen = size_of::<Ancillary>();
        check(
            libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) as libc::c_long,
        )?;
        let control = libc::CMSG_FIRSTHDR(&message);
        if control.is_null() || (*control).cmsg_type != libc::SCM_RIGHTS {
            return Ok(None);
        }
        let fd: RawFd = ptr::read_unaligned(libc::CMSG_DATA(control).cast());
        Ok(Some(OwnedFd::from_raw_fd(fd)))
    }
}

/// The family of a socket.
pub fn socket_family(socket: &OwnedFd) -> io::Result<libc::c_int> {
    let (mut family, mut size) = (0, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: both places outlive the call.
    check_int(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_DOMAIN,
            (&raw mut family).cast(),
            &mut size,
        )
    })?;
    Ok(family)
}

/// A copy of a unix socket that this process was started with, by its number; anything else there is refused.
pub fn inherited_socket(number: RawFd) -> io::Result<OwnedFd> {
    let copy = super::duplicate_above(&number, 3)?;
    match socket_family(&copy)? {
        libc::AF_UNIX => Ok(copy),
        _ => Err(io::Error::from_raw_os_error(libc::ENOTSOCK)),
    }
}

/// Connects a socket to an address given as bytes.
pub fn connect(socket: &OwnedFd, address: &[u8]) -> io::Result<()> {
    // SAFETY: the kernel reads `address.len()` bytes and copies them.
    check_int(unsafe {
        libc::connect(
            socket.as_raw_fd(),
            address.as_ptr().cast(),
            address.len() as libc::socklen_t,
        )
    })
    .map(drop)
}

#[repr(C)]
struct HowToOpen {
    flags: u64,
    mode: u64,
    resolve: u64,
}

/// Opens a path as a mere handle, below `root`, following no link of any kind.
pub fn open_handle(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    const NO_MAGIC_LINKS: u64 = 0x02;
    const NO_SYMLINKS: u64 = 0x04;
    const IN_ROOT: u64 = 0x10;
    let path = c_path(path)?;
    let how = HowToOpen {
        flags: (libc::O_PATH | libc::O_CLOEXEC) as u64,
        mode: 0,
        resolve: NO_MAGIC_LINKS | NO_SYMLINKS | IN_ROOT,
    };
    // SAFETY: the path and the structure outlive the call, and the structure's size is passed with it.
    unsafe {
        let result = libc::syscall(
            libc::SYS_openat2,
            root.as_raw_fd(),
            path.as_ptr(),
            &how,
            size_of::<HowToOpen>(),
        );
        Ok(OwnedFd::from_raw_fd(check(result)? as RawFd))
    }
}

/// A call that a filter passed on.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Question {
    /// Its number, for the answer.
    pub id: u64,
    /// Who asks.
    pub pid: u32,
    flags: u32,
    /// Which call.
    pub call: i32,
    arch: u32,
    instruction: u64,
    /// Its arguments.
    pub arguments: [u64; 6],
}

#[repr(C)]
struct Reply {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// The next question. `NotFound` if the asker is gone already.
pub fn next_question(listener: &OwnedFd) -> io::Result<Question> {
    const RECEIVE: libc::c_ulong = 0xc050_2100;
    let mut question = Question::default();
    // SAFETY: the structure has the kernel's layout and outlives the call; it must be zeroed, and is.
    check_int(unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE, &raw mut question) })?;
    Ok(question)
}

/// Answers with success, or with an errno.
pub fn answer_question(listener: &OwnedFd, id: u64, result: io::Result<()>) -> io::Result<()> {
    const SEND: libc::c_ulong = 0xc018_2101;
    let error = result
        .err()
        .map_or(0, |error| -error.raw_os_error().unwrap_or(libc::EACCES));
    let mut reply = Reply {
        id,
        value: 0,
        error,
        flags: 0,
    };
    // SAFETY: the structure has the kernel's layout and outlives the call.
    check_int(unsafe { libc::ioctl(listener.as_raw_fd(), SEND, &raw mut reply) }).map(drop)
}

/// Whether the asker still waits: what was read of it belongs to it, and not to a later process of the same number.
pub fn is_waiting(listener: &OwnedFd, id: u64) -> bool {
    const VALID: libc::c_ulong = 0x4008_2102;
    // SAFETY: the kernel reads eight bytes.
    check_int(unsafe { libc::ioctl(listener.as_raw_fd(), VALID, &raw const id) }).is_ok()
}
