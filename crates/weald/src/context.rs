//! One call of the command line: what every operation is run with, and where its answer is printed.

use std::io::IsTerminal;
use std::ops::Deref;

use anstream::AutoStream;
use weald_app::operations::Caller;
use weald_app::screen::{Form, Screen};
use weald_app::{App, Call, Environment, Failure};
use weald_server::broker::{Brokers, Client};

use crate::global::GlobalArgs;
use crate::ui::{Above, Ui};

pub struct Context<'a> {
    pub ui: &'a Ui,
    call: Call<'a>,
}

impl<'a> Deref for Context<'a> {
    type Target = Call<'a>;

    fn deref(&self) -> &Call<'a> {
        &self.call
    }
}

/// What the flags that every command has say of the place and the settings.
pub fn app_of(global: &GlobalArgs) -> Result<App, Failure> {
    if let Some(directory) = &global.directory {
        std::env::set_current_dir(directory).map_err(|source| Failure::file(directory, &source))?;
    }
    let directory = std::env::current_dir().map_err(|source| Failure::no_directory(&source))?;
    let narration = || -> Box<dyn std::io::Write + Send> {
        let stderr = AutoStream::auto(std::io::stderr());
        let stderr = Above::new(stderr, std::io::stderr().is_terminal());
        Box::new(Screen::new(stderr, Form::Text))
    };
    let environment = Environment::read();
    let at_terminal = std::io::stdout().is_terminal() || std::io::stderr().is_terminal();
    let app = App::new(narration, environment, directory, global.set.clone());
    Ok(app.for_terminal(at_terminal))
}

impl<'a> Context<'a> {
    pub fn new(app: &'a App, ui: &'a Ui) -> Self {
        let call = Call::of_process(app, ui).answering(&Brokers);
        Self { ui, call }
    }

    /// The call with what flags say of the caller.
    pub fn by<'b>(&self, caller: &'b Caller) -> Call<'b>
    where
        'a: 'b,
    {
        Call {
            caller,
            ..self.call
        }
    }

    /// The broker of the run that this process is in.
    pub fn broker(&self) -> Option<Client> {
        Client::of(|name| self.environment.get(name))
    }
}
