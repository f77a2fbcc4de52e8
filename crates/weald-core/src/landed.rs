//! Whether a tree's commits are on the target, and how that is known.
//!
//! Pure: which recorded landings count, and which were taken back. Whether their commits are still on the target, and every
//! other way, is git's answer.

use serde::{Deserialize, Serialize};

use crate::choice::words;
use crate::id::{LandingId, TreeId};
use crate::landing::{Landing, LandingStatus};
use crate::tree::Tree;

words! {
    /// How it is known that commits are on the target.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Landed {
        /// A landing took them, and was not taken back.
        Recorded = "recorded",
        /// The target contains them.
        Ancestor = "ancestor",
        /// The target has a commit with the same change for each of them.
        Patches = "patches",
        /// The target once looked exactly like them.
        SameTree = "same_tree",
        /// Merging them would change nothing.
        AddsNothing = "adds_nothing",
    }
}

/// The landings of a tree on `target` that cover the head they took and everything before it.
///
/// One that was made while another one of the tree, taken back later, was on the target does not count: it was built on
/// that one, so it says nothing about those commits.
pub fn covering<'l>(landings: &'l [Landing], tree: TreeId, target: &str) -> Vec<&'l Landing> {
    let is_own = |landing: &&Landing| landing.tree_id == tree && brought(landing, target);
    let own: Vec<_> = landings.iter().filter(is_own).collect();
    let undone_below = |landing: &Landing| {
        own.iter().any(|other| {
            let taken_back = other.reverted_by;
            other.id < landing.id && taken_back.is_some_and(|by| by > landing.id)
        })
    };
    own.iter()
        .filter(|landing| landing.reverted_by.is_none() && !undone_below(landing))
        .copied()
        .collect()
}

/// Whether a tree holds commits that did not land, according to the records. Manual merges are not recorded.
pub fn has_unlanded(tree: &Tree, landings: &[Landing]) -> bool {
    let head = tree.head.as_ref();
    let has_work = head.is_some_and(|head| *head != tree.base.commit);
    let covering = covering(landings, tree.id, &tree.target);
    let is_landed = covering.iter().any(|landing| Some(&landing.head) == head);
    tree.is_live() && has_work && !is_landed
}

/// A landing that was taken back.
///
/// Its commits, or others with the same changes, are still in the target's history, so only what the target holds now says
/// whether its work is there: it may have come again, by whatever way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenBack {
    /// The head that it took.
    pub head: String,
    /// The target's tip before it.
    pub onto: Option<String>,
    /// The target's tip after it was taken back.
    pub undone_at: Option<String>,
}

/// The landings on `target` that were taken back, of whatever tree: another one may have the same commits by now.
pub fn taken_back(landings: &[Landing], target: &str) -> Vec<TakenBack> {
    let tip_of = |id: LandingId| {
        let undoing = landings.iter().find(|landing| landing.id == id)?;
        undoing.new_tip.clone()
    };
    let brought = landings.iter().filter(|landing| brought(landing, target));
    brought
        .filter_map(|landing| {
            Some(TakenBack {
                undone_at: tip_of(landing.reverted_by?),
                head: landing.head.clone(),
                onto: landing.onto.clone(),
            })
        })
        .collect()
}

/// Whether a landing brought work to the target.
fn brought(landing: &Landing, target: &str) -> bool {
    landing.target == target && landing.status == LandingStatus::Landed && landing.reverts.is_none()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::tree::{Base, Tree};

    fn landing(id: u64, tree: u64, status: LandingStatus, reverted_by: Option<u64>) -> Landing {
        let base = Base {
            reference: "main".to_owned(),
            commit: "0".repeat(40),
        };
        let name = "a".parse().unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let tree = Tree::new(TreeId(tree), name, "/a".into(), base, now);
        Landing {
            status,
            reverted_by: reverted_by.map(LandingId),
            ..Landing::new(LandingId(id), &tree, format!("head {id}"), now)
        }
    }

    #[test]
    fn l4_only_landings_that_stand_cover_their_commits() {
        use LandingStatus::{Conflict, Landed, Moving};
        let covers = |landings: &[Landing]| -> Vec<String> {
            let found = covering(landings, TreeId(1), "main");
            found.iter().map(|found| found.head.clone()).collect()
        };
        assert_eq!(covers(&[landing(1, 1, Landed, None)]), ["head 1"]);
        for other in [
            landing(1, 2, Landed, None),
            landing(1, 1, Conflict, None),
            landing(1, 1, Moving, None),
            landing(1, 1, Landed, Some(2)),
            Landing {
                target: "dev".to_owned(),
                ..landing(1, 1, Landed, None)
            },
            Landing {
                reverts: Some(LandingId(9)),
                ..landing(1, 1, Landed, None)
            },
        ] {
            assert!(covers(std::slice::from_ref(&other)).is_empty(), "{other:?}");
        }
        // The second was built on the first, which was taken back after it.
        let built_on = [landing(1, 1, Landed, Some(3)), landing(2, 1, Landed, None)];
        assert!(covers(&built_on).is_empty());
        // The second came after the first was taken back, so it brought all of it again.
        let again = [landing(1, 1, Landed, Some(2)), landing(3, 1, Landed, None)];
        assert_eq!(covers(&again), ["head 3"]);
        let first_stands = [landing(1, 1, Landed, None), landing(2, 1, Landed, Some(3))];
        assert_eq!(covers(&first_stands), ["head 1"]);
    }
    #[test]
    fn l4_what_was_taken_back_is_known_with_where_that_happened() {
        use LandingStatus::{Landed, Red};
        let undoing = |id, of| Landing {
            reverts: Some(LandingId(of)),
            new_tip: Some(format!("tip {id}")),
            ..landing(id, 1, Landed, None)
        };
        let landings = [
            landing(1, 1, Landed, Some(2)),
            undoing(2, 1),
            landing(3, 1, Landed, None),
            landing(4, 2, Landed, None),
            landing(5, 1, Red, Some(2)),
            // What undid it is not known any more: it was undone all the same.
            landing(6, 1, Landed, Some(9)),
        ];
        let found = taken_back(&landings, "main");
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.head.as_str(), one.undone_at.as_deref()))
            .collect();
        assert_eq!(found, [("head 1", Some("tip 2")), ("head 6", None)]);
        assert!(taken_back(&landings, "dev").is_empty());
    }
}
