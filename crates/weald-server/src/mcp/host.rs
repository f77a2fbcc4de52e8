//! The server's own process as a place where operations are done that need the store and nothing else.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use weald_app::operations::{Caller, Done, named};
use weald_app::progress::{Progress, Stage};
use weald_app::{App, Call, Environment, Failure, tracker};
use weald_sandbox::Cancel;

/// Where operations are done, and with which settings.
pub struct Host {
    environment: Environment,
    directory: PathBuf,
    settings: Vec<(String, String)>,
}

/// The newest line of a call that is at work, and how many there were; only progress notifications show it.
#[derive(Default)]
pub struct Heard(Mutex<(u64, String)>);

impl Heard {
    fn hear(&self, text: &str) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *heard = (heard.0 + 1, text.to_owned());
    }

    pub fn newest(&self) -> (u64, String) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Stage for Heard {
    fn is_shown(&self) -> bool {
        true
    }

    fn begins(&self, what: &str) {
        self.hear(what);
    }

    fn line(&self, text: &str) {
        self.hear(text);
    }
}

/// Passes on what an operation tells.
struct Told<'a>(&'a Arc<Heard>);

impl Progress for Told<'_> {
    fn note(&self, text: &str) {
        self.0.hear(text);
    }

    fn warn(&self, text: &str) {
        self.0.hear(text);
    }

    fn stage(&self, what: &'static str) -> Arc<dyn Stage> {
        self.0.hear(what);
        self.0.clone()
    }
}

impl Host {
    /// As the command that serves.
    pub fn of(app: &App) -> Self {
        Self {
            environment: app.environment.clone(),
            directory: app.directory().clone(),
            settings: app.overrides().to_vec(),
        }
    }

    /// Does an operation by its name, with these variables besides, as a process of its own would.
    pub fn perform(
        &self,
        name: &str,
        request: Value,
        caller: &Caller,
        variables: &[(&str, String)],
        (heard, cancel): (&Arc<Heard>, &Cancel),
    ) -> Result<Done, Failure> {
        let operation = named(name).ok_or_else(Failure::bug)?;
        let environment = variables
            .iter()
            .fold(self.environment.clone(), |all, (name, value)| {
                all.with(name, value)
            });
        let directory = self.directory.clone();
        let settings = self.settings.clone();
        let narration = || -> Box<dyn io::Write + Send> { Box::new(io::sink()) };
        let app = App::new(narration, environment, directory, settings).reading(operation.reads);
        let call = Call {
            app: &app,
            caller,
            progress: &Told(heard),
            cancel,
            windows: None,
        };
        let done = (operation.perform)(request, &call, None);
        tracker::at_end(&call);
        done
    }
}
