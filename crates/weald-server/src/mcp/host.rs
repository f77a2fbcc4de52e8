//! The server's own process as a place where operations are done that need the store and nothing else.

use std::io;
use std::path::PathBuf;

use weald_app::operations::{Caller, Done, Operation};
use weald_app::progress::Progress;
use weald_app::{App, Call, Environment, Failure, tracker};
use weald_sandbox::Cancel;

/// Where operations are done, and with which settings.
pub struct Host {
    environment: Environment,
    directory: PathBuf,
    settings: Vec<(String, String)>,
}

/// A client of MCP sees the answer and nothing else.
struct Silence;

impl Progress for Silence {
    fn note(&self, _: &str) {}

    fn warn(&self, _: &str) {}
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

    /// Does an operation with these variables besides, as a process of its own would.
    pub fn perform<O: Operation>(
        &self,
        request: O,
        caller: &Caller,
        variables: &[(&str, String)],
    ) -> Result<Done, Failure> {
        let environment = variables
            .iter()
            .fold(self.environment.clone(), |all, (name, value)| {
                all.with(name, value)
            });
        let directory = self.directory.clone();
        let settings = self.settings.clone();
        let narration = || -> Box<dyn io::Write + Send> { Box::new(io::sink()) };
        let app = App::new(narration, environment, directory, settings).reading(O::READS);
        let call = Call {
            app: &app,
            caller,
            progress: &Silence,
            cancel: &Cancel::by_caller(),
        };
        let done = call.perform(request, None);
        tracker::at_end(&call);
        done.map(|output| Done::of::<O>(&output))
    }
}
