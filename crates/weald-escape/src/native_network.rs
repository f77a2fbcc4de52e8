//! Attempts on a server that a run by name may not reach.

use std::io::{self, Read};
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use std::{ptr, thread};

use super::servers::{LISTED, OUTSIDE};
use super::surroundings::{NativeAttempt, check, opened, variable};

/// How often something is tried that needs luck.
const TRIES: usize = 200;

pub const NETWORK: &[NativeAttempt] = &[
    ("net-connect", || {
        says_outside(TcpStream::connect((Ipv4Addr::LOCALHOST, outside()))?)
    }),
    ("net-mapped", || {
        let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
        says_outside(TcpStream::connect((mapped, outside()))?)
    }),
    ("net-fastopen", || {
        let socket = stream_socket()?;
        send_and_connect(&socket, outside())?;
        says_outside(socket.into())
    }),
    ("net-datagram", || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.send_to(b"x", (Ipv4Addr::LOCALHOST, outside()))?;
        answers(&socket)
    }),
    ("net-message", send_message),
    ("net-swap", swap_address),
    ("net-other", swap_socket),
    ("net-again", || {
        let socket = listed_then_free()?;
        connect(&socket, &address(outside()))?;
        says_outside(socket.into())
    }),
    ("net-resend", || {
        let socket = listed_then_free()?;
        send_and_connect(&socket, outside())?;
        says_outside(socket.into())
    }),
    ("net-child", connect_in_child),
    ("net-raw", || {
        socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP).map(drop)
    }),
    ("net-packet", || {
        let everything = (libc::ETH_P_ALL as u16).to_be();
        socket(libc::AF_PACKET, libc::SOCK_RAW, everything.into()).map(drop)
    }),
];

fn port(name: &str) -> u16 {
    let text = variable(name);
    text.to_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1)
}

fn outside() -> u16 {
    port("OUTSIDE_PORT")
}

fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    opened(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) }.into())
}

fn stream_socket() -> io::Result<OwnedFd> {
    socket(libc::AF_INET, libc::SOCK_STREAM, 0)
}

fn address(port: u16) -> libc::sockaddr_in {
    // SAFETY: plain numbers.
    let mut address: libc::sockaddr_in = unsafe { zeroed() };
    address.sin_family = libc::AF_INET as libc::sa_family_t;
    address.sin_port = port.to_be();
    address.sin_addr.s_addr = u32::from(Ipv4Addr::LOCALHOST).to_be();
    address
}

fn connect(socket: &OwnedFd, address: *const libc::sockaddr_in) -> io::Result<()> {
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: every caller passes an address that outlives the call.
    check(unsafe { libc::connect(socket.as_raw_fd(), address.cast(), length) })
}

/// Connects without a call to `connect`.
fn send_and_connect(socket: &OwnedFd, port: u16) -> io::Result<()> {
    let (to, length) = (address(port), size_of::<libc::sockaddr_in>());
    // SAFETY: text and address outlive the call.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            b"x".as_ptr().cast(),
            1,
            libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL,
            (&raw const to).cast(),
            length as libc::socklen_t,
        )
    };
    check(sent as i64)
}

fn says(mut stream: TcpStream) -> io::Result<u8> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut word = [0];
    stream.read_exact(&mut word)?;
    Ok(word[0])
}

fn says_outside(stream: TcpStream) -> io::Result<()> {
    match says(stream)? {
        OUTSIDE => Ok(()),
        _ => Err(io::Error::other("another server")),
    }
}

fn answers(socket: &UdpSocket) -> io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut word = [0];
    socket.recv(&mut word)?;
    (word[0] == OUTSIDE)
        .then_some(())
        .ok_or(io::Error::other("another server"))
}

fn send_message() -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut to = address(outside());
    let mut part = libc::iovec {
        iov_base: b"x".as_ptr().cast_mut().cast(),
        iov_len: 1,
    };
    // SAFETY: plain numbers and pointers; what they lead to outlives the call, which only reads it.
    let sent = unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_name = (&raw mut to).cast();
        message.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        libc::sendmsg(socket.as_raw_fd(), &message, 0)
    };
    check(sent as i64)?;
    answers(&socket)
}

/// Another thread changes the address while it is looked at.
fn swap_address() -> io::Result<()> {
    let ports = [port("LISTED_PORT"), outside()].map(u16::to_be);
    let place: &'static mut libc::sockaddr_in = Box::leak(Box::new(address(outside())));
    let place: *mut libc::sockaddr_in = place;
    // SAFETY: it is never freed, and written as one number.
    let number = unsafe { AtomicU16::from_ptr(&raw mut (*place).sin_port) };
    thread::spawn(move || {
        loop {
            for port in ports {
                number.store(port, Ordering::Relaxed);
            }
        }
    });
    for _ in 0..TRIES {
        let socket = stream_socket()?;
        if connect(&socket, place).is_ok() && says_outside(socket.into()).is_ok() {
            return Ok(());
        }
    }
    Err(io::Error::other("always the listed one, or none"))
}

/// Another thread puts another socket in its place, which stays when the answer comes.
fn swap_socket() -> io::Result<()> {
    let number = stream_socket()?;
    let to = number.as_raw_fd();
    thread::spawn(move || {
        while let Ok(other) = stream_socket() {
            // SAFETY: takes numbers; the number is this test's own.
            unsafe { libc::dup2(other.as_raw_fd(), to) };
        }
    });
    for _ in 0..TRIES {
        if connect(&number, &address(outside())).is_ok() {
            return Ok(());
        }
    }
    Err(io::Error::other("never connected"))
}

/// A socket that was connected to the listed server and is free again.
fn listed_then_free() -> io::Result<OwnedFd> {
    let socket = stream_socket()?;
    connect(&socket, &address(port("LISTED_PORT")))?;
    let word = says(socket.try_clone()?.into())?;
    if word != LISTED {
        return Err(io::Error::other("the listed server is another one"));
    }
    let mut none = address(0);
    none.sin_family = libc::AF_UNSPEC as libc::sa_family_t;
    connect(&socket, &none)?;
    Ok(socket)
}

/// A child connects what its parent made.
fn connect_in_child() -> io::Result<()> {
    let socket = stream_socket()?;
    // SAFETY: the child makes single calls and ends.
    unsafe {
        let child = libc::fork();
        check(child)?;
        if child == 0 {
            let connected = connect(&socket, &address(outside()));
            libc::_exit(i32::from(connected.is_err()));
        }
        let mut status = 0;
        libc::waitpid(child, ptr::from_mut(&mut status), 0);
    }
    says_outside(socket.into())
}
