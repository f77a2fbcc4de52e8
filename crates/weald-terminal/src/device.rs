//! Pseudo-terminals and their sizes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

use crate::screen::Size;

/// Both ends of a pseudo-terminal.
pub struct Pair {
    /// The end of the terminal.
    pub master: OwnedFd,
    /// The end of the program.
    pub slave: OwnedFd,
}

impl Pair {
    /// Opens one on this mount namespace's `/dev/ptmx`.
    pub fn open(size: Size) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let slave = ioctl_tiocgptpeer(&master, flags)?;
        set_size(&master, size)?;
        Ok(Self { master, slave })
    }
}

/// Tells the program how large its terminal is; the kernel signals it.
pub fn set_size(terminal: impl AsFd, size: Size) -> io::Result<()> {
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(tcsetwinsize(terminal, size)?)
}

/// How large a terminal is. One that does not know is as large as terminals used to be.
pub fn size_of(terminal: impl AsFd) -> io::Result<Size> {
    let size = tcgetwinsize(terminal)?;
    Ok(match (size.ws_col, size.ws_row) {
        (0, _) | (_, 0) => Size::default(),
        (columns, rows) => Size { columns, rows }.bounded(),
    })
}
