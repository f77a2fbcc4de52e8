//! What is asked of remotes, by the user's own git: the one ref that a new tree starts from, and files that a partial
//! clone lacks.
//!
//! Only the remote-tracking ref moves: no branch of the user's, no checkout, no tag, no FETCH_HEAD. With `try` the remote
//! is asked at most every `tree.fetch_every`, whether it answers or not, so that most creates don't wait for a network.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weald_core::Timestamp;
use weald_core::config::Fetch;
use weald_git::{Git, GitError, Reference, is_ancestor};

use super::{TreeError, Trees};
use weald_control::files;

/// The largest file that remembers fetches.
const MEMORY_LIMIT: u64 = 1 << 20;

/// How many branches are remembered.
const REMEMBERED: usize = 200;

/// The branch of a remote that a ref here follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upstream {
    remote: String,
    /// What the branch is called there.
    branch: String,
    /// The ref here that tells where it was seen.
    pub tracking: String,
}

/// An attempt to fetch it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Attempt {
    #[serde(flatten)]
    upstream: Upstream,
    at: Timestamp,
    /// Whether the remote did not answer.
    #[serde(default)]
    failed: bool,
}

impl Upstream {
    /// `None` if fetching it would move something of the user's.
    fn checked(self) -> Option<Self> {
        let is_plain = |text: &str| !text.is_empty() && !text.starts_with(['-', '+']);
        let is_fit = self.remote != "."
            && is_plain(&self.remote)
            && self.branch.starts_with("refs/heads/")
            && self.tracking.starts_with("refs/remotes/");
        is_fit.then_some(self)
    }

    /// As people call it: `origin/main`.
    pub fn name(&self) -> &str {
        self.tracking.trim_start_matches("refs/remotes/")
    }
}

impl Trees<'_> {
    /// What to start from instead of `reference`: itself, or the branch of a remote that it follows, if that is newer.
    pub(super) fn fetched_base(
        &self,
        reference: String,
        notes: &mut Vec<String>,
    ) -> Result<String, TreeError> {
        let policy = self.config.tree_fetch;
        // HEAD is what the checkout is on, whatever its remote has by now.
        if policy == Fetch::Never || (policy == Fetch::Try && reference == "HEAD") {
            return Ok(reference);
        }
        let followed = self.followed(&reference)?;
        let known = self.attempts().remove(&followed);
        let recent = match &known {
            Some(attempt) => self.is_recent(attempt)?,
            None => false,
        };
        let upstream = match known {
            Some(attempt) if recent => Some(attempt.upstream),
            _ => self.upstream(&followed)?,
        };
        let Some(upstream) = upstream else {
            return match policy {
                Fetch::Require => Err(TreeError::NotFetched {
                    base: reference,
                    why: "it tracks no remote branch".to_owned(),
                }),
                _ => Ok(reference),
            };
        };
        if policy == Fetch::Require || !recent {
            let fetched = self.fetch(&upstream);
            self.remember_attempt(&followed, &upstream, fetched.is_err())?;
            match fetched {
                Ok(()) => {}
                Err(error) if policy == Fetch::Require => {
                    return Err(TreeError::NotFetched {
                        base: upstream.name().to_owned(),
                        why: error.to_string(),
                    });
                }
                Err(error) => notes.push(format!(
                    "{} could not be fetched, so the worktree starts from the local copy: {error}",
                    upstream.name()
                )),
            }
        }
        self.newer(reference, &followed, &upstream, notes)
    }

    /// The full name of the ref that is meant: a branch here, or one that tells about a remote's.
    fn followed(&self, reference: &str) -> Result<String, TreeError> {
        let repository = self.repository();
        let symbolic = |name: &str| -> Result<Option<String>, GitError> {
            Ok(match repository.reference(name)? {
                Some(Reference::Symbolic(name)) => Some(name),
                _ => None,
            })
        };
        if reference == "HEAD" {
            return Ok(symbolic("HEAD")?.unwrap_or_default());
        }
        let tracking = format!("refs/remotes/{reference}");
        let branch = format!("refs/heads/{reference}");
        if repository.resolve(&branch)?.is_none() && repository.resolve(&tracking)?.is_some() {
            return Ok(symbolic(&tracking)?.unwrap_or(tracking));
        }
        Ok(branch)
    }

    /// The branch of a remote that a ref follows: as configured, else origin's of the same name.
    pub fn upstream(&self, followed: &str) -> Result<Option<Upstream>, TreeError> {
        let common_dir = self.common_dir();
        let config = files::read_small(&common_dir.join("config"), MEMORY_LIMIT);
        let config = config.ok().flatten().unwrap_or_default().to_lowercase();
        // Most often told without a process.
        if !config.contains("[remote") && !config.contains("[include") {
            return Ok(None);
        }
        if let Some(name) = followed.strip_prefix("refs/remotes/") {
            return Ok(seen_at(name));
        }
        let Some(short) = followed.strip_prefix("refs/heads/") else {
            return Ok(None);
        };
        let answer = Git::new(common_dir, "for-each-ref")
            .args(["--format=%(upstream:remotename)%00%(upstream:remoteref)%00%(upstream)"])
            .args([followed])
            .text()?;
        let line = answer.lines().next().unwrap_or_default();
        let mut fields = line.split('\0').map(str::to_owned);
        let mut next = || fields.next().unwrap_or_default();
        let configured = Upstream {
            remote: next(),
            branch: next(),
            tracking: next(),
        };
        if !configured.remote.is_empty() {
            return Ok(configured.checked());
        }
        let name = format!("origin/{short}");
        let is_seen = self
            .repository()
            .resolve(&format!("refs/remotes/{name}"))?
            .is_some();
        Ok(seen_at(&name).filter(|_| is_seen))
    }

    /// Asks the remote for one branch, with whatever the user set up for it.
    pub fn fetch(&self, upstream: &Upstream) -> Result<(), GitError> {
        let limit = self.config.tree_fetch_limit.unsigned_abs();
        self.as_user(Git::new(self.common_dir(), "fetch"))
            .args(["--quiet", "--no-tags", "--no-write-fetch-head"])
            .args(["--no-auto-maintenance", "--no-recurse-submodules"])
            .args(["--no-prune", "--refmap="])
            .args([&upstream.remote])
            .args([format!("+{}:{}", upstream.branch, upstream.tracking)])
            .limit(limit)
            .run()
            .map(drop)
    }

    /// Every file of a commit is in the vault afterwards; of a partial clone the remote is asked for what main lacks.
    pub fn require_files(&self, commit: &str) -> Result<(), TreeError> {
        let refs = self.main_refs()?;
        let as_user = |git| self.as_user(git);
        Ok(self.vault().require_files(&refs, commit, &as_user)?)
    }

    /// Lets a git command on main be the user's own: their configuration, and the variables that their credentials need.
    pub fn as_user(&self, git: Git) -> Git {
        let named = self.host.environment.iter();
        named
            .filter_map(|(name, value)| Some((name.to_str()?, value)))
            .fold(git, |git, (name, value)| git.env(name, value))
            .with_user_config(self.host.home.as_deref())
            .env("GIT_CONFIG_NOSYSTEM", "0")
    }

    /// The newer one of a branch and what it follows, if one holds all of the other; else the branch.
    fn newer(
        &self,
        reference: String,
        followed: &str,
        upstream: &Upstream,
        notes: &mut Vec<String>,
    ) -> Result<String, TreeError> {
        let repository = self.repository();
        let theirs = repository.resolve(&upstream.tracking)?;
        let ours = repository.resolve(followed)?;
        let (Some(theirs), Some(ours)) = (theirs, ours) else {
            return Ok(reference);
        };
        if ours == theirs || is_ancestor(self.common_dir(), theirs.as_str(), ours.as_str())? {
            return Ok(reference);
        }
        let name = upstream.name();
        if is_ancestor(self.common_dir(), ours.as_str(), theirs.as_str())? {
            notes.push(format!(
                "{reference} is behind {name}, so the worktree starts from {name}"
            ));
            return Ok(name.to_owned());
        }
        notes.push(format!(
            "{reference} and {name} have diverged; the worktree starts from {reference}"
        ));
        Ok(reference)
    }

    fn is_recent(&self, attempt: &Attempt) -> Result<bool, TreeError> {
        let age = self.now()?.duration_since(attempt.at);
        let every = self.config.tree_fetch_every;
        // A clock that was set back makes nothing recent for ever.
        Ok(!age.is_negative() && age < every)
    }

    /// Whether the remote did not answer a moment ago, so that nobody waits for it again.
    pub fn failed_recently(&self, followed: &str) -> Result<bool, TreeError> {
        match self.attempts().get(followed) {
            Some(attempt) if attempt.failed => self.is_recent(attempt),
            _ => Ok(false),
        }
    }

    fn memory(&self) -> PathBuf {
        self.place.private().join("fetched.json")
    }

    /// The last attempts, by ref. Without the file, or with an odd one, the remote is asked.
    fn attempts(&self) -> BTreeMap<String, Attempt> {
        let text = files::read_small(&self.memory(), MEMORY_LIMIT)
            .ok()
            .flatten();
        let parsed = text.and_then(|text| serde_json::from_str(&text).ok());
        parsed.unwrap_or_default()
    }

    pub fn remember_attempt(
        &self,
        followed: &str,
        upstream: &Upstream,
        failed: bool,
    ) -> Result<(), TreeError> {
        let at = self.now()?;
        let file = self.memory();
        let remembered = files::edit_alone(&file, || {
            let mut all = self.attempts();
            if all.len() >= REMEMBERED {
                all.clear();
            }
            let upstream = upstream.clone();
            let attempt = Attempt {
                upstream,
                at,
                failed,
            };
            all.insert(followed.to_owned(), attempt);
            files::replace(&file, &serde_json::to_string(&all).unwrap_or_default())
        });
        // One that is not remembered is made again; that costs time, nothing else.
        let _ = remembered;
        Ok(())
    }
}

/// What a remote-tracking ref tells about, by its usual name.
fn seen_at(name: &str) -> Option<Upstream> {
    let (remote, branch) = name.split_once('/')?;
    let upstream = Upstream {
        remote: remote.to_owned(),
        branch: format!("refs/heads/{branch}"),
        tracking: format!("refs/remotes/{name}"),
    };
    upstream.checked()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k15_what_would_move_something_of_the_users_is_not_fetched() {
        let upstream = |remote: &str, branch: &str, tracking: &str| Upstream {
            remote: remote.to_owned(),
            branch: branch.to_owned(),
            tracking: tracking.to_owned(),
        };
        for (remote, branch, tracking) in [
            (".", "refs/heads/main", "refs/heads/main"),
            ("origin", "refs/heads/main", "refs/heads/main"),
            ("origin", "refs/heads/main", "refs/tags/main"),
            ("origin", "", ""),
            ("", "refs/heads/main", "refs/remotes/origin/main"),
            ("--upload-pack=x", "refs/heads/main", "refs/remotes/o/main"),
            ("origin", "refs/tags/v1", "refs/remotes/origin/v1"),
        ] {
            let odd = upstream(remote, branch, tracking);
            assert_eq!(odd.clone().checked(), None, "{odd:?}");
        }
        let good = seen_at("origin/a/b").unwrap();
        assert_eq!(
            (good.branch.as_str(), good.name()),
            ("refs/heads/a/b", "origin/a/b")
        );
    }
}
