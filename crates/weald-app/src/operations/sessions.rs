//! Sessions: who is here, whether they live, and what they leave behind.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weald_core::id::TaskId;
use weald_core::meant::Word;
use weald_core::name::SessionName;
use weald_core::session::{Liveness, Note};

use super::{Broker, Inside, Operation, asked};
use crate::{
    Ask, Call, Contest, Engine, Failure, IdentitySource, LockAtEnd, SessionView, TreeError, Upkeep,
    exit,
};

entries!(
    RegisterSession,
    Heartbeat,
    CheckSession,
    ListSessions,
    ShowSession,
    NoteSession,
    EndSession
);

/// One session as it is now.
#[derive(Debug, Serialize)]
pub struct OneSession {
    /// With whether it is alive.
    pub session: SessionView,
}

/// Makes a session known, and says which process it lives with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterSession {
    /// The caller's own unless given.
    pub name: Option<SessionName>,
    /// The process whose life is that of the session.
    pub pid: Option<u32>,
    /// Do nothing if it is registered and not known to be dead.
    pub unless_alive: bool,
}

/// A session that others can see.
#[derive(Debug, Serialize)]
pub struct RegisteredSession {
    /// With whether it is alive.
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
    /// The caller's own unless given.
    pub name: Option<SessionName>,
    /// What it works on.
    pub task: Option<Word>,
    /// Where it works.
    pub tree: Option<Word>,
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
        let ground = call.ground()?;
        let engine = &ground.engine;
        let name = call.session_named(engine, self.name.as_ref())?;
        let task = self.task.as_ref();
        let task = task.map(|word| ground.task_by_id(call, word)).transpose()?;
        let tree = self.tree.as_ref();
        let tree = tree
            .map(|word| ground.tree_or_name(call, word))
            .transpose()?;
        let session = engine.heartbeat(&name, task, tree)?;
        if self.renew {
            engine.renew_held(&name)?;
        }
        call.tell(engine);
        Ok(OneSession { session })
    }
}

/// Checks whether a session is alive, or whether a task is free for it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckSession {
    /// The caller's own unless given.
    pub name: Option<SessionName>,
    /// The task to check instead.
    pub task: Option<Word>,
}

/// What was checked.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Checked {
    /// A session, with whether it is alive.
    Session {
        /// As it is now.
        session: Box<SessionView>,
    },
    /// A task, with who else works on it.
    Task {
        /// Who has it.
        contest: Contest,
    },
}

impl Operation for CheckSession {
    const NAME: &'static str = "session_check";
    type Output = Checked;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<Checked, Failure> {
        let ground = call.ground()?;
        let engine = &ground.engine;
        let name = call.session_named(engine, self.name.as_ref())?;
        let Some(task) = &self.task else {
            let session = Box::new(engine.session(&name)?);
            return Ok(Checked::Session { session });
        };
        let task = ground.task_by_id(call, task)?;
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

/// Lists who is here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListSessions {
    /// Those that have ended, too.
    #[serde(default)]
    pub all: bool,
}

/// Everybody who is here.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sessions {
    /// Each with whether it is alive.
    pub sessions: Vec<SessionView>,
}

impl ListSessions {
    /// From the records.
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

/// Shows who the caller is to others.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowSession {
    /// Another one, instead.
    pub name: Option<SessionName>,
}

/// A session, and what is wrong with it.
#[derive(Debug, Serialize)]
pub struct ShownSession {
    /// With whether it is alive.
    pub session: SessionView,
    /// Where it works; nothing if that is gone.
    pub directory: Option<PathBuf>,
    /// Why it has no place to work in, if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// Why a session has no place to work in.
#[derive(Debug, Serialize)]
pub struct Problem {
    /// For programs.
    pub code: String,
    /// In one sentence.
    pub message: String,
    /// What to do.
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
    /// What to leave; without it the note is read.
    #[serde(default)]
    pub text: Option<String>,
}

/// A session with its note.
#[derive(Debug, Serialize, Deserialize)]
pub struct NotedSession {
    /// Whose it is.
    pub session: SessionView,
    /// What it left, and when.
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
    /// The caller's own unless given.
    pub name: Option<SessionName>,
}

/// A session that holds nothing any more.
#[derive(Debug, Serialize)]
pub struct EndedSession {
    /// Its last record.
    pub session: SessionView,
    /// Tasks that it held.
    pub released: Vec<TaskId>,
    /// What became of its locks on worktrees.
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
