//! Connections to abstract sockets, made by a process in a Landlock domain of its own, around the run's: the kernel lets it
//! reach sockets that were made inside, and no others. The launcher, which is in no domain, could not distinguish them in time.
//!
//! It is in the run's pid namespace, but not in its domain: nobody inside can signal or trace it. It holds one descriptor.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys::{self, Forked};

/// The longest address of a socket.
const LONGEST: usize = 128;

/// Starts it; answers where orders go, and its number. The caller has one thread, and has confined itself as far as this process may be.
pub(crate) fn start() -> io::Result<(OwnedFd, libc::pid_t)> {
    let (orders, end) = sys::packet_pair(true)?;
    match sys::fork()? {
        Forked::Parent(number) => Ok((orders, number)),
        Forked::Child => {
            // The streams go, too: a reader of the command's output must not wait for this process.
            let kept = sys::duplicate_to(end.as_raw_fd(), 0).and_then(|()| sys::close_from(1, 0));
            if kept.is_ok() {
                sys::set_signal(libc::SIGCHLD, libc::SIG_IGN);
                work(&sys::inherited(0));
            }
            sys::exit_now(0)
        }
    }
}

/// Takes orders until the launcher is gone. Each is carried out by a process of its own, because it may take its time.
fn work(orders: &OwnedFd) {
    let mut address = [0; LONGEST];
    while let Ok((length, sent)) = sys::receive_message(orders, &mut address)
        && length > 0
    {
        let Ok([socket, answer]) = <[OwnedFd; 2]>::try_from(sent) else {
            continue;
        };
        if let Ok(Forked::Child) = sys::fork() {
            let code = match sys::connect(&socket, &address[..length]) {
                Ok(()) => 0,
                Err(error) => error.raw_os_error().unwrap_or(libc::EACCES),
            };
            // Nobody waits for it any more.
            let _ = File::from(answer).write_all(&code.to_ne_bytes());
            sys::exit_now(0);
        }
    }
}

/// Has a socket connected to an abstract address.
pub(crate) fn ask(connector: &OwnedFd, socket: &OwnedFd, address: &[u8]) -> io::Result<()> {
    let (mut answer, end) = io::pipe()?;
    let end = OwnedFd::from(end);
    sys::send_message(connector, address, &[socket, &end])?;
    drop(end);
    let mut code = [0; 4];
    let answered = answer.read_exact(&mut code);
    match (answered, i32::from_ne_bytes(code)) {
        (Ok(()), 0) => Ok(()),
        (Ok(()), code) => Err(io::Error::from_raw_os_error(code)),
        (Err(_), _) => Err(io::Error::from_raw_os_error(libc::ECONNREFUSED)),
    }
}
