//! The repository of a call: its place, its configuration and the engine on its store.

mod copies;

use std::path::Path;
use std::sync::Arc;

use weald_core::config::{Config, names_guard};
use weald_core::store::{Store, StoreError};
use weald_git::{require_known_version, require_version_for};
use weald_store::{DATABASE_FILE, SqliteStore};

use crate::notify::notifying;

use crate::{
    Call, Engine, Failure, Host, LoadedConfig, Loosening, Place, RecordError, Settings, Sources,
    SystemClock, SystemProcesses, Trees, agent_above, free_main, loosening,
};

impl Call<'_> {
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

    fn engine_at(&self, place: &Place, loaded: &LoadedConfig) -> Result<Engine, Failure> {
        place.require_registry(DATABASE_FILE)?;
        self.require_writable(place)?;
        let store = SqliteStore::open(place.private(), Arc::new(SystemClock))?;
        let engine = engine_on(Box::new(store), loaded).for_role(self.role());
        let engine = engine.with_journal(place)?;
        if let Some(copy) = self.readable_copy(place)? {
            return Ok(engine.for_copy(copy));
        }
        let engine = notifying(engine, self.app, place, &loaded.config);
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
    /// The records.
    pub engine: Engine,
    /// Where the repository and weald's files are.
    pub place: Place,
    loaded: LoadedConfig,
}

impl Ground {
    /// The repository with an engine on its own store, which is open. Nothing is looked at yet.
    pub(crate) fn of_store(
        place: Place,
        loaded: LoadedConfig,
        store: SqliteStore,
    ) -> Result<Self, StoreError> {
        let engine = engine_on(Box::new(store), &loaded).with_journal(&place)?;
        let engine = match loaded.config.views {
            Some(kind) => engine.with_views(&place, kind),
            None => engine,
        };
        Ok(Self {
            engine,
            place,
            loaded,
        })
    }

    /// Warns about settings of the repository that do not count.
    pub fn warn_of_settings(&self, call: &Call<'_>) {
        for note in &self.loaded.notes {
            call.warn(note);
        }
        call.warn_of_ignored(&self.loaded);
    }

    /// As it was when the repository was opened.
    pub fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// The trees of the repository, for the caller. Whatever is done with them needs git.
    pub fn trees(&self, call: &Call<'_>) -> Result<Trees<'_>, Failure> {
        match call.environment.cache() {
            Some(cache) => {
                require_known_version(&cache.join("git-version"), self.place.repository())?;
            }
            // Nowhere to remember it.
            None => require_version_for(self.place.repository())?,
        }
        self.trees_with_any_git(call)
    }

    /// The same with whatever git there is, to say what is wrong with it.
    pub(crate) fn trees_with_any_git(&self, call: &Call<'_>) -> Result<Trees<'_>, Failure> {
        let directory = call.directory();
        let host = Host {
            home: call.environment.home(),
            cache: call
                .environment
                .cache()
                .unwrap_or_else(|| "/var/tmp/weald".into()),
            state: call.environment.state(),
            helper: call.helper()?,
            environment: call.environment.for_commands(),
            directory: directory
                .canonicalize()
                .unwrap_or_else(|_| directory.clone()),
            actor: call.actor(&self.engine)?,
            narration: call.narration,
            cancel: call.cancel.clone(),
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
