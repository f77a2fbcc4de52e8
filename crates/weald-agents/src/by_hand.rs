//! An agent that a person runs themselves, by `weald run` and `weald sandbox exec`: their words, their terminal or pipe,
//! and what its driver gives every agent: a private home, its login, weald's tools.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use weald_core::config::Config;
use weald_core::secrets::is_login_of;
use weald_sandbox::{Policy, Revealed};
use weald_trees::{RunRequest, use_login_layer};

use super::drivers::{Brief, Driver, DriverError, Form, Meant, driver_for, keep_trusted, meant_by};
use super::homes::AgentHome;
use super::{AgentError, Agents};

/// Where an agent is to run, and for whom.
pub struct Ground<'a> {
    pub config: &'a Config,
    /// The directory that it works in.
    pub directory: &'a Path,
    /// The checkout under whose path the user's settings know the project.
    pub project: &'a Path,
    /// The place of its private home.
    pub home: PathBuf,
    pub user_home: Option<&'a Path>,
    /// The user's variables.
    pub variables: &'a [(OsString, OsString)],
    pub with_tools: bool,
}

/// An agent that is ready to run as it was typed.
pub struct ByHand {
    pub command: Vec<OsString>,
    /// What its user should know.
    pub notes: Vec<String>,
    home: AgentHome,
    driver: Box<dyn Driver>,
}

impl ByHand {
    /// Prepares its private home, and lets the run have that and its login.
    pub fn prepare(
        agent: &str,
        command: &[OsString],
        ground: Ground<'_>,
        policy: &mut Policy,
        environment: &mut Vec<(OsString, OsString)>,
    ) -> Result<Self, AgentError> {
        let driver = driver_for(ground.config, Some(agent), command)?;
        let variable = |wanted: &str| {
            let mut all = ground.variables.iter();
            let found = all.find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.clone())
        };
        driver.require(&variable)?;
        let home = AgentHome::open(ground.home)?;
        let hidden = unseen(policy);
        let start = driver.start(&Brief {
            form: Form::Typed,
            prompt: "",
            prompt_file: Path::new(""),
            tree: ground.directory,
            project: ground.project,
            user_hooks: ground.config.agent_user_hooks,
            home: home.path(),
            user_home: ground.user_home,
            hidden: &hidden,
            model: None,
            conversation: None,
            with_tools: ground.with_tools,
            variable: &variable,
        })?;
        policy.reveal.push(Revealed {
            path: home.path().to_owned(),
            writable: true,
        });
        use_login_layer(policy, agent);
        let is_login = |(name, _): &&(OsString, OsString)| {
            let name = name.to_str();
            name.is_some_and(|name| is_login_of(agent, name))
        };
        let login = ground.variables.iter().filter(is_login).cloned();
        let given: Vec<_> = login.chain(start.environment).collect();
        environment.retain(|(name, _)| given.iter().all(|(own, _)| own != name));
        environment.extend(given);
        let mut untrusted = policy.write.clone();
        untrusted.extend([ground.directory.to_owned(), ground.project.to_owned()]);
        let mut notes = start.notes;
        notes.extend(keep_trusted(environment, &real(untrusted)));
        Ok(Self {
            command: start.command,
            notes,
            home,
            driver,
        })
    }

    /// It has ended: its login goes. Answers what could not be removed.
    pub fn end(self) -> Vec<String> {
        self.home.leave(self.driver.as_ref())
    }
}

impl Agents<'_> {
    /// What a typed command is: an agent that weald has a driver for, or a plain command.
    pub fn meant_by(&self, command: &[OsString]) -> Result<Meant, AgentError> {
        let search = self.variable("PATH");
        Ok(meant_by(command, search.as_deref(), &self.untrusted(&[])?))
    }

    /// Prepares an agent that a person runs in a worktree.
    pub fn prepare_by_hand(
        &self,
        agent: &str,
        command: &[OsString],
        request: &mut RunRequest,
    ) -> Result<Option<ByHand>, AgentError> {
        // Without a sandbox nothing keeps it from the user's own home, and it asks before it acts.
        let Some(policy) = &mut request.policy else {
            return Ok(None);
        };
        let ground = Ground {
            config: self.trees.config,
            directory: &request.directory,
            project: &self.trees.place.root(),
            home: self.trees.place.home_of(request.tree.id).join(agent),
            user_home: self.trees.host.home.as_deref(),
            variables: &self.trees.host.environment,
            with_tools: self.trees.config.agent_mcp,
        };
        let environment = &mut request.environment;
        let note = keep_trusted(environment, &self.untrusted(&policy.write)?);
        let mut by_hand = ByHand::prepare(agent, command, ground, policy, environment)?;
        by_hand.notes.extend(note);
        Ok(Some(by_hand))
    }

    /// Where repositories and runs write: a program from there gets no login.
    pub(super) fn untrusted(&self, more: &[PathBuf]) -> Result<Vec<PathBuf>, AgentError> {
        let mut places = self.configured_policy().write;
        places.push(self.trees.place.root());
        let live = self.trees.records()?.into_iter();
        places.extend(live.filter(|tree| tree.is_live()).map(|tree| tree.path));
        places.extend_from_slice(more);
        Ok(real(places))
    }

    /// Errors when a driver's program could be a repository's own: it would get the user's login.
    pub(super) fn require_trusted(
        &self,
        driver: &dyn Driver,
        more: &[PathBuf],
    ) -> Result<(), AgentError> {
        let Some(program) = driver.trusted_program() else {
            return Ok(());
        };
        let places = self.untrusted(more)?;
        let search = self.variable("PATH");
        super::drivers::require_trusted(program, search.as_deref(), &places).map_err(|why| {
            let program = PathBuf::from(program);
            DriverError::NotTrusted { program, why }.into()
        })
    }

    fn variable(&self, wanted: &str) -> Option<OsString> {
        let all = self.trees.host.environment.iter();
        let mut found = all.filter(|(name, _)| name == wanted);
        found.next().map(|(_, value)| value.clone())
    }
}

/// What a run under this policy does not see.
pub(super) fn unseen(policy: &Policy) -> Vec<PathBuf> {
    let all = policy.hidden.iter().chain(&policy.mask);
    all.cloned().collect()
}

/// Places as the kernel names them.
pub fn real(places: Vec<PathBuf>) -> Vec<PathBuf> {
    let places = places.into_iter();
    places
        .map(|place| place.canonicalize().unwrap_or(place))
        .collect()
}
