//! Whether a removal is safe: everything that speaks against it, from facts that the engine gathered.

use crate::tree::{Tree, TreeLock};

/// How much of a tree's content nobody else has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    /// There is no directory any more.
    Gone,
    /// It is unknown, and why.
    Unknown(String),
    /// It was looked at.
    Known {
        /// Changes that are staged.
        staged: u64,
        /// Changes that are not staged.
        unstaged: u64,
        /// Files that git does not know.
        untracked: u64,
        /// Commits that the target lacks.
        commits: u64,
        /// Whether none of them is in HEAD, so that no landing brings them.
        elsewhere: bool,
    },
}

/// What is known of a tree before a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovalFacts {
    /// What runs in it, or may.
    pub running: Vec<String>,
    /// Sessions and trees that refer to it.
    pub references: Vec<String>,
    /// A lock that git knows and weald does not.
    pub foreign_lock: Option<String>,
    pub contents: Contents,
}

/// How far a removal may go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemovalConsent {
    /// Uncommitted changes and commits that nobody else has may go to the trash, too.
    pub discard: bool,
    /// Also when it is referenced.
    pub referenced: bool,
    /// Also when it is locked.
    pub locked: bool,
}

/// One reason against a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Objection {
    /// Something runs in it; nothing overrules that.
    Running(Vec<String>),
    Locked(TreeLock),
    /// Others refer to it.
    Referenced(Vec<String>),
    /// What it holds is unknown.
    Unknown(String),
    Dirty {
        staged: u64,
        unstaged: u64,
        untracked: u64,
    },
    /// Commits that the target lacks.
    Unlanded {
        commits: u64,
        /// Whether none of them is in HEAD.
        elsewhere: bool,
    },
}

/// Everything that speaks against a removal, the strongest first.
pub fn objections(tree: &Tree, facts: RemovalFacts, consent: RemovalConsent) -> Vec<Objection> {
    let mut found = Vec::new();
    if !facts.running.is_empty() {
        found.push(Objection::Running(facts.running));
    }
    let foreign = facts.foreign_lock.map(|reason| TreeLock {
        owner: "git".to_owned(),
        reason,
    });
    if let Some(lock) = tree.locked.clone().or(foreign)
        && !consent.locked
    {
        found.push(Objection::Locked(lock));
    }
    if !facts.references.is_empty() && !consent.referenced {
        found.push(Objection::Referenced(facts.references));
    }
    if consent.discard {
        return found;
    }
    match facts.contents {
        Contents::Gone => {}
        Contents::Unknown(why) => found.push(Objection::Unknown(why)),
        Contents::Known {
            staged,
            unstaged,
            untracked,
            commits,
            elsewhere,
        } => {
            if staged + unstaged + untracked > 0 {
                found.push(Objection::Dirty {
                    staged,
                    unstaged,
                    untracked,
                });
            }
            if commits > 0 {
                found.push(Objection::Unlanded { commits, elsewhere });
            }
        }
    }
    found
}
