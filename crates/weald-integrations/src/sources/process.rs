//! One command of a tracker: found by absolute folders, without a terminal to ask, bounded in time and output.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use weald_sandbox::end_with_starter;

use super::{Source, SourceError, Words};
use weald_control::files::is_program;

/// The most that is read of what a tracker prints.
const LIMIT: usize = 64 << 20;

/// The most that is kept of what it complains.
const SAID: usize = 4096;

/// How long after its end a command's output is waited for: what it left running may hold it open.
const LINGER: Duration = Duration::from_millis(300);

const LOOK_AGAIN: Duration = Duration::from_millis(5);

enum Piece {
    Out(Vec<u8>),
    Err(Vec<u8>),
}

/// Runs it to its end, and gives what it printed.
pub(super) fn run(words: &Words, source: &Source) -> Result<Vec<u8>, SourceError> {
    let (words, command) = (&words.words, words.shown.clone());
    let not_run = |error: std::io::Error| SourceError::NotRun {
        command: command.clone(),
        why: error.to_string(),
    };
    let program = find(&words[0], source)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the user's own tracker, on the host: from the user's configuration or built in"
    )]
    let mut start = Command::new(program);
    start
        .args(&words[1..])
        .current_dir(&source.directory)
        .env_clear()
        .envs(source.environment.iter().cloned())
        .envs([
            ("NO_COLOR", "1"),
            ("GH_PROMPT_DISABLED", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    end_with_starter(&mut start);
    let mut child = start.spawn().map_err(not_run)?;
    let (sender, pieces) = channel();
    read(child.stdout.take(), sender.clone(), Piece::Out);
    read(child.stderr.take(), sender, Piece::Err);
    let gathered = gather(&child, &pieces, source.timeout);
    let ended = end(&mut child);
    match gathered {
        Gathered::TimedOut => Err(SourceError::TimedOut {
            command,
            seconds: source.timeout.as_secs(),
        }),
        Gathered::TooMuch => Err(SourceError::TooMuch {
            command,
            limit: LIMIT,
        }),
        Gathered::Ended(out, err) => {
            let status = ended.map_err(not_run)?;
            match status.success() {
                true => Ok(out),
                false => Err(SourceError::Failed {
                    command,
                    status: status.to_string(),
                    said: last_line(&err),
                }),
            }
        }
    }
}

enum Gathered {
    Ended(Vec<u8>, Vec<u8>),
    TimedOut,
    TooMuch,
}

fn gather(child: &Child, pieces: &Receiver<Piece>, timeout: Duration) -> Gathered {
    let deadline = Instant::now() + timeout;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut ended_at = None;
    loop {
        let mut is_closed = false;
        match pieces.recv_timeout(LOOK_AGAIN) {
            Ok(Piece::Out(bytes)) => out.extend(bytes),
            Ok(Piece::Err(bytes)) => {
                err.extend(bytes);
                let too_old = err.len().saturating_sub(SAID);
                err.drain(..too_old);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => is_closed = true,
        }
        let now = Instant::now();
        if ended_at.is_none() && has_ended(child) {
            ended_at = Some(now);
        }
        match ended_at {
            _ if out.len() > LIMIT => return Gathered::TooMuch,
            Some(at) if is_closed || now > at + LINGER => return Gathered::Ended(out, err),
            None if now >= deadline => return Gathered::TimedOut,
            // It has closed its output, and is still on its way out.
            None if is_closed => thread::sleep(LOOK_AGAIN),
            _ => {}
        }
    }
}

/// Passes on what a stream brings, until nobody wants it.
fn read(
    stream: Option<impl Read + Send + 'static>,
    to: Sender<Piece>,
    piece: impl Fn(Vec<u8>) -> Piece + Send + 'static,
) {
    let Some(mut stream) = stream else { return };
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            if to.send(piece(buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    });
}

/// Whether it is over. It stays to be waited for, so that its number, which is its group's, is nobody else's.
fn has_ended(child: &Child) -> bool {
    let Some(pid) = pid(child) else { return true };
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(pid), look), Ok(None) | Err(Errno::INTR))
}

/// Ends it, and all that it started and left in its group: nobody answers for that.
fn end(child: &mut Child) -> std::io::Result<ExitStatus> {
    if let Some(group) = pid(child) {
        // It may have ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
    }
    child.wait()
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// Where a program is. A folder that depends on the current directory is passed over: what lies there may be anybody's.
fn find(program: &str, source: &Source) -> Result<PathBuf, SourceError> {
    if program.starts_with('/') {
        return Ok(PathBuf::from(program));
    }
    let path = source.environment.iter().find(|(name, _)| name == "PATH");
    let folders = path.map_or(&b""[..], |(_, path)| path.as_bytes());
    let folders = folders.split(|byte| *byte == b':').map(OsStr::from_bytes);
    folders
        .map(Path::new)
        .filter(|folder| folder.is_absolute() && !program.contains('/'))
        .map(|folder| folder.join(program))
        .find(|path| is_program(path))
        .ok_or_else(|| SourceError::NotInstalled {
            program: program.to_owned(),
        })
}

/// A command as somebody would type it.
pub(super) fn shown(words: &[String]) -> String {
    let plain = words.iter().map(String::as_str);
    shlex::try_join(plain).unwrap_or_else(|_| words.join(" "))
}

/// The last line of what it said, without anything that would steer a terminal.
fn last_line(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or("it said nothing").trim();
    line.chars().filter(|c| !c.is_control()).take(300).collect()
}
