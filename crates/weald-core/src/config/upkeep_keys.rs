//! Keys of upkeep: sweeps, leases, and what may be made again.

use super::kinds::{Key, Kind, key};

/// What goes by itself, and who may do so.
pub(super) const UPKEEP: &[Key] = &[
    key(
        "sweep.cycle",
        Kind::Duration,
        "1m",
        "a sweep counts as the next cycle only so long after the last one",
    ),
    key(
        "sweep.lease",
        Kind::Duration,
        "30m",
        "how long a sweep may be silent before another one takes over",
    ),
    key(
        "vault.lease",
        Kind::OwnDuration(86_400),
        "30m",
        "how long a process that holds the vault may be silent before whoever waits ends it",
    ),
    key(
        "usage.regenerable",
        Kind::OwnNames,
        "target, node_modules",
        "folders that a build makes again, by name; only what git ignores counts",
    ),
    key(
        "usage.min_age",
        Kind::Age,
        "1h",
        "for how long a tree must be unused before they may go; 0: any",
    ),
];
