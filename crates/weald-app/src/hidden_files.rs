//! Files of the host that a command names and can't see, because a run has a /tmp of its own.

use std::ffi::OsStr;
use std::path::Path;

use crate::agents::is_temporary_inside;
use weald_sandbox::{Level, Policy};

/// What to say when a command failed that names a file which is there on the host alone.
pub fn named_files_unseen<'w>(
    policy: Option<&Policy>,
    words: impl IntoIterator<Item = &'w OsStr>,
) -> Option<String> {
    let policy = policy.filter(|policy| policy.level == Level::Full)?;
    let is_hidden = |path: &&Path| {
        let seen = policy.show.iter().chain(&policy.write).chain(&policy.home);
        let mut seen = seen.map(|shown| path.starts_with(shown));
        is_temporary_inside(path) && !seen.any(|is_seen| is_seen) && path.is_file()
    };
    let path = words.into_iter().map(Path::new).find(is_hidden)?;
    Some(format!(
        "{} is not visible inside: a run has a /tmp of its own; put it into the worktree or your home",
        path.display()
    ))
}
