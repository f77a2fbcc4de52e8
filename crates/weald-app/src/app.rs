//! What every operation works with, for any caller: the environment, a directory, settings.

mod news;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use weald_core::Timestamp;
use weald_core::config::{Config, names_guard};
use weald_core::kill_switch::switched_on;
use weald_core::name::SessionName;
use weald_core::store::Clock;
use weald_git::{GitError, GitUser, require_version_for};

use crate::environment::{BROKER_PATH, BROKER_SECRET, Environment};
use crate::{
    Failure, Landings, LoadedConfig, Place, Sources, SystemClock, Trees, load_config,
    load_own_config, person_of,
};

use self::news::News;

/// Opens the stream on which output of others is shown while it comes.
pub type Narration = fn() -> Box<dyn Write + Send>;

/// Where operations are done, and with which settings.
pub struct App {
    pub(crate) narration: Narration,
    /// The variables that the process was started with.
    pub environment: Environment,
    directory: PathBuf,
    overrides: Vec<(String, String)>,
    /// The agent that calls are made for, if they are.
    pub(crate) agent: Option<SessionName>,
    /// What the tracker that tasks come from has to do with the calls.
    pub news: News,
    /// Whether operations only read, so that they also work in a copy.
    pub(crate) only_reads: bool,
    /// weald's own binary, unless it is this process's.
    program: Option<PathBuf>,
    /// Whether its caller reads what it prints on a terminal.
    at_terminal: bool,
    /// Who sits there, once somebody asked.
    person: OnceLock<Option<SessionName>>,
}

impl App {
    /// For calls from `directory`, with the settings that flags gave.
    pub fn new(
        narration: Narration,
        environment: Environment,
        directory: PathBuf,
        overrides: Vec<(String, String)>,
    ) -> Self {
        Self {
            narration,
            environment,
            directory,
            overrides,
            agent: None,
            news: News::default(),
            only_reads: false,
            program: None,
            at_terminal: false,
            person: OnceLock::new(),
        }
    }

    /// The same in a process of another program: weald's own binary is `program`.
    pub fn started_as(mut self, program: PathBuf) -> Self {
        self.program = Some(program);
        self
    }

    /// The same for whoever reads a terminal, if that is one.
    pub fn for_terminal(mut self, at_terminal: bool) -> Self {
        self.at_terminal = at_terminal;
        self
    }

    /// Whether the caller reads a terminal. That may still be an agent's.
    pub(crate) fn is_at_terminal(&self) -> bool {
        self.at_terminal
    }

    /// The session of the person at the terminal: the user whom git knows in this repository, or the account.
    pub(crate) fn person(&self) -> Option<SessionName> {
        let look = || {
            let home = self.environment.home();
            let place = self.place().ok()?;
            let main = place.repository().common_dir();
            let user = GitUser::read(main, home.as_deref()).unwrap_or_default();
            person_of(&user, self.environment.get("USER").as_deref())
        };
        self.person.get_or_init(look).clone()
    }

    /// The same from another directory, as part of the same call.
    pub(crate) fn elsewhere(&self, directory: PathBuf) -> Self {
        Self {
            narration: self.narration,
            environment: self.environment.clone(),
            directory,
            overrides: self.overrides.clone(),
            agent: self.agent.clone(),
            only_reads: self.only_reads,
            news: self.news.for_another(),
            program: self.program.clone(),
            at_terminal: self.at_terminal,
            person: OnceLock::new(),
        }
    }

    /// The same for operations that only read.
    pub fn reading(mut self, only_reads: bool) -> Self {
        self.only_reads = only_reads;
        self
    }

    /// The flags with which another weald has the same settings.
    pub fn settings(&self) -> Vec<String> {
        let pairs = self.overrides.iter();
        pairs
            .flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={value}")])
            .collect()
    }

    /// Settings by flags, for this process alone.
    pub fn overrides(&self) -> &[(String, String)] {
        &self.overrides
    }

    /// The same for what an agent asks: in its name, with no flag of its owner's, and never as its owner.
    pub fn for_agent(&self, session: &SessionName) -> Self {
        Self {
            narration: self.narration,
            environment: self.environment.clone(),
            directory: self.directory.clone(),
            overrides: Vec::new(),
            agent: Some(session.clone()),
            news: self.news.for_another(),
            only_reads: self.only_reads,
            program: self.program.clone(),
            at_terminal: false,
            person: OnceLock::new(),
        }
    }

    /// The same for a hook of an agent: elsewhere, with further settings, and in the agent's name unless a variable has one.
    pub fn for_hook(
        &self,
        directory: PathBuf,
        settings: Vec<(String, String)>,
        session: Option<SessionName>,
    ) -> Self {
        let named = self.environment.get("WEALD_SESSION");
        Self {
            narration: self.narration,
            environment: self.environment.clone(),
            directory,
            overrides: [self.overrides.clone(), settings].concat(),
            agent: session.filter(|_| named.is_none_or(|name| name.is_empty())),
            only_reads: false,
            news: self.news.for_another(),
            program: self.program.clone(),
            at_terminal: false,
            person: OnceLock::new(),
        }
    }

    /// The directory the command works in.
    pub fn directory(&self) -> &PathBuf {
        &self.directory
    }

    /// The configuration for runs. What a run can write is not believed: if the current directory or its repository is
    /// inside one of `writable`, only the user's own file, variables and flags count.
    pub fn sandbox_config(&self, writable: &[PathBuf]) -> Result<Config, Failure> {
        let theirs = |path: &Path| writable.iter().any(|directory| path.starts_with(directory));
        if !theirs(&self.directory)
            && let Ok(place) = self.place()
            && !theirs(place.repository().common_dir())
        {
            return Ok(self.config(&place)?.config);
        }
        Ok(load_own_config(&self.sources())?)
    }

    /// Every control plane that a run in `writable` could see: of the current directory and of each of them.
    pub fn control_planes(&self, writable: &[PathBuf]) -> Vec<PathBuf> {
        let (home, state) = (self.environment.home(), self.environment.state());
        let starts = writable.iter().chain([&self.directory]);
        let found =
            starts.filter_map(|start| Place::find(start, home.as_deref(), state.as_deref()).ok());
        found.flat_map(|place| place.hidden()).collect()
    }

    /// The repository around the directory; refused inside a sandbox.
    pub fn place(&self) -> Result<Place, Failure> {
        if self.is_confined() {
            return Err(match self.has_window() {
                true => Failure::not_allowed_inside(),
                false => Failure::inside_sandbox(),
            });
        }
        Ok(Place::find(
            &self.directory,
            self.environment.home().as_deref(),
            self.environment.state().as_deref(),
        )?)
    }

    /// Whether this process is in a run that can ask weald.
    fn has_window(&self) -> bool {
        let is_set = |name| self.environment.get(name).is_some();
        is_set(BROKER_SECRET) && is_set(BROKER_PATH)
    }

    /// Whether a sandbox holds this process.
    pub fn is_confined(&self) -> bool {
        let level = self.environment.get("WEALD_SANDBOX");
        level.is_some_and(|level| level != "off")
    }

    /// Everything that counts there: defaults, files, variables and flags.
    pub fn config(&self, place: &Place) -> Result<LoadedConfig, Failure> {
        self.loaded(place, &self.sources())
    }

    /// A git that is too old for the repository can't read its configuration, and says less about it.
    pub(crate) fn loaded(&self, place: &Place, sources: &Sources) -> Result<LoadedConfig, Failure> {
        load_config(place, sources).map_err(|error| match require_version_for(place.repository()) {
            Err(old @ GitError::TooOld { .. }) => old.into(),
            _ => error.into(),
        })
    }

    /// Where values of the configuration come from besides the repository.
    pub fn sources(&self) -> Sources {
        Sources {
            user_file: self.environment.user_config(),
            variables: self.environment.variables().to_vec(),
            flags: self.overrides.clone(),
        }
    }

    /// weald's own binary, to be started again, also inside sandboxes.
    pub fn helper(&self) -> Result<PathBuf, Failure> {
        match &self.program {
            Some(program) => Ok(program.clone()),
            None => Ok(std::env::current_exe()?),
        }
    }

    /// Refuses flags that guard what lands where they would be lost: a landing that only waits in the queue is tested with
    /// the settings of the process that lands it.
    pub fn refuse_lost_settings(&self) -> Result<(), Failure> {
        match self.overrides.iter().find(|(key, _)| is_lost(key)) {
            None => Ok(()),
            Some((key, value)) => Err(Failure::setting_lost(key, value)),
        }
    }

    /// The same where another process works the queue now.
    pub fn refuse_settings_of_others(&self, trees: &Trees<'_>) -> Result<(), Failure> {
        let lost = self.overrides.iter().find(|(key, _)| is_lost(key));
        match lost {
            Some((key, _)) if Landings::new(trees).queue()?.is_worked => {
                Err(Failure::queue_of_others(key))
            }
            _ => Ok(()),
        }
    }

    /// The variable that switches something off, if one does: weald's `own`, or one that the list names.
    pub fn kill_switch(&self, own: &str, list: &[String]) -> Option<String> {
        let named = list.iter().map(String::as_str);
        let switches = std::iter::once(own).chain(named);
        switched_on(switches, |name| self.environment.get(name)).map(str::to_owned)
    }

    /// Now, for people: how long ago something was.
    pub fn now(&self) -> Timestamp {
        SystemClock.now()
    }
}

/// Whether a setting is part of a landing only while its own process works the queue. The strategy is recorded with it.
fn is_lost(key: &str) -> bool {
    key != "landing.strategy" && (names_guard(key) || key.starts_with("landing."))
}
