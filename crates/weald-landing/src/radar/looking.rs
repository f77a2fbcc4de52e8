//! What each tree holds now, committed or not, as one commit that can be merged.
//!
//! Nothing of it is kept for the tree: no ref, no record, no snapshot. A tree that can't be looked into is told with its
//! reason and hides no other.

use std::path::Path;

use weald_core::tree::{Tree, TreeKind};
use weald_git::{GitError, NewCommit, Person, commit_tree};

use super::memory::State;
use crate::LandError;
use crate::Landings;
use weald_trees::Site;
use weald_trees::TreeError;
use weald_trees::inside::{SnapshotForm, TakeSnapshot};

/// What such a commit says; nobody sees it.
const MESSAGE: &str = "work that is not committed\n";

impl Landings<'_> {
    /// What a tree holds; `known` is what it held the last time.
    pub(super) fn observe(
        &self,
        tree: &Tree,
        repository: &Path,
        known: Option<&State>,
    ) -> Result<State, LandError> {
        let site = self.trees.site(tree)?;
        if let Some(known) = known
            && known.fingerprint.is_some()
        {
            let unless = self.trees.unless(known.ignored.clone())?;
            if self.trees.fingerprint(tree, &site, &unless)? == known.fingerprint {
                return Ok(known.clone());
            }
        }
        self.observe_whole(tree, &site, repository, known)
    }

    fn observe_whole(
        &self,
        tree: &Tree,
        site: &Site,
        repository: &Path,
        known: Option<&State>,
    ) -> Result<State, LandError> {
        let mut unless = self
            .trees
            .unless(known.map_or(Vec::new(), |known| known.ignored.clone()))?;
        unless.like = known.and_then(|known| known.work.clone());
        let mut wish = self.trees.wish(tree, "radar", Some(unless))?;
        wish.form = SnapshotForm::Work;
        let haves = match tree.kind {
            TreeKind::Sealed => Some(self.trees.haves(
                tree,
                &self.trees.known_refs(tree)?,
                &self.trees.main_refs()?,
            )?),
            TreeKind::Linked => None,
        };
        let pack = self.trees.pack_wish(tree, haves);
        let job = TakeSnapshot { pack, wish };
        let reply = self.trees.receive_into(repository, tree, site, job)?;
        let head = reply.look.head.ok_or_else(|| TreeError::Unreadable {
            name: tree.name.to_string(),
            why: "it has no commit".to_owned(),
        })?;
        let commit = match (&reply.snapshot, known) {
            (None, _) => head.clone(),
            (Some(work), Some(known))
                if known.head == head && known.work.as_ref() == Some(work) =>
            {
                known.commit.clone()
            }
            (Some(work), _) => commit_of_work(repository, &head, work)?,
        };
        Ok(State {
            head,
            work: reply.snapshot,
            commit,
            left_out: reply.left_out,
            fingerprint: reply.fingerprint,
            ignored: reply.ignored,
        })
    }
}

/// A commit of `work` on top of `head`; the same for the same, because it carries the time of `head`.
fn commit_of_work(repository: &Path, head: &str, work: &str) -> Result<String, GitError> {
    let text = weald_git::Git::new(repository, "cat-file")
        .args(["commit", head])
        .run()?;
    let text = String::from_utf8_lossy(&text);
    let when = text
        .lines()
        .take_while(|line| !line.is_empty())
        .find_map(|line| line.strip_prefix("committer "))
        .and_then(|line| line.rsplit_once("> "))
        .map(|(_, when)| when.to_owned());
    let weald = Person {
        name: "weald".to_owned(),
        mail: "weald@localhost".to_owned(),
        when: Some(when.unwrap_or_else(|| "0 +0000".to_owned())),
    };
    commit_tree(
        repository,
        &NewCommit {
            tree: work,
            parents: &[head],
            message: MESSAGE,
            author: &weald,
            committer: &weald,
        },
    )
}
