//! The end inside: asks the broker of the run that this process is in.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use weald_app::Ask;
use weald_app::window::{BROKER_PATH, BROKER_SECRET};
use weald_core::id::Token;
use weald_core::name::SessionName;

use super::protocol::{Reply, Request};
use super::server::split;

/// The longest answer that is believed: what was taken out of an inbox is never cut.
const ANSWER: usize = 64 << 20;

/// The longest path that fits into the address of a socket.
const ADDRESS: usize = 107;

/// How long a connection may take. An answer may take as long as a landing does.
const PATIENCE: Duration = Duration::from_secs(20);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("the broker of this run can't be reached: {0}")]
    Unreachable(io::Error),
    /// What came is no answer.
    #[error("the broker of this run gave no answer: {0}")]
    NoAnswer(io::Error),
}

/// Where the broker of this run is.
pub struct Client {
    secret: String,
    socket: PathBuf,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

impl Client {
    /// From the variables of this process; `None` if it is not in a run with a broker.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let secret = variable(BROKER_SECRET)?;
        let socket = variable(BROKER_PATH)?.into();
        Some(Self { secret, socket })
    }

    /// Asks, and waits for the answer.
    pub fn ask(
        &self,
        session: Option<SessionName>,
        token: Option<Token>,
        ask: Ask,
    ) -> Result<Reply, ClientError> {
        let request = Request {
            secret: self.secret.clone(),
            session,
            token,
            ask,
        };
        let mut stream = self.connect().map_err(ClientError::Unreachable)?;
        let mut exchange = || -> io::Result<Reply> {
            let mut line = serde_json::to_vec(&request)?;
            line.push(b'\n');
            // One that refuses the line says why before it closes.
            let _ = stream.write_all(&line);
            let mut text = Vec::new();
            let mut chunk = [0; 16 << 10];
            while text.last() != Some(&b'\n') && text.len() <= ANSWER {
                match stream.read(&mut chunk)? {
                    0 => break,
                    count => text.extend_from_slice(&chunk[..count]),
                }
            }
            Ok(serde_json::from_slice(&text)?)
        };
        exchange().map_err(ClientError::NoAnswer)
    }

    fn connect(&self) -> io::Result<UnixStream> {
        let connected = match self.socket.as_os_str().len() <= ADDRESS {
            true => UnixStream::connect(&self.socket),
            false => by_folder(&self.socket),
        };
        match connected {
            // Level landlock denies unix sockets, and its launcher hands out this one.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => handed_out(),
            connected => connected,
        }
    }
}

/// Connects from the socket's own folder: its path is longer than an address.
fn by_folder(path: &Path) -> io::Result<UnixStream> {
    let (folder, name) = split(path).ok_or(io::ErrorKind::InvalidInput)?;
    let before = std::env::current_dir();
    std::env::set_current_dir(folder)?;
    let connected = UnixStream::connect(name);
    if let Ok(before) = before {
        std::env::set_current_dir(before)?;
    }
    connected
}

/// Asks the launcher for a connection, again as long as too many others wait for theirs.
fn handed_out() -> io::Result<UnixStream> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match weald_sandbox::broker_connection() {
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline =>
            {
                thread::sleep(Duration::from_millis(20));
            }
            given => return given.map(UnixStream::from),
        }
    }
}
