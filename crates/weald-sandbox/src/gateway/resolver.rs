//! The resolver of a run: it knows the listed names, and asks nobody.
//!
//! So a question carries nothing out, whatever the name. A listed name has one address of version 4; whether it exists is
//! found out when it is dialed. Any other does not exist.

use std::io::{self, PipeReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::Gateway;
use crate::sys;

/// The longest question that is read.
const LONGEST: usize = 1_024;

/// How long one connection may take to ask.
const PATIENCE: Duration = Duration::from_secs(1);

/// Answers in threads of its own until the other end of `over` is closed.
pub(super) fn serve(
    gateway: &Arc<Gateway>,
    datagrams: UdpSocket,
    streams: TcpListener,
    over: PipeReader,
) -> io::Result<()> {
    let over_too = over.try_clone()?;
    let (gateway, gateway_too) = (Arc::clone(gateway), Arc::clone(gateway));
    let by_datagram = move || {
        let mut question = [0; LONGEST];
        while is_next(&datagrams, &over) {
            if let Ok((length, asker)) = datagrams.recv_from(&mut question)
                && let Some(answer) = answer(&gateway, &question[..length], asker.port())
            {
                let _ = datagrams.send_to(&answer, asker);
            }
        }
    };
    let by_stream = move || {
        while is_next(&streams, &over_too) {
            if let Ok((stream, asker)) = streams.accept() {
                // One after the other: who is slow keeps the run's own waiting.
                let _ = converse(&gateway_too, stream, asker.port());
            }
        }
    };
    for work in [
        Box::new(by_datagram) as Box<dyn FnOnce() + Send>,
        Box::new(by_stream),
    ] {
        thread::Builder::new().stack_size(128 * 1024).spawn(work)?;
    }
    Ok(())
}

/// Waits for the next question; false when the run is over.
fn is_next(socket: &impl AsFd, over: &PipeReader) -> bool {
    loop {
        match sys::poll(&[socket.as_fd(), over.as_fd()], -1) {
            Ok(ready) if ready[1] => return false,
            Ok(ready) if ready[0] => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

/// The same over a stream, where a length comes first.
fn converse(gateway: &Gateway, mut stream: TcpStream, asker: u16) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    for _ in 0..16 {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut question = vec![0; usize::from(u16::from_be_bytes(length)).min(LONGEST)];
        stream.read_exact(&mut question)?;
        let Some(answer) = answer(gateway, &question, asker) else {
            break;
        };
        stream.write_all(&(answer.len() as u16).to_be_bytes())?;
        stream.write_all(&answer)?;
    }
    Ok(())
}

const ADDRESS: u16 = 1;
const INTERNET: u16 = 1;

const NO_ERROR: u8 = 0;
const BAD_FORMAT: u8 = 1;
const NO_SUCH_NAME: u8 = 3;
const NOT_IMPLEMENTED: u8 = 4;

fn answer(gateway: &Gateway, question: &[u8], asker: u16) -> Option<Vec<u8>> {
    let asked = match Asked::read(question)? {
        Ok(asked) => asked,
        Err(code) => return Some(reply(question, &[], code, None)),
    };
    let Some(name) = asked.name else {
        return Some(reply(question, asked.section, NO_SUCH_NAME, None));
    };
    let found = gateway.resolve(&name);
    // Programs ask for both kinds of addresses at once; that is one question.
    if found.is_none() && asked.kind == ADDRESS {
        gateway.refuse_name(asker, &name);
    }
    Some(match found {
        Some(found) => {
            let address = Some(found).filter(|_| asked.kind == ADDRESS);
            reply(question, asked.section, NO_ERROR, address)
        }
        None => reply(question, asked.section, NO_SUCH_NAME, None),
    })
}

/// One question.
pub(super) struct Asked<'q> {
    /// In small letters, without the last dot; `None` for one that no host has.
    pub(super) name: Option<String>,
    kind: u16,
    /// As it was sent, to be repeated.
    pub(super) section: &'q [u8],
}

impl<'q> Asked<'q> {
    /// Reads a message; `None` if it is no question at all, a code if it can't be answered.
    pub(super) fn read(message: &'q [u8]) -> Option<Result<Self, u8>> {
        let header: &[u8; 12] = message.first_chunk()?;
        if header[2] & 0x80 != 0 {
            return None;
        }
        if header[2] & 0x78 != 0 {
            return Some(Err(NOT_IMPLEMENTED));
        }
        if header[4..6] != [0, 1] {
            return Some(Err(BAD_FORMAT));
        }
        Some(Self::section(&message[12..]).ok_or(BAD_FORMAT))
    }

    fn section(rest: &'q [u8]) -> Option<Self> {
        let mut labels = Vec::new();
        let mut at = 0;
        loop {
            let length = usize::from(*rest.get(at)?);
            at += 1;
            match length {
                0 => break,
                1..=63 => labels.push(rest.get(at..at + length)?),
                // A reference to another place makes no sense in the first name.
                _ => return None,
            }
            at += length;
            if at > 255 {
                return None;
            }
        }
        let [k1, k2, c1, c2] = *rest.get(at..at + 4)?.first_chunk()?;
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_name = !labels.is_empty()
            && labels.iter().all(|label| label.iter().all(is_plain))
            && u16::from_be_bytes([c1, c2]) == INTERNET;
        let name = labels.join(&b'.').to_ascii_lowercase();
        Some(Self {
            name: String::from_utf8(name).ok().filter(|_| is_name),
            kind: u16::from_be_bytes([k1, k2]),
            section: &rest[..at + 4],
        })
    }
}

pub(super) fn reply(
    question: &[u8],
    section: &[u8],
    code: u8,
    address: Option<Ipv4Addr>,
) -> Vec<u8> {
    let count = u8::from(!section.is_empty());
    // An answer; recursion as it was asked for, and available.
    let mut all = vec![
        question[0],
        question[1],
        0x80 | (question[2] & 1),
        0x80 | code,
    ];
    all.extend([0, count, 0, u8::from(address.is_some()), 0, 0, 0, 0]);
    all.extend(section);
    if let Some(address) = address {
        // The name is the question's; half a minute.
        all.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4]);
        all.extend(address.octets());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(name: &[&[u8]], kind: u16) -> Vec<u8> {
        let mut all = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name {
            all.push(label.len() as u8);
            all.extend(*label);
        }
        all.push(0);
        all.extend(kind.to_be_bytes());
        all.extend(INTERNET.to_be_bytes());
        all
    }

    #[test]
    fn a16_questions_are_read_strictly() {
        let asked = question(&[b"API", b"example", b"com"], 1);
        let read = Asked::read(&asked).unwrap().ok().unwrap();
        assert_eq!(read.name.as_deref(), Some("api.example.com"));
        assert_eq!(read.section, &asked[12..]);
        for odd in [&b"a b"[..], b"a\0b", b"a\x1b", "ä".as_bytes()] {
            let asked = question(&[odd, b"com"], 1);
            assert_eq!(Asked::read(&asked).unwrap().ok().unwrap().name, None);
        }
        let mut response = asked.clone();
        response[2] |= 0x80;
        assert!(Asked::read(&response).is_none());
        for length in 0..asked.len() {
            let cut = Asked::read(&asked[..length]);
            assert!(cut.is_none_or(|cut| cut.is_err()), "{length}");
        }
        let mut pointer = asked.clone();
        pointer[12] = 0xc0;
        assert!(Asked::read(&pointer).unwrap().is_err());
    }

    #[test]
    fn a16_an_answer_repeats_the_question_and_has_one_address() {
        let asked = question(&[b"a", b"example"], 1);
        let answer = reply(
            &asked,
            &asked[12..],
            NO_ERROR,
            Some(Ipv4Addr::new(198, 18, 0, 2)),
        );
        assert_eq!(answer[..4], [7, 9, 0x81, 0x80]);
        assert_eq!(answer[12..asked.len()], asked[12..]);
        assert_eq!(answer[answer.len() - 4..], [198, 18, 0, 2]);
        assert_eq!(reply(&asked, &[], BAD_FORMAT, None).len(), 12);
    }
}
