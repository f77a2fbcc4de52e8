//! git on the user's own checkout: with their configuration and filters, in a sandbox that writes only what it must.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use weald_sandbox::{
    Ended, Invocation, Level, Network, Policy, Revealed, SandboxError, launch, strongest_level,
};

use super::super::LandError;
use super::checkout::Checkout;
use crate::Landings;

/// How long it may take: a filter may have to fetch what it writes.
const TIME_LIMIT: Duration = Duration::from_secs(1800);

/// How much of its answer is read.
pub(super) const ANSWER_LIMIT: u64 = 256 << 20;

/// How much of what went wrong is kept.
const ERROR_LIMIT: u64 = 4096;

/// Switched off whatever the user's configuration says: hooks, and what an index says of one place only.
const SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "submodule.recurse=false",
    "gc.auto=0",
];

/// One command of git.
pub(super) struct UsersGit<'u> {
    pub checkout: &'u Checkout,
    /// Where files are read and written.
    pub work_tree: &'u Path,
    /// The index; `None` is the checkout's own.
    pub index: Option<&'u Path>,
    /// What may be written.
    pub write: Vec<PathBuf>,
    pub args: &'u [&'u str],
}

pub(super) struct UsersAnswer {
    pub code: i32,
    pub stdout: Vec<u8>,
    /// The start of what went wrong.
    pub stderr: String,
}

impl Landings<'_> {
    /// Runs a command of git as the user would, confined to what it may write, at the strongest level that this machine
    /// gives.
    pub(super) fn users_git(&self, job: &UsersGit<'_>) -> Result<UsersAnswer, LandError> {
        let level = strongest_level(Network::On, &self.trees.host.helper)?;
        self.users_git_at(level, job)
    }

    /// The same for git that writes the checkout and the repository: for stashing, and for a conflict that is left.
    pub(super) fn git_in_checkout(
        &self,
        checkout: &Checkout,
        args: &[&str],
    ) -> Result<UsersAnswer, LandError> {
        // The checkout's own git directory is in one of the two.
        let mut write = vec![checkout.path.clone()];
        let common = self.trees.place.repository().common_dir();
        if !common.starts_with(&checkout.path) {
            write.push(common.to_owned());
        }
        self.users_git(&UsersGit {
            checkout,
            work_tree: &checkout.path,
            index: None,
            write,
            args,
        })
    }

    fn users_git_at(&self, level: Level, job: &UsersGit<'_>) -> Result<UsersAnswer, LandError> {
        let mut policy = self.users_policy(job);
        policy.level = level;
        let tmp = match level {
            Level::Full => None,
            Level::Landlock => Some(self.trees.workshop_directory()?),
        };
        if level == Level::Landlock {
            // It keeps nothing from a directory that is written; here it is the user's own git that writes.
            policy.mask.clear();
        }
        policy.tmp = tmp.as_ref().map(|tmp| tmp.path().to_owned());
        let invocation = Invocation {
            helper: self.trees.host.helper.clone(),
            command: command_of(job),
            directory: job.work_tree.to_owned(),
            environment: self.users_environment(job),
            streams: [Stdio::null(), Stdio::piped(), Stdio::piped()],
        };
        let mut running = launch(&policy, invocation)?;
        let (_, stdout, stderr) = running.streams();
        let stdout = stdout.map(|stream| thread::spawn(move || capped(stream, ANSWER_LIMIT)));
        let stderr = stderr.map(|stream| thread::spawn(move || capped(stream, ERROR_LIMIT)));
        let ended = running.wait(Some(TIME_LIMIT)).map_err(SandboxError::from)?;
        let joined = |stream: Option<thread::JoinHandle<Vec<u8>>>| {
            stream
                .and_then(|stream| stream.join().ok())
                .unwrap_or_default()
        };
        let said = String::from_utf8_lossy(&joined(stderr)).trim().to_owned();
        let (code, stderr) = match ended {
            Ended::Code(code) => (code, said),
            Ended::Signal(signal) => (128 + signal, said),
            Ended::TimedOut => (-1, format!("it took too long; {said}")),
        };
        Ok(UsersAnswer {
            code,
            stdout: joined(stdout),
            stderr,
        })
    }

    fn users_policy(&self, job: &UsersGit<'_>) -> Policy {
        let common = self.trees.place.repository().common_dir();
        let mut policy = Policy::new(job.work_tree);
        policy.write = job.write.clone();
        // What a large-file filter keeps is beside the objects. Where a setting names another place it is read, never written:
        // whoever works in a linked tree can write main's settings.
        let large = common.join("lfs");
        if large.is_dir() && !job.write.iter().any(|other| large.starts_with(other)) {
            policy.write.push(large);
        }
        policy.home = self.trees.host.home.clone();
        policy.mask = self.trees.unseen(job.work_tree).mask;
        // Scratch space in weald's own folder is all that is seen of that.
        let is_masked = |path: &PathBuf| policy.mask.iter().any(|mask| path.starts_with(mask));
        let (scratch, write) = policy.write.into_iter().partition(is_masked);
        policy.write = write;
        let scratch: Vec<PathBuf> = scratch;
        policy.reveal = scratch
            .into_iter()
            .map(|path| Revealed {
                path,
                writable: true,
            })
            .collect();
        // The user's own filters may start what the landing brings.
        policy.hidden = self.trees.hidden_from_runs();
        policy.sockets = self
            .trees
            .config
            .sandbox_sockets
            .iter()
            .map(PathBuf::from)
            .collect();
        let private = ["/tmp", "/var/tmp", "/run"];
        let seen = [
            self.trees.place.root(),
            common.to_owned(),
            job.checkout.path.clone(),
        ];
        let home = self.trees.host.home.as_deref();
        let is_layered =
            |path: &Path| home.is_some_and(|home| path.starts_with(home) && path != home);
        let hidden =
            |path: &PathBuf| is_layered(path) || private.iter().any(|top| path.starts_with(top));
        policy.show = seen
            .into_iter()
            .filter(|path| hidden(path) && path.is_dir())
            .collect();
        policy
    }

    fn users_environment(&self, job: &UsersGit<'_>) -> Vec<(OsString, OsString)> {
        let mut environment = self.trees.visit_environment();
        let mut set = |name: &str, value: OsString| environment.push((name.into(), value));
        set("GIT_DIR", job.checkout.git_dir.clone().into());
        set("GIT_WORK_TREE", job.work_tree.into());
        set("GIT_TERMINAL_PROMPT", "0".into());
        if let Some(index) = job.index {
            set("GIT_INDEX_FILE", index.into());
        }
        environment
    }
}

fn command_of(job: &UsersGit<'_>) -> Vec<OsString> {
    let settings = SETTINGS.iter().flat_map(|setting| ["-c", setting]);
    let words = ["git"].into_iter().chain(settings);
    let words = words.chain(job.args.iter().copied());
    words.map(OsString::from).collect()
}

/// Reads to the end, keeps the start.
fn capped(mut from: impl Read, limit: u64) -> Vec<u8> {
    let mut kept = Vec::new();
    let _ = from.by_ref().take(limit).read_to_end(&mut kept);
    let _ = std::io::copy(&mut from, &mut std::io::sink());
    kept
}
