//! `weald session …`

use std::io::{self, Write};

use clap::{Args, Subcommand};
use weald_app::operations::Operation;
use weald_app::operations::sessions::{
    CheckSession, Checked, EndSession, Heartbeat as Beat, ListSessions, NoteSession,
    RegisterSession, ShowSession,
};
use weald_app::{Failure, LockAtEnd, SessionView};
use weald_core::Timestamp;
use weald_core::id::TaskId;
use weald_core::meant::Word;
use weald_core::name::SessionName;

use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Out, Table, ago, clean, paint};

/// Show sessions and whether they are alive.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Session {
    Register(Register),
    Heartbeat(Heartbeat),
    #[command(alias = "is-active")]
    Check(Check),
    List(List),
    Show(Show),
    Note(Note),
    #[command(alias = "deregister")]
    End(End),
}

impl Default for Session {
    fn default() -> Self {
        Self::List(List { all: false })
    }
}

impl Session {
    /// Does what was asked, on the host or inside a sandbox.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Register(command) => command.run(context),
            Self::Heartbeat(command) => command.run(context),
            Self::Check(command) => command.run(context),
            Self::List(command) => command.run(context),
            Self::Show(command) => command.run(context),
            Self::Note(command) => command.run(context),
            Self::End(command) => command.run(context),
        }
    }

    pub fn only_reads(&self) -> bool {
        match self {
            Self::List(_) => ListSessions::READS,
            Self::Show(_) => ShowSession::READS,
            _ => false,
        }
    }
}

/// The session a command is about: by name, or whoever calls.
#[derive(Args)]
struct Which {
    /// The session (default: your own)
    #[arg(value_name = "NAME", add = completion::sessions())]
    name: Option<SessionName>,
    #[command(flatten)]
    session: SessionArg,
}

/// Register a session
///
/// An existing session is registered again.
#[derive(Args)]
pub struct Register {
    #[command(flatten)]
    which: Which,
    /// Process that the session lives and dies with
    ///
    /// In a shell: --pid $$
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Do nothing if it is registered and not known to be dead
    #[arg(long)]
    unless_alive: bool,
}

impl Register {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = RegisterSession {
            name: self.which.name,
            pid: self.pid,
            unless_alive: self.unless_alive,
        };
        let answer = context.perform_as(&self.which.session.caller(), request)?;
        let now = context.now();
        context
            .ui
            .show(&answer, |out| print_line(out, &answer.session, now))
    }
}

/// Report that a session is alive
///
/// Optionally records the task and the worktree it works on.
#[derive(Args)]
pub struct Heartbeat {
    #[command(flatten)]
    which: Which,
    /// Task you work on
    #[arg(long, value_name = "ID", add = completion::tasks())]
    task: Option<Word>,
    /// Worktree you work in
    #[arg(long, value_name = "NAME")]
    tree: Option<Word>,
    /// Also renew your claims
    #[arg(long)]
    renew: bool,
}

impl Heartbeat {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = Beat {
            name: self.which.name,
            task: self.task,
            tree: self.tree,
            renew: self.renew,
        };
        let answer = context.perform_as(&self.which.session.caller(), request)?;
        let now = context.now();
        context
            .ui
            .show(&answer, |out| print_line(out, &answer.session, now))
    }
}

/// Check whether a session is alive or a task is taken
///
/// Exits 0 if the session is alive, 1 if it is dead or unknown. With --task, exits 1 if another session that may be alive
/// holds the task.
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    which: Which,
    /// Check this task instead
    #[arg(long, value_name = "ID", add = completion::tasks())]
    task: Option<Word>,
}

impl Check {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = CheckSession {
            name: self.which.name,
            task: self.task,
        };
        let answer = context.perform_as(&self.which.session.caller(), request)?;
        let now = context.now();
        context.ui.show(&answer, |out| match &answer {
            Checked::Session { session } => print_line(out, session, now),
            Checked::Task { contest } => match &contest.owner {
                Some(owner) => {
                    writeln!(out, "task {}: held by {owner}, not contested", contest.task)
                }
                None => writeln!(out, "task {}: not claimed", contest.task),
            },
        })?;
        Ok(CheckSession::exit(&answer))
    }
}

/// List sessions
#[derive(Args)]
pub struct List {
    /// Include sessions that have ended
    #[arg(long)]
    all: bool,
}

impl List {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(ListSessions { all: self.all })?;
        let now = context.now();
        context
            .ui
            .show(&answer, |out| print_table(out, &answer.sessions, now))
    }
}

fn print_table(out: &mut Out, views: &[SessionView], now: Timestamp) -> io::Result<()> {
    if views.is_empty() {
        return writeln!(out, "no sessions");
    }
    let mut table = Table::new(&["NAME", "STATE", "SEEN", "HOLDS", "NOTE"]);
    for view in views {
        let holds = view
            .holds
            .iter()
            .map(TaskId::to_string)
            .collect::<Vec<_>>()
            .join(",");
        let note = view
            .session
            .note
            .as_ref()
            .map_or_else(String::new, |note| note.text.clone());
        table.row(vec![
            (view.session.name.to_string(), ACCENT),
            (view.liveness.as_str().to_owned(), Default::default()),
            (
                format!("{} ago", ago(view.session.last_seen, now)),
                Default::default(),
            ),
            (holds, Default::default()),
            (note, Default::default()),
        ]);
    }
    table.print(out)
}

/// Show a session and where it works
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    which: Which,
}

impl Show {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = ShowSession {
            name: self.which.name,
        };
        let answer = context.perform_as(&self.which.session.caller(), request)?;
        let now = context.now();
        context.ui.show(&answer, |out| {
            print_line(out, &answer.session, now)?;
            match &answer.directory {
                Some(directory) => writeln!(out, "  works in {}", directory.display()),
                None => Ok(()),
            }
        })
    }
}

/// Write or print the note of a session
///
/// Notes outlive the session.
#[derive(Args)]
pub struct Note {
    /// New note (default: print the current one)
    text: Option<String>,
    #[command(flatten)]
    session: SessionArg,
}

impl Note {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = NoteSession { text: self.text };
        let answer = context.perform_as(&self.session.caller(), request)?;
        let text = &answer.note.text;
        context
            .ui
            .show(&answer, |out| writeln!(out, "{}", clean(text)))
    }
}

/// End a session and release its claims
///
/// Its note is kept. The lock of its worktree is released if the shell is in that worktree, the task is completed or
/// cancelled, and the target has all of its work; otherwise the lock stays and the answer gives the reason.
#[derive(Args)]
pub struct End {
    #[command(flatten)]
    which: Which,
}

impl End {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = EndSession {
            name: self.which.name,
        };
        let answer = context.perform_as(&self.which.session.caller(), request)?;
        let now = context.now();
        context.ui.show(&answer, |out| {
            print_line(out, &answer.session, now)?;
            for id in &answer.released {
                writeln!(out, "released: {id}")?;
            }
            let mut locks = answer.locks.iter();
            locks.try_for_each(|lock| writeln!(out, "{}", told_lock(lock)))
        })
    }
}

/// A lock in one line.
pub fn told_lock(lock: &LockAtEnd) -> String {
    let why: Vec<_> = lock.why.iter().map(ToString::to_string).collect();
    match lock.unlocked {
        true => format!("unlocked: {}", lock.tree),
        false => format!(
            "{0} stays locked: {1} (to unlock it: weald unlock {0})",
            lock.tree,
            why.join("; ")
        ),
    }
}

/// One session in one line.
fn print_line(out: &mut Out, view: &SessionView, now: Timestamp) -> io::Result<()> {
    let session = &view.session;
    write!(
        out,
        "{} {}",
        paint(ACCENT, &session.name),
        view.liveness.as_str()
    )?;
    write!(out, ", seen {} ago", ago(session.last_seen, now))?;
    for id in &view.holds {
        write!(out, ", holds {id}")?;
    }
    writeln!(out)
}
