//! A terminal that a command has for a while.

use std::io::{self, IsTerminal, Stdin, Write};

use rustix::process::getpgrp;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr, tcsetpgrp};

/// Undoes what a program that was killed may have left: colours, margins, a character set, a hidden cursor, modes of the
/// mouse and of pasting. Nothing that is on the screen changes.
const RESET: &[u8] = b"\x1b[!p\x1b[0m\x1b(B\x0f\x1b[?7h\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\r";

/// This process's terminal, as it was before.
pub struct Lent {
    before: Termios,
}

impl Lent {
    /// Remembers how the terminal of the standard input is now.
    pub fn of_input() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        Ok(Self { before })
    }

    /// Makes this process's group the one that the terminal is for, as it was set. Call it while this process ignores being
    /// stopped by the terminal. A terminal that is gone needs nothing.
    pub fn take_back(self) {
        let stdin: Stdin = io::stdin();
        let _ = tcsetpgrp(&stdin, getpgrp());
        let _ = tcsetattr(&stdin, OptionalActions::Now, &self.before);
        let mut err = io::stderr();
        if err.is_terminal() {
            let _ = err.write_all(RESET);
        }
    }
}
