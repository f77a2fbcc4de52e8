//! The first things that a client asks of `weald mcp`, and when each is answered.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What is asked, one after the other: in words, the goal in milliseconds after the start, and the line.
pub const REQUESTS: [(&str, f64, &str); 3] = [
    (
        "initialize",
        20.0,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
    ),
    (
        "tools/list",
        20.0,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}"#,
    ),
    (
        "task_list, with the session made",
        40.0,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"task_list","arguments":{}}}"#,
    ),
];

/// Starts a server and asks it; answers how long after the start each answer came.
pub fn answers(command: &mut Command) -> io::Result<Vec<Duration>> {
    let started = Instant::now();
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.stderr(Stdio::null()).spawn()?;
    let mut stdin = server.stdin.take().expect("piped");
    let mut stdout = BufReader::new(server.stdout.take().expect("piped"));
    let mut waits = Vec::new();
    let mut line = String::new();
    for (name, _, request) in REQUESTS {
        stdin.write_all(format!("{request}\n").as_bytes())?;
        line.clear();
        stdout.read_line(&mut line)?;
        if !line.contains("\"result\"") || line.contains("\"isError\":true") {
            return Err(io::Error::other(format!("{name}: {line}")));
        }
        waits.push(started.elapsed());
    }
    drop(stdin);
    server.wait()?;
    Ok(waits)
}
