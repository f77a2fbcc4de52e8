//! Sessions: who is here, whether they live, and what they leave behind.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weald_core::id::TaskId;
use weald_core::name::{SessionName, TreeName};
use weald_core::session::{Liveness, Note};

use super::{Entry, Operation};
use crate::{
    Ask, Call, Contest, Engine, Failure, IdentitySource, LockAtEnd, SessionView, TreeError, Upkeep,
    exit,
};

pub(super) fn entries() -> Vec<Entry> {
    vec![
        Entry::of::<RegisterSession>(),
        Entry::of::<Heartbeat>(),
        Entry::of::<CheckSession>(),
        Entry::of::<ListSessions>(),
        Entry::of::<ShowSession>(),
        Entry::of::<NoteSession>(),
        Entry::of::<EndSession>(),
    ]
}

/// One session as it is now.
#[derive(Debug, Serialize)]
pub struct OneSession {
    pub session: SessionView,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterSession {
    pub name: Option<SessionName>,
    /// The process whose life is that of the session.
    pub pid: Option<u32>,
    /// Do nothing if it is registered and not known to be dead.
    pub unless_alive: bool,
}

#[derive(Debug, Serialize)]
pub struct RegisteredSession {
    pub session: SessionView,
    /// How the caller was recognised.
    pub known_by: IdentitySource,
}

impl Operation for RegisterSession {
    const NAME: &'static str = "session_register";
    type Output = RegisteredSession;

    /// Who calls is seen from the process that asks.
    fn run(self, call: &Call<'_>) -> Result<RegisteredSession, Failure> {
        let engine = call.engine()?;
        let name = call.session_named(&engine, self.name.as_ref())?;
        let known_by = call.identity(&engine, self.name.as_ref())?.source;
        let known = engine
            .session(&name)
            .ok()
            .filter(|view| view.session.ended_at.is_none() && view.liveness != Liveness::Dead);
        let session = match (known.filter(|_| self.unless_alive), known_by) {
            (Some(view), _) => view,
            (None, IdentitySource::Flag | IdentitySource::Variable) => {
                engine.register(&name, self.pid)?
            }
            (None, _) => engine.register_given(&name, self.pid)?,
        };
        call.tell(&engine);
        Ok(RegisteredSession { session, known_by })
    }
}

/// Reports that a session is alive.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    pub name: Option<SessionName>,
    /// What it works on.
    pub task: Option<TaskId>,
    pub tree: Option<TreeName>,
    /// Also renew its claims.
    pub renew: bool,
}

impl Operation for Heartbeat {
    const NAME: &'static str = "session_heartbeat";
    type Output = OneSession;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<OneSession, Failure> {
        let engine = call.engine()?;
        let name = call.session_named(&engine, self.name.as_ref())?;
        let session = engine.heartbeat(&name, self.task, self.tree)?;
        if self.renew {
            engine.renew_held(&name)?;
        }
        call.tell(&engine);
        Ok(OneSession { session })
    }
}

/// Checks whether a session is alive, or whether a task is free for it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckSession {
    pub name: Option<SessionName>,
    /// The task to check instead.
    pub task: Option<TaskId>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Checked {
    Session { session: Box<SessionView> },
    Task { contest: Contest },
}

impl Operation for CheckSession {
    const NAME: &'static str = "session_check";
    type Output = Checked;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<Checked, Failure> {
        let engine = call.engine()?;
        let name = call.session_named(&engine, self.name.as_ref())?;
        let Some(task) = self.task else {
            let session = Box::new(engine.session(&name)?);
            return Ok(Checked::Session { session });
        };
        let contest = engine.contest(&name, &task)?;
        match (contest.contested, &contest.owner) {
            (true, Some(owner)) => Err(Failure::task_contested(&contest, owner)),
            _ => Ok(Checked::Task { contest }),
        }
    }

    fn exit(answer: &Checked) -> u8 {
        match answer {
            Checked::Session { session } if session.liveness != Liveness::Alive => exit::REFUSED,
            _ => exit::DONE,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListSessions {
    /// Those that have ended, too.
    #[serde(default)]
    pub all: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Sessions {
    pub sessions: Vec<SessionView>,
}

impl ListSessions {
    pub fn list(&self, engine: &Engine) -> Result<Sessions, Failure> {
        let mut sessions = engine.sessions()?;
        sessions.retain(|view| self.all || view.session.ended_at.is_none());
        Ok(Sessions { sessions })
    }
}

impl Operation for ListSessions {
    const NAME: &'static str = "session_list";
    const READS: bool = true;
    type Output = Sessions;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<Sessions, Failure> {
        self.list(&call.engine()?)
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<Sessions> {
        Some(asked(broker, call, Ask::SessionList(self.clone())))
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowSession {
    pub name: Option<SessionName>,
}

#[derive(Debug, Serialize)]
pub struct ShownSession {
    pub session: SessionView,
    /// Where it works; nothing if that is gone.
    pub directory: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// Why a session has no place to work in.
#[derive(Debug, Serialize)]
pub struct Problem {
    pub code: String,
    pub message: String,
    pub hint: Option<String>,
}

impl Operation for ShowSession {
    const NAME: &'static str = "session_show";
    const READS: bool = true;
    type Output = ShownSession;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<ShownSession, Failure> {
        let ground = call.ground()?;
        let name = call.session_named(&ground.engine, self.name.as_ref())?;
        let session = ground.engine.session(&name)?;
        // A tree that is gone hides nothing of the session.
        let (directory, lost) = match ground.trees(call)?.directory_of(&session.session) {
            Ok(directory) => (Some(directory), None),
            Err(
                error @ (TreeError::InTrash { .. }
                | TreeError::NotFound { .. }
                | TreeError::Missing { .. }),
            ) => (None, Some(Failure::from(error))),
            Err(error) => return Err(error.into()),
        };
        if let Some(lost) = &lost {
            call.warn(&lost.in_short());
        }
        Ok(ShownSession {
            session,
            directory,
            problem: lost.map(|lost| Problem {
                code: lost.code.as_str().to_owned(),
                message: lost.message,
                hint: lost.hint,
            }),
        })
    }
}

/// Writes the note of a session, or shows it. It outlives the session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteSession {
    #[serde(default)]
    pub text: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct NotedSession {
    pub session: SessionView,
    pub note: Note,
}

impl Operation for NoteSession {
    const NAME: &'static str = "session_note";
    type Output = NotedSession;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<NotedSession, Failure> {
        let engine = call.engine()?;
        let name = call.session(&engine)?;
        let session = match self.text {
            Some(text) => engine.note(&name, text)?,
            None => engine.session(&name)?,
        };
        call.tell(&engine);
        let note = session.session.note.clone();
        let note = note.ok_or_else(|| Failure::no_note(&name))?;
        Ok(NotedSession { session, note })
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<NotedSession> {
        Some(asked(broker, call, Ask::SessionNote(self.clone())))
    }
}

/// Ends a session, and releases its claims and the locks of worktrees where everything is over.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndSession {
    pub name: Option<SessionName>,
}

#[derive(Debug, Serialize)]
pub struct EndedSession {
    pub session: SessionView,
    /// Tasks that it held.
    pub released: Vec<TaskId>,
    pub locks: Vec<LockAtEnd>,
}

impl Operation for EndSession {
    const NAME: &'static str = "session_end";
    type Output = EndedSession;

    /// It looks into worktrees.
    fn run(self, call: &Call<'_>) -> Result<EndedSession, Failure> {
        let ground = call.ground()?;
        let engine = &ground.engine;
        let name = call.session_named(engine, self.name.as_ref())?;
        let (session, released) = engine.end(&name)?;
        let locks = Upkeep::new(&ground.trees(call)?).release_on_end(Some(&name))?;
        call.tell(engine);
        Ok(EndedSession {
            session,
            released,
            locks,
        })
    }
}
