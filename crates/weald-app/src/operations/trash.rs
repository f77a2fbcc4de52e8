//! Removed worktrees: listed, restored, or deleted for good.

use serde::{Deserialize, Serialize};
use weald_core::SignedDuration;
use weald_core::error_code::ErrorCode;
use weald_core::id::TreeId;
use weald_core::tree::TreeStatus;

use super::Operation;
use super::keeping::OneTree;
use crate::{Call, Failure, PurgeRequest, TrashEntry, TreeError, exit};

entries!(ListTrash, RestoreTree, PurgeTrash);

/// Lists what can be restored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListTrash {}

/// What is in the trash, oldest first.
#[derive(Debug, Serialize)]
pub struct Trash {
    /// Each with what it takes on the disk.
    pub trash: Vec<TrashEntry>,
}

impl Operation for ListTrash {
    const NAME: &'static str = "trash_list";
    const READS: bool = true;
    type Output = Trash;

    fn run(self, call: &Call<'_>) -> Result<Trash, Failure> {
        let trash = call.ground()?.trees(call)?.trash()?;
        Ok(Trash { trash })
    }
}

/// Brings a worktree back from the trash.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreTree {
    /// Its number, or anything that it was called.
    pub tree: String,
}

impl Operation for RestoreTree {
    const NAME: &'static str = "trash_restore";
    type Output = OneTree;

    fn run(self, call: &Call<'_>) -> Result<OneTree, Failure> {
        let ground = call.ground()?;
        let progress = call.stage("restoring the worktree");
        let trees = ground.trees(call)?;
        let known = ground.removed_tree(call, &self.tree, TreeStatus::Trashed)?;
        let not_there = || TreeError::NotInTrash {
            id: self.tree.clone(),
        };
        let id = known.ok_or_else(not_there)?;
        let tree = match trees.restore(id) {
            Err(error) => return Err(refused(error, id)),
            Ok(tree) => tree,
        };
        drop(progress);
        call.tell(&ground.engine);
        Ok(OneTree { tree })
    }
}

/// A name that is taken has to be freed. Then the name stands for what had it last, so the number is given.
fn refused(error: TreeError, id: TreeId) -> Failure {
    let TreeError::Exists { name, .. } = &error else {
        return error.into();
    };
    let hint = format!("to free the name: weald rm {name}; then: weald restore {id}");
    Failure::from(error).hint(hint)
}

/// Deletes worktrees in the trash for good.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PurgeTrash {
    /// Only those that were removed longer ago; zero is all.
    pub older_than: SignedDuration,
    /// Delete them, instead of only listing them.
    pub apply: bool,
    /// Also those that could not be inspected.
    pub discard: bool,
}

/// What was deleted for good, or would be.
#[derive(Debug, Serialize)]
pub struct PurgedTrash {
    /// Each with its size.
    pub trash: Vec<TrashEntry>,
    /// Whether it is gone.
    pub applied: bool,
    /// What is still there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<NotPurged>,
}

/// A worktree that could not be deleted.
#[derive(Debug, Serialize)]
pub struct NotPurged {
    /// Which of that name.
    pub id: TreeId,
    /// What it was called.
    pub name: String,
    /// For programs.
    pub code: ErrorCode,
    /// In one sentence.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl NotPurged {
    fn new(entry: TrashEntry, failure: Failure) -> Self {
        Self {
            id: entry.id,
            name: entry.name,
            code: failure.code,
            message: failure.message,
            hint: failure.hint,
        }
    }
}

impl PurgeTrash {
    /// A hint to purge again means what is as old as was asked for.
    fn refused(&self, error: TreeError) -> Failure {
        let mut failure = Failure::from(error);
        let age = format!("{:#}", self.older_than).replace(' ', "");
        let again = format!("clean --trash --older-than {age}");
        failure.hint = failure
            .hint
            .map(|hint| hint.replace("clean --trash", &again));
        failure
    }
}

impl Operation for PurgeTrash {
    const NAME: &'static str = "trash_purge";
    type Output = PurgedTrash;

    fn run(self, call: &Call<'_>) -> Result<PurgedTrash, Failure> {
        if self.apply {
            call.refuse_agent("purging the trash")?;
        }
        let ground = call.ground()?;
        let progress = call.stage("deleting");
        let request = PurgeRequest {
            older_than: self.older_than,
            apply: self.apply,
            discard: self.discard,
        };
        let mut purged = ground.trees(call)?.purge(&request)?;
        drop(progress);
        call.tell(&ground.engine);
        // Where there is nothing else to tell, it is a refusal.
        if purged.trash.is_empty()
            && purged.failed.len() == 1
            && let Some((_, error)) = purged.failed.pop()
        {
            return Err(self.refused(error));
        }
        let failed = purged.failed.into_iter();
        let failed = failed.map(|(entry, error)| NotPurged::new(entry, self.refused(error)));
        let failed: Vec<_> = failed.collect();
        for one in &failed {
            call.warn(&format!(
                "{} ({}) was kept: {}",
                one.name, one.id, one.message
            ));
        }
        Ok(PurgedTrash {
            trash: purged.trash,
            applied: purged.applied,
            failed,
        })
    }

    fn exit(purged: &PurgedTrash) -> u8 {
        match purged.failed.is_empty() {
            true => exit::DONE,
            false => exit::REFUSED,
        }
    }
}
