//! Lines over a stream, under a deadline: whoever is slow is left, and everything ends when the work does.

use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::limits;

/// Tells when the work is over: its other end hangs up then.
pub struct Watch<'a>(pub &'a PipeReader);

/// Why nobody waits any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    Yes,
    /// The time is over.
    Late,
    /// The work is over.
    Over,
}

impl Watch<'_> {
    /// Waits until a descriptor can be read (or written).
    pub fn ready(&self, fd: BorrowedFd<'_>, what: PollFlags, until: Instant) -> io::Result<Ready> {
        self.wait(Some((fd, what)), until)
    }

    /// Waits; false when the work is over.
    pub fn pause(&self, time: Duration) -> bool {
        matches!(self.wait(None, Instant::now() + time), Ok(Ready::Late))
    }

    fn wait(&self, what: Option<(BorrowedFd<'_>, PollFlags)>, until: Instant) -> io::Result<Ready> {
        let mut polled = vec![PollFd::new(self.0, PollFlags::IN)];
        polled.extend(what.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            match rustix::event::poll(&mut polled, Some(&left)) {
                Ok(0) => return Ok(Ready::Late),
                Ok(_) if !polled[0].revents().is_empty() => return Ok(Ready::Over),
                Ok(_) => return Ok(Ready::Yes),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Text(Vec<u8>),
    /// More than a line may hold.
    TooLong,
    /// Nothing more, or not in time.
    End,
}

/// A stream that lines come and go on.
pub struct Lines {
    stream: UnixStream,
    /// What came after the last line.
    rest: Vec<u8>,
}

impl Lines {
    /// Takes a stream over.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            rest: Vec::new(),
        })
    }

    /// The next line: `silence` until it begins, and the time of a transfer from then on.
    pub fn read(&mut self, most: usize, silence: Duration, watch: &Watch<'_>) -> Line {
        let mut until = Instant::now() + silence;
        if !self.rest.is_empty() {
            until = Instant::now() + limits::TRANSFER;
        }
        let mut chunk = [0; 16 << 10];
        let mut seen = 0;
        loop {
            if let Some(end) = self.rest[seen..].iter().position(|byte| *byte == b'\n') {
                let after = self.rest.split_off(seen + end + 1);
                let mut line = std::mem::replace(&mut self.rest, after);
                line.pop();
                return if line.len() > most {
                    Line::TooLong
                } else {
                    Line::Text(line)
                };
            }
            if self.rest.len() > most {
                return Line::TooLong;
            }
            seen = self.rest.len();
            match watch.ready(self.stream.as_fd(), PollFlags::IN, until) {
                Ok(Ready::Yes) => {}
                _ => return Line::End,
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Line::End,
                Ok(count) => {
                    if self.rest.is_empty() {
                        until = Instant::now() + limits::TRANSFER;
                    }
                    self.rest.extend_from_slice(&chunk[..count]);
                }
                Err(error) if is_nothing(&error) => {}
                Err(_) => return Line::End,
            }
        }
    }

    /// Writes a line; false if it could not be written in time.
    pub fn write(&mut self, line: &[u8], watch: &Watch<'_>) -> bool {
        self.write_all(line, watch) && self.write_all(b"\n", watch)
    }

    fn write_all(&mut self, mut bytes: &[u8], watch: &Watch<'_>) -> bool {
        let until = Instant::now() + limits::TRANSFER;
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return false,
                Ok(count) => bytes = &bytes[count..],
                Err(error) if is_nothing(&error) => {
                    match watch.ready(self.stream.as_fd(), PollFlags::OUT, until) {
                        Ok(Ready::Yes) => {}
                        _ => return false,
                    }
                }
                Err(_) => return false,
            }
        }
        true
    }
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn lines_come_one_by_one_and_long_ones_are_told() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (over, _end) = io::pipe().unwrap();
        let watch = Watch(&over);
        let mut lines = Lines::new(ours).unwrap();
        theirs.write_all(b"one\ntwo\n\nmuch too long\n").unwrap();
        let mut next = || lines.read(5, Duration::from_secs(1), &watch);
        assert_eq!(next(), Line::Text(b"one".to_vec()));
        assert_eq!(next(), Line::Text(b"two".to_vec()));
        assert_eq!(next(), Line::Text(Vec::new()));
        assert_eq!(next(), Line::TooLong);
    }

    #[test]
    fn silence_and_the_end_of_the_work_end_a_wait() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let (over, end) = io::pipe().unwrap();
        let watch = Watch(&over);
        let mut lines = Lines::new(ours).unwrap();
        let started = Instant::now();
        assert_eq!(lines.read(5, Duration::from_millis(50), &watch), Line::End);
        assert!(started.elapsed() < Duration::from_secs(30));
        thread::scope(|scope| {
            scope.spawn(move || drop(end));
            assert_eq!(lines.read(5, Duration::from_secs(60), &watch), Line::End);
            assert!(!watch.pause(Duration::from_secs(60)));
        });
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}
