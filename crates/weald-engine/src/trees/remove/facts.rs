//! What speaks against a removal: facts, gathered without touching anything.

use weald_core::session::Liveness;
use weald_core::tree::{Tree, TreeKind};
use weald_core::tree_rules::Contents;
use weald_git::list_tips;

use super::Verdict;
use crate::trees::building::locked_text;
use crate::trees::keep::SEALED;
use crate::trees::{TreeError, Trees, run};

impl Trees<'_> {
    /// What a tree holds; everything in it that can be imported is in the vault afterwards.
    pub(super) fn contents(&self, verdict: &mut Verdict) -> Result<Contents, TreeError> {
        let site = match self.site(&verdict.tree) {
            Ok(site) => site,
            Err(TreeError::Missing { .. }) => {
                verdict.is_gone = true;
                verdict.unlanded = 0;
                return Ok(Contents::Gone);
            }
            Err(TreeError::Damaged { why, .. }) => return Ok(Contents::Unknown(why)),
            Err(other) => return Err(other),
        };
        let (tree, look) = match self.import_and_follow(&verdict.tree, &site) {
            Ok(looked) => looked,
            Err(error @ TreeError::Unreadable { .. }) => {
                return Ok(Contents::Unknown(error.to_string()));
            }
            Err(TreeError::Git(error)) => return Ok(Contents::Unknown(error.to_string())),
            Err(other) => return Err(other),
        };
        verdict.tree = tree;
        verdict.ignored = look.ignored;
        let in_progress = u64::from(look.operation.is_some());
        verdict.is_dirty = look.staged + look.unstaged + look.untracked + in_progress > 0;
        let below = match self.import_submodules(&verdict.tree, &site) {
            Ok(commits) => commits,
            // Its changes refuse already, and tell more.
            Err(_) if verdict.is_dirty => 0,
            Err(error) => return Ok(Contents::Unknown(error.to_string())),
        };
        let tips = self.tips(&verdict.tree, &look.head)?;
        verdict.unlanded = self.unlanded(&verdict.tree, &tips)?.saturating_add(below);
        Ok(Contents::Known {
            staged: look.staged,
            unstaged: look.unstaged.max(in_progress),
            untracked: look.untracked,
            commits: verdict.unlanded,
        })
    }

    /// Everything in a tree that may hold work: HEAD, its branches, its stash.
    fn tips(&self, tree: &Tree, head: &Option<String>) -> Result<Vec<String>, TreeError> {
        let mut tips: Vec<String> = head.iter().cloned().collect();
        if tree.kind == TreeKind::Sealed {
            let id = tree.id;
            let prefixes =
                ["heads", "stash", "tags", "other"].map(|kind| format!("refs/tree/{id}/{kind}/"));
            let prefixes: Vec<_> = prefixes.iter().map(String::as_str).collect();
            let own_target = format!("refs/tree/{id}/heads/{}", tree.target);
            for known in list_tips(self.vault().path(), &prefixes)? {
                // The target's copy inside may be older than the target, or newer by a push of somebody else.
                if known.name != own_target
                    || self.unlanded(tree, std::slice::from_ref(&known.commit))? > 0
                {
                    tips.push(known.commit);
                }
            }
        }
        tips.sort();
        tips.dedup();
        Ok(tips)
    }

    /// Refuses to write a tree in which something runs, or may.
    pub(crate) fn require_idle(&self, tree: &Tree) -> Result<(), TreeError> {
        let running = self.running(tree);
        match running.is_empty() {
            true => Ok(()),
            false => Err(TreeError::Busy {
                name: tree.name.clone(),
                running,
            }),
        }
    }

    /// Commands that run in it, or may.
    pub(crate) fn running(&self, tree: &Tree) -> Vec<String> {
        let alive = tree.runs.iter().filter(|run| self.may_live(&run.process));
        alive
            .map(|run| format!("{} (process {})", run.program, run.process.pid))
            .collect()
    }

    /// Sessions that work in it, and short-lived trees that land on it.
    pub(super) fn references(&self, tree: &Tree) -> Result<Vec<String>, TreeError> {
        let mut found = Vec::new();
        let sessions = self
            .engine
            .sessions()
            .map_err(|error| TreeError::Unreadable {
                name: "the session registry".to_owned(),
                why: error.to_string(),
            })?;
        for view in sessions {
            let mine = self.actor() == Some(&view.session.name);
            let open = view.session.ended_at.is_none() && view.liveness != Liveness::Dead;
            if open && !mine && view.session.tree.as_ref() == Some(&tree.name) {
                found.push(format!("session {}", view.session.name));
            }
        }
        let trees = self.records()?;
        for other in trees.iter().filter(|other| other.is_live()) {
            if other.scratch_for.as_ref() == Some(&tree.name) {
                found.push(format!("tree {}", other.name));
            }
        }
        Ok(found)
    }

    /// A lock that somebody set with git.
    pub(crate) fn foreign_lock(&self, tree: &Tree) -> Option<String> {
        let name = tree.registration.as_deref()?;
        let reason = self.registrations().read(name)?.locked?;
        let ours = locked_text(tree);
        let is_own =
            reason == SEALED || Some(&reason) == ours.as_ref() || reason.ends_with(run::RUNS);
        (!is_own).then_some(reason)
    }
}
