//! A terminal for the command: the command leads a session of its own, and this is the session's controlling terminal.
//!
//! The helper opens it and sends the master to the launcher, so that nothing in the run ever holds one. At level full it
//! is one of the run's own `/dev/pts`; elsewhere one of the host's, and Landlock allows that one alone.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde::{Deserialize, Serialize};

use crate::sys;

/// How large a terminal is when the command starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    pub columns: u16,
    pub rows: u16,
}

/// Opens one on this mount namespace's `/dev/ptmx`; answers the master and the command's end.
pub(crate) fn open(size: TerminalSize) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = ioctl_tiocgptpeer(&master, flags)?;
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&master, size)?;
    Ok((master, slave))
}

/// Makes this process the leader of a session with this terminal, which becomes its three streams.
pub(crate) fn take(slave: &OwnedFd) -> io::Result<()> {
    setsid()?;
    ioctl_tiocsctty(slave)?;
    (0..=2).try_for_each(|stream| sys::duplicate_to(slave.as_raw_fd(), stream))
}
