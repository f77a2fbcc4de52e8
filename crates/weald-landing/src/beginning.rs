//! Where the commits that land begin.
//!
//! A landing remembers the head that it took. The next one from the same tree merges with that head as the base, because
//! after a squash git itself knows nothing of it and would see the same change twice. After a landing was undone it is the
//! other way round: git takes its commits for landed, and the merge has to begin before them.

use std::collections::BTreeSet;

use weald_core::id::TreeId;
use weald_core::landing::{Landing, LandingStatus};

use super::LandError;
use crate::Landings;

/// A landing that is assumed to be on the target, or is.
#[derive(Debug, Clone)]
pub(crate) struct Ahead {
    pub tree: TreeId,
    /// The head that it took.
    pub head: String,
    /// The tip that it made.
    pub tip: String,
}

/// Where the commits that land begin.
pub(super) enum Start {
    /// Everything was landed before.
    Landed,
    At(Beginning),
}

/// What a merge begins from, and which commits are nobody's news.
#[derive(Default)]
pub(super) struct Beginning {
    /// The base of the merge; `None` where git says that the histories part.
    pub base: Option<String>,
    /// A head that landed before, though git does not know: it counts as a part of the target.
    pub landed: Option<String>,
    /// Commits that are known, with all that they lead to.
    pub known: Vec<String>,
}

impl Beginning {
    /// Where git says that the histories part.
    fn parted(tip: &str) -> Start {
        Start::At(Self {
            known: vec![tip.to_owned()],
            ..Self::default()
        })
    }

    /// After this head, which landed before.
    fn after(head: &str, tip: &str) -> Start {
        Start::At(Self {
            landed: Some(head.to_owned()),
            known: vec![tip.to_owned(), head.to_owned()],
            ..Self::default()
        })
    }
}

impl Landings<'_> {
    /// What was landed from this tree before, if git can't know it.
    pub(super) fn start_of(
        &self,
        landing: &Landing,
        tip: &str,
        ahead: &[Ahead],
    ) -> Result<Start, LandError> {
        let recorded = self.trees.engine.look(|tx| tx.landings_of(&landing.tree))?;
        let recorded = recorded.into_iter().filter(|one| {
            one.tree_id == landing.tree_id
                && one.target == landing.target
                && one.status == LandingStatus::Landed
                && one.reverts.is_none()
        });
        let (undone, standing): (Vec<_>, Vec<_>) =
            recorded.partition(|one| one.reverted_by.is_some());
        for one in &undone {
            if let Some(start) = self.begin_again(landing, one, &standing, tip)? {
                return Ok(Start::At(start));
            }
        }
        let standing = standing.into_iter().filter_map(|one| {
            Some(Ahead {
                tree: one.tree_id,
                tip: one.new_tip?,
                head: one.head,
            })
        });
        let mine = ahead.iter().filter(|one| one.tree == landing.tree_id);
        let known: Vec<Ahead> = standing.chain(mine.cloned()).collect();
        for one in known.iter().rev() {
            if one.head == landing.head && self.is_on(tip, &one.tip)? {
                return Ok(Start::Landed);
            }
            let missing = self.missing_in(&landing.head, &[&one.head, &one.tip])?;
            if missing.contains(&one.head) || !self.is_on(tip, &one.tip)? {
                continue;
            }
            // The target came into the tree since: then git knows.
            return Ok(match missing.contains(&one.tip) {
                false => Beginning::parted(tip),
                true => Beginning::after(&one.head, tip),
            });
        }
        Ok(Beginning::parted(tip))
    }

    /// Where to begin when the landing `one` of this tree was undone, and its work comes again: before it. git would take
    /// commits for landed that are in the target's history. `None` if it came again already, or the tree knows that it
    /// was undone.
    fn begin_again(
        &self,
        landing: &Landing,
        one: &Landing,
        standing: &[Landing],
        tip: &str,
    ) -> Result<Option<Beginning>, LandError> {
        let undoing = match one.reverted_by {
            Some(by) => self.landing(by)?,
            None => return Ok(None),
        };
        let (Some(undone_at), Some(onto)) = (undoing.new_tip, &one.onto) else {
            return Ok(None);
        };
        for later in standing.iter().filter(|later| later.id > undoing.id) {
            if self.is_on(&later.head, &one.head)? {
                return Ok(None);
            }
        }
        let missing = self.missing_in(&landing.head, &[&one.head, &undone_at])?;
        if missing.contains(&one.head)
            || !missing.contains(&undone_at)
            || !self.is_on(tip, &undone_at)?
        {
            return Ok(None);
        }
        let mut base = None;
        for earlier in standing.iter().rev().filter(|earlier| earlier.id < one.id) {
            if self.is_on(&one.head, &earlier.head)? {
                base = Some(earlier.head.clone());
                break;
            }
        }
        let base = match base {
            Some(base) => Some(base),
            None => self.parting(onto, &one.head)?,
        };
        Ok(base.map(|base| Beginning {
            known: vec![base.clone(), onto.clone()],
            base: Some(base),
            landed: None,
        }))
    }

    /// Where two histories part.
    fn parting(&self, one: &str, other: &str) -> Result<Option<String>, LandError> {
        let asked = self
            .trees
            .vault()
            .git("merge-base")
            .args([one, other])
            .output()?;
        Ok(asked.status.success().then(|| line(&asked.stdout)))
    }

    fn is_on(&self, tip: &str, commit: &str) -> Result<bool, LandError> {
        Ok(tip == commit || self.trees.contains(tip, commit)?)
    }

    /// Those of `commits` that are not in `head`.
    fn missing_in(&self, head: &str, commits: &[&str]) -> Result<Vec<String>, LandError> {
        let answer = self
            .trees
            .vault()
            .git("rev-list")
            .args(commits)
            .args([format!("^{head}")])
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let listed: BTreeSet<&str> = text.lines().collect();
        let missing = commits.iter().filter(|commit| listed.contains(**commit));
        Ok(missing.map(|commit| (*commit).to_owned()).collect())
    }
}

fn line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().next().unwrap_or_default().to_owned()
}
