//! `weald worker --detach`: a process of its own does the work, and this one tells how it began.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use weald_core::agent::Agent;
use weald_core::name::SessionName;
use weald_core::store::AgentFilter;

use super::{AgentWish, Worker};
use crate::{Call, Failure, Ground, exit, open_own};

/// How long a worker has to say that it is there, and then to begin with a task that is ready.
const PATIENCE: Duration = Duration::from_secs(30);

/// The largest log that is added to.
const LOG_LIMIT: u64 = 1 << 20;

/// How often that is looked at.
const POLL: Duration = Duration::from_millis(10);

/// A worker in a process of its own.
pub struct BehindWorker {
    /// Its process.
    pub pid: u32,
    /// The file that has its output.
    pub log: PathBuf,
    /// What it works on, if a task was ready.
    pub agent: Option<Agent>,
}

/// Starts a worker in a process of its own. When this returns without an error it is registered under its name, and works on
/// a task if one was ready.
pub fn start_behind(
    call: &Call<'_>,
    ground: &Ground,
    worker: &Worker,
    how: &AgentWish,
) -> Result<BehindWorker, Failure> {
    let name = &worker.name;
    let log = log_of(ground, name)?;
    let file = opened(&log)?;
    let before = usize::try_from(file.metadata()?.len()).unwrap_or_default();
    let mut child = spawn(call, ground, file, &words(worker, how))?;
    let agent = begin(ground, name, &mut child, |ended| {
        said(&log, before, name, ended)
    })?;
    Ok(BehindWorker {
        pid: child.id(),
        log,
        agent,
    })
}

/// The same worker as words of a command line.
fn words(worker: &Worker, how: &AgentWish) -> Vec<String> {
    let max = worker.max.map(|max| format!("--max={max}"));
    let idle = worker.idle_timeout;
    let idle = idle.map(|idle| format!("--idle-timeout={}ms", idle.as_millis()));
    let behind = Some("--behind".to_owned());
    let words = [behind, max, idle].into_iter().flatten();
    words.chain(how.words(&worker.name)).collect()
}

fn log_of(ground: &Ground, name: &SessionName) -> Result<PathBuf, Failure> {
    let folder = ground.place.private().join("workers");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    Ok(folder.join(format!("{name}.log")))
}

fn spawn(call: &Call<'_>, ground: &Ground, log: File, words: &[String]) -> Result<Child, Failure> {
    #[expect(
        clippy::disallowed_methods,
        reason = "weald itself, to go on as the worker"
    )]
    let mut command = std::process::Command::new(call.helper()?);
    command
        .args(call.settings())
        .args(["--json", "worker"])
        .args(words)
        .current_dir(ground.place.root())
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    weald_sandbox::keep_descriptors()?;
    Ok(command.spawn()?)
}

/// The log of a name, to add to. A long one begins again.
fn opened(log: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    let file = open_own(options.create(true).append(true).mode(0o600), log)?;
    if file.metadata()?.len() > LOG_LIMIT {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Waits until the worker is there, and until it works if there is something to do.
fn begin(
    ground: &Ground,
    name: &SessionName,
    child: &mut Child,
    failed: impl Fn(&str) -> Failure,
) -> Result<Option<Agent>, Failure> {
    let deadline = Instant::now() + PATIENCE;
    let mut is_there = false;
    loop {
        // Asked first: one that ended by now said everything before.
        let ended = child.try_wait()?;
        let has_ready = ground.engine.has_ready()?;
        let agent = agent_of(ground, name)?;
        // Before that an agent of this name is somebody else's.
        is_there = is_there || is_registered(ground, name, child.id());
        if is_there && agent.as_ref().is_some_and(|agent| agent.supervised) {
            return Ok(agent);
        }
        if let Some(status) = ended.filter(|status| !status.success()) {
            return Err(failed(&status.to_string()));
        }
        let is_idle = is_there && !has_ready && agent.is_none();
        if ended.is_some() || is_idle || Instant::now() >= deadline {
            return match is_there || ended.is_some() {
                true => Ok(None),
                false => {
                    let _ = child.kill();
                    Err(failed("it did not answer"))
                }
            };
        }
        std::thread::sleep(POLL);
    }
}

fn agent_of(ground: &Ground, name: &SessionName) -> Result<Option<Agent>, Failure> {
    let open = AgentFilter {
        open: true,
        task: None,
    };
    let mut open = ground.engine.agents(&open)?;
    open.retain(|agent| agent.session == *name);
    Ok(open.pop())
}

fn is_registered(ground: &Ground, name: &SessionName, pid: u32) -> bool {
    let session = ground.engine.session(name);
    let process = session.ok().and_then(|view| view.session.process);
    process.is_some_and(|process| process.pid == pid)
}

/// What a worker that did not begin said behind a place of its log, as its own failure.
fn said(log: &Path, before: usize, name: &SessionName, how: &str) -> Failure {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let mut lines = text.get(before..).unwrap_or(&text).lines().rev();
    let told = lines.find_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        line.get("error").cloned()
    });
    let text = |error: &Value, field: &str| error[field].as_str().map(str::to_owned);
    let message = format!("{name} exited at once ({how}); see {}", log.display());
    let Some(error) = told else {
        return Failure::new("worker_not_started", exit::REFUSED, message);
    };
    let code = text(&error, "code").unwrap_or_else(|| "worker_not_started".to_owned());
    let failure = Failure::new(
        code,
        exit::REFUSED,
        text(&error, "message").unwrap_or(message),
    );
    match text(&error, "hint") {
        Some(hint) => failure.hint(hint).details(error["details"].clone()),
        None => failure.details(error["details"].clone()),
    }
}
