//! Landlock: the second wall. Every right and every scope that the kernel's ABI has is handled; only what is named is
//! allowed again.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::policy::{Level, Network, Policy};
use crate::sys::{self, RulesetAttributes};

/// The oldest ABI that keeps signals and abstract sockets inside.
pub const NEEDED_ABI: u32 = 6;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_BLOCK: u64 = 1 << 11;
const REFER: u64 = 1 << 13;
const IOCTL_DEV: u64 = 1 << 15;

/// All rights on files up to ABI 6: sixteen bits.
const ALL_FS: u64 = (1 << 16) - 1;
/// Binding and connecting TCP ports.
const ALL_NET: u64 = 0b11;
const ABSTRACT_SOCKETS: u64 = 0b01;
/// Abstract sockets and signals.
const ALL_SCOPES: u64 = 0b11;

const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
/// Everything but making devices, and reaching into them.
const WRITE: u64 = ALL_FS & !(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV);
/// What only directories have; the kernel refuses it for files.
const FILE_ONLY: u64 = EXECUTE | WRITE_FILE | READ_FILE | IOCTL_DEV | (1 << 14);

/// Confines this thread to reading these paths, and to listing what is in the home.
pub fn read_only_these<'p>(
    policy: &Policy,
    home: &Path,
    paths: impl Iterator<Item = &'p PathBuf>,
) -> io::Result<()> {
    let ruleset = ruleset(policy, READ_FILE | READ_DIR, 0, 0)?;
    allow(&ruleset, home, READ_DIR)?;
    for path in paths {
        // What went meanwhile, or can't be opened by this user, needs no rule.
        let _ = allow(&ruleset, path, READ_FILE | READ_DIR);
    }
    sys::landlock_restrict(&ruleset)
}

/// The domain around the run's own: nothing in it reaches abstract sockets from outside of it.
pub fn keep_abstract_sockets_inside(policy: &Policy) -> io::Result<()> {
    // A domain that does not allow REFER denies it.
    let ruleset = ruleset(policy, REFER, 0, ABSTRACT_SOCKETS)?;
    allow(&ruleset, Path::new("/"), REFER)?;
    sys::landlock_restrict(&ruleset)
}

fn abi(policy: &Policy) -> io::Result<u32> {
    let abi = policy
        .simulated
        .landlock_abi
        .unwrap_or_else(sys::landlock_abi);
    match abi < NEEDED_ABI {
        true => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("Landlock has ABI {abi} here, {NEEDED_ABI} is needed"),
        )),
        false => Ok(abi),
    }
}

fn ruleset(policy: &Policy, handled_fs: u64, handled_net: u64, scoped: u64) -> io::Result<OwnedFd> {
    let attributes = RulesetAttributes {
        handled_fs,
        handled_net,
        scoped,
    };
    sys::landlock_ruleset(&attributes, abi(policy)?)
}

/// `terminal` is the one of the command's own, where the directory of terminals is the host's.
pub fn confine(
    policy: &Policy,
    extra_writable: &[&Path],
    terminal: Option<&OwnedFd>,
) -> io::Result<()> {
    let handled_net = match (policy.level, policy.network) {
        (Level::Landlock, Network::Off | Network::Allow) => ALL_NET,
        (Level::Full, _) | (_, Network::On) => 0,
    };
    let ruleset = ruleset(policy, ALL_FS, handled_net, ALL_SCOPES)?;
    match policy.level {
        Level::Full => allow(&ruleset, Path::new("/"), READ)?,
        Level::Landlock => {
            allow(&ruleset, Path::new("/"), READ_DIR)?;
            let shown = policy.reveal.iter().map(|it| it.path.clone());
            for path in all_but(&policy.hidden).into_iter().chain(shown) {
                // What went meanwhile needs no rule.
                let _ = allow(&ruleset, &path, READ);
            }
        }
    }
    for device in devices(policy.level) {
        allow(&ruleset, Path::new(device), READ | WRITE_FILE | IOCTL_DEV)?;
    }
    if let Some(terminal) = terminal {
        let terminal = File::from(terminal.try_clone()?);
        let rights = (READ | WRITE_FILE | IOCTL_DEV) & FILE_ONLY;
        sys::landlock_allow(&ruleset, &terminal, rights)?;
    }
    for device in &policy.devices {
        allow(&ruleset, device, READ | WRITE_FILE | IOCTL_DEV)?;
    }
    for path in &policy.write {
        allow(&ruleset, path, if policy.read_only { READ } else { WRITE })?;
    }
    for revealed in policy.reveal.iter().filter(|it| it.writable) {
        allow(&ruleset, &revealed.path, WRITE)?;
    }
    for path in extra_writable {
        allow(&ruleset, path, WRITE)?;
    }
    sys::landlock_restrict(&ruleset)
}

/// Everything but the hidden paths: what else is in the directories on the way to them. Rights are given, never taken away,
/// so an entry that is added there later is not read either.
fn all_but(hidden: &[PathBuf]) -> Vec<PathBuf> {
    let hidden: BTreeSet<&Path> = hidden.iter().map(PathBuf::as_path).collect();
    let ancestors = hidden.iter().flat_map(|path| path.ancestors().skip(1));
    let on_the_way: BTreeSet<&Path> = ancestors.collect();
    if on_the_way.is_empty() {
        return vec![PathBuf::from("/")];
    }
    let mut others = Vec::new();
    for directory in &on_the_way {
        let is_hidden = directory.ancestors().any(|it| hidden.contains(it));
        if is_hidden || directory.is_symlink() {
            continue;
        }
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        // A rule on a link would be one on what it leads to, perhaps something hidden.
        let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        let paths = real.map(|entry| entry.path());
        others.extend(paths.filter(|path| {
            !hidden.contains(path.as_path()) && !on_the_way.contains(path.as_path())
        }));
    }
    others
}

/// The devices that may be written: all of the private ones, or those of the host's that are no way out.
fn devices(level: Level) -> Vec<&'static str> {
    let named = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
        "/dev/tty",
    ];
    match level {
        Level::Full => vec!["/dev"],
        // Opening a terminal that the process does not have fails, and then there is nothing to allow.
        Level::Landlock => named
            .into_iter()
            .filter(|path| File::open(path).is_ok())
            .collect(),
    }
}

fn allow(ruleset: &OwnedFd, path: &Path, rights: u64) -> io::Result<()> {
    // Without reading it: what this user can't read may still be named.
    let opened = File::options()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(path)?;
    let rights = if opened.metadata()?.is_dir() {
        rights
    } else {
        rights & FILE_ONLY
    };
    sys::landlock_allow(ruleset, &opened, rights)
}
