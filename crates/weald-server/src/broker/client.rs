//! The end inside: asks the broker of the run that this process is in.

use std::fmt;
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};
use weald_app::Ask;
use weald_app::window::{BROKER_DESCRIPTOR, BROKER_PATH, BROKER_SECRET};
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
    way: Way,
}

enum Way {
    Socket(PathBuf),
    Descriptor(i32),
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
        let descriptor = variable(BROKER_DESCRIPTOR).and_then(|number| number.parse().ok());
        let way = match descriptor {
            Some(number) => Way::Descriptor(number),
            None => Way::Socket(variable(BROKER_PATH)?.into()),
        };
        Some(Self { secret, way })
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
        match &self.way {
            Way::Descriptor(number) => over_pair(*number),
            Way::Socket(path) if path.as_os_str().len() <= ADDRESS => UnixStream::connect(path),
            Way::Socket(path) => by_folder(path),
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

/// Asks the pair for a connection. Any that comes is as good as another one.
fn over_pair(number: i32) -> io::Result<UnixStream> {
    let pair = weald_sandbox::inherited_socket(number)?;
    rustix::net::send(&pair, b"+", SendFlags::NOSIGNAL)?;
    rustix::net::sockopt::set_socket_timeout(
        &pair,
        rustix::net::sockopt::Timeout::Recv,
        Some(PATIENCE),
    )?;
    let mut byte = [0; 1];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut room);
    let flags = RecvFlags::CMSG_CLOEXEC;
    rustix::net::recvmsg(&pair, &mut [IoSliceMut::new(&mut byte)], &mut beside, flags)?;
    let given = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut given) => given.next(),
        _ => None,
    });
    given
        .map(UnixStream::from)
        .ok_or_else(|| io::Error::other("no connection was given"))
}
