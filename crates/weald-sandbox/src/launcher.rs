//! What a run may do and where things are for it, made sure of before it is started.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::devices::usable;
use crate::error::{SandboxError, refused};
use crate::policy::{Level, Policy, Revealed};
use crate::running::{Invocation, Running, start};
use crate::set_id::Reachable;
use crate::temporary::Temporary;
use crate::{availability, folders, home};

/// Starts a run. When this returns without an error the command has been executed, inside.
pub fn launch(policy: &Policy, invocation: Invocation) -> Result<Running, SandboxError> {
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
    let mut running = start_or_explain(Some(&policy), environment, invocation)?;
    running.tmp = tmp;
    running.reachable = reachable;
    Ok(running)
}

/// Starts a command without any confinement, because somebody asked for exactly that. It is ended with all that came
/// from it.
pub fn launch_unconfined(invocation: Invocation) -> Result<Running, SandboxError> {
    let mut environment = invocation.environment.clone();
    environment.push(("WEALD_SANDBOX".into(), "off".into()));
    start_or_explain(None, environment, invocation)
}

fn start_or_explain(
    policy: Option<&Policy>,
    environment: Vec<(OsString, OsString)>,
    invocation: Invocation,
) -> Result<Running, SandboxError> {
    let (helper, command) = (invocation.helper.clone(), invocation.command.clone());
    start(policy, environment, invocation)
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
    Ok(policy)
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
    all.push(("WEALD_SANDBOX".into(), policy.level.as_str().into()));
    let tmp = match (policy.level, &policy.tmp) {
        (Level::Landlock, tmp) => tmp.as_deref(),
        (Level::Full, _) => Some(Path::new("/tmp")),
    };
    let named = tmp.map(|tmp| TEMPORARY.map(|name| (name.into(), tmp.into())));
    all.extend(named.into_iter().flatten());
    Ok(all)
}
