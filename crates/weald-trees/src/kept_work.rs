//! What the vault holds of trees that are gone for good, and the way out of it: a branch in main.
//!
//! Only what the target lacks is told. Nothing in the vault changes by it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weald_core::id::TreeId;
use weald_core::landed::covering;
use weald_core::name::TreeName;
use weald_core::tree::{Tree, TreeStatus};
use weald_git::{
    Commit, Expected, MainRef, NewCommit, Person, RefChange, commit_tree, list_pointers, list_tips,
    transfer,
};

use super::{SnapshotView, TreeError, Trees};

/// How many names are tried for a branch.
const NAMES: u32 = 1000;

/// What is left of a tree.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptWork {
    pub id: TreeId,
    /// What it was called.
    pub name: TreeName,
    /// What its branch was called.
    pub branch: String,
    /// Commits that the target lacks; first what the tree stood on.
    pub commits: Vec<KeptCommit>,
    /// Its snapshots, oldest first.
    pub snapshots: Vec<SnapshotView>,
}

/// A commit, and what it was in the tree.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptCommit {
    pub commit: String,
    /// `HEAD`, `heads/…`, `stash/…`, `old/…` for what no ref held any more.
    pub names: Vec<String>,
}

/// What to bring back of a tree.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// What it stood on.
    #[default]
    Head,
    /// One of its commits, by the beginning of its id.
    Commit(String),
    /// The files of a snapshot.
    Snapshot(u64),
}

/// Work that is in main again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BroughtBack {
    pub id: TreeId,
    /// What it was called.
    pub name: TreeName,
    /// The branch that holds it now.
    pub branch: String,
    pub commit: String,
}

impl Trees<'_> {
    /// What the vault holds of trees that are gone, the newest first.
    pub fn kept_work(&self) -> Result<Vec<KeptWork>, TreeError> {
        let mut found = Vec::new();
        let gone = self.records()?.into_iter();
        let gone: Vec<_> = gone
            .filter(|tree| tree.status == TreeStatus::Removed)
            .collect();
        if gone.is_empty() || !self.vault().path().join("HEAD").exists() {
            return Ok(found);
        }
        let mut tips = self.tips_by_tree()?;
        let lacking = self.lacking_of(&gone, &tips)?;
        for tree in gone.into_iter().rev() {
            let mut commits = tips.remove(&tree.id).unwrap_or_default();
            let landings = self.engine.look(|tx| tx.landings_of(&tree.name))?;
            let landed = covering(&landings, tree.id, &tree.target);
            commits.retain(|known| {
                lacking.contains(&known.commit)
                    && !landed.iter().any(|landing| landing.head == known.commit)
            });
            commits.sort_by_key(|known| Some(&known.commit) != tree.head.as_ref());
            let snapshots = self.snapshots_of(&tree)?;
            if !commits.is_empty() || !snapshots.is_empty() {
                found.push(KeptWork {
                    id: tree.id,
                    name: tree.name,
                    branch: tree.branch,
                    commits,
                    snapshots,
                });
            }
        }
        Ok(found)
    }

    /// How many commits the target lacks of each removed worktree, in the trash or purged. What a worktree itself had left
    /// behind, as by an amended commit, is not counted.
    pub fn unlanded_of_removed(&self) -> Result<Vec<(Tree, usize)>, TreeError> {
        let removed = |tree: &Tree| {
            matches!(tree.status, TreeStatus::Removed | TreeStatus::Trashed) && !tree.adopted
        };
        let mut removed: Vec<_> = self.records()?.into_iter().filter(removed).collect();
        if removed.is_empty() || !self.vault().path().join("HEAD").exists() {
            return Ok(Vec::new());
        }
        let mut tips = self.tips_by_tree()?;
        let is_current = |name: &String| {
            let kinds = ["HEAD", "heads/", "stash/", "worktrees/"];
            kinds.iter().any(|kind| name.starts_with(kind))
        };
        for commits in tips.values_mut() {
            commits.retain(|known| known.names.iter().any(is_current));
        }
        let lacking = self.lacking_of(&removed, &tips)?;
        let mut found = Vec::new();
        for tree in removed.drain(..) {
            let landings = self.engine.look(|tx| tx.landings_of(&tree.name))?;
            let landed = covering(&landings, tree.id, &tree.target);
            let commits = tips.remove(&tree.id).unwrap_or_default();
            let open = commits.iter().filter(|known| {
                lacking.contains(&known.commit)
                    && !landed.iter().any(|landing| landing.head == known.commit)
            });
            let count = open.count();
            if count > 0 {
                found.push((tree, count));
            }
        }
        Ok(found)
    }

    /// Everything that the vault has of each tree's refs.
    fn tips_by_tree(&self) -> Result<BTreeMap<TreeId, Vec<KeptCommit>>, TreeError> {
        let mut found: BTreeMap<TreeId, Vec<KeptCommit>> = BTreeMap::new();
        let mut listed = list_tips(self.vault().path(), &["refs/tree/"])?;
        self.peel(&mut listed)?;
        for known in listed {
            let below = known.name.strip_prefix("refs/tree/").unwrap_or_default();
            let Some((id, name)) = below.split_once('/') else {
                continue;
            };
            let Ok(id) = id.parse() else { continue };
            let commits = found.entry(TreeId(id)).or_default();
            match commits.iter_mut().find(|one| one.commit == known.commit) {
                Some(one) => one.names.push(name.to_owned()),
                None => commits.push(KeptCommit {
                    commit: known.commit,
                    names: vec![name.to_owned()],
                }),
            }
        }
        Ok(found)
    }

    /// Puts the commit in the place of each annotated tag.
    fn peel(&self, listed: &mut [MainRef]) -> Result<(), TreeError> {
        let may_be_tag = |known: &&mut MainRef| {
            let mut parts = known.name.split('/').skip(3);
            parts
                .next()
                .is_some_and(|kind| kind == "tags" || kind == "other")
        };
        let mut tags: Vec<_> = listed.iter_mut().filter(may_be_tag).collect();
        if tags.is_empty() {
            return Ok(());
        }
        let asked = tags.iter();
        let asked: String = asked
            .map(|known| format!("{}^{{commit}}\n", known.commit))
            .collect();
        let git = self.vault().git("cat-file");
        let answer = git
            .args(["--batch-check=%(objectname)"])
            .input(asked)
            .text()?;
        for (known, line) in tags.iter_mut().zip(answer.lines()) {
            if Commit::parse(line).is_some() {
                known.commit = line.to_owned();
            }
        }
        Ok(())
    }

    /// Everything behind the tips of trees that no target has.
    fn lacking_of(
        &self,
        trees: &[Tree],
        tips: &BTreeMap<TreeId, Vec<KeptCommit>>,
    ) -> Result<BTreeSet<String>, TreeError> {
        let mut asked = String::new();
        let mut targets = BTreeSet::new();
        for tree in trees {
            for known in tips.get(&tree.id).into_iter().flatten() {
                asked.push_str(&format!("{}\n", known.commit));
            }
            if targets.insert(tree.target.as_str())
                && let Some(tip) = self.target_tip(tree)?
            {
                asked.push_str(&format!("^{tip}\n"));
            }
        }
        if tips.is_empty() {
            return Ok(BTreeSet::new());
        }
        let listed = self.vault().git("rev-list").args(["--stdin"]);
        let listed = listed.input(asked).text()?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// Makes a branch in main of what the vault holds of a tree that is gone, by its number or its name.
    pub fn bring_back(&self, id: TreeId, wanted: &Wanted) -> Result<BroughtBack, TreeError> {
        let tree = self.gone_tree(id)?;
        let (commit, branch) = match wanted {
            Wanted::Snapshot(number) => (
                self.commit_of_snapshot(&tree, *number)?,
                format!("{}-snapshot-{number}", tree.branch),
            ),
            Wanted::Commit(start) => (self.kept_commit(&tree, start)?, tree.branch.clone()),
            Wanted::Head => {
                let head = tree.tip();
                (self.kept_commit(&tree, head)?, tree.branch.clone())
            }
        };
        let branch = self.branch_from_vault(&tree, &branch, &commit)?;
        self.note_lost_large_files(&branch, &commit)?;
        Ok(BroughtBack {
            id: tree.id,
            name: tree.name,
            branch,
            commit,
        })
    }

    /// Says if main no longer has Git LFS objects of a commit: `git lfs prune` does not know what the vault names.
    fn note_lost_large_files(&self, branch: &str, commit: &str) -> Result<(), TreeError> {
        let vault = self.vault();
        let files = list_pointers(|name| vault.git(name), &format!("{commit}^{{tree}}\n"))?;
        if files.is_empty() {
            return Ok(());
        }
        let store = self.large_files_of(self.common_dir())?;
        let lost = files.values().filter(|file| !store.holds(file)).count();
        if lost > 0 {
            let word = if lost == 1 { "object" } else { "objects" };
            self.engine.notice(format!(
                "{lost} Git LFS {word} of {branch} not found here (`git lfs prune` may have deleted them); if a remote has them: git lfs fetch origin {branch}"
            ));
        }
        Ok(())
    }

    fn gone_tree(&self, id: TreeId) -> Result<Tree, TreeError> {
        match self.engine.look(|tx| tx.tree_by_id(id))? {
            Some(tree) if tree.status == TreeStatus::Removed => Ok(tree),
            Some(tree) if tree.status == TreeStatus::Trashed => Err(TreeError::in_trash(tree)),
            _ => Err(TreeError::NotInVault { id: id.to_string() }),
        }
    }

    /// The commit of a tree that begins with this.
    fn kept_commit(&self, tree: &Tree, start: &str) -> Result<String, TreeError> {
        let commits = self.tips_by_tree()?.remove(&tree.id).unwrap_or_default();
        let mut fitting = commits.into_iter().map(|known| known.commit);
        let fits = |commit: &String| start.len() >= 4 && commit.starts_with(start);
        fitting
            .find(fits)
            .ok_or_else(|| TreeError::CommitNotInVault {
                name: tree.name.clone(),
                commit: start.to_owned(),
            })
    }

    /// The files of a snapshot as a commit of their own, on what the tree stood on.
    fn commit_of_snapshot(&self, tree: &Tree, number: u64) -> Result<String, TreeError> {
        let numbered = self.numbered(tree)?;
        let snapshot = numbered.get(&number).ok_or_else(|| TreeError::NoSnapshot {
            name: tree.name.clone(),
            id: Some(number),
        })?;
        let asked = [format!("{snapshot}:files"), format!("{snapshot}^")];
        let answer = self.vault().git("rev-parse").args(asked).text()?;
        let mut ids = answer.lines();
        let (files, parent) = (ids.next().unwrap_or_default(), ids.next());
        let weald = Person {
            name: "weald".to_owned(),
            mail: "weald@localhost".to_owned(),
            when: None,
        };
        let commit = NewCommit {
            tree: files,
            parents: parent.as_slice(),
            message: &format!("Snapshot {number} of tree {}\n", tree.name),
            author: &weald,
            committer: &weald,
        };
        Ok(commit_tree(self.vault().path(), &commit)?)
    }

    /// A branch of this name, or of one like it, that holds it already or is free.
    fn branch_from_vault(&self, tree: &Tree, wanted: &str, tip: &str) -> Result<String, TreeError> {
        let main = self.repository();
        let names = (1..NAMES).map(|number| match number {
            1 => wanted.to_owned(),
            number => format!("{wanted}-{number}"),
        });
        let mut free = None;
        for name in names {
            match main.resolve(&format!("refs/heads/{name}"))? {
                Some(held) if held.as_str() == tip => return Ok(name),
                Some(_) => {}
                None => {
                    free = Some(name);
                    break;
                }
            }
        }
        let name = free.unwrap_or_else(|| wanted.to_owned());
        let haves = self.target_tip(tree)?;
        let haves: Vec<_> = haves.iter().map(String::as_str).collect();
        let kept = transfer(self.vault().path(), main.common_dir(), &[tip], &haves)?;
        let change = RefChange::set(
            format!("refs/heads/{name}"),
            tip.to_owned(),
            Expected::Absent,
        );
        let why = format!("weald: vault restore {}", tree.id);
        self.update_main(&[change], &why)?;
        drop(kept);
        Ok(name)
    }
}
