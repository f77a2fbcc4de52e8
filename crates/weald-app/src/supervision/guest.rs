//! For whom a plain run in a worktree speaks.

use weald_core::name::SessionName;
use weald_core::tree::Tree;

use crate::authority::{Authority, Mandate};
use crate::{Engine, Failure, RunRequest};

/// For whom a plain run in a tree speaks: for nobody, never for its caller. An agent that weald knows gets a session of
/// its own, which ends with the run.
pub struct Guest(Option<SessionName>);

impl Guest {
    /// Registers the session of an agent that weald has a driver for; any other command has none.
    pub fn arrive(engine: &Engine, agent: Option<&str>, tree: &Tree) -> Result<Self, Failure> {
        let Some(agent) = agent else {
            return Ok(Self(None));
        };
        let name = engine.register_guest(agent, &tree.name, std::process::id())?;
        Ok(Self(Some(name)))
    }

    /// Says inside who it is, if it is anybody.
    pub fn grant(&self, request: &mut RunRequest) {
        let name = self.0.as_ref().map(|name| name.as_str().into());
        let variable = name.map(|name| ("WEALD_SESSION".into(), name));
        request.environment.extend(variable);
    }

    /// What it may ask: nothing in its caller's name.
    pub fn authority(&self, tree: &Tree, mandate: Mandate) -> Authority {
        Authority {
            session: self.0.clone(),
            task: tree.task.clone(),
            token: None,
            tree: tree.name.clone(),
            branch: tree.branch.clone(),
            path: tree.path.clone(),
            agent: None,
            mandate,
        }
    }

    /// Its session ends with its run.
    pub fn leave(self, engine: &Engine) {
        if let Some(name) = self.0 {
            // A session whose process is gone counts as dead all the same.
            let _ = engine.end(&name);
        }
    }
}
