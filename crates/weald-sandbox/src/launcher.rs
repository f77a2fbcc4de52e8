//! What a run may do and where things are for it, made sure of before it is started.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::devices::usable;
use crate::error::{SandboxError, refused};
use crate::policy::{Level, Network, Policy, Revealed};
use crate::running::{Invocation, Running, start};
use crate::set_id::Reachable;
use crate::temporary::Temporary;
use crate::terminal::TerminalSize;
use crate::{availability, folders, home};

/// Starts a run. When this returns without an error the command has been executed, inside.
pub fn launch(policy: &Policy, invocation: Invocation) -> Result<Running, SandboxError> {
    confined(policy, invocation, None)
}

/// Starts a command without any confinement, because somebody asked for exactly that. It is ended with all that came
/// from it.
pub fn launch_unconfined(invocation: Invocation) -> Result<Running, SandboxError> {
    unconfined(invocation, None)
}

/// Starts a run whose streams are a terminal of its own, its controlling one; answers that terminal's master. Without a
/// policy nothing is confined.
pub fn launch_on_terminal(
    policy: Option<&Policy>,
    invocation: Invocation,
    size: TerminalSize,
) -> Result<(Running, OwnedFd), SandboxError> {
    let mut running = match policy {
        Some(policy) => confined(policy, invocation, Some(size)),
        None => unconfined(invocation, Some(size)),
    }?;
    let gone = || io::Error::other("the helper sent no terminal");
    let master = running.terminal.take().ok_or_else(gone)?;
    Ok((running, master))
}

fn confined(
    policy: &Policy,
    invocation: Invocation,
    terminal: Option<TerminalSize>,
) -> Result<Running, SandboxError> {
    if (policy.level, policy.network) == (Level::Landlock, Network::Allow) {
        return Err(SandboxError::Unavailable {
            level: policy.level,
            step: "the network by name".to_owned(),
            message: "sandbox.network = \"allow\" needs level full".to_owned(),
        });
    }
    let mut policy = resolved(policy)?;
    let tmp = match (policy.level, &policy.tmp) {
        (Level::Landlock, None) => Some(Temporary::new(&policy)?),
        _ => None,
    };
    if let Some(tmp) = &tmp {
        policy.tmp = Some(tmp.path().to_owned());
    }
    let environment = environment_of(&policy, &invocation)?;
    let reachable = Reachable::of(&policy);
    let mut running = start_or_explain(Some(&policy), environment, invocation, terminal)?;
    running.tmp = tmp;
    running.reachable = reachable;
    Ok(running)
}

fn unconfined(
    invocation: Invocation,
    terminal: Option<TerminalSize>,
) -> Result<Running, SandboxError> {
    let mut environment = invocation.environment.clone();
    environment.push(("WEALD_SANDBOX".into(), "off".into()));
    start_or_explain(None, environment, invocation, terminal)
}

fn start_or_explain(
    policy: Option<&Policy>,
    environment: Vec<(OsString, OsString)>,
    invocation: Invocation,
    terminal: Option<TerminalSize>,
) -> Result<Running, SandboxError> {
    let (helper, command) = (invocation.helper.clone(), invocation.command.clone());
    start(policy, environment, invocation, terminal)
        .map_err(|error| availability::explain(error, policy, &helper, &command))
}

/// Directories that are never the writable one: they belong to the system.
const SYSTEM: [&str; 14] = [
    "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/proc", "/root", "/run", "/sbin", "/sys",
    "/tmp", "/usr", "/var",
];

/// The same policy with every path as the kernel names it, so that a link can't lead elsewhere later. What can't be meant
/// is refused.
fn resolved(policy: &Policy) -> Result<Policy, SandboxError> {
    let resolve = |path: &PathBuf| {
        path.canonicalize()
            .map_err(|source| SandboxError::Directory {
                path: path.clone(),
                source,
            })
    };
    let mut policy = policy.clone();
    policy.home = policy
        .home
        .as_ref()
        .and_then(|home| home.canonicalize().ok());
    let given = policy.write.clone();
    policy.write = policy.write.iter().map(resolve).collect::<Result<_, _>>()?;
    policy.show = policy.show.iter().map(resolve).collect::<Result<_, _>>()?;
    policy.sockets = policy
        .sockets
        .iter()
        .map(resolve)
        .collect::<Result<_, _>>()?;
    policy.devices = usable(&policy.devices)?;
    resolve_revealed(&mut policy)?;
    for (given, path) in given.iter().zip(&policy.write) {
        let elsewhere = |other: &&PathBuf| *other != path && given.starts_with(other);
        if given.is_symlink() || policy.write.iter().any(|other| elsewhere(&other)) {
            return refused(
                given,
                "it is a link, or lies in another writable directory: a run could lead it elsewhere",
            );
        }
    }
    refuse_what_is_not_meant(&policy)?;
    // A path that is not there yet stays as it is, but from the caller's directory, not from the run's.
    let absolute = |path: &PathBuf| path.canonicalize().or_else(|_| std::path::absolute(path));
    policy.mask = policy.mask.iter().map(absolute).collect::<Result<_, _>>()?;
    home::resolve(&mut policy);
    if let Some(path) = policy.mask.iter().find(|mask| {
        policy
            .reveal
            .iter()
            .any(|revealed| mask.starts_with(&revealed.path))
    }) {
        return refused(
            path,
            "it is masked, and lies in a directory that is revealed",
        );
    }
    match exposed(&policy) {
        Some(path) => Err(SandboxError::Exposed { path }),
        None => Ok(policy),
    }
}

/// What the run must not see, and would be able to write at level landlock.
fn exposed(policy: &Policy) -> Option<PathBuf> {
    if policy.level != Level::Landlock || policy.read_only {
        return None;
    }
    let is_written = |path: &&PathBuf| policy.write.iter().any(|write| path.starts_with(write));
    let mut all = policy.mask.iter().chain(&policy.hidden);
    let found = all.find(|path| is_written(path) && path.symlink_metadata().is_ok());
    found.cloned()
}

/// Refuses directories that can't be meant, and sockets that a run could replace.
fn refuse_what_is_not_meant(policy: &Policy) -> Result<(), SandboxError> {
    for path in &policy.write {
        let holds_home = policy
            .home
            .as_ref()
            .is_some_and(|home| home.starts_with(path));
        if path.parent().is_none()
            || !path.is_dir()
            || SYSTEM.iter().any(|system| Path::new(system) == path)
        {
            return refused(path, "only a directory of your own can be the writable one");
        }
        if holds_home {
            return refused(
                path,
                "it holds your home, with the settings that agents and shells load",
            );
        }
    }
    let is_written = |path: &Path| {
        let seen = |it: &&Revealed| path.starts_with(&it.path);
        match policy.reveal.iter().find(seen) {
            Some(revealed) => revealed.writable,
            None => policy
                .write
                .iter()
                .any(|directory| path.starts_with(directory)),
        }
    };
    if let Some(path) = policy.sockets.iter().find(|path| is_written(path)) {
        return refused(
            path,
            "a listed socket can't lie in a writable directory: it could be replaced",
        );
    }
    Ok(())
}

/// What is revealed is a directory where it seems to be, and nothing else that is written lies in it.
fn resolve_revealed(policy: &mut Policy) -> Result<(), SandboxError> {
    for revealed in &mut policy.reveal {
        let refused = |source| SandboxError::Directory {
            path: revealed.path.clone(),
            source,
        };
        let path = revealed.path.canonicalize().map_err(refused)?;
        let holds_written = policy.write.iter().any(|write| write.starts_with(&path));
        if revealed.path.is_symlink() || !path.is_dir() || holds_written {
            return Err(refused(io::Error::other(
                "only a directory that is no link, and holds nothing writable, can be revealed",
            )));
        }
        revealed.path = path;
    }
    Ok(())
}

/// What says where temporary files go. Claude Code would make a folder in /tmp, which is not to be written at level landlock.
const TEMPORARY: [&str; 2] = ["TMPDIR", "CLAUDE_CODE_TMPDIR"];

/// The command's environment: what the caller gave, and where things are inside.
fn environment_of(
    policy: &Policy,
    invocation: &Invocation,
) -> io::Result<Vec<(OsString, OsString)>> {
    let mut all = invocation.environment.clone();
    all.extend(folders::prepare(policy)?);
    if let Some(cache) = folders::own_cache(policy, &all) {
        all.retain(|(name, _)| name != folders::CACHE);
        all.push((folders::CACHE.into(), cache.into()));
    }
    all.push(("WEALD_SANDBOX".into(), policy.level.as_str().into()));
    let tmp = match (policy.level, &policy.tmp) {
        (Level::Landlock, tmp) => tmp.as_deref(),
        (Level::Full, _) => Some(Path::new("/tmp")),
    };
    let named = tmp.map(|tmp| TEMPORARY.map(|name| (name.into(), tmp.into())));
    all.extend(named.into_iter().flatten());
    Ok(all)
}
