//! As much of HTTP/1.1 as two agents need.

use std::io::{BufRead, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// The most that one request may hold.
const LIMIT: u64 = 64 << 20;

pub(super) struct Asked {
    pub path: String,
    /// What the agent logs in with.
    pub token: String,
    pub body: Vec<u8>,
}

/// Reads one request; `None` when there is no further one.
pub(super) fn read(stream: &mut impl BufRead) -> Option<Asked> {
    let first = line(stream)?;
    let path = first.split(' ').nth(1)?.to_owned();
    let (mut length, mut is_chunked, mut token) = (0, false, String::new());
    loop {
        let header = line(stream)?.to_ascii_lowercase();
        match header.split_once(':') {
            None => break,
            Some(("authorization", value)) => {
                value
                    .trim()
                    .trim_start_matches("bearer ")
                    .clone_into(&mut token);
            }
            Some(("content-length", value)) => length = value.trim().parse().ok()?,
            Some(("transfer-encoding", value)) => is_chunked = value.contains("chunked"),
            Some(_) => {}
        }
    }
    let body = match is_chunked {
        true => chunks(stream)?,
        false => exactly(stream, length)?,
    };
    Some(Asked { path, token, body })
}

fn line(stream: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let read = stream.take(64 << 10).read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

fn exactly(stream: &mut impl BufRead, length: u64) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    let read = stream.take(length.min(LIMIT)).read_to_end(&mut body).ok()?;
    (read as u64 == length).then_some(body)
}

fn chunks(stream: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(stream)?;
        let size = u64::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        body.extend(exactly(stream, size)?);
        line(stream)?;
        if size == 0 || body.len() as u64 > LIMIT {
            return Some(body);
        }
    }
}

/// Answers with one object; further requests may follow.
pub(super) fn write_json(mut stream: &TcpStream, answer: &Value) -> Option<()> {
    let answer = answer.to_string();
    let length = answer.len();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}");
    stream
        .write_all(format!("{head}\r\n\r\n{answer}").as_bytes())
        .ok()
}

/// Refuses a request, with further header lines.
pub(super) fn write_refusal(
    mut stream: &TcpStream,
    status: &str,
    headers: &[(&str, String)],
    answer: &Value,
) -> Option<()> {
    let answer = answer.to_string();
    let length = answer.len();
    let mut head =
        format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}");
    for (name, value) in headers {
        head.push_str(&format!("\r\n{name}: {value}"));
    }
    stream
        .write_all(format!("{head}\r\n\r\n{answer}").as_bytes())
        .ok()
}

/// Answers with a stream of events, which ends the connection.
pub(super) fn write_events(mut stream: &TcpStream, events: &[Value]) -> Option<()> {
    let mut answer =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
            .to_owned();
    for event in events {
        let kind = event["type"].as_str().unwrap_or_default();
        answer.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
    }
    stream.write_all(answer.as_bytes()).ok()?;
    stream.shutdown(std::net::Shutdown::Write).ok()
}
