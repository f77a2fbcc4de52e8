//! A person's approval, bound to the exact head.
//!
//! It lies in the tree's record, sealed with a secret that no sandbox shows; an agent's session is refused. A local gate
//! can't stop somebody with the same user id outside of a sandbox: `weald verify` finds what went around it.

mod changes;
mod host;
mod secret;

use serde::{Deserialize, Serialize};
use weald_core::approval::{self, PROTECTED, Protection, judge, sealed_text};
use weald_core::config::{Gate, Layer, Origin, resolve, strictest_values};
use weald_core::landing::Landing;
use weald_core::store::Durability;
use weald_core::tree::{Approval, Tree};
use weald_core::tree_rules::TreeInput;
use weald_git::Git;

use super::LandError;
use super::candidate::Candidate;
use crate::Landings;
use crate::refusal::Refusal;
use secret::{Secret, secret_file};
use weald_control::identity::agent_above;
use weald_trees::{TreeError, at};

pub use secret::approval_folder;

/// The largest `weald.toml` that is read.
const SETTINGS_LIMIT: usize = 256 * 1024;

/// A commit that was approved.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ApprovedCommit {
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
}

/// A file that what was approved changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ApprovedFile {
    pub path: String,
    /// Whether it needs the approval.
    pub protected: bool,
}

/// What an approval would be for.
#[derive(Debug, Clone)]
pub struct Review {
    pub tree: Tree,
    pub head: String,
    /// Where its commits left the target, or the target's tip.
    pub fork: String,
    /// The commits that the target lacks, newest first.
    pub commits: Vec<ApprovedCommit>,
    pub files: Vec<ApprovedFile>,
    /// Changes in the tree that are not committed, so not part of it.
    pub uncommitted: u64,
}

/// What needs a person's word.
struct Demands {
    everything: bool,
    protection: Protection,
}

/// Whether main has the submodule commits that a candidate names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Submodules {
    /// Perhaps not yet: the files of one that is not here are looked at once it is.
    MayCome,
    /// One whose files can't be listed needs an approval.
    AreHere,
}

impl Landings<'_> {
    /// What a tree holds now, for a person who may approve it. `expected` is the head that was reviewed, or how it begins.
    pub fn review_landing(
        &self,
        name: Option<&str>,
        expected: Option<&str>,
    ) -> Result<Review, LandError> {
        self.refuse_agents()?;
        let tree = self.trees.named(name)?;
        let site = self.trees.site(&tree)?;
        let (tree, look) = self.trees.import_and_follow(&tree, &site)?;
        if let Some(operation) = look.operation {
            return Err(Refusal::OperationHidesHead(tree.name, operation).into());
        }
        let head = look
            .head
            .ok_or_else(|| Refusal::NoCommit(tree.name.clone()))?;
        if let Some(expected) = expected.filter(|expected| !head.starts_with(*expected)) {
            return Err(Refusal::HeadMoved(tree.name, head, expected.to_owned()).into());
        }
        let (fork, commits, files) = self.about_to_land(&tree, &head)?;
        Ok(Review {
            tree,
            head,
            fork,
            commits,
            files,
            uncommitted: look.staged + look.unstaged + look.untracked,
        })
    }

    /// Approves exactly what was reviewed, whatever the tree holds by now.
    pub fn approve_landing(&self, review: &Review) -> Result<(Tree, Approval), LandError> {
        self.refuse_agents()?;
        let (tree, head) = (&review.tree, review.head.clone());
        let now = self.trees.now()?;
        let state = self.state()?;
        let file = secret_file(state);
        let secret = Secret::load_or_make(state).map_err(at(&file))?;
        let text = sealed_text(tree.id, &head, &tree.target, now);
        let approval = Approval {
            target: tree.target.clone(),
            at: now,
            by: self.trees.actor().cloned(),
            seal: secret.seal(&text),
            head,
        };
        let input = TreeInput::Approved(Box::new(approval.clone()));
        Ok((self.trees.decide(tree, Durability::Power, input)?, approval))
    }

    /// Refuses unless everybody who must agree to `head` has agreed; `old_tip` and `candidate` say what it changes.
    pub(crate) fn require_approval(
        &self,
        tree: &Tree,
        head: &str,
        old_tip: &str,
        candidate: &str,
        submodules: Submodules,
    ) -> Result<(), LandError> {
        let mut demands = self.demands(old_tip)?;
        // A person is asked when its parent lands.
        demands.everything &= !self.lands_on_parent(tree)?;
        let vault = self.trees.vault();
        let found = self.changes_between(vault.path(), old_tip, candidate, &demands.protection)?;
        let protected = found.files.into_iter().filter(|(_, is)| *is);
        let mut files: Vec<_> = protected.map(|(path, _)| path).collect();
        let unlisted = match submodules {
            Submodules::MayCome => Vec::new(),
            Submodules::AreHere => found.unlisted,
        };
        let can_be_listed = !files.is_empty();
        files.extend(unlisted);
        if !demands.everything && files.is_empty() {
            return Ok(());
        }
        // Somebody may have approved it while it waited.
        let known = self.trees.engine.look(|tx| tx.tree_by_id(tree.id))?;
        let given = known.as_ref().and_then(|tree| tree.approval.as_ref());
        let genuine = |given: &Approval| self.is_genuine(tree, given);
        let Err(lacking) = judge(given, head, &tree.target, genuine) else {
            return Ok(());
        };
        Err(Refusal::NeedsApproval(tree.name.clone(), lacking, files, can_be_listed).into())
    }

    /// Whether a change needs a person's word.
    pub(super) fn needs_approval(&self, old: &str, new: &str) -> Result<bool, LandError> {
        let demands = self.demands(old)?;
        let vault = self.trees.vault();
        let found = self.changes_between(vault.path(), old, new, &demands.protection)?;
        let is_protected = found.files.iter().any(|(_, is_protected)| *is_protected);
        Ok(demands.everything || is_protected || !found.unlisted.is_empty())
    }

    /// A seal that can't be checked is none.
    pub(super) fn is_genuine(&self, tree: &Tree, given: &Approval) -> bool {
        let text = sealed_text(tree.id, &given.head, &given.target, given.at);
        let secret = self.state().ok().map(Secret::load);
        matches!(secret, Some(Ok(Some(secret))) if secret.is_seal_of(&given.seal, &text))
    }

    /// What needs a person's word at a tip. What the settings there say comes on top of what was read before, and takes
    /// nothing away.
    fn demands(&self, tip: &str) -> Result<Demands, LandError> {
        let (_, origin) = self.trees.config.get("policy.gate");
        let mut everything = self.trees.config.policy_gate == Gate::Human;
        let mut patterns = self.trees.config.policy_protected.to_vec();
        let read = self.trees.target.as_ref().map(|(_, tip)| tip.as_str());
        if read != Some(tip) {
            let there = self.settings_at(tip)?;
            let is_owners = !matches!(
                origin,
                Origin::Default | Origin::Profile(_) | Origin::Repository(_)
            );
            everything |= !is_owners && there.policy_gate == Gate::Human;
            // What the user took out of the default stays out.
            let default: Vec<_> = PROTECTED.split(',').map(str::trim).collect();
            let there = there.policy_protected.iter();
            patterns.extend(
                there
                    .filter(|one| !default.contains(&one.as_str()))
                    .cloned(),
            );
        }
        Ok(Demands {
            everything,
            protection: Protection::new(patterns.iter().map(String::as_str)),
        })
    }

    /// The repository's own settings at a commit, alone; the strictest ones if they can't be understood.
    fn settings_at(&self, tip: &str) -> Result<weald_core::config::Config, LandError> {
        let text = self
            .trees
            .vault()
            .git("cat-file")
            .args(["blob", &format!("{tip}:{}", approval::SETTINGS)])
            .output()?;
        let values = match text.status.success() {
            false => toml::Table::new(),
            true if text.stdout.len() > SETTINGS_LIMIT => strictest_values(),
            true => String::from_utf8_lossy(&text.stdout)
                .parse()
                .unwrap_or_else(|_| strictest_values()),
        };
        let layer = Layer {
            origin: Origin::Repository(tip.to_owned()),
            values,
        };
        // A repository's own mistakes are no errors.
        Ok(resolve(vec![layer]).expect("only an owner's values can be refused"))
    }

    /// Where the commits that the target lacks left it, those commits, and what they change.
    fn about_to_land(
        &self,
        tree: &Tree,
        head: &str,
    ) -> Result<(String, Vec<ApprovedCommit>, Vec<ApprovedFile>), LandError> {
        let place = self.trees.comparing(tree);
        let base = || tree.base.commit.clone();
        let tip = self.trees.target_tip(tree)?.unwrap_or_else(base);
        let fork = Git::new(&place, "merge-base").args([&tip, head]).output()?;
        let fork = String::from_utf8_lossy(&fork.stdout).trim().to_owned();
        let fork = if fork.is_empty() { tip.clone() } else { fork };
        let log = Git::new(&place, "log")
            .args(["-z", "--format=%H %s", &format!("{tip}..{head}")])
            .run()?;
        let log = String::from_utf8_lossy(&log);
        let commits = log.split('\0').filter_map(|line| line.split_once(' '));
        let commits = commits.map(|(commit, subject)| ApprovedCommit {
            commit: commit.to_owned(),
            subject: subject.to_owned(),
        });
        let demands = self.demands(&tip)?;
        let found = self.changes_between(&place, &fork, head, &demands.protection)?;
        let unlisted = found.unlisted;
        let files = found
            .files
            .into_iter()
            .map(|(path, is_protected)| ApprovedFile {
                protected: is_protected || unlisted.contains(&path),
                path,
            });
        let (commits, files) = (commits.collect(), files.collect());
        Ok((fork, commits, files))
    }

    /// Refuses an agent's session, as far as it can be told.
    pub fn refuse_agents(&self) -> Result<(), LandError> {
        let variable = |name: &str| {
            let mut known = self.trees.host.environment.iter();
            let (_, value) = known.find(|(known, _)| known == name)?;
            Some(value.to_string_lossy().into_owned())
        };
        match agent_above(self.trees.engine, variable)? {
            None => Ok(()),
            Some(why) => Err(Refusal::AgentSession(why).into()),
        }
    }

    fn state(&self) -> Result<&std::path::Path, LandError> {
        let missing = || TreeError::Unsupported {
            what: "there is no home directory to keep the approval secret in".to_owned(),
        };
        Ok(self.trees.host.state.as_deref().ok_or_else(missing)?)
    }

    /// Everybody and everything that must agree before the gate.
    pub(crate) fn require_consent(
        &self,
        landing: &Landing,
        candidate: &Candidate,
    ) -> Result<(), LandError> {
        // Undoing what landed needs nobody's word beyond that of the person who asks for it.
        if landing.reverts.is_some() {
            return Ok(());
        }
        let tree = self
            .trees
            .engine
            .look(|tx| tx.tree_by_id(landing.tree_id))?;
        let tree = tree.ok_or(LandError::NoLanding(landing.id))?;
        self.require_claim(landing)?;
        let approved = |submodules| {
            let (onto, commit) = (&candidate.onto, &candidate.commit);
            self.require_approval(&tree, &landing.head, onto, commit, submodules)
        };
        approved(Submodules::MayCome)?;
        self.require_large_files(&tree, &candidate.onto, &candidate.commit)?;
        match self.require_gitlinks(&tree, &candidate.onto, &candidate.commit)? {
            // What is behind them is here only now.
            true => approved(Submodules::AreHere),
            false => Ok(()),
        }
    }
}
