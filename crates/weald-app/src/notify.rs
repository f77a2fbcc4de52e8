//! Notifications: a person is told that something needs them, by a program of theirs or on their desktop.
//!
//! The process that writes the event starts another one for it and waits for nothing. Texts come from agents: they are
//! cleaned, and reach the user's program on its standard input and in a variable, never on a command line.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use weald_core::attention::{Attention, AttentionKind, attention_for};
use weald_core::config::Config;
use weald_core::event::{Event, EventKind};
use weald_core::landing::Landing;
use weald_core::store::{AgentFilter, Clock};

use crate::{App, Engine, Place, SystemClock, open_own};

/// After how many seconds a person is notified of the same kind again.
const INTERVAL: i64 = 60;

/// The same engine, and what needs a person is told to them, if they want that.
pub(crate) fn notifying(engine: Engine, app: &App, place: &Place, config: &Config) -> Engine {
    let wants = !config.notify_command.is_empty() || config.notify_desktop;
    let Ok(helper) = app.helper() else {
        return engine;
    };
    if !wants {
        return engine;
    }
    let (helper, root, private) = (
        helper.to_owned(),
        place.root().to_owned(),
        place.private().to_owned(),
    );
    let (words, on) = (app.settings(), config.notify_on.clone());
    engine.heard_by(Box::new(move |engine, events| {
        for attention in wanted(engine, events, &on) {
            if may_tell(&private, attention.kind) {
                // Whoever is not told sees it on the board.
                let _ = start(&helper, &root, &words, &attention);
            }
        }
    }))
}

/// What events mean for a person who wants to hear of some kinds.
pub fn wanted(engine: &Engine, events: &[Event], on: &[String]) -> Vec<Attention> {
    let is_retried = |landing: &Landing| {
        let open = engine.agents(&AgentFilter::OPEN).unwrap_or_default();
        open.iter()
            .any(|agent| agent.tree.as_ref() == Some(&landing.tree))
    };
    let found = events
        .iter()
        .filter_map(|event| attention_for(event, is_retried));
    let mut found: Vec<_> = found.collect();
    if events
        .iter()
        .any(|event| event.kind == EventKind::AGENT_EXITED)
        && is_finished(engine)
    {
        let text = "all agents finished; no task is ready";
        found.push(Attention::new(AttentionKind::Finished, "agents", text));
    }
    found.retain(|one| on.iter().any(|kind| kind == one.kind.as_str()));
    found
}

fn is_finished(engine: &Engine) -> bool {
    let open = engine.agents(&AgentFilter::OPEN);
    let is_idle = open.is_ok_and(|open| open.is_empty());
    is_idle && engine.has_ready().is_ok_and(|ready| !ready)
}

/// Whether nobody was told of this kind for a minute. Of several processes one may.
fn may_tell(private: &Path, kind: AttentionKind) -> bool {
    let look = || -> std::io::Result<bool> {
        let folder = private.join("notified");
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&folder)?;
        let mut options = OpenOptions::new();
        options.create(true).read(true).write(true).mode(0o600);
        let mut file = open_own(&mut options, &folder.join(kind.as_str()))?;
        if file.try_lock().is_err() {
            return Ok(false);
        }
        let mut text = String::new();
        (&file).take(32).read_to_string(&mut text)?;
        let last: i64 = text.trim().parse().unwrap_or(0);
        let now = SystemClock.now().as_second();
        // A clock that was set back must not silence it for long.
        let is_due = now >= last.saturating_add(INTERVAL) || now < last;
        if is_due {
            file.rewind()?;
            file.set_len(0)?;
            write!(file, "{now}")?;
        }
        Ok(is_due)
    };
    look().unwrap_or(false)
}

/// Starts the process that tells it.
fn start(
    helper: &Path,
    root: &Path,
    words: &[String],
    attention: &Attention,
) -> std::io::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "weald itself, to notify the user in the background"
    )]
    let mut command = Command::new(helper);
    weald_sandbox::keep_descriptors()?;
    let mut child = command
        .args(words)
        .arg("tell-user")
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(&serde_json::to_vec(attention)?)?;
    }
    // A supervisor leaves no dead children about.
    thread::spawn(move || child.wait());
    Ok(())
}
