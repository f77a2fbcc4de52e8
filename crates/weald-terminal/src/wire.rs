//! What goes over the socket between a terminal's host and those who watch it.
//!
//! A message is one byte (its kind), four bytes (the length of what follows, little-endian), and that. A viewer begins with
//! `Size`. It is sent `Draw`, at most one ahead of what it reads, and at last `Ended` or `Detached`.
//!
//! | kind | from | then |
//! |---|---|---|
//! | `s` | viewer | columns and rows, two bytes each, little-endian: at the start and whenever they change |
//! | `k` | viewer | keys: bytes for the program |
//! | `d` | host | a drawing: what to write to the viewer's terminal |
//! | `e` | host | why nothing more comes, as text: the program ended |
//! | `x` | host | why this viewer has to leave, as text: the program runs on |

use std::io::{self, Read};

use crate::screen::Size;

/// The longest message from a viewer.
pub const LONGEST_FROM_VIEWER: usize = 64 * 1024;

/// The longest message from a host: the largest screen with every cell in a colour of its own, and lines that scrolled.
pub const LONGEST_FROM_HOST: usize = 32 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    Size(Size),
    Keys(Vec<u8>),
    Draw(Vec<u8>),
    Ended(String),
    Detached(String),
}

impl Message {
    pub fn encoded(&self) -> Vec<u8> {
        let size;
        let (kind, content): (u8, &[u8]) = match self {
            Self::Size(Size { columns, rows }) => {
                size = [columns.to_le_bytes(), rows.to_le_bytes()].concat();
                (b's', &size)
            }
            Self::Keys(keys) => (b'k', keys),
            Self::Draw(drawing) => (b'd', drawing),
            Self::Ended(why) => (b'e', why.as_bytes()),
            Self::Detached(why) => (b'x', why.as_bytes()),
        };
        let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
        [&[kind], &length.to_le_bytes()[..], content].concat()
    }

    fn decoded(kind: u8, content: Vec<u8>) -> Option<Self> {
        Some(match kind {
            b's' => {
                let &[a, b, c, d] = content.as_slice() else {
                    return None;
                };
                let size = Size {
                    columns: u16::from_le_bytes([a, b]),
                    rows: u16::from_le_bytes([c, d]),
                };
                Self::Size(size.bounded())
            }
            b'k' => Self::Keys(content),
            b'd' => Self::Draw(content),
            b'e' => Self::Ended(String::from_utf8_lossy(&content).into_owned()),
            b'x' => Self::Detached(String::from_utf8_lossy(&content).into_owned()),
            _ => return None,
        })
    }
}

/// Puts messages together from what arrives.
#[derive(Default)]
pub struct Incoming {
    bytes: Vec<u8>,
}

/// Whether there may be more to read.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrived {
    Some,
    /// The other side is gone.
    Gone,
}

impl Incoming {
    /// Reads what is there now, once.
    pub fn read(&mut self, mut from: impl Read) -> io::Result<Arrived> {
        let mut buffer = [0; 16 * 1024];
        match from.read(&mut buffer) {
            Ok(0) => Ok(Arrived::Gone),
            Ok(count) => {
                self.bytes.extend_from_slice(&buffer[..count]);
                Ok(Arrived::Some)
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(Arrived::Some)
            }
            Err(error) => Err(error),
        }
    }

    /// The next whole message, if it has arrived. Nonsense is an error: the connection is of no use any more.
    pub fn next(&mut self, longest: usize) -> io::Result<Option<Message>> {
        let nonsense = || io::Error::new(io::ErrorKind::InvalidData, "not a message of a terminal");
        let Some((head, rest)) = self.bytes.split_first_chunk::<5>() else {
            return Ok(None);
        };
        let [kind, length @ ..] = *head;
        let length = u32::from_le_bytes(length) as usize;
        if length > longest {
            return Err(nonsense());
        }
        let Some(content) = rest.get(..length) else {
            return Ok(None);
        };
        let message = Message::decoded(kind, content.to_vec()).ok_or_else(nonsense)?;
        self.bytes.drain(..5 + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_as_they_were_sent_in_any_pieces() {
        let messages = [
            Message::Size(Size {
                columns: 200,
                rows: 50,
            }),
            Message::Keys(b"\x1b[A".to_vec()),
            Message::Draw(Vec::new()),
            Message::Ended("it is done".to_owned()),
            Message::Detached("it runs on".to_owned()),
        ];
        let sent: Vec<u8> = messages.iter().flat_map(Message::encoded).collect();
        for piece in [1, 2, 7, sent.len()] {
            let (mut incoming, mut arrived) = (Incoming::default(), Vec::new());
            for part in sent.chunks(piece) {
                incoming.read(part).unwrap();
                while let Some(message) = incoming.next(100).unwrap() {
                    arrived.push(message);
                }
            }
            assert_eq!(arrived, messages);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for bytes in [
            b"q\0\0\0\0".as_slice(),
            b"k\xff\xff\xff\xff",
            b"s\x03\0\0\0abc",
        ] {
            let mut incoming = Incoming::default();
            incoming.read(bytes).unwrap();
            assert!(incoming.next(LONGEST_FROM_VIEWER).is_err(), "{bytes:?}");
        }
        // Half a message is none yet.
        let mut incoming = Incoming::default();
        incoming.read(&b"k\x04\0\0\0ab"[..]).unwrap();
        assert_eq!(incoming.next(10).unwrap(), None);
    }
}
