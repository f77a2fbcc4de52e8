//! Sockets, and the kernel's questions about them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::{MaybeUninit, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::net::{
    AddressFamily, Protocol, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use super::check_int;

/// Two ends of a stream, closed on exec.
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    pair_of(SocketType::STREAM, SocketFlags::empty())
}

/// Two ends of a connection that keeps messages apart, closed on exec.
pub fn packet_pair(waits: bool) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = match waits {
        true => SocketFlags::empty(),
        false => SocketFlags::NONBLOCK,
    };
    pair_of(SocketType::SEQPACKET, flags)
}

fn pair_of(kind: SocketType, flags: SocketFlags) -> io::Result<(OwnedFd, OwnedFd)> {
    let (family, flags) = (AddressFamily::UNIX, flags | SocketFlags::CLOEXEC);
    Ok(rustix::net::socketpair(family, kind, flags, None)?)
}

/// Takes the next byte from a socket if it is this one; anything else stays.
pub fn take_byte(socket: &impl AsFd, wanted: u8) -> bool {
    let mut next = [0];
    let peeked = rustix::net::recv(socket, &mut next[..], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    let is_next = matches!(peeked, Ok((1, _))) && next[0] == wanted;
    is_next && rustix::net::recv(socket, &mut next[..], RecvFlags::DONTWAIT).is_ok()
}

/// How many descriptors go with a message.
const MOST: usize = 2;

const ROOM: usize = rustix::cmsg_space!(ScmRights(MOST));

/// Sends a descriptor over a socket.
pub fn send_descriptor(socket: &impl AsFd, sent: &OwnedFd) -> io::Result<()> {
    send_message(socket, &[0], &[sent])
}

/// Sends bytes, and up to two descriptors, over a socket.
pub fn send_message(socket: &impl AsFd, bytes: &[u8], sent: &[&OwnedFd]) -> io::Result<()> {
    let mut room = [MaybeUninit::uninit(); ROOM];
    let mut control = SendAncillaryBuffer::new(&mut room);
    let sent: Vec<_> = sent.iter().take(MOST).map(|fd| fd.as_fd()).collect();
    control.push(SendAncillaryMessage::ScmRights(&sent));
    let parts = [IoSlice::new(bytes)];
    rustix::net::sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a descriptor; `None` if the other end closed without sending one.
pub fn receive_descriptor(socket: &impl AsFd) -> io::Result<Option<OwnedFd>> {
    receive_message(socket, &mut [0]).map(|(_, mut sent)| sent.pop())
}

/// Receives bytes and the descriptors that come with them; neither if the other end is closed.
pub fn receive_message(socket: &impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut room = [MaybeUninit::uninit(); ROOM];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let mut parts = [IoSliceMut::new(bytes)];
    let got = rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let sent = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(sent) => Some(sent),
        _ => None,
    });
    Ok((got.bytes, sent.flatten().collect()))
}

/// Who is at the other end of a unix socket, as this process sees it. Not by rustix, whose `UCred` has no room for the number
/// 0, which stands for a process that can't be seen from here.
pub fn peer_of(socket: &OwnedFd) -> io::Result<libc::ucred> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: both places outlive the call, and the size is that of the first.
    check_int(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut size,
        )
    })?;
    Ok(peer)
}

/// A socket for questions about the sockets of this process's network.
pub fn socket_queries() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(rustix::net::netlink::SOCK_DIAG),
    )?)
}

/// The inode of the other end of a unix socket, which is named by its own.
pub fn peer_inode(queries: &OwnedFd, inode: u32) -> io::Result<Option<u32>> {
    const BY_FAMILY: u16 = 20;
    const PEER: u16 = 2;
    const SHOW_PEER: u32 = 4;
    const ANY_COOKIE: u32 = u32::MAX;
    let mut request = Vec::with_capacity(40);
    request.extend(40u32.to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    request.extend([0; 8]);
    request.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    for word in [u32::MAX, inode, SHOW_PEER, ANY_COOKIE, ANY_COOKIE] {
        request.extend(word.to_ne_bytes());
    }
    let mut answer = [0u8; 512];
    rustix::net::send(queries, &request, SendFlags::empty())?;
    let (length, _) = rustix::net::recv(queries, &mut answer, RecvFlags::empty())?;
    // A header of 16 bytes, one of 16 about the socket, attributes.
    let mut rest = answer[..length].get(32..).unwrap_or_default();
    let is_answer = answer[4..6] == BY_FAMILY.to_ne_bytes();
    while let (true, Some((header, _))) = (is_answer, rest.split_first_chunk::<4>()) {
        let size = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]);
        if let (PEER, Some(value)) = (kind, rest.get(4..8)) {
            return Ok(Some(u32::from_ne_bytes([
                value[0], value[1], value[2], value[3],
            ])));
        }
        rest = rest
            .get(size.max(4).next_multiple_of(4)..)
            .unwrap_or_default();
    }
    Ok(None)
}

/// A unix stream socket, closed on exec.
pub fn unix_stream(protocol: Option<u32>) -> io::Result<OwnedFd> {
    let protocol = protocol.and_then(NonZeroU32::new).map(Protocol::from_raw);
    Ok(rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        protocol,
    )?)
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

/// The addresses of this machine's interfaces, and of the other end of those that have one, each with its mask.
pub fn interface_addresses() -> io::Result<Vec<(IpAddr, IpAddr)>> {
    let mut first = ptr::null_mut();
    // SAFETY: the place for the list outlives the call.
    check_int(unsafe { libc::getifaddrs(&raw mut first) })?;
    let mut found = Vec::new();
    let mut next = first.cast_const();
    // SAFETY: the list was made by the call above and is freed below; its last entry has no next one.
    while let Some(entry) = unsafe { next.as_ref() } {
        let peer = match entry.ifa_flags & libc::IFF_POINTOPOINT as libc::c_uint {
            0 => ptr::null(),
            _ => entry.ifa_ifu.cast_const(),
        };
        // SAFETY: each is null, or an address in the list that is as long as its family says.
        let mask = unsafe { ip_at(entry.ifa_netmask) };
        for address in [entry.ifa_addr.cast_const(), peer] {
            // SAFETY: as above.
            let Some(address) = (unsafe { ip_at(address) }) else {
                continue;
            };
            // Without a mask it is one address.
            let whole = match address {
                IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::BROADCAST),
                IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(u128::MAX)),
            };
            found.push((address, mask.unwrap_or(whole)));
        }
        next = entry.ifa_next;
    }
    // SAFETY: the list is freed once, and nothing refers to it any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// # Safety
///
/// `address` is null, or points to an address that is as long as its family says.
unsafe fn ip_at(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller's promise; the family comes first in each kind of address.
    let family = unsafe { address.as_ref() }?.sa_family;
    match libc::c_int::from(family) {
        libc::AF_INET => {
            // SAFETY: the caller's promise, for this family.
            let four = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(four.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the caller's promise, for this family.
            let six = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(six.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// Opens a path as a mere handle, below `root`, following no link of any kind.
pub fn open_handle(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let how = ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS | ResolveFlags::IN_ROOT;
    Ok(rustix::fs::openat2(root, path, flags, Mode::empty(), how)?)
}

/// A call that a filter passed on.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Question {
    /// Its number, for the answer.
    pub id: u64,
    pub pid: u32,
    flags: u32,
    pub call: i32,
    arch: u32,
    instruction: u64,
    pub arguments: [u64; 6],
}

/// A call that opens a file.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    /// Where its path is in the asker's memory.
    pub path: u64,
    pub flags: libc::c_int,
}

impl Question {
    /// Whether it is about a connection.
    pub fn is_connect(&self) -> bool {
        libc::c_long::from(self.call) == libc::SYS_connect
    }

    /// It as one that opens a file: `open`, or `openat`, which has a directory first.
    pub fn open(&self) -> Opening {
        let is_at = libc::c_long::from(self.call) == libc::SYS_openat;
        let first = usize::from(is_at);
        Opening {
            path: self.arguments[first],
            flags: self.arguments[first + 1] as libc::c_int,
        }
    }
}

#[repr(C)]
struct NotificationResponse {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// The next question. `NotFound` if the asker is gone already.
pub fn next_question(listener: &OwnedFd) -> io::Result<Question> {
    const RECEIVE: libc::Ioctl = 0xc050_2100_u32 as libc::Ioctl;
    let mut question = Question::default();
    // SAFETY: the structure has the kernel's layout and outlives the call; it must be zeroed, and is.
    check_int(unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE, &raw mut question) })?;
    Ok(question)
}

/// What is answered to a question.
pub enum Verdict {
    Done,
    /// Let the kernel do it, with whatever the arguments are by then.
    GoOn,
    /// It is refused, or failed.
    Failed(io::Error),
}

pub fn answer_question(listener: &OwnedFd, id: u64, verdict: Verdict) -> io::Result<()> {
    const SEND: libc::Ioctl = 0xc018_2101_u32 as libc::Ioctl;
    let (error, flags) = match verdict {
        Verdict::Done => (0, 0),
        Verdict::GoOn => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        Verdict::Failed(error) => (-error.raw_os_error().unwrap_or(libc::EACCES), 0),
    };
    let mut response = NotificationResponse {
        id,
        value: 0,
        error,
        flags,
    };
    // SAFETY: the structure has the kernel's layout and outlives the call.
    check_int(unsafe { libc::ioctl(listener.as_raw_fd(), SEND, &raw mut response) }).map(drop)
}

/// Puts a copy of a descriptor into the asker, closed on exec if `closes`; answers its number there. With `ends` that is
/// also the answer to the question.
pub fn hand_over(
    listener: &OwnedFd,
    id: u64,
    file: &impl AsRawFd,
    closes: bool,
    ends: bool,
) -> io::Result<RawFd> {
    #[repr(C)]
    struct Given {
        id: u64,
        flags: u32,
        from: u32,
        to: u32,
        to_flags: u32,
    }
    const ADD: libc::Ioctl = 0x4018_2103_u32 as libc::Ioctl;
    const AND_ANSWER: u32 = 2;
    let given = Given {
        id,
        flags: if ends { AND_ANSWER } else { 0 },
        from: file.as_raw_fd() as u32,
        to: 0,
        to_flags: if closes { libc::O_CLOEXEC as u32 } else { 0 },
    };
    // SAFETY: the structure has the kernel's layout and outlives the call.
    check_int(unsafe { libc::ioctl(listener.as_raw_fd(), ADD, &raw const given) })
}

/// Whether the asker still waits: what was read of it belongs to it, and not to a later process of the same number.
pub fn is_waiting(listener: &OwnedFd, id: u64) -> bool {
    const VALID: libc::Ioctl = 0x4008_2102_u32 as libc::Ioctl;
    // SAFETY: the kernel reads eight bytes.
    check_int(unsafe { libc::ioctl(listener.as_raw_fd(), VALID, &raw const id) }).is_ok()
}
