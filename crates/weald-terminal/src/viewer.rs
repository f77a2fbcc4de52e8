//! A person's terminal, attached to a program's.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::device::size_of;
use crate::picture::RESET;
use crate::screen::Size;
use crate::wire::{Arrived, Incoming, LONGEST_FROM_HOST, Message};

/// How often the size of the terminal is looked at, and whether to stop.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// The key that detaches, Ctrl-\, as terminals send it: as a control character, or spelled out for programs that asked
/// for that.
const DETACH: &[&[u8]] = &[b"\x1c", b"\x1b[92;5u", b"\x1b[92;5:1u"];

/// Why somebody no longer watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// By the key, or because they were told to stop.
    Detached,
    /// The program ended; the host said why.
    Ended(String),
    /// The program runs on; the host said why nobody may watch now.
    SentAway(String),
    /// The host is gone.
    Lost,
}

/// Puts a terminal into raw mode; whatever happens, it is left as it was found.
struct Raw<'fd> {
    terminal: BorrowedFd<'fd>,
    before: Termios,
}

impl<'fd> Raw<'fd> {
    fn of(terminal: BorrowedFd<'fd>) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(terminal, OptionalActions::Flush, &raw)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Raw<'_> {
    fn drop(&mut self) {
        // The last line of what was drawn stays; the prompt begins below it.
        let _ = write_all(self.terminal, RESET.as_bytes());
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
        let _ = write_all(self.terminal, b"\r\n");
    }
}

/// Attaches a person's terminal until the program ends, they detach, or `is_stopped`.
pub fn view(
    mut host: UnixStream,
    terminal: BorrowedFd<'_>,
    is_stopped: &dyn Fn() -> bool,
) -> io::Result<Left> {
    let mut size = size_of(terminal)?;
    host.write_all(&Message::Size(size).encoded())?;
    let raw = Raw::of(terminal)?;
    make_room(terminal, size)?;
    let mut incoming = Incoming::default();
    loop {
        if is_stopped() {
            return Ok(Left::Detached);
        }
        let mut polled = [
            PollFd::new(&host, PollFlags::IN),
            PollFd::new(&terminal, PollFlags::IN),
        ];
        match poll(&mut polled, Some(&TICK)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [from_host, from_person] = polled.map(|one| one.revents());
        if !from_host.is_empty() {
            let arrived = incoming.read(&host);
            while let Some(message) = incoming.next(LONGEST_FROM_HOST)? {
                match message {
                    Message::Draw(drawing) => write_all(raw.terminal, &drawing)?,
                    Message::Ended(why) => return Ok(Left::Ended(why)),
                    Message::Detached(why) => return Ok(Left::SentAway(why)),
                    Message::Size(_) | Message::Keys(_) => {}
                }
            }
            if !matches!(arrived, Ok(Arrived::Some)) {
                return Ok(Left::Lost);
            }
        }
        if !from_person.is_empty() {
            let mut keys = [0; 4096];
            let count = match rustix::io::read(terminal, &mut keys[..]) {
                // The terminal is gone, and with it the person.
                Ok(0) | Err(Errno::IO) => return Ok(Left::Detached),
                Ok(count) => count,
                Err(Errno::INTR | Errno::AGAIN) => 0,
                Err(error) => return Err(error.into()),
            };
            let (typed, detach) = before_detach(&keys[..count]);
            if !typed.is_empty() {
                send(&mut host, &Message::Keys(typed.to_vec()));
            }
            if detach {
                return Ok(Left::Detached);
            }
        }
        let now = size_of(terminal)?;
        if now != size {
            size = now;
            send(&mut host, &Message::Size(size));
        }
    }
}

/// Moves what is on a terminal up into its history: the program's screen takes all of it.
fn make_room(terminal: BorrowedFd<'_>, size: Size) -> io::Result<()> {
    write_all(terminal, "\r\n".repeat(size.rows.into()).as_bytes())
}

/// A host that is gone says so by its end of the socket.
fn send(host: &mut UnixStream, message: &Message) {
    let _ = host.write_all(&message.encoded());
}

/// What was typed before the key that detaches, and whether that was typed.
fn before_detach(keys: &[u8]) -> (&[u8], bool) {
    let found = DETACH
        .iter()
        .filter_map(|key| keys.windows(key.len()).position(|window| window == *key))
        .min();
    match found {
        Some(at) => (&keys[..at], true),
        None => (keys, false),
    }
}

fn write_all(terminal: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(terminal, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut writable = [PollFd::from_borrowed_fd(terminal.as_fd(), PollFlags::OUT)];
                poll(&mut writable, None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_that_detaches_is_not_sent_on() {
        assert_eq!(before_detach(b"abc"), (&b"abc"[..], false));
        assert_eq!(before_detach(b"ab\x1ccd"), (&b"ab"[..], true));
        assert_eq!(before_detach(b"\x1b[92;5u"), (&b""[..], true));
    }
}
