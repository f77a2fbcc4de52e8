//! Entries of the stash that landings made and did not put back.

use weald_core::id::LandingId;
use weald_git::{Git, GitError, Repository};

/// What begins the message of such an entry; its landing follows.
const MARK: &str = "weald: land ";

/// The message of an entry that a landing makes.
pub fn message(landing: LandingId) -> String {
    format!("{MARK}{landing}")
}

/// An entry of the stash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StashEntry {
    /// Its name now: `stash@{0}`.
    pub name: String,
    pub commit: String,
    /// Which landing made it.
    pub landing: Option<LandingId>,
}

/// All entries, the newest first. Without a stash no process is started.
pub fn stash_entries(repository: &Repository) -> Result<Vec<StashEntry>, GitError> {
    if repository.resolve("refs/stash")?.is_none() {
        return Ok(Vec::new());
    }
    let list = Git::new(repository.common_dir(), "reflog")
        .args(["show", "--format=%H %gs", "refs/stash", "--"])
        .output()?;
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    Ok(text.lines().enumerate().filter_map(entry).collect())
}

fn entry((number, line): (usize, &str)) -> Option<StashEntry> {
    let (commit, words) = line.split_once(' ').unwrap_or((line, ""));
    let landing = words.split_once(MARK).map(|(_, id)| id.trim().parse());
    Some(StashEntry {
        name: format!("stash@{{{number}}}"),
        commit: Some(commit).filter(|commit| !commit.is_empty())?.to_owned(),
        landing: landing.and_then(Result::ok).map(LandingId),
    })
}
