//! Making what would become the target's tip, in the vault and without a checkout.

use std::path::Path;

use weald_core::config::Gate;
use weald_core::landing::{Landing, Strategy};
use weald_core::landing_message::{
    LandedCommit, LandingNotes, WORK_IN_PROGRESS, compose, main_author,
};
use weald_core::task::Task;
use weald_core::tree::Tree;
use weald_git::{Git, GitUser, MergeRequest, Merged, NewCommit, Person, commit_tree, merge_trees};

use super::LandError;
use super::beginning::{Ahead, Beginning, Start};
use crate::Landings;
use crate::refusal::Refusal;

/// What would become the target's tip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// What it was made on top of.
    pub onto: String,
    /// The commit; nothing is ever pruned in the vault, so no ref has to hold it.
    pub commit: String,
}

/// What making a candidate came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Made {
    Candidate(Candidate),
    /// The target has it all.
    Nothing,
    /// It does not merge.
    Conflict(Vec<String>),
}

impl Landings<'_> {
    /// Makes the candidate of a landing on top of `tip`, with those `ahead` of it assumed.
    pub(crate) fn make_candidate(
        &self,
        landing: &Landing,
        tree: &Tree,
        tip: &str,
        ahead: &[Ahead],
    ) -> Result<Made, LandError> {
        let head = landing.head.as_str();
        let start = match self.start_of(landing, tip, ahead)? {
            Start::Landed => return Ok(Made::Nothing),
            Start::At(start) => start,
        };
        let commits = self.new_commits(head, &start)?;
        if commits.is_empty() {
            return Ok(Made::Nothing);
        }
        match landing.strategy {
            Strategy::Ff => self.fast_forward(tree, head, tip),
            Strategy::Rebase => self.replay(head, tip, &start),
            Strategy::Squash | Strategy::Merge => self.merged(landing, tree, tip, &start, commits),
        }
    }

    fn fast_forward(&self, tree: &Tree, head: &str, tip: &str) -> Result<Made, LandError> {
        self.require_signable(&tree.name)?;
        match self.trees.contains(head, tip)? {
            true => Ok(Made::Candidate(Candidate {
                onto: tip.to_owned(),
                commit: head.to_owned(),
            })),
            false => Err(Refusal::NotFastForward(tree.name.clone(), tree.target.clone()).into()),
        }
    }

    fn merged(
        &self,
        landing: &Landing,
        tree: &Tree,
        tip: &str,
        start: &Beginning,
        mut commits: Vec<LandedCommit>,
    ) -> Result<Made, LandError> {
        let vault = self.trees.vault();
        let merged = match self.merge(&landing.head, tip, start)? {
            Merged::Clean { tree } => tree,
            Merged::Conflict { paths, .. } => return Ok(Made::Conflict(paths)),
        };
        if merged == tree_of(vault.path(), tip)? {
            return Ok(Made::Nothing);
        }
        let task = match &landing.task {
            Some(id) => self.trees.engine.look(|tx| tx.task(id))?,
            None => None,
        };
        commits.retain(|commit| !commit.message.is_empty());
        let gate = match self.gate_command()? {
            Some(_) => self.trees.config.policy_gate.as_str(),
            None => Gate::None.as_str(),
        };
        let message = self.message(
            landing,
            tree,
            task.as_ref(),
            gate,
            &commits,
            Some((tip, &merged)),
        )?;
        let committer = self.committer()?;
        let author = match (landing.strategy, main_author(&commits)) {
            (Strategy::Squash, Some(commit)) => author_of(commit).unwrap_or(committer.clone()),
            _ => committer.clone(),
        };
        let parents = match landing.strategy {
            Strategy::Merge => vec![tip, landing.head.as_str()],
            _ => vec![tip],
        };
        let commit = commit_tree(
            vault.path(),
            &NewCommit {
                tree: &merged,
                parents: &parents,
                message: &message,
                author: &author,
                committer: &committer,
            },
        )?;
        Ok(Made::Candidate(Candidate {
            onto: tip.to_owned(),
            commit,
        }))
    }

    /// Merges `head` into `tip`. What landed before becomes a parent of the tip for that, so that git finds all the bases
    /// that there are: the target may have come into the tree since, too.
    fn merge(&self, head: &str, tip: &str, start: &Beginning) -> Result<Merged, LandError> {
        let vault = self.trees.vault();
        let joined = match &start.landed {
            None => None,
            Some(landed) => {
                let committer = self.committer()?;
                let tree = tree_of(vault.path(), tip)?;
                Some(commit_tree(
                    vault.path(),
                    &NewCommit {
                        tree: &tree,
                        parents: &[tip, landed],
                        message: "weald: what landed before\n",
                        author: &committer,
                        committer: &committer,
                    },
                )?)
            }
        };
        let request = MergeRequest {
            ours: joined.as_deref().unwrap_or(tip),
            theirs: head,
            base: start.base.as_deref(),
            attributes: tip,
        };
        Ok(merge_trees(vault.path(), request)?)
    }

    pub(super) fn message(
        &self,
        landing: &Landing,
        tree: &Tree,
        task: Option<&Task>,
        gate: &str,
        commits: &[LandedCommit],
        differ: Option<(&str, &str)>,
    ) -> Result<String, LandError> {
        let is_unworded = |commit: &LandedCommit| commit.message.trim() == WORK_IN_PROGRESS;
        let differ = differ.filter(|_| task.is_none() && commits.iter().all(is_unworded));
        let paths = match differ {
            Some((tip, merged)) => self.changed_paths(tip, merged)?,
            None => Vec::new(),
        };
        let notes = LandingNotes {
            strategy: landing.strategy,
            message: landing.message.as_deref(),
            trailers: self.trees.config.landing_trailers,
            paths: &paths,
            template: &self.trees.config.landing_message,
            tree: tree.name.as_str(),
            branch: &tree.branch,
            target: &landing.target,
            base: &tree.base.commit,
            gate,
            task: task.map(|task| {
                (
                    task.id.to_string(),
                    task.subject.as_str(),
                    task.description.as_str(),
                )
            }),
        };
        Ok(compose(&notes, commits))
    }

    /// The files in which two git trees differ, as they can stand in a line.
    fn changed_paths(&self, one: &str, other: &str) -> Result<Vec<String>, LandError> {
        let answer = self
            .trees
            .vault()
            .git("diff-tree")
            .args(["-r", "--name-only", "-z", one, other])
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let paths = text.split_terminator('\0');
        Ok(paths
            .map(|path| path.replace(|c: char| c.is_control(), "?"))
            .collect())
    }

    /// The commits of `head` that are news, oldest first; merges have no words.
    pub(super) fn new_commits(
        &self,
        head: &str,
        start: &Beginning,
    ) -> Result<Vec<LandedCommit>, LandError> {
        let answer = self
            .trees
            .vault()
            .git("log")
            .args(["-z", "--reverse", "--topo-order"])
            .args(["--format=%P%n%an <%ae>%n%ad%n%B", "--date=raw"])
            .args([head])
            .args(start.known.iter().map(|id| format!("^{id}")))
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let parse = |record: &str| {
            let mut parts = record.splitn(4, '\n');
            let is_merge = parts.next()?.contains(' ');
            Some(LandedCommit {
                author: parts.next()?.to_owned(),
                written: parts.next()?.to_owned(),
                message: match is_merge {
                    true => String::new(),
                    false => parts.next()?.trim_end().to_owned(),
                },
            })
        };
        Ok(text.split('\0').filter_map(parse).collect())
    }

    /// Each commit anew on top of `tip`, as `git rebase` makes them: merges go, what `tip` has already goes.
    fn replay(&self, head: &str, tip: &str, start: &Beginning) -> Result<Made, LandError> {
        let vault = self.trees.vault();
        let mut git = vault
            .git("rev-list")
            .args(["--reverse", "--topo-order", "--parents"]);
        let is_recorded = start.base.is_some() || start.landed.is_some();
        git = match is_recorded {
            true => git
                .args([head])
                .args(start.known.iter().map(|id| format!("^{id}"))),
            false => git
                .args(["--right-only", "--cherry-pick"])
                .args([format!("{tip}...{head}")]),
        };
        let answer = git.run()?;
        let text = String::from_utf8_lossy(&answer);
        let commits: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        let is_linear = commits.iter().all(|ids| ids.len() == 2);
        // To be signed, each is made again, as `git rebase -S` does it.
        let is_plain = !is_recorded && is_linear && self.signing()?.is_none();
        if is_plain && self.trees.contains(head, tip)? {
            return Ok(Made::Candidate(Candidate {
                onto: tip.to_owned(),
                commit: head.to_owned(),
            }));
        }
        let mut now = tip.to_owned();
        for ids in commits {
            match ids[..] {
                [commit, parent] => match self.replayed(&now, commit, parent, tip)? {
                    Ok(next) => now = next,
                    Err(paths) => return Ok(Made::Conflict(paths)),
                },
                [_] => return Err(Refusal::RootCommit.into()),
                // A merge: its commits come one by one.
                _ => {}
            }
        }
        if !is_linear {
            self.require_whole(head, tip, start, &now)?;
        }
        Ok(match now == tip {
            true => Made::Nothing,
            false => Made::Candidate(Candidate {
                onto: tip.to_owned(),
                commit: now,
            }),
        })
    }

    /// What only a merge commit holds is in none of the others: then they are not all of it.
    fn require_whole(
        &self,
        head: &str,
        tip: &str,
        start: &Beginning,
        made: &str,
    ) -> Result<(), LandError> {
        let whole = self.merge(head, tip, start)?;
        let tree = tree_of(self.trees.vault().path(), made)?;
        match whole {
            Merged::Clean { tree: whole } if whole == tree => Ok(()),
            _ => Err(Refusal::RebaseDiffers.into()),
        }
    }

    /// One commit anew on top of `onto`, or the paths that conflict.
    fn replayed(
        &self,
        onto: &str,
        commit: &str,
        parent: &str,
        tip: &str,
    ) -> Result<Result<String, Vec<String>>, LandError> {
        let vault = self.trees.vault();
        let request = MergeRequest {
            ours: onto,
            theirs: commit,
            base: Some(parent),
            attributes: tip,
        };
        let tree = match merge_trees(vault.path(), request)? {
            Merged::Clean { tree } => tree,
            Merged::Conflict { paths, .. } => return Ok(Err(paths)),
        };
        let was_empty = tree_of(vault.path(), commit)? == tree_of(vault.path(), parent)?;
        if tree == tree_of(vault.path(), onto)? && !was_empty {
            return Ok(Ok(onto.to_owned()));
        }
        let answer = vault
            .git("log")
            .args(["-1", "--format=%an <%ae>%n%ad%n%B", "--date=raw", commit])
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let mut parts = text.splitn(3, '\n');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let words = LandedCommit {
            author: next(),
            written: next(),
            message: next().trim_end().to_owned(),
        };
        let committer = self.committer()?;
        let made = commit_tree(
            vault.path(),
            &NewCommit {
                tree: &tree,
                parents: &[onto],
                message: &format!("{}\n", words.message),
                author: &author_of(&words).unwrap_or(committer.clone()),
                committer: &committer,
            },
        )?;
        Ok(Ok(made))
    }

    /// Who commits landings: as configured, as git's user, or weald itself.
    pub(crate) fn committer(&self) -> Result<Person, LandError> {
        if let Some(known) = self.known_committer.get() {
            return Ok(known.clone());
        }
        let own = &self.trees.config.landing_identity;
        let found = match person(own) {
            Some(person) => person,
            None if own.is_empty() => self.git_user()?,
            None => {
                return Err(Refusal::BadIdentity(own.to_string()).into());
            }
        };
        Ok(self.known_committer.get_or_init(|| found).clone())
    }

    /// git's user, by the repository's and the user's own configuration.
    fn git_user(&self) -> Result<Person, LandError> {
        let main = self.trees.place.repository().common_dir();
        let user = GitUser::read(main, self.trees.host.home.as_deref())?;
        Ok(Person {
            name: user.name.unwrap_or_else(|| "weald".to_owned()),
            mail: user.mail.unwrap_or_else(|| "weald@localhost".to_owned()),
            when: None,
        })
    }

    /// What a landing would make of the target: its own candidate, or the undoing of another.
    pub(crate) fn candidate_of(
        &self,
        landing: &Landing,
        tip: &str,
        ahead: &[Ahead],
    ) -> Result<Made, LandError> {
        match landing.reverts {
            Some(of) => self.undoing(&self.landing(of)?, tip),
            None => {
                let tree = self
                    .trees
                    .engine
                    .look(|tx| tx.tree_by_id(landing.tree_id))?;
                let tree = tree.ok_or_else(|| Refusal::TreeGone(landing.tree.clone()))?;
                self.make_candidate(landing, &tree, tip, ahead)
            }
        }
    }
}

fn person(text: &str) -> Option<Person> {
    let (name, mail) = text.trim().strip_suffix('>')?.rsplit_once('<')?;
    Some(Person {
        name: name.trim().to_owned(),
        mail: mail.trim().to_owned(),
        when: None,
    })
    .filter(|person| !person.name.is_empty())
}

fn author_of(commit: &LandedCommit) -> Option<Person> {
    let person = person(&commit.author)?;
    Some(Person {
        when: Some(commit.written.clone()),
        ..person
    })
}

/// The git tree of a commit.
pub(crate) fn tree_of(git_dir: &Path, commit: &str) -> Result<String, LandError> {
    let answer = Git::new(git_dir, "rev-parse")
        .args([format!("{commit}^{{tree}}")])
        .run()?;
    Ok(line(&answer))
}

fn line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().next().unwrap_or_default().to_owned()
}
