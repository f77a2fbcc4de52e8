//! How a run at level landlock reaches its broker, though it can make no unix socket.
//!
//! A process asks for a socket of a protocol that does not exist. The filter puts that to the launcher, which answers with a
//! connection to the run's broker and to nothing else. All that counts is in registers: the launcher reads no memory of the
//! run, so also a program that forbids that (Codex) gets its answer. Nothing has to be inherited, so no program can close it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;

use rustix::net::SocketAddrUnix;

use crate::sockets::{next_question, unix_address};
use crate::sys::{self, Verdict};

/// The protocol that no unix socket has: "weal".
pub(crate) const PROTOCOL: u32 = 0x7765_616c;

/// A connection to the broker of the run that this process is in, at level landlock.
pub fn broker_connection() -> io::Result<OwnedFd> {
    sys::unix_stream(Some(PROTOCOL))
}

/// Hands out connections until the last process inside is gone.
pub(crate) fn serve(listener: OwnedFd, broker: &Path) -> io::Result<()> {
    // Its path can be longer than an address.
    let broker = File::options()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(broker)?;
    let serving = move || {
        while let Some(question) = next_question(&listener) {
            let given = connected(&broker)
                .and_then(|socket| sys::hand_over(&listener, question.id, &socket, true, true));
            if let Err(error) = given {
                // An asker that is gone needs no answer.
                let _ = sys::answer_question(&listener, question.id, Verdict::Failed(error));
            }
        }
    };
    thread::Builder::new().spawn(serving).map(drop)
}

/// A new connection. When too many wait already, that is an error: nobody in the run holds up the others.
fn connected(broker: &File) -> io::Result<OwnedFd> {
    let socket = sys::unix_stream(None)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    let path = format!("/proc/self/fd/{}", broker.as_raw_fd());
    // With a name of its own it takes no other one: the run could take one that a program of the host's wants.
    rustix::net::bind(&socket, &SocketAddrUnix::new_unnamed())?;
    sys::connect(&socket, &unix_address(Path::new(&path))?)?;
    rustix::io::ioctl_fionbio(&socket, false)?;
    Ok(socket)
}
