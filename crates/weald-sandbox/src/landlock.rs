//! Landlock: the second wall. Every right and every scope that the kernel's ABI has is handled; only what is named is
//! allowed again.

use std::fs::File;
use std::io;
use std::path::Path;

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
const IOCTL_DEV: u64 = 1 << 15;

/// All rights on files up to ABI 6: sixteen bits.
const ALL_FS: u64 = (1 << 16) - 1;
/// Binding and connecting TCP ports.
const ALL_NET: u64 = 0b11;
/// Abstract sockets and signals.
const ALL_SCOPES: u64 = 0b11;

const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
/// Everything but making devices, and reaching into them.
const WRITE: u64 = ALL_FS & !(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV);
/// What only directories have; the kernel refuses it for files.
const FILE_ONLY: u64 = EXECUTE | WRITE_FILE | READ_FILE | IOCTL_DEV | (1 << 14);

/// Enters the domain.
pub fn confine(policy: &Policy, extra_writable: &[&Path]) -> io::Result<()> {
    let abi = policy
        .simulated
        .landlock_abi
        .unwrap_or_else(sys::landlock_abi);
    if abi < NEEDED_ABI {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("Landlock has ABI {abi} here, {NEEDED_ABI} is needed"),
        ));
    }
    let offline = policy.network == Network::Off;
    let attributes = RulesetAttributes {
        handled_fs: ALL_FS,
        handled_net: if offline && policy.level == Level::Landlock {
            ALL_NET
        } else {
            0
        },
        scoped: ALL_SCOPES,
    };
    let ruleset = sys::landlock_ruleset(&attributes, abi)?;
    allow(&ruleset, Path::new("/"), READ)?;
    for device in devices(policy.level) {
        allow(&ruleset, Path::new(device), READ | WRITE_FILE | IOCTL_DEV)?;
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

fn allow(ruleset: &std::os::fd::OwnedFd, path: &Path, rights: u64) -> io::Result<()> {
    let opened = File::open(path)?;
    let rights = if opened.metadata()?.is_dir() {
        rights
    } else {
        rights & FILE_ONLY
    };
    sys::landlock_allow(ruleset, &opened, rights)
}
