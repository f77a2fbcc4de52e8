//! Which folders go when room is wanted: those that a build makes again, of trees that nobody uses, the longest unused first.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::clean::{Blocker, age_blocker};
use crate::name::TreeName;

/// What is known of whether anybody misses what builds made in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleFacts {
    /// Who uses the tree or refers to it, in words.
    pub uses: Vec<String>,
    /// Whether it is on the disk that room is wanted on.
    pub is_on_disk: bool,
    /// When it was last used; `None` if that can't be read.
    pub last_used: Option<Timestamp>,
}

/// Why a tree keeps what builds made in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotIdle {
    #[error("it is gone")]
    Gone,
    /// Room there is none here.
    #[error("it is on another file system")]
    Elsewhere,
    /// Somebody uses it, or may.
    #[error("{0}")]
    Used(String),
    /// It was used a moment ago.
    #[error("it was used a moment ago (usage.min_age)")]
    TooRecent,
    /// When it was used is unknown.
    #[error("its last use is unknown (usage.min_age)")]
    AgeUnknown,
}

/// Refuses to take anything from a tree that is not idle.
pub fn require_idle(
    facts: &IdleFacts,
    min_age: SignedDuration,
    now: Timestamp,
) -> Result<(), NotIdle> {
    if !facts.is_on_disk {
        return Err(NotIdle::Elsewhere);
    }
    if let Some(who) = facts.uses.first() {
        return Err(NotIdle::Used(who.clone()));
    }
    match age_blocker(facts.last_used, min_age, now) {
        None => Ok(()),
        Some(Blocker::TooRecent) => Err(NotIdle::TooRecent),
        Some(_) => Err(NotIdle::AgeUnknown),
    }
}

/// A folder that a build makes again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regenerable {
    /// Where it is in its tree.
    pub path: String,
    pub bytes: u64,
    /// What deleting it frees for certain: what it shares with others is theirs, too.
    #[serde(default)]
    pub frees: u64,
}

/// A tree that could do without some folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evictable {
    pub tree: TreeName,
    /// When anybody last worked in it.
    pub last_used_at: Timestamp,
    pub folders: Vec<Regenerable>,
}

/// The folders to delete so that `wanted` bytes are free where `free` are: no more than needed, the largest of a tree
/// first, so that few builds are lost. If that is not enough, also those that free nothing alone: they may share with each
/// other, and nobody knows before they are gone.
pub fn choose(mut trees: Vec<Evictable>, free: u64, wanted: u64) -> Vec<Evictable> {
    trees.sort_by(|a, b| (a.last_used_at, &a.tree).cmp(&(b.last_used_at, &b.tree)));
    let mut short = wanted.saturating_sub(free);
    let mut chosen = Vec::new();
    for tree in &mut trees {
        let (mut sure, unsure): (Vec<_>, Vec<_>) = std::mem::take(&mut tree.folders)
            .into_iter()
            .partition(|folder| folder.frees > 0);
        sure.sort_by_key(|folder| std::cmp::Reverse(folder.frees));
        sure.retain(|folder| {
            let is_needed = short > 0;
            short = short.saturating_sub(folder.frees);
            is_needed
        });
        tree.folders = unsure;
        chosen.push(Evictable {
            folders: sure,
            ..tree.clone()
        });
    }
    if short > 0 {
        chosen.extend(trees);
    }
    chosen.retain(|tree| !tree.folders.is_empty());
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str, used: i64, sizes: &[u64]) -> Evictable {
        let folder = |bytes: &u64| Regenerable {
            path: format!("{name}{bytes}"),
            bytes: 100,
            frees: *bytes,
        };
        Evictable {
            tree: name.parse().unwrap(),
            last_used_at: Timestamp::from_second(used).unwrap(),
            folders: sizes.iter().map(folder).collect(),
        }
    }

    #[test]
    fn l14_the_longest_unused_goes_first_and_no_more_than_needed() {
        for (free, wanted, expected) in [
            (100, 100, &[][..]),
            (100, 50, &[]),
            (0, 1, &["old40"]),
            (0, 40, &["old40"]),
            (0, 41, &["old40", "old10"]),
            (10, 61, &["old40", "old10", "mid30"]),
            (0, 170, &["old40", "old10", "mid30", "new90"]),
            (0, 1_000, &["old40", "old10", "mid30", "new90", "old0"]),
        ] {
            let trees = vec![
                tree("new", 30, &[90]),
                tree("old", 10, &[10, 40, 0]),
                tree("mid", 20, &[30]),
            ];
            let chosen = choose(trees, free, wanted);
            let paths: Vec<_> = chosen
                .iter()
                .flat_map(|tree| tree.folders.iter().map(|folder| folder.path.as_str()))
                .collect();
            assert_eq!(paths, expected, "{free} free, {wanted} wanted");
        }
    }

    #[test]
    fn l14_only_an_idle_tree_loses_what_builds_made() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let hour = SignedDuration::from_hours(1);
        let idle = IdleFacts {
            uses: Vec::new(),
            is_on_disk: true,
            last_used: Some(at(0)),
        };
        let with = |last_used| IdleFacts {
            last_used,
            ..idle.clone()
        };
        let used = IdleFacts {
            uses: vec!["bob has claimed its task".to_owned()],
            ..idle.clone()
        };
        let who = NotIdle::Used("bob has claimed its task".to_owned());
        let away = IdleFacts {
            is_on_disk: false,
            ..idle.clone()
        };
        for (facts, min_age, expected) in [
            (idle.clone(), hour, Ok(())),
            (with(Some(at(6_401))), hour, Err(NotIdle::TooRecent)),
            (with(Some(at(6_400))), hour, Ok(())),
            (with(None), hour, Err(NotIdle::AgeUnknown)),
            (with(Some(at(10_001))), hour, Err(NotIdle::AgeUnknown)),
            (with(Some(at(10_000))), SignedDuration::ZERO, Ok(())),
            (with(None), SignedDuration::ZERO, Ok(())),
            (used, SignedDuration::ZERO, Err(who)),
            (away, SignedDuration::ZERO, Err(NotIdle::Elsewhere)),
        ] {
            assert_eq!(
                require_idle(&facts, min_age, at(10_000)),
                expected,
                "{facts:?}"
            );
        }
    }
}
