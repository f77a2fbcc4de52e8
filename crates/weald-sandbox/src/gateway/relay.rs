//! Bytes between a run's connection and the one outside.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{RecvFlags, SendFlags};

/// How much is under way in one direction.
const ROOM: usize = 256 * 1024;

/// How long the relay may take to send the rest once the run has ended.
const GRACE: Duration = Duration::from_secs(5);

/// Passes everything on, both ways, until both are done, one breaks, or the other end of `over` was closed a while ago.
pub(super) fn pass_on(inner: TcpStream, outer: TcpStream, over: &impl AsFd) {
    // What a program sends at once is to go at once.
    let _ = (inner.set_nodelay(true), outer.set_nodelay(true));
    if both_ways(&inner, &outer, over, GRACE).is_err() {
        reset(&inner);
        reset(&outer);
    }
}

/// Makes the other side see that a connection broke, as opposed to one that ended.
pub(super) fn reset(stream: &TcpStream) {
    let _ = set_socket_linger(stream, Some(Duration::ZERO));
}

struct Way<'s> {
    from: &'s TcpStream,
    to: &'s TcpStream,
    buffer: Vec<u8>,
    waiting: std::ops::Range<usize>,
    is_open: bool,
}

impl<'s> Way<'s> {
    fn new(from: &'s TcpStream, to: &'s TcpStream) -> Self {
        Self {
            from,
            to,
            buffer: Vec::new(),
            waiting: 0..0,
            is_open: true,
        }
    }

    fn reads(&self) -> bool {
        self.is_open && self.waiting.is_empty()
    }

    fn writes(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn read(&mut self) -> io::Result<()> {
        // Made when it is needed: many connections only wait.
        self.buffer.resize(ROOM, 0);
        match rustix::net::recv(self.from, &mut self.buffer[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                self.is_open = false;
                // The other side may be gone, which it says by itself.
                let _ = self.to.shutdown(Shutdown::Write);
                Ok(())
            }
            Ok((read, _)) => {
                self.waiting = 0..read;
                self.write()
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(self.to, &self.buffer[self.waiting.clone()], flags) {
            Ok(sent) => self.waiting.start += sent,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

fn both_ways(
    inner: &TcpStream,
    outer: &TcpStream,
    over: &impl AsFd,
    grace: Duration,
) -> io::Result<()> {
    let mut deadline = None;
    let mut out = Way::new(inner, outer);
    let mut back = Way::new(outer, inner);
    loop {
        let asked = |reads: bool, writes: bool| {
            let mut asked = PollFlags::empty();
            asked.set(PollFlags::IN, reads);
            asked.set(PollFlags::OUT, writes);
            asked
        };
        let wanted = [
            asked(out.reads(), back.writes()),
            asked(back.reads(), out.writes()),
        ];
        if wanted.iter().all(|wanted| wanted.is_empty()) {
            return Ok(());
        }
        let left = deadline.map(|at: Instant| at.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            // What the run sent is on its way, unless something of it is still here.
            return match out.is_open || out.writes() {
                true => Err(io::ErrorKind::TimedOut.into()),
                false => Ok(()),
            };
        }
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut polled = [
            PollFd::from_borrowed_fd(inner.as_fd(), wanted[0]),
            PollFd::from_borrowed_fd(outer.as_fd(), wanted[1]),
            PollFd::from_borrowed_fd(over.as_fd(), PollFlags::IN),
        ];
        // A closed pipe is always readable: it is polled until then.
        let asked = if deadline.is_some() { 2 } else { 3 };
        match rustix::event::poll(&mut polled[..asked], left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if deadline.is_none() && !polled[2].revents().is_empty() {
            deadline = Some(Instant::now() + grace);
        }
        let said = [polled[0].revents(), polled[1].revents()];
        for (said, wanted) in said.iter().zip(wanted) {
            let is_gone = said.contains(PollFlags::HUP) && !wanted.contains(PollFlags::IN);
            if is_gone || said.intersects(PollFlags::ERR | PollFlags::NVAL) {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
        }
        let readable = PollFlags::IN | PollFlags::HUP;
        if back.writes() && said[0].contains(PollFlags::OUT) {
            back.write()?;
        }
        if out.writes() && said[1].contains(PollFlags::OUT) {
            out.write()?;
        }
        if out.reads() && said[0].intersects(readable) {
            out.read()?;
        }
        if back.reads() && said[1].intersects(readable) {
            back.read()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let one = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        (one, server.accept().unwrap().0)
    }

    #[test]
    fn a16_a_relay_ends_soon_after_its_run_though_the_host_outside_keeps_the_connection() {
        let ((mut run, inner), (outer, mut host)) = (pair(), pair());
        let (over, end) = io::pipe().unwrap();
        let grace = Duration::from_millis(200);
        let relay = thread::spawn(move || both_ways(&inner, &outer, &over, grace));
        run.write_all(b"last words").unwrap();
        drop((run, end));
        let mut heard = [0; 10];
        host.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"last words");
        relay.join().unwrap().unwrap();
        assert_eq!(host.read(&mut heard).unwrap(), 0);
    }
}
