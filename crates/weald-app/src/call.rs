//! One call of an operation: who makes it, who hears of it meanwhile, and what ends it early.

pub mod progress;
mod role;
pub mod window;

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weald_core::id::{TaskId, Token};
use weald_core::meant::Word;
use weald_core::name::SessionName;
use weald_sandbox::Cancel;

use crate::{App, Engine, Failure, Identity, IdentitySource, LoadedConfig, agent_above, identify};

use self::progress::{Progress, Stage};
pub use self::role::MCP_MARK;
use self::window::Windows;

/// What a caller says of itself, by flags or variables. A broker compares it with what the run is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caller {
    /// The session that it acts as; found out unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionName>,
    /// Of the claim that it acts under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
}

/// What an operation is run with.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// Where it is made, and with which settings.
    pub app: &'a App,
    /// Who makes it, as far as that was given.
    pub caller: &'a Caller,
    /// Who hears of it meanwhile.
    pub progress: &'a dyn Progress,
    /// An operation that waits or takes long looks at it, and puts things in order before it ends.
    pub cancel: &'a Cancel,
    /// What answers the runs that it starts, if it may start any.
    pub windows: Option<&'a dyn Windows>,
}

impl Deref for Call<'_> {
    type Target = App;

    fn deref(&self) -> &App {
        self.app
    }
}

impl<'a> Call<'a> {
    /// By the user of this process, whom signals end.
    pub fn of_process(app: &'a App, progress: &'a dyn Progress) -> Self {
        static CALLER: Caller = Caller {
            session: None,
            token: None,
        };
        static CANCEL: Cancel = Cancel::BY_SIGNAL;
        Self {
            app,
            caller: &CALLER,
            progress,
            cancel: &CANCEL,
            windows: None,
        }
    }

    /// The same for a face that answers runs.
    #[must_use]
    pub fn answering(self, windows: &'a dyn Windows) -> Self {
        let windows = Some(windows);
        Self { windows, ..self }
    }

    pub(crate) fn windows(&self) -> Result<&'a dyn Windows, Failure> {
        self.windows.ok_or_else(Failure::bug)
    }
}

impl Call<'_> {
    /// Reports something in addition to the answer.
    pub fn note(&self, text: &str) {
        self.progress.note(text);
    }

    /// Says something that the caller may not expect.
    pub fn warn(&self, text: &str) {
        self.progress.warn(text);
    }

    pub(crate) fn warn_of_ignored(&self, loaded: &LoadedConfig) {
        for ignored in &loaded.config.ignored {
            self.warn(&format!(
                "ignoring {} in {}: {}",
                ignored.key, ignored.origin, ignored.reason
            ));
        }
    }

    /// Says that something begins.
    pub fn begins(&self, text: &str) {
        self.progress.begins(text);
    }

    /// Shows what takes its time until the answer is dropped.
    pub fn stage(&self, what: &'static str) -> Arc<dyn Stage> {
        self.progress.stage(what)
    }

    /// The session of the caller. An anonymous caller gets a warning that says how to set a name.
    pub fn session(&self, engine: &Engine) -> Result<SessionName, Failure> {
        self.session_named(engine, None)
    }

    /// The same for a request that may name another one.
    pub fn session_named(
        &self,
        engine: &Engine,
        name: Option<&SessionName>,
    ) -> Result<SessionName, Failure> {
        let identity = self.identity(engine, name)?;
        if identity.source == IdentitySource::Anonymous {
            let name = &identity.name;
            self.warn(&format!(
                "no session name given, so this acts as {name}; set WEALD_SESSION to choose one"
            ));
        }
        Ok(identity.name)
    }

    /// Who calls, by any name; nothing is said about it.
    pub fn quiet_session(&self, engine: &Engine) -> Result<SessionName, Failure> {
        Ok(self.identity(engine, None)?.name)
    }

    /// Who calls, for the log: nobody rather than an invented name.
    pub fn actor(&self, engine: &Engine) -> Result<Option<SessionName>, Failure> {
        let identity = self.identity(engine, None)?;
        Ok(Some(identity.name).filter(|_| identity.source != IdentitySource::Anonymous))
    }

    /// Who calls, and how that was found out.
    pub fn identity(
        &self,
        engine: &Engine,
        name: Option<&SessionName>,
    ) -> Result<Identity, Failure> {
        let said = name.or(self.caller.session.as_ref());
        let said = said.or(self.agent.as_ref());
        let person = self.is_at_terminal().then_some(|| self.person());
        let variable = |name: &str| self.environment.get(name);
        Ok(identify(engine, said, variable, person)?)
    }

    /// The token of a claim that the caller needs not repeat: a person's own, at a terminal. A name given by a flag is not
    /// enough, and no agent counts as the person whose terminal it has.
    pub(crate) fn own_token(&self, engine: &Engine, id: &TaskId) -> Result<Option<Token>, Failure> {
        if !self.is_at_terminal()
            || agent_above(engine, |name| self.environment.get(name))?.is_some()
        {
            return Ok(None);
        }
        let Identity { name, source } = self.identity(engine, None)?;
        let task = engine.task(id)?.task;
        let own = task.lease.filter(|lease| lease.session == name);
        let is_known = matches!(
            source,
            IdentitySource::Person | IdentitySource::Variable | IdentitySource::Ancestor
        );
        Ok(own.filter(|_| is_known).map(|lease| lease.token))
    }

    /// The same for a command, which is skipped then; a note says so.
    pub(crate) fn switched_off(&self, command: &str, own: &str, list: &[String]) -> Option<String> {
        let variable = self.kill_switch(own, list)?;
        let note = format!("${variable} switches {command} off; nothing was changed");
        self.note(&note);
        Some(variable)
    }

    /// A word that another process will look up: a path in it is written in full.
    pub(crate) fn anywhere(&self, word: Option<&str>) -> Option<String> {
        let word = word?;
        let read = word.parse::<Word>();
        Some(read.map_or_else(
            |_| word.to_owned(),
            |read| read.anywhere(self.directory()).into(),
        ))
    }

    /// Reports the engine's notices as warnings.
    pub fn tell(&self, engine: &Engine) {
        for notice in engine.take_notices() {
            self.warn(&notice);
        }
    }

    /// The token of a task: the caller's, or from the variables a worker sees, if they speak of this task.
    pub fn token(&self, id: &TaskId) -> Option<Token> {
        let ours = || {
            let task: TaskId = self.environment.get("WEALD_TASK")?.parse().ok()?;
            self.environment
                .get("WEALD_TOKEN")?
                .parse()
                .ok()
                .filter(|_| task == *id)
        };
        self.caller.token.or_else(ours)
    }
}
