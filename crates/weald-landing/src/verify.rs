//! What is on the target that no landing brought there, and what landed and is not there any more.
//!
//! Who can write the repository can move its branches: nothing here prevents that, it is seen afterwards. What the remote's
//! branch has was judged there and is told apart.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weald_core::config::Gate;
use weald_core::id::{LandingId, Seq};
use weald_core::landing::{Landing, LandingStatus};
use weald_core::store::EventFilter;
use weald_git::{Commit, Git};

use super::LandError;
use crate::Landings;

/// What a comparison of the target with the recorded landings found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    pub target: String,
    pub tip: String,
    /// Where the comparison begins; `None` if nothing has landed yet.
    pub since: Option<String>,
    /// How many commits were looked at, each merge as one.
    pub checked: usize,
    /// Whether a remote's branch is known to compare with.
    #[serde(skip)]
    pub has_remote: bool,
    /// How many landings are recorded.
    pub landings: usize,
    /// Commits that no landing brought, newest first.
    pub unrecorded: Vec<String>,
    /// The same with what they say.
    pub commits: Vec<Unrecorded>,
    /// Landings that the target does not have any more.
    pub missing: Vec<LandingId>,
    /// Landings that nobody approved, where everything needs a person's word (`policy.gate = human`).
    pub unapproved: Vec<LandingId>,
}

/// A commit that no landing brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unrecorded {
    pub commit: String,
    pub subject: String,
    pub author: String,
    pub committer: String,
    /// When it was committed.
    pub committed_at: String,
    /// True when the remote's branch has it, too.
    pub on_remote: bool,
}

impl Verification {
    /// True when everything was recorded and approved, or came from the remote, and all of it is still there.
    pub fn is_sound(&self) -> bool {
        self.missing.is_empty()
            && self.unapproved.is_empty()
            && self.commits.iter().all(|commit| commit.on_remote)
    }
}

/// A commit on the way down the target.
pub struct Step {
    parent: Option<String>,
    told: Unrecorded,
}

impl Landings<'_> {
    /// Compares the target with what was recorded, from the first landing on or from `since`.
    pub fn verify(
        &self,
        target: Option<&str>,
        since: Option<&str>,
    ) -> Result<Verification, LandError> {
        let default = self
            .trees
            .target
            .as_ref()
            .map(|(branch, _)| branch.as_str());
        let Some(branch) = target.or(default) else {
            return Err(
                LandError::refused("no_target", "there is no branch to verify")
                    .hint("weald verify --target BRANCH"),
            );
        };
        let Some(found) = self.trees.place.repository().target(branch)? else {
            return Err(
                LandError::refused("no_target", format!("there is no branch {branch}"))
                    .hint("git branch --list"),
            );
        };
        let landed: Vec<Landing> = self
            .trees
            .engine
            .look(|tx| tx.landings())?
            .into_iter()
            .filter(|one| one.status == LandingStatus::Landed && one.target == branch)
            .collect();
        let mut verification = Verification {
            target: branch.to_owned(),
            tip: found.tip.as_str().to_owned(),
            landings: landed.len(),
            has_remote: self
                .trees
                .place
                .repository()
                .resolve(&format!("refs/remotes/origin/{branch}"))?
                .is_some(),
            ..Verification::default()
        };
        verification.since = match since {
            Some(name) => Some(self.commit_called(name)?),
            None => landed.first().and_then(|first| first.old_tip.clone()),
        };
        if let Some(since) = verification.since.clone() {
            self.compare(&mut verification, &since, &landed)?;
        }
        Ok(verification)
    }

    fn compare(
        &self,
        verification: &mut Verification,
        since: &str,
        landed: &[Landing],
    ) -> Result<(), LandError> {
        let tip = verification.tip.clone();
        let (way, steps) = self.way_down(&verification.target, &tip, since)?;
        verification.checked = way.len();
        let mut recorded = BTreeSet::new();
        for landing in landed {
            let Some(new) = &landing.new_tip else {
                continue;
            };
            // What the remote had on top of the old tip was not landed here.
            let Some(old) = landing.onto.as_ref().or(landing.old_tip.as_ref()) else {
                continue;
            };
            if steps.contains_key(new) && !self.was_approved(landing)? {
                verification.unapproved.push(landing.id);
            }
            match steps.get(new) {
                // One commit, as most landings are.
                Some(step) if step.parent.as_ref() == Some(old) => {
                    recorded.insert(new.clone());
                }
                Some(_) => recorded.extend(self.listed(&[new, &format!("^{old}")])?),
                None if self.target_leads_to(&tip, new)? => {}
                None => verification.missing.push(landing.id),
            }
        }
        let mut steps = steps;
        let open = way.into_iter().filter(|id| !recorded.contains(id));
        verification.commits = open
            .filter_map(|id| steps.remove(&id).map(|step| step.told))
            .collect();
        let ids = verification.commits.iter().map(|one| one.commit.clone());
        verification.unrecorded = ids.collect();
        Ok(())
    }

    /// Whether a person approved what a landing took; true where nobody has to. Every approval is in the log.
    fn was_approved(&self, landing: &Landing) -> Result<bool, LandError> {
        if self.trees.config.policy_gate != Gate::Human || landing.reverts.is_some() {
            return Ok(true);
        }
        let known = self
            .trees
            .engine
            .look(|tx| tx.tree_by_id(landing.tree_id))?;
        let Some(tree) = known else { return Ok(false) };
        let events = self.trees.engine.look(|tx| {
            tx.events(&EventFilter {
                since: Some(Seq(0)),
                tree: Some(landing.tree.clone()),
                ..EventFilter::default()
            })
        })?;
        let given = events.into_iter().filter_map(|event| event.after.tree);
        let mut given = given.filter_map(|after| after.approval.filter(|_| after.id == tree.id));
        Ok(given.any(|given| {
            given.head == landing.head
                && given.target == landing.target
                && self.is_genuine(&tree, &given)
        }))
    }

    /// The commits from the tip down to `since`, newest first, each merge as one.
    fn way_down(
        &self,
        target: &str,
        tip: &str,
        since: &str,
    ) -> Result<(Vec<String>, BTreeMap<String, Step>), LandError> {
        let remote = format!("refs/remotes/origin/{target}");
        let remote = self.trees.place.repository().resolve(&remote)?;
        let not_there: Option<BTreeSet<String>> = match remote {
            Some(remote) => {
                let remote = format!("^{}", remote.as_str());
                Some(
                    self.listed(&[tip, &format!("^{since}"), &remote])?
                        .into_iter()
                        .collect(),
                )
            }
            None => None,
        };
        let answer = self
            .git_of_main("log")
            .args([
                "-z",
                "--first-parent",
                "--format=%H%n%P%n%an <%ae>%n%cn <%ce>%n%cI%n%s",
            ])
            .args([tip, &format!("^{since}"), "--"])
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let (mut way, mut steps) = (Vec::new(), BTreeMap::new());
        for record in text.split('\0').filter(|record| !record.is_empty()) {
            let mut lines = record.splitn(6, '\n').map(str::to_owned);
            let mut next = || lines.next().unwrap_or_default();
            let (commit, parents) = (next(), next());
            let (author, committer, committed_at, subject) = (next(), next(), next(), next());
            let told = Unrecorded {
                on_remote: not_there.as_ref().is_some_and(|ids| !ids.contains(&commit)),
                commit: commit.clone(),
                subject,
                author,
                committer,
                committed_at,
            };
            let parent = parents.split(' ').next().map(str::to_owned);
            way.push(commit.clone());
            steps.insert(commit, Step { parent, told });
        }
        Ok((way, steps))
    }

    fn git_of_main(&self, name: &str) -> Git {
        Git::new(self.trees.place.repository().common_dir(), name)
    }

    /// The commits that `rev-list` gives for these.
    fn listed(&self, args: &[&str]) -> Result<Vec<String>, LandError> {
        let answer = self.git_of_main("rev-list").args(args).args(["--"]).run()?;
        let text = String::from_utf8_lossy(&answer);
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Whether main's `tip` leads to `commit`; one that is gone is not led to.
    fn target_leads_to(&self, tip: &str, commit: &str) -> Result<bool, LandError> {
        let asked = self
            .git_of_main("merge-base")
            .args(["--is-ancestor", commit, tip])
            .output()?;
        Ok(asked.status.success())
    }

    fn commit_called(&self, name: &str) -> Result<String, LandError> {
        let asked = self
            .git_of_main("rev-parse")
            .args(["-q", "--verify", "--end-of-options"])
            .args([format!("{name}^{{commit}}")])
            .output()?;
        let text = String::from_utf8_lossy(&asked.stdout).trim_end().to_owned();
        match Commit::parse(&text).filter(|_| asked.status.success()) {
            Some(commit) => Ok(commit.as_str().to_owned()),
            None => Err(
                LandError::refused("unknown_commit", format!("there is no commit {name}"))
                    .hint("git log --oneline"),
            ),
        }
    }
}
