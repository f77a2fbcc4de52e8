//! Keys of the tracker that tasks come from. Its commands run on the host, so only the user sets them, and how long they may
//! take.

use super::kinds::{Key, Kind, key};

/// Where tasks come from, and how that is told what became of them.
pub(super) const SOURCE: &[Key] = &[
    key(
        "source.from",
        Kind::OwnChoice(&["none", "beads", "gh", "command"]),
        "none",
        "the tracker that an unknown task is asked of, and that is told what became of its tasks",
    ),
    key(
        "source.update",
        Kind::OwnSwitch,
        "true",
        "tell the tracker of claims, failures and completions",
    ),
    key(
        "source.timeout",
        Kind::OwnDuration(60),
        "10s",
        "how long a command of the tracker may take, at most 60s",
    ),
    key(
        "source.fetch",
        Kind::OwnText,
        "",
        "prints an issue as JSON; {id}, {task} (without `gh-`); empty: the tracker's own, `none`: nothing",
    ),
    key(
        "source.claim",
        Kind::OwnText,
        "",
        "tells that somebody works on it; the same, with {message}",
    ),
    key(
        "source.release",
        Kind::OwnText,
        "",
        "tells that nobody does any more",
    ),
    key(
        "source.fail",
        Kind::OwnText,
        "",
        "tells that an attempt failed",
    ),
    key("source.close", Kind::OwnText, "", "tells that it is done"),
    key(
        "source.reopen",
        Kind::OwnText,
        "",
        "tells that it is open again",
    ),
];
