//! The end of a terminal that outlives every viewer.
//!
//! One thread polls the pseudo-terminal, the socket and the viewers. The program's output is read whatever viewers do, so
//! it never blocks on one; a viewer that reads slowly skips pictures, because it gets the next one only when it has taken
//! the last. The program's terminal is as large as that of the viewer who typed or attached last.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::device::set_size;
use crate::picture::{Picture, SET_UP};
use crate::screen::{Screen, Size};
use crate::wire::{Arrived, Incoming, LONGEST_FROM_VIEWER, Message};

/// The shortest time between two pictures: a screenful in many pieces is drawn once.
const FRAME: Duration = Duration::from_millis(8);

/// How many keys may wait for a program that does not read; then its viewers are not read from, either.
const KEYS_AHEAD: usize = 64 * 1024;

/// How long viewers have to take the last picture.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// How soon a terminal is looked at again after every program in it had closed it.
const REOPENED: Duration = Duration::from_millis(200);

/// More watch a terminal at once than anybody needs.
const MOST_VIEWERS: usize = 32;

/// What the thread is asked to do.
enum Order {
    /// The program ended, or everybody has to leave for another reason. The terminal goes on if `stays`.
    SendAway { why: String, stays: bool },
}

/// Gives orders to a running [`Host`], from any thread.
#[derive(Clone)]
pub struct Handle {
    orders: Arc<Mutex<Vec<Order>>>,
    wake: Arc<OwnedFd>,
    written: Arc<AtomicU64>,
    /// When [`Handle::detach_all_once_per`] detached viewers last.
    detached: Arc<Mutex<Option<Instant>>>,
}

impl Handle {
    /// How many bytes the program has written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Ends the host: the rest of the output is read, viewers get the last picture and the reason.
    pub fn end(&self, why: &str) {
        self.order(Order::SendAway {
            why: why.to_owned(),
            stays: false,
        });
    }

    /// Detaches all viewers; the program goes on.
    pub fn detach_all(&self, why: &str) {
        self.order(Order::SendAway {
            why: why.to_owned(),
            stays: true,
        });
    }

    /// Detaches all viewers, unless it did so less than `pause` ago: for reasons that the program can repeat at will.
    pub fn detach_all_once_per(&self, pause: Duration, why: &str) {
        let mut detached = self.detached.lock().unwrap_or_else(PoisonError::into_inner);
        if detached.is_none_or(|at| at.elapsed() >= pause) {
            *detached = Some(Instant::now());
            self.detach_all(why);
        }
    }

    fn order(&self, order: Order) {
        let orders = self.orders.lock();
        orders.unwrap_or_else(PoisonError::into_inner).push(order);
        // A full pipe wakes as well.
        let _ = rustix::io::write(&*self.wake, b".");
    }
}

/// Somebody who watches.
struct Viewer {
    stream: UnixStream,
    incoming: Incoming,
    /// Nothing is drawn before it said how large its terminal is.
    size: Option<Size>,
    shown: Option<Picture>,
    scrolled: u64,
    /// What it was sent and has not taken yet.
    pending: Vec<u8>,
}

impl Viewer {
    fn queue(&mut self, message: &Message) {
        self.pending.extend(message.encoded());
    }

    /// Writes as much as it takes now. An error: it is gone.
    fn flush(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            match self.stream.write(&self.pending) {
                Ok(count) => drop(self.pending.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Adds what a terminal answers to the keys that wait for its program. A program that asks and does not read gets no more
/// answers.
fn add_replies(keys: &mut Vec<u8>, replies: &[u8]) {
    if keys.len() < KEYS_AHEAD {
        keys.extend(replies);
    }
}

/// Owns a program's terminal until it is told to end.
pub struct Host {
    master: OwnedFd,
    /// While all programs have closed the terminal: when to look again.
    closed_until: Option<Instant>,
    listener: UnixListener,
    woken: OwnedFd,
    handle: Handle,
    screen: Screen,
    viewers: Vec<Viewer>,
    /// Keys that the program has not read.
    keys: Vec<u8>,
    /// Whether something changed since the last pictures.
    is_stale: bool,
    drawn_at: Instant,
}

impl Host {
    /// Takes over the master of a pseudo-terminal and a socket on which viewers come. Only this user's are let in.
    pub fn new(master: OwnedFd, listener: UnixListener, size: Size) -> io::Result<Self> {
        let size = size.bounded();
        set_size(&master, size)?;
        rustix::io::ioctl_fionbio(&master, true)?;
        listener.set_nonblocking(true)?;
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self {
            master,
            closed_until: None,
            listener,
            woken,
            handle: Handle {
                orders: Arc::default(),
                wake: Arc::new(wake),
                written: Arc::default(),
                detached: Arc::default(),
            },
            screen: Screen::new(size),
            viewers: Vec::new(),
            keys: Vec::new(),
            is_stale: false,
            drawn_at: Instant::now(),
        })
    }

    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Serves until [`Handle::end`]. `keep` gets the lines that scroll off, and at the end those on the screen: text with
    /// colours and nothing else.
    pub fn run(mut self, keep: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut kept = 0;
        loop {
            self.wait()?;
            let is_ended = self.obey()?;
            self.keep(&mut kept, keep);
            if is_ended {
                break;
            }
            self.draw_if_due();
        }
        for line in self.screen.picture().lines_in_colour() {
            keep(&line);
        }
        Ok(())
    }

    fn keep(&self, kept: &mut u64, keep: &mut dyn FnMut(&[u8])) {
        for line in self.screen.scrolled_since(*kept) {
            keep(line);
        }
        *kept = self.screen.scrolled();
    }

    /// Waits for whatever comes first, and takes it in.
    fn wait(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if self.closed_until.is_some_and(|until| until <= now) {
            self.closed_until = None;
        }
        let timeout = self
            .next_deadline()
            .map(|at| at.saturating_duration_since(now));
        let timeout = timeout.map(|left| Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        let accepts_keys = self.keys.len() < KEYS_AHEAD;
        let mut wanted = PollFlags::IN;
        wanted.set(PollFlags::OUT, !self.keys.is_empty());
        let mut polled = vec![
            PollFd::new(&self.woken, PollFlags::IN),
            PollFd::new(&self.listener, PollFlags::IN),
        ];
        polled.extend(self.viewers.iter().map(|viewer| {
            let mut wanted = PollFlags::empty();
            wanted.set(PollFlags::IN, accepts_keys);
            wanted.set(PollFlags::OUT, !viewer.pending.is_empty());
            PollFd::new(&viewer.stream, wanted)
        }));
        if self.closed_until.is_none() {
            polled.push(PollFd::new(&self.master, wanted));
        }
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<PollFlags> = polled.iter().map(PollFd::revents).collect();
        drop(polled);
        let master = ready.get(2 + self.viewers.len()).copied();
        if master.is_some_and(|ready| !ready.is_empty()) {
            self.read_program()?;
        }
        self.write_keys();
        if self
            .screen
            .deadline()
            .is_some_and(|at| at <= Instant::now())
        {
            let replies = self.screen.end_held_back();
            add_replies(&mut self.keys, &replies);
            self.is_stale = true;
        }
        self.serve_viewers(&ready[2..]);
        if !ready[1].is_empty() {
            self.accept();
        }
        Ok(())
    }

    fn next_deadline(&self) -> Option<Instant> {
        let frame = self.is_stale.then(|| self.drawn_at + FRAME);
        [frame, self.screen.deadline(), self.closed_until]
            .into_iter()
            .flatten()
            .min()
    }

    /// Reads what the program wrote, a bounded amount at a time.
    fn read_program(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 64 * 1024];
        match rustix::io::read(&self.master, &mut buffer[..]) {
            // No program has it open.
            Ok(0) | Err(Errno::IO) => {
                self.closed_until = Some(Instant::now() + REOPENED);
                Ok(false)
            }
            Ok(count) => {
                self.handle
                    .written
                    .fetch_add(count as u64, Ordering::Relaxed);
                let replies = self.screen.read(&buffer[..count]);
                add_replies(&mut self.keys, &replies);
                self.is_stale = true;
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn write_keys(&mut self) {
        while !self.keys.is_empty() {
            match rustix::io::write(&self.master, &self.keys) {
                Ok(count) => drop(self.keys.drain(..count)),
                Err(Errno::INTR) => {}
                // The program reads later, or nobody reads any more.
                Err(Errno::AGAIN) => return,
                Err(_) => return self.keys.clear(),
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let is_own = socket_peercred(&stream)
                .is_ok_and(|peer| peer.uid == rustix::process::geteuid() || peer.uid.is_root());
            if !is_own
                || self.viewers.len() >= MOST_VIEWERS
                || stream.set_nonblocking(true).is_err()
            {
                continue;
            }
            let mut viewer = Viewer {
                stream,
                incoming: Incoming::default(),
                size: None,
                shown: None,
                scrolled: self.screen.scrolled(),
                pending: Vec::new(),
            };
            viewer.queue(&Message::Draw(SET_UP.into()));
            self.viewers.push(viewer);
        }
    }

    fn serve_viewers(&mut self, ready: &[PollFlags]) {
        let mut viewers = std::mem::take(&mut self.viewers);
        let mut number = 0;
        viewers.retain_mut(|viewer| {
            let ready = ready.get(number).copied().unwrap_or(PollFlags::empty());
            number += 1;
            let is_there = ready.is_empty() || self.hear(viewer, ready).is_ok();
            is_there && viewer.flush().is_ok()
        });
        self.viewers = viewers;
    }

    /// Takes in what a viewer sent. An error: it is gone, or of no use.
    fn hear(&mut self, viewer: &mut Viewer, ready: PollFlags) -> io::Result<()> {
        if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
            && viewer.incoming.read(&viewer.stream)? == Arrived::Gone
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        while let Some(message) = viewer.incoming.next(LONGEST_FROM_VIEWER)? {
            match message {
                Message::Size(size) => viewer.size = Some(size),
                Message::Keys(keys) => self.keys.extend(keys),
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
            // Who typed, came or changed last decides how large the terminal is.
            if let Some(size) = viewer.size.filter(|size| *size != self.screen.size()) {
                self.screen.resize(size);
                let _ = set_size(&self.master, size);
            }
            self.is_stale = true;
        }
        self.write_keys();
        Ok(())
    }

    fn draw_if_due(&mut self) {
        if self.is_stale && self.drawn_at.elapsed() >= FRAME && !self.screen.is_held_back() {
            self.draw();
        }
    }

    /// Sends a picture to those who took the last one; the others get a later one.
    fn draw(&mut self) {
        let (picture, bell) = (self.screen.picture(), self.screen.has_rung());
        self.drawn_at = Instant::now();
        self.is_stale = false;
        for viewer in &mut self.viewers {
            let Some(size) = viewer.size else {
                continue;
            };
            if !viewer.pending.is_empty() {
                self.is_stale = true;
                continue;
            }
            let scrolled = self.screen.scrolled_since(viewer.scrolled);
            let mut drawing = picture.drawn(viewer.shown.as_ref(), scrolled, size);
            if bell {
                drawing.push('\x07');
            }
            if !drawing.is_empty() {
                viewer.queue(&Message::Draw(drawing.into_bytes()));
            }
            viewer.shown = Some(picture.clone());
            viewer.scrolled = self.screen.scrolled();
        }
        self.viewers.retain_mut(|viewer| viewer.flush().is_ok());
    }

    /// Does what was ordered. Returns whether it is the end.
    fn obey(&mut self) -> io::Result<bool> {
        let _ = rustix::io::read(&self.woken, &mut [0_u8; 64][..]);
        let orders = self.handle.orders.lock();
        let orders = std::mem::take(&mut *orders.unwrap_or_else(PoisonError::into_inner));
        for Order::SendAway { why, stays } in orders {
            if !stays {
                while self.read_program()? {}
                self.screen.end_held_back();
            }
            self.send_away(&match stays {
                true => Message::Detached(why),
                false => Message::Ended(why),
            });
            if !stays {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives all viewers the last picture and the reason, and lets go of them.
    fn send_away(&mut self, why: &Message) {
        let until = Instant::now() + LAST_LOOK;
        self.draw();
        let mut viewers = std::mem::take(&mut self.viewers);
        for viewer in &mut viewers {
            viewer.queue(why);
            let left = until.saturating_duration_since(Instant::now());
            let _ = viewer.stream.set_nonblocking(false);
            let _ = viewer
                .stream
                .set_write_timeout(Some(left.max(Duration::from_millis(1))));
            let _ = viewer.stream.write_all(&viewer.pending);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a3_a_program_that_reads_no_replies_gets_no_more() {
        let mut keys = Vec::new();
        for _ in 0..100_000 {
            add_replies(&mut keys, b"\x1b[8;24;80t");
        }
        assert!(keys.len() < KEYS_AHEAD + 100, "{}", keys.len());
    }

    #[test]
    fn a3_a_program_cannot_detach_its_viewers_again_and_again() {
        let (_woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        let handle = Handle {
            orders: Arc::default(),
            wake: Arc::new(wake),
            written: Arc::default(),
            detached: Arc::default(),
        };
        for _ in 0..100 {
            let clone = handle.clone();
            clone.detach_all_once_per(Duration::from_secs(60), "it suspended itself");
        }
        assert_eq!(handle.orders.lock().unwrap().len(), 1);
        handle.detach_all_once_per(Duration::ZERO, "it suspended itself");
        assert_eq!(handle.orders.lock().unwrap().len(), 2);
    }
}
