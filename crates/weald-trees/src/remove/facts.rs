//! What speaks against a removal: facts, gathered without touching anything.

use weald_core::agent::Agent;
use weald_core::approval::Patterns;
use weald_core::id::Token;
use weald_core::name::SessionName;
use weald_core::objections::Contents;
use weald_core::session::Liveness;
use weald_core::store::AgentFilter;
use weald_core::tree::{Tree, TreeKind};
use weald_git::list_tips;

use super::{RemoveRequest, Verdict};
use crate::inside::InspectReply;
use crate::{TreeError, Trees};
use weald_control::sessions::SessionView;

impl Trees<'_> {
    /// What a tree holds; everything in it that can be imported is in the vault afterwards.
    pub fn contents(
        &self,
        verdict: &mut Verdict,
        request: &RemoveRequest,
    ) -> Result<Contents, TreeError> {
        let ignore_dirty = &request.ignore_dirty;
        verdict.traces = self.traces(&verdict.tree, &verdict.tree.path)?;
        let site = match self.site(&verdict.tree) {
            Ok(site) => site,
            Err(TreeError::Missing { .. }) => {
                verdict.is_gone = true;
                verdict.unlanded = 0;
                return Ok(Contents::Gone);
            }
            Err(TreeError::Damaged { why, .. } | TreeError::Unreadable { why, .. }) => {
                return Ok(Contents::Unknown(why));
            }
            Err(other) => return Err(other),
        };
        let (tree, reply) = match self.imported(&verdict.tree, &site, None) {
            Ok(looked) => looked,
            Err(error @ TreeError::Unreadable { .. }) => {
                return Ok(Contents::Unknown(error.to_string()));
            }
            Err(TreeError::Git(error)) => return Ok(Contents::Unknown(error.to_string())),
            // On a full disk nothing can be taken in; what may be discarded goes to the trash all the same.
            Err(TreeError::Vault(error)) => return Ok(Contents::Unknown(error.to_string())),
            Err(other) => return Err(other),
        };
        let mut look = reply.look.clone();
        verdict.tree = tree;
        verdict.ignored = look.ignored;
        let in_progress = u64::from(look.operation.is_some());
        look.unstaged += look.hidden;
        verdict.is_dirty = look.staged + look.unstaged + look.untracked + in_progress > 0;
        if verdict.is_dirty && !ignore_dirty.is_empty() && is_benign(&reply, ignore_dirty) {
            (look.staged, look.unstaged, look.untracked) = (0, 0, 0);
            verdict.is_dirty = false;
        }
        verdict.reply = Some(reply);
        let below = match self.import_submodules(&verdict.tree, &site) {
            Ok(commits) => commits,
            // Its changes refuse already, and tell more.
            Err(_) if verdict.is_dirty => 0,
            Err(error) => return Ok(Contents::Unknown(error.to_string())),
        };
        let mut tips = self.tips(&verdict.tree, &look.head)?;
        if let Some(empty) = &request.empty_head
            && tips.contains(empty)
            && self.cancels_out(&verdict.tree, empty)?
        {
            tips.retain(|tip| tip != empty);
        }
        verdict.unlanded = self.unlanded(&verdict.tree, &tips)?.saturating_add(below);
        let elsewhere = match &look.head {
            Some(head) if verdict.unlanded > below && below == 0 => {
                self.landed(&verdict.tree, head)?.is_some()
            }
            _ => false,
        };
        Ok(Contents::Known {
            staged: look.staged,
            unstaged: look.unstaged.max(in_progress),
            untracked: look.untracked,
            commits: verdict.unlanded,
            elsewhere,
        })
    }

    /// The same for whoever wants to know nothing else.
    pub fn contents_of(&self, tree: &Tree) -> Result<Contents, TreeError> {
        self.contents(&mut Verdict::of(tree.clone()), &RemoveRequest::default())
    }

    /// Everything in a tree that may hold work: HEAD, its branches, its stash, HEADs of worktrees in it.
    fn tips(&self, tree: &Tree, head: &Option<String>) -> Result<Vec<String>, TreeError> {
        let mut tips: Vec<String> = head.iter().cloned().collect();
        if tree.kind == TreeKind::Sealed {
            let id = tree.id;
            let kinds = ["heads", "stash", "tags", "other", "worktrees"];
            let prefixes = kinds.map(|kind| format!("refs/tree/{id}/{kind}/"));
            let prefixes: Vec<_> = prefixes.iter().map(String::as_str).collect();
            // Among them is the target's copy inside: older than the target, or newer by a push of somebody else.
            let known = list_tips(self.vault().path(), &prefixes)?;
            tips.extend(known.into_iter().map(|known| known.commit));
        }
        tips.sort();
        tips.dedup();
        Ok(tips)
    }

    /// Refuses to write a tree in which something runs, or may.
    pub fn require_idle(&self, tree: &Tree) -> Result<(), TreeError> {
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
    pub fn running(&self, tree: &Tree) -> Vec<String> {
        let alive = tree.runs.iter().filter(|run| self.may_live(&run.process));
        alive
            .map(|run| format!("{} (process {})", run.program, run.process.pid))
            .collect()
    }

    /// Every session. A registry that can't be read refuses: whoever is there would be overlooked.
    pub fn known_sessions(&self) -> Result<Vec<SessionView>, TreeError> {
        let sessions = self.engine.sessions();
        sessions.map_err(|error| TreeError::unreadable("the session registry", error.to_string()))
    }

    /// Sessions that work in it or hold its task, and short-lived trees that land on it. Who has the token of the claim
    /// speaks for its holder.
    pub(crate) fn references(
        &self,
        tree: &Tree,
        token: Option<Token>,
    ) -> Result<Vec<String>, TreeError> {
        let mut found = Vec::new();
        let sessions = self.known_sessions()?;
        if let Some(holder) = self.holder_of(tree, token)? {
            // Whether a session that is known lives is known, too.
            let is_known = sessions.iter().any(|view| view.session.name == holder);
            if !is_known && self.actor() != Some(&holder) {
                found.push(format!("session {holder}, which holds its task"));
            }
        }
        for view in sessions {
            let mine = self.actor() == Some(&view.session.name);
            let open = view.session.ended_at.is_none() && view.liveness != Liveness::Dead;
            let is_here = view.session.tree.as_ref() == Some(&tree.name);
            if open && !mine && is_here && !self.is_own_teammate(&view.session.name)? {
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

    /// Whether the caller started the agents under a name, and none of them is at work: then nobody else decides what becomes
    /// of what they left.
    fn is_own_teammate(&self, name: &SessionName) -> Result<bool, TreeError> {
        let Some(lead) = self.actor() else {
            return Ok(false);
        };
        let mut agents = self.engine.look(|tx| tx.agents(&AgentFilter::default()))?;
        agents.retain(|agent| agent.session == *name);
        let is_lead = |agent: &Agent| agent.spawned_by.as_ref() == Some(lead);
        let is_at_work = |agent: &Agent| !agent.status.is_over();
        Ok(agents.iter().any(is_lead) && !agents.iter().any(is_at_work))
    }

    /// Who holds the task of a tree by a lease that has not run out, and is of another token.
    fn holder_of(
        &self,
        tree: &Tree,
        token: Option<Token>,
    ) -> Result<Option<SessionName>, TreeError> {
        let Some(id) = &tree.task else {
            return Ok(None);
        };
        let now = self.now()?;
        let task = self.engine.look(|tx| tx.task(id))?;
        let lease = task.and_then(|task| task.lease);
        let lease = lease.filter(|lease| !lease.is_expired(now) && Some(lease.token) != token);
        Ok(lease.map(|lease| lease.session))
    }
}

/// Whether all that changed in a tree are files that the user's configuration ignores.
fn is_benign(reply: &InspectReply, ignored: &[String]) -> bool {
    let ignored = Patterns::new(ignored.iter().map(String::as_str));
    let is_calm = reply.look.conflicted == 0 && reply.look.operation.is_none();
    is_calm && !is_dirty(reply, &ignored)
}

/// Whether anything changed that is not ignored. What was not named counts.
pub fn is_dirty(reply: &InspectReply, ignored: &Patterns) -> bool {
    let look = &reply.look;
    let changes = look.staged + look.unstaged + look.untracked + look.conflicted + look.hidden;
    let all_ignored = !reply.truncated
        && !reply.paths.is_empty()
        && reply.paths.iter().all(|path| ignored.names(path));
    changes > 0 && !all_ignored
}
