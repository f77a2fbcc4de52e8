//! Running a command in a tree: what it may do, and the records around it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_core::config::LockWhen;
use weald_core::id::TreeId;
use weald_core::secrets::{is_login, is_login_of, login_files_of, places};
use weald_core::store::Durability;
use weald_core::tree::{Run, Tree, TreeKind};
use weald_core::tree_rules::TreeInput;
use weald_sandbox::{Ended, Level, Network, Policy, mount_below_home};

use super::found::Found;
use super::locking::RUNS;
use super::privacy::close_to_others;
use super::{TreeError, Trees, at, delete};
use weald_control::confinement::{
    SandboxRequest, driver_hosts, hidden_names, home_layer_at, home_layer_of, home_layer_of_tree,
    sandbox_policy, variable_of, without_secrets,
};
use weald_control::hook_memory::is_news;

/// How strongly a run is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunSandbox {
    /// A level of the sandbox.
    Level(Level),
    /// Not at all; somebody said so.
    Off,
}

impl RunSandbox {
    /// The name in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Level(level) => level.as_str(),
            Self::Off => "off",
        }
    }
}

/// How a run left its worktree.
pub struct RunEnd {
    /// The record, after everything was taken in.
    pub tree: Tree,
    /// What was found in the worktree, if it could be looked at.
    pub found: Option<Found>,
    /// The files that differ from its base, if that was asked for; or why they are unknown.
    pub changed: Result<Vec<String>, String>,
}

/// A run that is about to begin.
pub struct RunRequest {
    pub tree: Tree,
    /// How it is held; `None` is not at all.
    pub policy: Option<Policy>,
    pub directory: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
    /// What should be known about it.
    pub notes: Vec<String>,
}

/// Why a home is not copy-on-write, in one line.
pub fn read_only_home(mount: &Path) -> String {
    format!(
        "your home is read-only inside: {} is mounted below it, so it gets no private layer (to change that, unmount it or mount it outside)",
        mount.display()
    )
}

/// Runs that get a login have a layer of the home of their own: others could have put a program into theirs, where the
/// agent's should be.
pub fn use_login_layer(policy: &mut Policy, program: &str) {
    let layer = policy.home_layer.take();
    policy.home_layer = layer.map(|layer| layer.join(format!("login-{program}")));
}

/// An environment with these variables in place of its own of the same names; an empty one is none.
pub(crate) fn overlaid<const N: usize>(
    mut all: Vec<(OsString, OsString)>,
    own: [(&str, OsString); N],
) -> Vec<(OsString, OsString)> {
    all.retain(|(name, _)| own.iter().all(|(own, _)| name != own));
    let given = own.into_iter().filter(|(_, value)| !value.is_empty());
    all.extend(given.map(|(name, value)| (name.into(), value)));
    all
}

impl Trees<'_> {
    /// Prepares a run: the tree is checked and its target refreshed.
    pub fn prepare_run(
        &self,
        name: Option<&str>,
        sandbox: Option<RunSandbox>,
    ) -> Result<RunRequest, TreeError> {
        let tree = self.named(name)?;
        self.require_own(&tree)?;
        let site = self.site(&tree)?;
        let refreshed = self
            .import_and_follow(&tree, &site)
            .and_then(|(tree, look)| self.refresh_target(&tree, &site, &look).map(|_| tree));
        let mut notes = Vec::new();
        if let Err(error) = close_to_others(&tree.path, tree.identity) {
            let path = tree.path.display();
            notes.push(format!(
                "{path} could not be closed to other users of this machine: {error}"
            ));
        }
        let tree = refreshed.unwrap_or_else(|error| {
            notes.push(format!(
                "the worktree could not be inspected before the run: {error}"
            ));
            tree
        });
        let (tree, told) = match tree.ports {
            Some(_) => self.hold_ports(tree, None)?,
            None => (tree, None),
        };
        notes.extend(told);
        let policy = self.run_policy(&tree);
        if sandbox != Some(RunSandbox::Off) {
            notes.extend(self.first_notes(&tree, &policy));
        }
        if tree.kind == TreeKind::Linked {
            notes.push(format!(
                "{} is a linked worktree: the run can write the repository's shared .git",
                tree.name
            ));
        }
        let policy = match sandbox {
            Some(RunSandbox::Off) => None,
            Some(RunSandbox::Level(level)) => Some(Policy { level, ..policy }),
            None => Some(policy),
        };
        notes.extend(self.weaker_note(policy.as_ref()));
        Ok(RunRequest {
            environment: self.run_environment(&tree),
            directory: tree.path.clone(),
            policy,
            tree,
            notes,
        })
    }

    /// What a run in a tree may do, from the host's own record.
    pub fn run_policy(&self, tree: &Tree) -> Policy {
        let common_dir = self.common_dir().to_owned();
        let (mut write, mut masked) = (vec![tree.path.clone()], self.control_plane(&tree.path));
        if tree.kind == TreeKind::Linked {
            masked.push(common_dir.join("weald"));
            write.push(common_dir);
        }
        let mut policy = sandbox_policy(
            self.config,
            SandboxRequest {
                main: self.place.root(),
                home: self.host.home.clone(),
                variables: &self.host.environment,
                write,
                masked,
                state: self.host.state.clone(),
                home_layer: self.home_layer(tree),
            },
        );
        policy.show.extend(self.shown(&tree.path));
        policy
    }

    /// Where what runs in a tree write to their home is kept.
    pub fn home_layer(&self, tree: &Tree) -> Option<PathBuf> {
        let home = self.host.home.as_deref()?;
        let repository = self.common_dir();
        Some(match tree.id {
            // Of no record: the main checkout, or a gate's.
            TreeId(0) if tree.path == self.place.root() => home_layer_of(home, &tree.path),
            TreeId(0) => home_layer_at(home, &tree.path),
            id => home_layer_of_tree(home, repository, id),
        })
    }

    /// Deletes that: the tree is purged, or is about to be made where another repository's was.
    pub(super) fn delete_home_layer(&self, tree: &Tree) -> Result<(), TreeError> {
        match self.home_layer(tree).filter(|layer| layer.exists()) {
            Some(layer) => delete(&layer).map_err(at(&layer)),
            None => Ok(()),
        }
    }

    /// Gives a coding agent that a person runs by its name what it logs in with. A program of the tree's own gets nothing.
    pub fn allow_login(&self, request: &mut RunRequest, program: &OsStr) {
        let Some(name) = program.to_str().filter(|name| !name.contains('/')) else {
            return;
        };
        let files = login_files_of(name);
        // Any other program shares its home with everything that runs in the tree.
        if files.is_empty() || !self.is_found_outside(name, request) {
            return;
        }
        let is_login = |(variable, _): &&(OsString, OsString)| {
            let variable = variable.to_str();
            variable.is_some_and(|variable| is_login_of(name, variable))
        };
        let given: Vec<_> = self
            .host
            .environment
            .iter()
            .filter(is_login)
            .cloned()
            .collect();
        request
            .environment
            .retain(|(name, _)| given.iter().all(|(own, _)| own != name));
        request.environment.extend(given);
        if let Some(policy) = &mut request.policy {
            use_login_layer(policy, name);
            let variable = variable_of(&self.host.environment);
            let files = places(files.iter().copied(), self.host.home.as_deref(), variable);
            policy.hidden.retain(|path| !files.contains(path));
        }
        self.allow_driver(request, name);
    }

    /// Lets an agent reach its model, where the network goes by name. Claude Code sends nothing else then, which would be
    /// refused and told.
    pub fn allow_driver(&self, request: &mut RunRequest, driver: &str) {
        const ONLY_NEEDED: &str = "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC";
        let by_name = |policy: &&mut Policy| policy.network == Network::Allow;
        let Some(policy) = request.policy.as_mut().filter(by_name) else {
            return;
        };
        let home = self.host.home.as_deref();
        let hosts = driver_hosts(driver, home, &self.host.environment);
        policy.hosts.extend(hosts);
        let is_set = request
            .environment
            .iter()
            .any(|(name, _)| name == ONLY_NEEDED);
        if driver == "claude" && !is_set {
            request.environment.push((ONLY_NEEDED.into(), "1".into()));
        }
    }

    /// Whether the program that a name stands for lies where no run can write.
    fn is_found_outside(&self, name: &str, request: &RunRequest) -> bool {
        let path = request.environment.iter().find(|(name, _)| name == "PATH");
        let folders = path.map(|(_, path)| std::env::split_paths(path).collect::<Vec<_>>());
        let found = folders
            .into_iter()
            .flatten()
            .map(|folder| folder.join(name));
        let first = found
            .into_iter()
            .find(|path| !path.is_absolute() || path.is_file());
        let real = first
            .filter(|path| path.is_absolute())
            .and_then(|path| path.canonicalize().ok());
        real.is_some_and(|real| {
            let written = request.policy.iter().flat_map(|policy| &policy.write);
            !real.starts_with(&request.tree.path)
                && written.into_iter().all(|it| !real.starts_with(it))
        })
    }

    /// What a run keeps from its command, in one line each; said once a tree.
    fn first_notes(&self, tree: &Tree, policy: &Policy) -> Vec<String> {
        if self.home_layer(tree).is_none_or(|layer| layer.exists()) {
            return Vec::new();
        }
        let below = mount_below_home(policy);
        let below = below.map(|point| read_only_home(&point));
        self.hidden_note().into_iter().chain(below).collect()
    }

    /// What a weaker level lets out, said once in a repository.
    fn weaker_note(&self, policy: Option<&Policy>) -> Option<String> {
        let level = policy?.level;
        let note = format!(
            "level {} does not cover: {} (to see this again: weald sandbox explain)",
            level.as_str(),
            level.not_covered().join("; ")
        );
        (level != Level::Full && is_news(self.place, &note)).then_some(note)
    }

    fn hidden_note(&self) -> Option<String> {
        let home = self.host.home.as_deref();
        let mut names = hidden_names(self.config, home, &self.host.environment);
        // An agent gets its own login, and nobody expects another's.
        names.retain(|name| name != "agents" && !is_login(name));
        // The setting is replaced as a whole, so what it has comes along.
        let mut revealed = self.config.sandbox_reveal.to_vec();
        revealed.push(names.first()?.clone());
        let note = format!(
            "sandboxed commands can't see: {} (to show one: weald config set sandbox.reveal {})",
            names.join(", "),
            revealed.join(",")
        );
        // One repository hides the same in all of its worktrees.
        is_news(self.place, &note).then_some(note)
    }

    /// What a command in a tree sees: no variable of git's leads it elsewhere, and git looks no further up.
    pub fn run_environment(&self, tree: &Tree) -> Vec<(OsString, OsString)> {
        let all = without_secrets(self.config, self.host.environment.clone());
        let main = self.place.root();
        let ceiling = tree.path.parent().unwrap_or(&tree.path);
        let task = tree
            .task
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let ports = tree
            .ports
            .map(|block| (block.first.to_string(), block.to_text()));
        let (port, ports) = ports.unwrap_or_default();
        let own: [(&str, OsString); 7] = [
            ("WEALD_TREE", tree.name.as_str().into()),
            ("WEALD_TREE_PATH", tree.path.clone().into()),
            ("WEALD_TASK", task.into()),
            ("WEALD_MAIN", main.into()),
            ("WEALD_PORT", port.into()),
            ("WEALD_PORTS", ports.into()),
            ("GIT_CEILING_DIRECTORIES", ceiling.into()),
        ];
        overlaid(all, own)
    }

    /// Records that a run begins.
    pub fn begin_run(&self, request: &RunRequest, program: &str) -> Result<Tree, TreeError> {
        let level = match &request.policy {
            Some(policy) => RunSandbox::Level(policy.level),
            None => RunSandbox::Off,
        };
        let process = self
            .me()
            .ok_or_else(|| TreeError::unreadable("/proc", "this process can't be identified"))?;
        let run = Run {
            session: self.actor().cloned(),
            process,
            level: level.as_str().to_owned(),
            program: program.to_owned(),
            started_at: self.now()?,
        };
        let input = TreeInput::RunBegins(Box::new(run));
        let tree = self.decide(&request.tree, Durability::Process, input)?;
        if self.locks_runs(&tree) {
            let who = self.actor().map_or("weald".to_owned(), ToString::to_string);
            let name = tree.registration_name();
            let reason = format!("{who}: {program}{RUNS}");
            let registrations = self.registrations();
            registrations
                .set_locked(name, Some(&reason))
                .map_err(at(&registrations.directory(name)))?;
        }
        Ok(tree)
    }

    /// Whether git shall show that something runs in it; a lock of somebody's stays as it is.
    fn locks_runs(&self, tree: &Tree) -> bool {
        self.config.tree_lock == LockWhen::Run
            && tree.locked.is_none()
            && self.foreign_lock(tree).is_none()
    }

    /// Records how a run ended, and imports what it did.
    pub fn end_run(&self, tree: &Tree, ended: Option<Ended>) -> Result<Tree, TreeError> {
        Ok(self.end_run_since(tree, ended, |_| None)?.tree)
    }

    /// Records how an agent's run ended, imports what it did, and lists what differs from the worktree's base.
    pub fn end_agent_run(&self, tree: &Tree, ended: Option<Ended>) -> Result<RunEnd, TreeError> {
        self.end_run_since(tree, ended, |tree| Some(&tree.base.commit))
    }

    fn end_run_since(
        &self,
        tree: &Tree,
        ended: Option<Ended>,
        since: fn(&Tree) -> Option<&str>,
    ) -> Result<RunEnd, TreeError> {
        let (timed_out, code) = match ended {
            Some(Ended::TimedOut) => (true, None),
            Some(ended) => (false, ended.code()),
            None => (false, None),
        };
        let Some(process) = self.me() else {
            return Ok(RunEnd {
                tree: tree.clone(),
                found: None,
                changed: Err("this process can't be identified".to_owned()),
            });
        };
        let input = TreeInput::RunEnds {
            process,
            timed_out,
            code,
        };
        // The next run says if that fails.
        let _ = close_to_others(&tree.path, tree.identity);
        let tree = self.decide(tree, Durability::Process, input)?;
        if self.locks_runs(&tree) && tree.runs.is_empty() {
            self.show_lock(&tree)?;
        }
        let index = self.index_of(&tree);
        let (tree, found) = match self.look_since(tree.clone(), since(&tree)) {
            Ok((view, found)) => {
                let problem = view.problem.unwrap_or_default();
                (view.tree, found.ok_or(problem))
            }
            // The run has ended; what can't be imported now is reported by the next look.
            Err(error) => (tree, Err(error.to_string())),
        };
        let unknown = || "git could not compare it with its base".to_owned();
        Ok(RunEnd {
            tree,
            found: found.as_ref().ok().map(|found| Found {
                look: found.look.clone(),
                index,
            }),
            changed: found.and_then(|found| found.changed.ok_or_else(unknown)),
        })
    }
}
