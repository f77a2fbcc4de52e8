//! What every operation works with: where it is called, who calls, and the engine.

mod copies;
mod hook;
mod news;
mod role;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{
    Engine, Host, Identity, IdentitySource, Landings, LoadedConfig, Loosening, Place, RecordError,
    Settings, Sources, SystemClock, SystemProcesses, Trees, agent_above, free_main, identify,
    load_config, load_own_config, loosening,
};
use weald_core::Timestamp;
use weald_core::config::{Config, names_guard};
use weald_core::id::{TaskId, Token};
use weald_core::kill_switch::switched_on;
use weald_core::name::SessionName;
use weald_core::store::{Clock, Store, StoreError};
use weald_git::{GitError, require_known_version, require_version_for};
use weald_store::{DATABASE_FILE, SqliteStore};

use crate::Failure;
use crate::environment::{BROKER_DESCRIPTOR, BROKER_PATH, BROKER_SECRET, Environment};
use crate::progress::{Progress, Stage};

use self::news::News;
pub use self::role::MCP_MARK;

/// Opens the stream on which output of others is shown while it comes.
pub type Narration = fn() -> Box<dyn Write + Send>;

/// What an operation works with: where it is called, by whom, with which settings, and who hears of it meanwhile.
pub struct App<'a> {
    progress: &'a dyn Progress,
    narration: Narration,
    pub environment: Environment,
    directory: PathBuf,
    overrides: Vec<(String, String)>,
    /// The agent that this call is made for, if it is.
    agent: Option<SessionName>,
    /// What the tracker that tasks come from has to do with this call.
    pub news: News,
    /// Whether the operation only reads, so that it also works in a copy.
    only_reads: bool,
}

impl<'a> App<'a> {
    pub fn new(
        progress: &'a dyn Progress,
        narration: Narration,
        environment: Environment,
        directory: PathBuf,
        overrides: Vec<(String, String)>,
    ) -> Self {
        Self {
            progress,
            narration,
            environment,
            directory,
            overrides,
            agent: None,
            news: News::default(),
            only_reads: false,
        }
    }

    /// Reports something in addition to the answer.
    pub fn note(&self, text: &str) {
        self.progress.note(text);
    }

    /// Says something that the caller may not expect.
    pub fn warn(&self, text: &str) {
        self.progress.warn(text);
    }

    /// Says that something begins.
    pub fn begins(&self, text: &str) {
        self.progress.begins(text);
    }

    /// Shows what takes its time until the answer is dropped.
    pub fn stage(&self, what: &'static str) -> Stage {
        self.progress.stage(what)
    }

    /// Who hears of it.
    pub fn progress(&self) -> &'a dyn Progress {
        self.progress
    }

    /// The flags with which another weald has the same settings.
    pub fn settings(&self) -> Vec<String> {
        let pairs = self.overrides.iter();
        pairs
            .flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={value}")])
            .collect()
    }

    /// Settings of this call alone.
    pub fn overrides(&self) -> &[(String, String)] {
        &self.overrides
    }

    /// The same for what an agent asks: in its name, with no flag of this call's, and never as its owner.
    pub fn for_agent<'b>(&self, progress: &'b dyn Progress, session: &SessionName) -> App<'b> {
        App {
            progress,
            narration: self.narration,
            environment: self.environment.clone(),
            directory: self.directory.clone(),
            overrides: Vec::new(),
            agent: Some(session.clone()),
            news: self.news.for_another(),
            only_reads: self.only_reads,
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
        is_set(BROKER_SECRET) && (is_set(BROKER_PATH) || is_set(BROKER_DESCRIPTOR))
    }

    /// Whether a sandbox holds this process.
    pub fn is_confined(&self) -> bool {
        let level = self.environment.get("WEALD_SANDBOX");
        level.is_some_and(|level| level != "off")
    }

    pub fn config(&self, place: &Place) -> Result<LoadedConfig, Failure> {
        self.loaded(place, &self.sources())
    }

    /// A git that is too old for the repository can't read its configuration, and says less about it.
    fn loaded(&self, place: &Place, sources: &Sources) -> Result<LoadedConfig, Failure> {
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

    /// This binary, to be started again inside sandboxes.
    pub fn helper(&self) -> Result<PathBuf, Failure> {
        Ok(std::env::current_exe()?)
    }

    /// The repository with its configuration and engine.
    pub fn ground(&self) -> Result<Ground, Failure> {
        self.ground_in(self.place()?)
    }

    fn ground_in(&self, place: Place) -> Result<Ground, Failure> {
        let loaded = self.config(&place)?;
        let engine = self.engine_at(&place, &loaded)?;
        Ok(Ground {
            engine,
            place,
            loaded,
        })
    }

    /// The same for what lands. In an agent's session a flag that loosens what the files guard is refused, and a variable
    /// that does is left out: nobody can tell whether the agent or its owner set it.
    pub fn landing_ground(&self) -> Result<Ground, Failure> {
        let mut sources = self.sources();
        let place = self.place()?;
        let loose = loosening(&place, &sources)?;
        if loose == Loosening::default() {
            return self.ground();
        }
        let engine = self.engine()?;
        let Some(why) = self.agent_above(&engine)? else {
            return self.ground();
        };
        if let Some(key) = loose.flags.first() {
            return Err(Failure::agent_loosens(key, &why));
        }
        for name in &loose.variables {
            self.warn(&format!(
                "ignoring ${name}: an agent's session can't loosen the configuration ({why})"
            ));
        }
        let variables = &mut sources.variables;
        variables.retain(|(name, _)| !loose.variables.contains(name));
        let loaded = self.loaded(&place, &sources)?;
        Ok(Ground {
            engine: self.engine_at(&place, &loaded)?,
            place,
            loaded,
        })
    }

    /// Why the caller is taken for an agent, if it is.
    pub fn agent_above(&self, engine: &Engine) -> Result<Option<String>, Failure> {
        match &self.agent {
            Some(agent) => Ok(Some(format!("{agent} asks for it"))),
            None => Ok(agent_above(engine, |name| self.environment.get(name))?),
        }
    }

    /// Refuses an agent that would have the files guard less: by a value for `key`, or by taking it out.
    pub fn refuse_loosening(&self, key: &str, value: Option<&str>) -> Result<(), Failure> {
        let loosens = match value {
            None => names_guard(key),
            Some(value) => {
                let sources = Sources {
                    variables: Vec::new(),
                    flags: vec![(key.to_owned(), value.to_owned())],
                    ..self.sources()
                };
                // What can't be read can't be compared.
                names_guard(key)
                    && loosening(&self.place()?, &sources)
                        .map_or(true, |loose| !loose.flags.is_empty())
            }
        };
        if !loosens {
            return Ok(());
        }
        match agent_above(&self.engine()?, |name| self.environment.get(name))? {
            None => Ok(()),
            Some(why) => Err(Failure::agent_loosens(key, &why)),
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

    /// The same for another directory.
    pub fn ground_at(&self, directory: &Path) -> Result<Ground, Failure> {
        let (home, state) = (self.environment.home(), self.environment.state());
        self.ground_in(Place::find(directory, home.as_deref(), state.as_deref())?)
    }

    /// The engine, on the store of this repository.
    pub fn engine(&self) -> Result<Engine, Failure> {
        let place = self.place()?;
        let loaded = self.config(&place)?;
        self.engine_at(&place, &loaded)
    }

    /// The repository with an engine on another store than its own; nothing is derived from that.
    pub(crate) fn ground_on(&self, place: Place, store: Box<dyn Store>) -> Result<Ground, Failure> {
        let loaded = self.config(&place)?;
        Ok(Ground {
            engine: engine_on(store, &loaded),
            place,
            loaded,
        })
    }

    /// The repository with an engine on its own store, which is open. Nothing is looked at yet.
    pub(crate) fn ground_of(
        place: Place,
        loaded: LoadedConfig,
        store: SqliteStore,
    ) -> Result<Ground, StoreError> {
        let engine = engine_on(Box::new(store), &loaded).with_journal(&place)?;
        let engine = match loaded.config.views {
            Some(kind) => engine.with_views(&place, kind),
            None => engine,
        };
        Ok(Ground {
            engine,
            place,
            loaded,
        })
    }

    fn engine_at(&self, place: &Place, loaded: &LoadedConfig) -> Result<Engine, Failure> {
        place.require_registry(DATABASE_FILE)?;
        self.require_writable(place)?;
        let store = SqliteStore::open(place.private(), Arc::new(SystemClock))?;
        let engine = engine_on(Box::new(store), loaded).for_role(self.role());
        let engine = engine.with_journal(place)?;
        if let Some(copy) = self.readable_copy(place)? {
            return Ok(engine.for_copy(copy));
        }
        let engine = match loaded.config.source_from {
            None => engine,
            Some(tracker) => self.news.follow(engine, place, tracker),
        };
        // The next command notices that a supervisor has died.
        match engine.reap_agents() {
            Ok(crashed) => {
                for agent in crashed {
                    self.warn(&format!(
                        "agent {} crashed; its worktree is kept, to continue: weald resume {}",
                        agent.id, agent.task
                    ));
                }
            }
            // Where nothing can be written, nothing can be marked.
            Err(RecordError::Store(StoreError::ReadOnly { .. })) => {}
            Err(error) => self.warn(&format!("could not check agents: {error}")),
        }
        Ok(match loaded.config.views {
            Some(kind) => engine.with_views(place, kind),
            None => engine,
        })
    }

    /// The session of the caller. An anonymous caller gets a warning that says how to set a name.
    pub fn session(
        &self,
        engine: &Engine,
        flag: Option<&SessionName>,
    ) -> Result<SessionName, Failure> {
        let identity = self.identity(engine, flag)?;
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
    pub fn actor(
        &self,
        engine: &Engine,
        flag: Option<&SessionName>,
    ) -> Result<Option<SessionName>, Failure> {
        let identity = self.identity(engine, flag)?;
        Ok(Some(identity.name).filter(|_| identity.source != IdentitySource::Anonymous))
    }

    /// Who calls, and how that was found out.
    pub fn identity(
        &self,
        engine: &Engine,
        flag: Option<&SessionName>,
    ) -> Result<Identity, Failure> {
        let flag = flag.or(self.agent.as_ref());
        Ok(identify(engine, flag, |name| self.environment.get(name))?)
    }

    /// The variable that switches something off, if one does: weald's `own`, or one that the list names.
    pub fn kill_switch(&self, own: &str, list: &[String]) -> Option<String> {
        let named = list.iter().map(String::as_str);
        let switches = std::iter::once(own).chain(named);
        switched_on(switches, |name| self.environment.get(name)).map(str::to_owned)
    }

    /// The same for a command, which is skipped then; a note says so.
    pub(crate) fn switched_off(&self, command: &str, own: &str, list: &[String]) -> Option<String> {
        let variable = self.kill_switch(own, list)?;
        let note = format!("${variable} switches {command} off; nothing was changed");
        self.note(&note);
        Some(variable)
    }

    /// Reports the engine's notices as warnings.
    pub fn tell(&self, engine: &Engine) {
        for notice in engine.take_notices() {
            self.warn(&notice);
        }
    }

    /// Now, for people: how long ago something was.
    pub fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    /// The task that is meant: the one given, or the one that the variables of a worker speak of.
    pub fn task(&self, given: Option<TaskId>) -> Result<TaskId, Failure> {
        let own = || self.environment.get("WEALD_TASK")?.parse().ok();
        given.or_else(own).ok_or_else(|| {
            Failure::new("usage", crate::exit::USAGE, "no task given")
                .hint("give its ID, or set WEALD_TASK")
        })
    }

    /// The token of a task: from the flag, or from the variables a worker sees, if they speak of this task.
    pub fn token(&self, id: &TaskId, flag: Option<Token>) -> Option<Token> {
        let ours = || {
            let task: TaskId = self.environment.get("WEALD_TASK")?.parse().ok()?;
            self.environment
                .get("WEALD_TOKEN")?
                .parse()
                .ok()
                .filter(|_| task == *id)
        };
        flag.or_else(ours)
    }
}

/// Whether a setting is part of a landing only while its own process works the queue. The strategy is recorded with it.
fn is_lost(key: &str) -> bool {
    key != "landing.strategy" && (names_guard(key) || key.starts_with("landing."))
}

fn engine_on(store: Box<dyn Store>, loaded: &LoadedConfig) -> Engine {
    let settings = Settings {
        lease_ttl: loaded.config.lease_ttl,
        stale_after: loaded.config.session_stale_after,
        binding_starts: loaded.config.bind_advances,
    };
    Engine::new(store, Arc::new(SystemProcesses), settings)
}

/// A repository with its configuration and engine.
pub struct Ground {
    pub engine: Engine,
    pub place: Place,
    loaded: LoadedConfig,
}

impl Ground {
    /// Warns about settings of the repository that do not count.
    pub fn warn_of_settings(&self, app: &App<'_>) {
        for note in &self.loaded.notes {
            app.warn(note);
        }
        for ignored in &self.loaded.config.ignored {
            app.warn(&format!(
                "ignoring {} in {}: {}",
                ignored.key, ignored.origin, ignored.reason
            ));
        }
    }

    pub fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// The trees of the repository, for the caller. Whatever is done with them needs git.
    pub fn trees(&self, app: &App<'_>) -> Result<Trees<'_>, Failure> {
        match app.environment.cache() {
            Some(cache) => {
                require_known_version(&cache.join("git-version"), self.place.repository())?;
            }
            // Nowhere to remember it.
            None => require_version_for(self.place.repository())?,
        }
        self.trees_with_any_git(app)
    }

    /// The same with whatever git there is, to say what is wrong with it.
    pub(crate) fn trees_with_any_git(&self, app: &App<'_>) -> Result<Trees<'_>, Failure> {
        let directory = app.directory();
        let host = Host {
            home: app.environment.home(),
            cache: app
                .environment
                .cache()
                .unwrap_or_else(|| "/var/tmp/weald".into()),
            state: app.environment.state(),
            helper: app.helper()?,
            environment: app.environment.for_commands(),
            directory: directory
                .canonicalize()
                .unwrap_or_else(|_| directory.clone()),
            actor: app.actor(&self.engine, None)?,
            narration: app.narration,
            free_main,
        };
        Ok(Trees::new(
            &self.engine,
            &self.place,
            &self.loaded.config,
            self.loaded.target.clone(),
            host,
        ))
    }
}
