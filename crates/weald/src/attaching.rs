//! This process's terminal, attached to an agent's.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use weald_app::Failure;
use weald_terminal::{Left, view};

/// Refuses where nobody could see an agent's interface or type into it.
pub fn require_terminal() -> Result<(), Failure> {
    match io::stdin().is_terminal() && io::stdout().is_terminal() {
        true => Ok(()),
        false => Err(Failure::no_terminal()),
    }
}

/// Shows a terminal until it ends or this one detaches.
pub fn show(host: UnixStream, is_stopped: &dyn Fn() -> bool) -> Result<Left, Failure> {
    require_terminal()?;
    // The streams may be open one way only.
    let terminal = File::options().read(true).write(true).open("/dev/tty")?;
    let left = view(host, terminal.as_fd(), is_stopped)?;
    if matches!(left, Left::Detached | Left::SentAway(_)) {
        // Rests of the interface would stand behind and below what is printed next. A terminal that is gone shows nothing.
        let _ = (&terminal).write_all(b"\x1b[J");
    }
    Ok(left)
}
