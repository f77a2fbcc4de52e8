//! The user's login while an agent works with a copy of it.
//!
//! The agent can't renew its copy, but the user's own program renews theirs. So the supervisor copies it again when the
//! user's file has changed.

use std::fs::metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::Agents;
use super::drivers::{Brief, Driver, DriverError, Form, driver_for};

/// What is seen of a file without reading it.
type Trace = Option<(SystemTime, u64)>;

/// The login that an agent works with.
pub struct KnownLogin<'a> {
    agents: &'a Agents<'a>,
    driver: &'a dyn Driver,
    home: &'a Path,
    file: Option<PathBuf>,
    seen: Trace,
}

impl<'a> KnownLogin<'a> {
    /// As it was copied a moment ago.
    pub(super) fn of(agents: &'a Agents<'a>, driver: &'a dyn Driver, home: &'a Path) -> Self {
        let file = agents.login_file(driver);
        let seen = file.as_deref().and_then(trace);
        Self {
            agents,
            driver,
            home,
            file,
            seen,
        }
    }

    /// Copies it again if the user has another one by now.
    pub(super) fn renew_if_newer(&mut self) -> Result<(), DriverError> {
        let now = self.file.as_deref().and_then(trace);
        if now == self.seen {
            return Ok(());
        }
        self.seen = now;
        let host = &self.agents.trees.host;
        let variable = |wanted: &str| {
            let found = host.environment.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.clone())
        };
        let policy = self.agents.configured_policy();
        self.driver.renew_login(&Brief {
            form: Form::Headless,
            prompt: "",
            prompt_file: self.home,
            tree: self.home,
            project: self.home,
            user_hooks: false,
            home: self.home,
            user_home: host.home.as_deref(),
            hidden: &policy.hidden,
            model: None,
            conversation: None,
            with_tools: false,
            variable: &variable,
        })
    }
}

impl Agents<'_> {
    /// The user's own file with the login of a driver.
    fn login_file(&self, driver: &dyn Driver) -> Option<PathBuf> {
        let host = &self.trees.host;
        let variable = |wanted: &str| {
            let found = host.environment.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.clone())
        };
        driver.login_file(host.home.as_deref(), &variable)
    }

    /// When the user last logged in for a driver, as far as their file shows: compared, it says whether they did again.
    pub fn login_trace(&self, driver: &str) -> Option<(SystemTime, u64)> {
        let driver = driver_for(self.trees.config, Some(driver), &[]).ok()?;
        trace(&self.login_file(driver.as_ref())?)
    }
}

fn trace(file: &Path) -> Trace {
    let found = metadata(file).ok()?;
    Some((found.modified().ok()?, found.len()))
}
