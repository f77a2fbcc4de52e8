//! The sandbox without a worktree: running a command in it, saying what it holds back, and trying to get out.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::{Deserialize, Serialize};
use weald_core::SignedDuration;
use weald_core::config::Config;
use weald_escape::{Outcome, Pattern, cases, try_case};
use weald_sandbox::{
    Ended, Invocation, Level, Limits, Network, Policy, landlock_abi, launch, mount_below_home,
};

use super::Operation;
use super::runs::{Ran, typed_or};
use crate::agents::by_hand::{self, ByHand, real};
use crate::agents::drivers::{Meant, meant_by};
use crate::foreground::Held;
use crate::{
    Call, Failure, SandboxRequest, exit, hidden_names, home_layer_of, missing_registries,
    read_only_home, sandbox_policy, without_secrets,
};

entries!(ExecSandboxed, ExplainSandbox, TestSandbox);

/// What a run may do, on top of the configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Directories that it writes; it starts in the first one.
    pub write: Vec<PathBuf>,
    /// Show the directories in `write`, but let the run write nothing in them.
    pub read_only: bool,
    /// Leave the run only a loopback of its own; otherwise the network is as configured.
    pub no_network: bool,
    /// As configured unless given.
    pub level: Option<Level>,
    /// Shown even though they are below /tmp or /run.
    pub show: Vec<PathBuf>,
    /// Files and directories to hide, in addition to those that are configured.
    pub mask: Vec<PathBuf>,
    /// Unix sockets that the run may connect to, in addition to those that are configured.
    pub sockets: Vec<PathBuf>,
    /// Bytes that each process may use; as configured unless given.
    pub memory: Option<u64>,
    /// As if the kernel had this Landlock ABI, for tests.
    pub simulate_landlock_abi: Option<u32>,
    /// Processes and threads at the same time; as configured unless given.
    pub processes: Option<u64>,
}

impl Scope {
    fn policy(&self, call: &Call<'_>) -> Result<Policy, Failure> {
        if let Some(link) = self.write.iter().find(|path| path.is_symlink()) {
            let message = format!(
                "{} is a link, which a run could have put there; name what it leads to",
                link.display()
            );
            return Err(Failure::new("bad_directory", exit::USAGE, message));
        }
        let resolve = |path: &PathBuf| {
            path.canonicalize()
                .map_err(|source| Failure::file(path, &source))
        };
        let write: Vec<_> = self
            .write
            .iter()
            .map(resolve)
            .collect::<Result<_, _>>()
            .map_err(Failure::into_usage)?;
        let config = call.sandbox_config(&write)?;
        let masked = call.control_planes(&write);
        let home = call.environment.home();
        let place = call.place().ok();
        let variables = call.environment.for_commands();
        let request = SandboxRequest {
            main: place.map_or_else(|| call.directory().clone(), |place| place.root()),
            home_layer: home.as_deref().map(|home| home_layer_of(home, &write[0])),
            home,
            variables: &variables,
            write,
            masked,
            state: call.environment.state(),
        };
        let mut policy = sandbox_policy(&config, request);
        policy.level = self.level.unwrap_or(policy.level);
        if self.no_network {
            policy.network = Network::Off;
        }
        policy.read_only = self.read_only;
        policy.show.extend(self.show.clone());
        let in_written = |mask: &PathBuf| {
            let real = mask.canonicalize().unwrap_or_else(|_| mask.clone());
            policy.write.iter().any(|write| real.starts_with(write))
        };
        if policy.level == Level::Landlock && self.mask.iter().any(in_written) {
            return Err(Failure::new(
                "mask_impossible",
                exit::USAGE,
                "level landlock can't hide anything inside a writable directory",
            ));
        }
        policy.hidden.extend(self.mask.clone());
        policy.sockets.extend(self.sockets.clone());
        policy.simulated.landlock_abi = self.simulate_landlock_abi;
        policy.limits.memory = self.memory.or(policy.limits.memory);
        policy.limits.processes = self.processes.or(policy.limits.processes);
        Ok(policy)
    }
}

/// Runs a command that writes only the given directories, on the streams of this process.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecSandboxed {
    /// What the command may do. It needs at least one directory in `write`.
    pub scope: Scope,
    /// When everything in the run ends.
    pub timeout: Option<SignedDuration>,
    /// How many bytes of its output are passed on.
    pub max_output: Option<u64>,
    /// The program and its arguments, at least one word.
    pub command: Vec<OsString>,
}

impl Operation for ExecSandboxed {
    const NAME: &'static str = "sandbox_exec";
    const TAKES_STREAMS: bool = true;
    const ANYWHERE: bool = true;
    type Output = Ran;

    fn run(self, call: &Call<'_>) -> Result<Ran, Failure> {
        let mut policy = self.scope.policy(call)?;
        let config = call.sandbox_config(&policy.write)?;
        let mut environment = without_secrets(&config, call.environment.for_commands());
        let by_hand = self.by_hand(call, &config, &mut policy, &mut environment)?;
        by_hand
            .iter()
            .flat_map(|agent| &agent.notes)
            .for_each(|note| call.note(note));
        let held = Held {
            policy: Some(policy),
            command: typed_or(by_hand.as_ref(), self.command),
            directory: self.scope.write[0].clone(),
            environment,
            timeout: self.timeout,
            max_output: self.max_output,
        };
        let ended = held
            .start(call)
            .map_err(|failure| failure.accepting_by("--level landlock"))
            .and_then(|started| started.wait(call));
        let kept = by_hand.map(ByHand::end).unwrap_or_default();
        kept.iter().for_each(|failed| call.warn(failed));
        Ok(Ran {
            exit: exit::of(ended?),
        })
    }

    fn exit(ran: &Ran) -> u8 {
        ran.exit
    }
}

impl ExecSandboxed {
    /// An agent that weald has a driver for gets its private home, which stays with the directory that it works in.
    fn by_hand(
        &self,
        call: &Call<'_>,
        config: &Config,
        policy: &mut Policy,
        environment: &mut Vec<(OsString, OsString)>,
    ) -> Result<Option<ByHand>, Failure> {
        let variables = call.environment.for_commands();
        let search = variables.iter().find(|(name, _)| name == "PATH");
        let mut untrusted = policy.write.clone();
        untrusted.extend(call.place().map(|place| place.root()));
        let search = search.map(|(_, path)| path.as_os_str());
        let agent = match meant_by(&self.command, search, &real(untrusted)) {
            Meant::Agent(agent) => agent,
            Meant::Command(note) => {
                note.iter().for_each(|note| call.note(note));
                return Ok(None);
            }
        };
        let Some(layer) = policy.home_layer.clone() else {
            return Ok(None);
        };
        let home = call.environment.home();
        let directory = policy.write[0].clone();
        let ground = by_hand::Ground {
            config,
            directory: &directory,
            project: &directory,
            home: layer.join("agents").join(agent),
            user_home: home.as_deref(),
            variables: &variables,
            with_tools: false,
        };
        Ok(Some(ByHand::prepare(
            agent,
            &self.command,
            ground,
            policy,
            environment,
        )?))
    }
}

/// Says what a run may do, and whether the sandbox works here.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainSandbox {
    /// A worktree, or a directory that is written; the current one unless given.
    pub of: Option<PathBuf>,
}

/// The explanation, as one object.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExplainedSandbox {
    /// What a run may do.
    pub sandbox: Explanation,
}

/// What a run may do. Paths are absolute.
#[derive(Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// Whether a run with this policy just worked here.
    pub available: bool,
    /// Character devices of the host that the run may use.
    pub devices: Vec<String>,
    /// Files and directories that are there now and that the run can't read.
    pub hidden: Vec<String>,
    /// Names of stores of secrets and of variables that are there now and that the run does not get.
    pub hidden_secrets: Vec<String>,
    /// `copy_on_write`, or nothing.
    pub home: Option<String>,
    /// Why the home is read-only, if something mounted below it is the reason.
    pub home_note: Option<String>,
    /// The kernel's version of Landlock; 0 without Landlock.
    pub landlock_abi: u32,
    /// As configured, also if it does not work here.
    pub level: Level,
    /// How much the run may use.
    pub limits: Limits,
    /// Directories and files that look empty to the run; none at level landlock.
    pub masked: Vec<String>,
    /// Why it does not work here.
    pub missing: Option<String>,
    /// Whether the run reaches the network.
    pub network: Network,
    /// Hosts that the run reaches, where its network goes by name. Agents also reach those of their model.
    pub hosts: Vec<String>,
    /// Registries that the project seems to need and that are not listed.
    pub proposed_hosts: Vec<String>,
    /// What the level does not prevent, one phrase each.
    pub not_covered: Vec<String>,
    /// Directories of which the run has its own.
    pub private: Vec<String>,
    /// What programs may miss, one phrase each with the error that they get.
    pub refuses: Vec<String>,
    /// Unix sockets of the host that the run may connect to.
    pub sockets: Vec<String>,
    /// Directories that the run may write.
    pub write: Vec<String>,
    /// What would make it work.
    #[serde(skip)]
    pub hint: String,
}

impl Operation for ExplainSandbox {
    const NAME: &'static str = "sandbox_explain";
    const ANYWHERE: bool = true;
    type Output = ExplainedSandbox;

    fn run(self, call: &Call<'_>) -> Result<ExplainedSandbox, Failure> {
        let policy = self.policy(call)?;
        let missing = probe(call, &policy).err();
        // Without namespaces nothing can be private but what is its own, and nothing masked.
        let (private, masked): (&[&str], &[PathBuf]) = match policy.level {
            Level::Full => (
                &["/tmp", "/var/tmp", "/run", "/dev/shm", "/dev", "/proc"],
                &policy.mask,
            ),
            Level::Landlock => (&["$TMPDIR"], &[]),
        };
        let mut hidden = texts(&policy.hidden);
        hidden.retain(|path| Path::new(path).symlink_metadata().is_ok());
        let config = call.sandbox_config(&policy.write)?;
        let home = call.environment.home();
        let all = call.environment.for_commands();
        let home_note = mount_below_home(&policy).map(|point| read_only_home(&point));
        let layer = policy.home_layer.as_ref().filter(|_| home_note.is_none());
        let (missing, hint) = match missing {
            None => (None, None),
            Some(failure) => (Some(failure.message), failure.hint),
        };
        let sandbox = Explanation {
            available: missing.is_none(),
            devices: texts(&policy.devices),
            hidden,
            hidden_secrets: hidden_names(&config, home.as_deref(), &all),
            home: layer.map(|_| "copy_on_write".to_owned()),
            home_note,
            landlock_abi: landlock_abi(),
            level: policy.level,
            masked: texts(masked),
            missing,
            network: policy.network,
            hosts: match policy.network {
                Network::Allow => config.sandbox_hosts.clone(),
                Network::On | Network::Off => Vec::new(),
            },
            proposed_hosts: match policy.network {
                Network::Allow => missing_registries(&config, &policy.write[0]),
                Network::On | Network::Off => Vec::new(),
            },
            not_covered: words(policy.level.not_covered()),
            private: words(private),
            refuses: words(policy.level.refuses()),
            sockets: texts(&policy.sockets),
            write: texts(&policy.write),
            limits: policy.limits,
            hint: hint.unwrap_or_default(),
        };
        Ok(ExplainedSandbox { sandbox })
    }
}

impl ExplainSandbox {
    /// Of a worktree by its name, else of a directory.
    fn policy(&self, call: &Call<'_>) -> Result<Policy, Failure> {
        let name = self.of.as_deref().and_then(Path::to_str);
        // A directory is a worktree only if a path to it was given.
        let is_directory = name.is_some_and(|name| Path::new(name).is_dir());
        let at = match (name, is_directory) {
            (Some(name), true) if name.contains('/') => call
                .ground()
                .and_then(|ground| Ok((ground.tree(call, name)?, ground)))
                .ok(),
            (Some(name), false) => {
                let ground = call.ground()?;
                Some((ground.tree(call, name)?, ground))
            }
            _ => None,
        };
        match at {
            Some((tree, ground)) => Ok(ground.trees(call)?.run_policy(&tree)),
            None => {
                let directory = self.of.as_ref().unwrap_or(call.directory());
                let scope = Scope {
                    write: vec![directory.clone()],
                    ..Scope::default()
                };
                scope.policy(call)
            }
        }
    }
}

fn texts(paths: &[PathBuf]) -> Vec<String> {
    let paths = paths.iter();
    paths.map(|path| path.display().to_string()).collect()
}

fn words(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Tries the policy on a command that does nothing.
fn probe(call: &Call<'_>, policy: &Policy) -> Result<(), Failure> {
    // A probe needs no caches, and should leave none behind.
    let policy = &Policy {
        home_layer: None,
        ..policy.clone()
    };
    let invocation = Invocation {
        helper: call.helper()?,
        command: vec!["/bin/true".into()],
        directory: policy.write[0].clone(),
        environment: Vec::new(),
        streams: [Stdio::null(), Stdio::null(), Stdio::null()],
    };
    match launch(policy, invocation)?.wait(None)? {
        Ended::Code(0) => Ok(()),
        ended => Err(Failure::new(
            "sandbox_unavailable",
            exit::NO_SANDBOX,
            format!("a probe ended with {ended:?}"),
        )),
    }
}

/// Tries to get out of the sandbox of this machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestSandbox {
    /// The level to get out of.
    pub level: Level,
    /// Only attempts whose name contains this.
    pub only: Option<String>,
}

/// How the attempts to get out ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct TestedSandbox {
    /// How many attempts work without the sandbox.
    pub cases: usize,
    /// The names of attempts that got out though the level should prevent it.
    pub escaped: Vec<String>,
    /// The level that was tested.
    pub level: Level,
    /// The names of attempts that neither escaped nor were denied.
    pub other: OtherAttempts,
    /// Every attempt, in order. Not in JSON.
    #[serde(skip)]
    pub attempts: Vec<Tried>,
}

/// Attempts that say nothing against the level.
#[derive(Debug, Serialize, Deserialize)]
pub struct OtherAttempts {
    /// Those that the level does not cover, as documented.
    pub exceptions: Vec<String>,
    /// Those that do not work here even without the sandbox.
    pub no_teeth: Vec<String>,
}

/// One attempt to get out.
#[derive(Debug, Clone)]
pub struct Tried {
    /// What is tried, in a few words.
    pub name: String,
    /// How it ended inside, compared with outside.
    pub end: AttemptEnd,
}

/// How an attempt to get out ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    /// It works without the sandbox and not inside.
    Denied,
    /// It gets out though the level should prevent it.
    Escaped,
    /// It gets out, and the level does not say otherwise.
    NotCovered,
    /// It does not work here even without the sandbox, so it tests nothing.
    NoTeeth,
}

impl Operation for TestSandbox {
    const NAME: &'static str = "sandbox_test";
    const ANYWHERE: bool = true;
    type Output = TestedSandbox;

    fn run(self, call: &Call<'_>) -> Result<TestedSandbox, Failure> {
        let helper = call.helper()?;
        let pattern = Pattern::make()?;
        let mut attempts = Vec::new();
        for case in cases() {
            let only = self.only.as_deref().unwrap_or_default();
            if !case.name.contains(only) {
                continue;
            }
            let is_covered = self.level == Level::Full || case.landlock;
            let end = match try_case(&case, self.level, &pattern, &helper)? {
                Outcome::Denied => AttemptEnd::Denied,
                Outcome::Escaped if is_covered => AttemptEnd::Escaped,
                Outcome::Escaped => AttemptEnd::NotCovered,
                Outcome::NoTeeth => AttemptEnd::NoTeeth,
            };
            let name = case.name.to_owned();
            attempts.push(Tried { name, end });
        }
        let ended = |end| {
            let found = attempts.iter().filter(|tried| tried.end == end);
            found.map(|tried| tried.name.clone()).collect::<Vec<_>>()
        };
        let no_teeth = ended(AttemptEnd::NoTeeth);
        Ok(TestedSandbox {
            cases: attempts.len() - no_teeth.len(),
            escaped: ended(AttemptEnd::Escaped),
            level: self.level,
            other: OtherAttempts {
                exceptions: ended(AttemptEnd::NotCovered),
                no_teeth,
            },
            attempts,
        })
    }

    fn exit(tested: &TestedSandbox) -> u8 {
        match tested.escaped.is_empty() {
            true => exit::DONE,
            false => exit::REFUSED,
        }
    }
}
