//! One child process: its output bounded, its progress told, ended when nobody waits for it any more.
//!
//! A long one is asked to end (SIGTERM: a landing withdraws) before it is made to, and ends with the server, however that
//! ends. A short one does what it was asked to do, whoever leaves meanwhile: nothing is left half done.
//!
//! A long child ends with the server because of the flag `--ends-with PID`. A variable would be inherited by everything
//! that it starts.

use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use super::kept::Kept;

/// How long a child has between being asked to end and being made to.
pub const GRACE: Duration = Duration::from_secs(10);
/// How long a short one has when nobody waits for it any more.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often news are passed on.
const TICK: Duration = Duration::from_millis(250);
/// How long nothing may be heard of a call that is still at work.
const QUIET: Duration = Duration::from_secs(5);
/// The longest message of a progress notification.
const MESSAGE: usize = 300;

/// How long a call takes, and so what becomes of it when nobody waits for it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    /// A moment: it is done to its end.
    Shortly,
    /// As long as others let it: it is interrupted.
    Long,
}

impl Lasts {
    /// A call that waits so many seconds for others, if at all.
    pub fn waiting(seconds: u64) -> Self {
        match seconds {
            0 => Self::Shortly,
            _ => Self::Long,
        }
    }
}

/// How much of a child's output is kept, and which of it tells how far it is.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Of stdout, from its start.
    pub head: usize,
    /// Of stdout, from its end.
    pub tail: usize,
    /// Whether the lines of stdout are progress.
    pub is_told: bool,
}

/// What a child left.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: Kept,
    pub stderr: Kept,
}

/// Why there is nothing to tell.
pub enum Cut {
    /// The client took the call back, or left.
    Cancelled,
    /// The process could not be started or read.
    Failed(io::Error),
}

/// Runs a command to its end, or until nobody waits for it.
pub async fn run(
    command: &mut Command,
    input: Option<Vec<u8>>,
    limits: Limits,
    lasts: Lasts,
    mut progress: Progress<'_>,
    mut gone: watch::Receiver<bool>,
) -> Result<Ended, Cut> {
    let stdin = match input {
        Some(_) => Stdio::piped(),
        None => Stdio::null(),
    };
    command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(lasts == Lasts::Long);
    let mut child = command.spawn().map_err(Cut::Failed)?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // One that reads nothing has its reasons, and says them.
        tokio::spawn(async move { stdin.write_all(&input).await });
    }
    let mut out = child.stdout.take().expect("piped");
    let mut err = child.stderr.take().expect("piped");
    let mut stdout = Kept::new(limits.head, limits.tail);
    let mut stderr = Kept::new(16 << 10, 16 << 10);
    let context = progress.context;
    let mut tick = ticks();
    let (mut out_open, mut err_open) = (true, true);
    let mut asked: Option<Instant> = None;
    // A process that it left behind may hold its streams; its own end is what counts.
    let status = loop {
        tokio::select! {
            biased;
            read = read_some(&mut out, &mut stdout), if out_open => {
                out_open = read.map_err(Cut::Failed)?;
            }
            read = read_some(&mut err, &mut stderr), if err_open => {
                err_open = read.map_err(Cut::Failed)?;
            }
            status = child.wait() => break status.map_err(Cut::Failed)?,
            () = nobody_waits(context, &mut gone), if asked.is_none() => {
                asked = Some(leave_alone(&child, lasts));
            }
            () = until(asked), if asked.is_some() => {
                let _ = child.start_kill();
                asked = Some(Instant::now() + GRACE);
            }
            _ = tick.tick() => {
                let told = if limits.is_told { &stdout } else { &stderr };
                progress.tell(told.total(), || told.last_line()).await;
            }
        }
    };
    if lasts == Lasts::Long && asked.is_some() {
        return Err(Cut::Cancelled);
    }
    drain(&mut out, &mut stdout, out_open).await;
    drain(&mut err, &mut stderr, err_open).await;
    let told = if limits.is_told { &stdout } else { &stderr };
    progress.tell_news(told.total(), || told.last_line()).await;
    Ok(Ended {
        status,
        stdout,
        stderr,
    })
}

async fn read_some(stream: &mut (impl AsyncRead + Unpin), kept: &mut Kept) -> io::Result<bool> {
    let mut buffer = [0; 8192];
    let count = stream.read(&mut buffer).await?;
    kept.push(&buffer[..count]);
    Ok(count > 0)
}

/// Takes what is in the pipe already.
async fn drain(stream: &mut (impl AsyncRead + Unpin), kept: &mut Kept, is_open: bool) {
    if !is_open {
        return;
    }
    let all = async { while let Ok(true) = read_some(stream, kept).await {} };
    let _ = timeout(Duration::from_millis(200), pin!(all)).await;
}

/// How often news are passed on.
pub fn ticks() -> Interval {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick
}

/// Ends when the client has taken the call back, has left, or reads nothing any more.
pub async fn nobody_waits(context: &RequestContext<RoleServer>, gone: &mut watch::Receiver<bool>) {
    let unread = async {
        while !nobody_reads() {
            sleep(TICK).await;
        }
    };
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = left(gone) => {}
        () = unread => {}
    }
}

/// Ends when the client has left.
pub async fn left(gone: &mut watch::Receiver<bool>) {
    let _ = gone.wait_for(|gone| *gone).await;
}

async fn until(asked: Option<Instant>) {
    if let Some(deadline) = asked {
        sleep_until(deadline).await;
    }
}

/// What becomes of a child that nobody waits for, and when it is made to end.
fn leave_alone(child: &Child, lasts: Lasts) -> Instant {
    match lasts {
        Lasts::Shortly => Instant::now() + PATIENCE,
        Lasts::Long => ask_to_end(child),
    }
}

/// Asks a child to end, and says when it is made to.
fn ask_to_end(child: &Child) -> Instant {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    if let Some(pid) = pid.and_then(Pid::from_raw) {
        // It may be gone already.
        let _ = kill_process(pid, Signal::TERM);
    }
    Instant::now() + GRACE
}

/// True when whoever read the protocol has gone.
fn nobody_reads() -> bool {
    let stdout = io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    rustix::event::poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().intersects(gone)
}

/// What a client that asked for it hears while a call is at work.
pub struct Progress<'a> {
    context: &'a RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    since: Instant,
    told_at: Instant,
    told: u64,
    /// How many notifications the request has got: a tool may do several operations.
    count: &'a AtomicU32,
}

impl<'a> Progress<'a> {
    pub fn of(context: &'a RequestContext<RoleServer>, count: &'a AtomicU32) -> Self {
        let now = Instant::now();
        Self {
            token: context.meta.get_progress_token(),
            context,
            since: now,
            told_at: now,
            told: 0,
            count,
        }
    }

    /// Passes the newest line on, if there is one. `total` grows with every line.
    pub async fn tell_news(&mut self, total: u64, newest: impl FnOnce() -> Option<String>) {
        if total > self.told {
            self.tell(total, newest).await;
        }
    }

    /// Passes the newest line on, or says that it goes on.
    pub async fn tell(&mut self, total: u64, newest: impl FnOnce() -> Option<String>) {
        let Some(token) = &self.token else { return };
        let news = if total > self.told { newest() } else { None };
        let message = match news {
            Some(line) => line.chars().take(MESSAGE).collect(),
            None if self.told_at.elapsed() < QUIET => return,
            None => format!("at work for {} s", self.since.elapsed().as_secs()),
        };
        self.told = total;
        self.told_at = Instant::now();
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let param =
            ProgressNotificationParam::new(token.clone(), f64::from(count)).with_message(message);
        // Nobody has to listen; whoever does not read is told nothing more.
        let telling = self.context.peer.notify_progress(param);
        if timeout(TICK, telling).await.is_err() {
            self.token = None;
        }
    }
}
