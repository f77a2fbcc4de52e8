//! The host's end: the run's folder with the socket in it, and the threads that answer while the run goes on.
//!
//! A run at level full reaches the socket in its folder, as does one without a sandbox. At level landlock unix sockets are
//! denied, and the run's launcher hands out connections to this one.
//!
//! The secret that a request needs is in the run's environment. A file would be readable at level landlock, another
//! process's environment is not. Each connection is a stream of its own, because one stream shared by many processes
//! would mix up their answers.

use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Scope};
use std::time::Instant;

use rustix::event::PollFlags;
use subtle::ConstantTimeEq;
use weald_app::window::{BROKER_PATH, BROKER_SECRET};
use weald_app::{RunFolder, RunRequest, TreeError, Trees};
use weald_sandbox::{Level, Revealed};

use super::desk::{Cost, Desk};
use super::limits::{self, Bucket};
use super::line::{Line, Lines, Ready, Watch};
use super::protocol::{Fault, Reply, Request};

/// How the socket is called in the run's folder.
const SOCKET: &str = "broker";

/// The broker of one run.
pub struct Broker {
    folder: RunFolder,
    secret: String,
    listener: UnixListener,
    use_of: Use,
}

/// What the run used so far.
struct Use {
    connected: AtomicUsize,
    connecting: Bucket,
    time: Bucket,
    writing: Bucket,
    written: AtomicU64,
    /// A line of a megabyte can become thirty in memory: one at a time.
    parsing: Mutex<()>,
}

impl Use {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            connected: AtomicUsize::new(0),
            connecting: Bucket::new(40.0, 20.0, now),
            // Two seconds at once, a quarter of a processor in the long run.
            time: Bucket::new(2.0, 0.25, now),
            writing: Bucket::new(f64::from(1 << 20), 8192.0, now),
            written: AtomicU64::new(0),
            parsing: Mutex::new(()),
        }
    }
}

impl Broker {
    /// Makes the folder of a run, with the socket in it, and a secret.
    pub fn open(trees: &Trees<'_>) -> Result<Self, TreeError> {
        let folder = trees.make_run_folder()?;
        let path = folder.path().to_owned();
        let made = || -> io::Result<_> {
            // By its folder's descriptor: a path can be longer than the address of a socket.
            let opened = File::open(&path)?;
            let short = format!("/proc/self/fd/{}/{SOCKET}", opened.as_raw_fd());
            let listener = UnixListener::bind(short)?;
            listener.set_nonblocking(true)?;
            Ok((listener, secret()?))
        };
        let (listener, secret) = made().map_err(|source| TreeError::File { path, source })?;
        Ok(Self {
            folder,
            secret,
            listener,
            use_of: Use::new(),
        })
    }

    /// The run's folder: what lies in it the run can read.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Lets a run reach the broker: what its sandbox shows and allows, and its variables.
    pub fn grant(&self, request: &mut RunRequest) {
        let variables = &mut request.environment;
        variables.retain(|(name, _)| !name.as_encoded_bytes().starts_with(BROKER_PATH.as_bytes()));
        variables.push((BROKER_SECRET.into(), self.secret.clone().into()));
        let socket = self.folder.path().join(SOCKET);
        if let Some(policy) = &mut request.policy {
            policy.reveal.push(Revealed {
                path: self.folder.path().to_owned(),
                writable: false,
            });
            match policy.level {
                Level::Full => policy.sockets.push(socket.clone()),
                Level::Landlock => policy.broker = Some(socket.clone()),
            }
        }
        variables.push((BROKER_PATH.into(), socket.into()));
    }

    /// Answers while `work` goes on. What is being done when it ends is waited for; nothing new is begun.
    pub fn serve_while<T>(&self, desk: &Desk<'_>, work: impl FnOnce() -> T) -> io::Result<T> {
        let (over, end) = io::pipe()?;
        thread::scope(|scope| {
            let over = &over;
            let listening = move || {
                // A bug in here is no reason to lose the run.
                let _ = catch_unwind(AssertUnwindSafe(|| self.listen(scope, desk, over)));
            };
            thread::Builder::new().spawn_scoped(scope, listening)?;
            let done = work();
            drop(end);
            Ok(done)
        })
    }

    fn listen<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        desk: &'env Desk<'_>,
        over: &'env PipeReader,
    ) {
        let watch = Watch(over);
        let fd = self.listener.as_fd();
        loop {
            let turn = self.use_of.connecting.wait(Instant::now());
            if !turn.is_zero() && !watch.pause(turn) {
                return;
            }
            let until = Instant::now() + std::time::Duration::from_secs(3600);
            match watch.ready(fd, PollFlags::IN, until) {
                Ok(Ready::Yes) => {}
                Ok(Ready::Late) => continue,
                Ok(Ready::Over) | Err(_) => return,
            }
            self.use_of.connecting.take(1.0, Instant::now());
            if let Ok((stream, _)) = self.listener.accept() {
                self.receive(scope, stream, desk, over);
            }
        }
    }

    /// A thread a connection; those above the limit are told so.
    fn receive<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        stream: UnixStream,
        desk: &'env Desk<'_>,
        over: &'env PipeReader,
    ) {
        let connected = &self.use_of.connected;
        let crowded = connected.load(Ordering::SeqCst) >= limits::CONNECTIONS;
        let Ok(mut lines) = Lines::new(stream) else {
            return;
        };
        if crowded {
            let watch = Watch(over);
            let fault = Fault::new("broker_busy", 5, "too many connections of this run at once");
            lines.write(
                &text_of(&Reply::fault(&fault.hint("try again in a moment"))),
                &watch,
            );
            return;
        }
        connected.fetch_add(1, Ordering::SeqCst);
        let attending = move || {
            // Whatever goes wrong with one request is that request's alone.
            let _ = catch_unwind(AssertUnwindSafe(|| self.attend(lines, desk, &Watch(over))));
            connected.fetch_sub(1, Ordering::SeqCst);
        };
        if thread::Builder::new()
            .spawn_scoped(scope, attending)
            .is_err()
        {
            connected.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn attend(&self, mut lines: Lines, desk: &Desk<'_>, watch: &Watch<'_>) {
        loop {
            let (reply, goes_on) = match lines.read(limits::REQUEST, limits::SILENCE, watch) {
                Line::End => return,
                Line::TooLong => {
                    let most = limits::REQUEST;
                    let words = format!("a request has at most {most} bytes");
                    (
                        Reply::fault(&Fault::new("request_too_long", 2, words)),
                        false,
                    )
                }
                Line::Text(text) => match self.parsed(&text) {
                    Err(fault) => (Reply::fault(&fault), false),
                    Ok(request) => match self.turn(watch) {
                        None => return,
                        Some(Err(fault)) => (Reply::fault(&fault), true),
                        Some(Ok(())) => (self.perform(text.len(), request, desk), true),
                    },
                },
            };
            if !lines.write(&text_of(&reply), watch) || !goes_on {
                return;
            }
        }
    }

    fn parsed(&self, text: &[u8]) -> Result<Request, Box<Fault>> {
        let parsing = self.use_of.parsing.lock();
        let request = request_in(text, &self.secret);
        drop(parsing);
        request
    }

    /// Waits until the run may ask again; `None` when the work is over.
    fn turn(&self, watch: &Watch<'_>) -> Option<Result<(), Box<Fault>>> {
        let began = Instant::now();
        loop {
            let now = Instant::now();
            let wait = self
                .use_of
                .time
                .wait(now)
                .max(self.use_of.writing.wait(now));
            if wait.is_zero() {
                return Some(Ok(()));
            }
            if now - began + wait > limits::TURN {
                // To refuse costs something, too.
                if !watch.pause(limits::REFUSAL) {
                    return None;
                }
                let words = "this run sent too many requests";
                let seconds = wait.as_secs() + 1;
                let fault = Fault::new("too_many_requests", 5, words)
                    .hint(format!("try again in {seconds} seconds"));
                return Some(Err(Box::new(fault)));
            }
            if !watch.pause(wait) {
                return None;
            }
        }
    }

    fn perform(&self, length: usize, request: Request, desk: &Desk<'_>) -> Reply {
        let cost = Cost::of(&request.ask);
        let written = &self.use_of.written;
        if cost == Cost::Write && written.load(Ordering::SeqCst) > limits::WRITTEN {
            let words = "this run has reached its write limit";
            return Reply::fault(&Fault::new("too_much_written", 1, words));
        }
        let began = Instant::now();
        let reply = desk.answer(request);
        let now = Instant::now();
        // A landing takes as long as its gate; there is only one at a time.
        if cost != Cost::Landing {
            self.use_of
                .time
                .take((now - began).as_secs_f64() + 0.002, now);
        }
        if cost != Cost::Read {
            let bytes = (length + text_of(&reply).len() + 1024) as u64;
            written.fetch_add(bytes, Ordering::SeqCst);
            self.use_of.writing.take(bytes as f64, now);
        }
        reply
    }
}

/// What a line asks, if it has the run's secret.
pub(super) fn request_in(text: &[u8], secret: &str) -> Result<Request, Box<Fault>> {
    let request: Request = serde_json::from_slice(text)
        .map_err(|error| Fault::new("bad_request", 2, format!("invalid request: {error}")))?;
    // As long as it takes for any secret of this length.
    let is_same = request.secret.as_bytes().ct_eq(secret.as_bytes());
    match is_same.into() {
        true => Ok(request),
        false => {
            let words = "that is not this run's secret";
            Err(Box::new(Fault::new("wrong_secret", 1, words)))
        }
    }
}

/// The text of a reply, shortened to what an answer may hold.
pub(super) fn text_of(reply: &Reply) -> Vec<u8> {
    let text = serde_json::to_vec(reply).unwrap_or_default();
    if text.len() <= limits::ANSWER || is_taken_out(reply) {
        return text;
    }
    let mut reply = reply.clone();
    let lists = reply
        .answer
        .values_mut()
        .filter_map(|value| value.as_array_mut());
    let Some(longest) = lists
        .max_by_key(|list| list.len())
        .filter(|list| list.len() > 1)
    else {
        let words = "the answer is too long";
        let fault = Fault::new("answer_too_long", 1, words).hint("ask for less");
        return serde_json::to_vec(&Reply::fault(&fault)).unwrap_or_default();
    };
    longest.truncate(longest.len() / 2);
    let count = longest.len();
    reply.answer.insert("truncated".to_owned(), true.into());
    reply
        .notes
        .retain(|note| !note.starts_with("only the first"));
    reply.notes.push(format!(
        "only the first {count} are shown: the answer would be too long"
    ));
    text_of(&reply)
}

/// Messages that were taken out are given whole: nobody else will see them.
fn is_taken_out(reply: &Reply) -> bool {
    let messages = reply
        .answer
        .get("messages")
        .and_then(|list| list.as_array());
    messages.is_some_and(|list| list.iter().any(|message| !message["consumed_at"].is_null()))
}

/// 256 bits of the kernel's, in words that a variable can hold.
fn secret() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex::encode(bytes))
}

/// Where a socket of this run would be; for the end inside.
pub(super) fn split(path: &Path) -> Option<(PathBuf, PathBuf)> {
    Some((path.parent()?.to_owned(), path.file_name()?.into()))
}
