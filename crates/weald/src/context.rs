//! One call of the command line: what every operation works with, and where its answer is printed.

use std::ops::Deref;
use std::path::PathBuf;

use anstream::AutoStream;
use weald_app::screen::{Form, Screen};
use weald_app::{App, Environment, Failure};
use weald_core::name::SessionName;
use weald_server::broker::Client;

use crate::global::GlobalArgs;
use crate::ui::Ui;

pub struct Context<'a> {
    pub ui: &'a Ui,
    app: App<'a>,
}

impl<'a> Deref for Context<'a> {
    type Target = App<'a>;

    fn deref(&self) -> &App<'a> {
        &self.app
    }
}

impl<'a> Context<'a> {
    /// From the flags that every command has.
    pub fn new(global: &GlobalArgs, ui: &'a Ui) -> Result<Self, Failure> {
        if let Some(directory) = &global.directory {
            std::env::set_current_dir(directory)
                .map_err(|source| Failure::file(directory, &source))?;
        }
        let directory = std::env::current_dir().map_err(|source| Failure::no_directory(&source))?;
        let narration = || -> Box<dyn std::io::Write + Send> {
            let stderr = AutoStream::auto(std::io::stderr());
            Box::new(Screen::new(stderr, Form::Text))
        };
        let environment = Environment::read();
        let app = App::new(ui, narration, environment, directory, global.set.clone());
        Ok(Self { ui, app })
    }

    /// The same for a command that only reads.
    pub fn reading(self, only_reads: bool) -> Self {
        Self {
            ui: self.ui,
            app: self.app.reading(only_reads),
        }
    }

    /// The same for a hook of an agent: elsewhere, with further settings, and in the agent's name unless a variable has one.
    pub fn for_hook<'b>(
        &self,
        ui: &'b Ui,
        directory: PathBuf,
        settings: Vec<(String, String)>,
        session: Option<SessionName>,
    ) -> Context<'b> {
        Context {
            ui,
            app: self.app.for_hook(ui, directory, settings, session),
        }
    }

    /// The broker of the run that this process is in.
    pub fn broker(&self) -> Option<Client> {
        Client::of(|name| self.environment.get(name))
    }
}
