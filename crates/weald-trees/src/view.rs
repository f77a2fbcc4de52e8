//! Trees as people and programs see them: the record, and what the last look found.
//!
//! `list` is fast and may be old; a look is always new and is remembered, with its time, in a file beside the store.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weald_core::Timestamp;
use weald_core::landed::Landed;
use weald_core::tree::{Tree, TreeKind};
use weald_git::{Commit, Door, Reference};

use super::inside::{InspectReply, Look, UpdateRefs};
use super::side_by_side::side_by_side;
use super::site::Site;
use super::{TreeError, Trees};
use weald_control::files;

/// The largest file of an inner repository that the host reads by itself.
const PEEK: u64 = 1 << 20;

/// Whether a tree has uncommitted changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Dirty {
    /// It was looked at.
    Known(bool),
    /// It can't be told.
    #[serde(with = "unknown")]
    Unknown,
}

mod unknown {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("unknown")
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        String::deserialize(deserializer).map(drop)
    }
}

/// What the last look found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    dirty: Dirty,
    #[serde(flatten)]
    look: Look,
    ahead: u64,
    behind: u64,
    #[serde(default)]
    landed: Option<Landed>,
    status_at: Timestamp,
    #[serde(default)]
    problem: Option<String>,
    /// The commit that HEAD held when the vault last took the work in and main's branch did not follow.
    #[serde(default)]
    kept: Option<String>,
}

/// A tree with what is known about it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TreeView {
    #[serde(flatten)]
    pub tree: Tree,
    /// Whether its directory is there and is still the one that was made.
    pub exists: bool,
    /// Whether it has uncommitted changes.
    pub dirty: Dirty,
    /// Commits since its base.
    pub ahead: Option<u64>,
    /// Commits of the target that it lacks.
    pub behind: Option<u64>,
    /// How it is known that its commits are on the target; absent if they are not, or if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landed>,
    /// Whether its HEAD holds something that was not imported yet.
    pub unimported: bool,
    /// When it was last looked at.
    pub status_at: Option<Timestamp>,
    /// What the last look found.
    #[serde(flatten)]
    pub look: Option<Look>,
    /// Why it could not be looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl TreeView {
    /// Whether something else is where it was.
    pub fn is_replaced(&self) -> bool {
        !self.exists && self.tree.path.symlink_metadata().is_ok()
    }
}

impl Trees<'_> {
    /// Every tree that is there or should be, by number, from what is known.
    pub fn list(&self) -> Result<Vec<TreeView>, TreeError> {
        let trees = self.records()?;
        let shown = trees.into_iter().filter(Tree::is_wanted);
        let shown: Vec<_> = shown.collect();
        Ok(side_by_side(&shown, 64, |tree| {
            let mut tree = tree.clone();
            // What is proven dead does not run.
            tree.runs.retain(|run| self.may_live(&run.process));
            self.known(tree)
        }))
    }

    /// Every tree that is there or should be, by number, each looked at now.
    pub fn list_fresh(&self) -> Result<Vec<TreeView>, TreeError> {
        let views = self.list()?;
        let looking = self.with_refs_of_now()?;
        Ok(side_by_side(&views, 1, |view| {
            looking.refreshed(view.clone())
        }))
    }

    /// One tree that can't be looked into does not hide the others.
    fn refreshed(&self, view: TreeView) -> TreeView {
        if !view.tree.is_live() {
            return view;
        }
        self.look_at(view.tree.clone())
            .unwrap_or_else(|error| TreeView {
                dirty: Dirty::Unknown,
                problem: Some(error.to_string()),
                ..view
            })
    }

    /// A tree with what is known about it.
    pub fn view(&self, tree: Tree) -> TreeView {
        self.known(tree)
    }

    /// Looks at one tree: imports, lets main's branch follow, refreshes the target inside. What took its place is refused:
    /// nothing that could be shown is about the tree that was asked for.
    pub fn look(&self, name: Option<&str>) -> Result<TreeView, TreeError> {
        let tree = self.named(name)?;
        self.refuse_replaced(&tree)?;
        self.look_at(tree)
    }

    pub(crate) fn look_at(&self, tree: Tree) -> Result<TreeView, TreeError> {
        Ok(self.look_since(tree, None)?.0)
    }

    /// Looks at a tree, and answers what was found besides, if it could be looked at. `since` is a commit: every file that
    /// differs from it is listed.
    pub(super) fn look_since(
        &self,
        tree: Tree,
        since: Option<&str>,
    ) -> Result<(TreeView, Option<InspectReply>), TreeError> {
        let unseen = |tree, error| Ok((self.unreadable(tree, error)?, None));
        let site = match self.site(&tree) {
            Ok(site) => site,
            Err(error) => return unseen(tree, error),
        };
        if self.place.is_read_only() {
            // What it holds can't be taken in, so only what was known is shown.
            let error =
                TreeError::unreadable(&tree.name, "the repository is on a read-only file system");
            return unseen(tree, error);
        }
        match self.imported(&tree, &site, since) {
            Ok((tree, reply)) => Ok((self.show(tree, reply.look.clone())?, Some(reply))),
            Err(error) => unseen(tree, error),
        }
    }

    /// Remembers what a look found, and refreshes the target inside.
    pub fn show(&self, tree: Tree, look: Look) -> Result<TreeView, TreeError> {
        self.refresh_target(&tree, &self.site(&tree)?, &look)?;
        self.remember(tree, look)
    }

    /// What can't be looked at is shown with the reason, and is dirty as far as anybody can tell.
    fn unreadable(&self, tree: Tree, error: TreeError) -> Result<TreeView, TreeError> {
        match error {
            TreeError::Missing { .. }
            | TreeError::Replaced { .. }
            | TreeError::OfAnother { .. }
            | TreeError::Damaged { .. }
            | TreeError::Unreadable { .. } => {}
            other => return Err(other),
        }
        let mut view = self.known(tree);
        view.dirty = Dirty::Unknown;
        view.problem = Some(error.to_string());
        Ok(view)
    }

    fn remember(&self, tree: Tree, look: Look) -> Result<TreeView, TreeError> {
        let (ahead, behind) = match &look.head {
            Some(head) => self.distance(&tree, head)?,
            None => (0, 0),
        };
        let landed = match &look.head {
            Some(head) if ahead > 0 => self.landed(&tree, head)?,
            _ => None,
        };
        let seen = Seen {
            dirty: Dirty::Known(look.is_changed()),
            look,
            ahead,
            behind,
            landed,
            status_at: self.now()?,
            problem: None,
            kept: self.seen(&tree).and_then(|seen| seen.kept),
        };
        let file = self.seen_file(&tree);
        if let Some(directory) = file.parent() {
            let _ = fs::create_dir_all(directory);
        }
        // A cache that can't be written costs time, nothing else.
        let _ = files::replace(&file, &serde_json::to_string(&seen).unwrap_or_default());
        Ok(self.known(tree))
    }

    /// What the vault took in of a tree, while main's branch stays where it is.
    pub(crate) fn remember_kept(&self, tree: &Tree, look: &Look) {
        // It is only shown.
        let _ = self.remember(tree.clone(), look.clone());
        if let Some(mut seen) = self.seen(tree) {
            seen.kept.clone_from(&look.head);
            let text = serde_json::to_string(&seen).unwrap_or_default();
            let _ = files::replace(&self.seen_file(tree), &text);
        }
    }

    /// What a look for something else found, if the last one found something else.
    pub fn remember_changed(&self, tree: &Tree, look: &Look) {
        if self.seen(tree).is_some_and(|seen| seen.look != *look) {
            // It is only shown.
            let _ = self.remember(tree.clone(), look.clone());
        }
    }

    /// What a list shows of a tree's files is never older than what weald has seen of them since, such as after a commit of
    /// its own. How far it is ahead stays as it was: that costs more.
    pub(super) fn renew_seen(&self, tree: &Tree, look: &Look) {
        let Some(seen) = self.seen(tree).filter(|seen| seen.look != *look) else {
            return;
        };
        let seen = Seen {
            dirty: Dirty::Known(look.is_changed()),
            look: look.clone(),
            ..seen
        };
        // A cache that can't be written costs time, nothing else.
        let text = serde_json::to_string(&seen).unwrap_or_default();
        let _ = files::replace(&self.seen_file(tree), &text);
    }

    fn seen(&self, tree: &Tree) -> Option<Seen> {
        let text = files::read_small(&self.seen_file(tree), PEEK).ok()??;
        serde_json::from_str(&text).ok()
    }

    fn seen_file(&self, tree: &Tree) -> PathBuf {
        self.place.private().join("seen").join(tree.id.to_string())
    }

    /// The record with what the last look found.
    pub(crate) fn known(&self, tree: Tree) -> TreeView {
        let seen = self.seen(&tree);
        let opened = self.opened(&tree);
        let exists = matches!(opened, Ok(_) | Err(TreeError::Damaged { .. }));
        let problem = match &opened {
            Err(error @ (TreeError::Replaced { .. } | TreeError::OfAnother { .. })) => {
                Some(error.to_string())
            }
            _ => None,
        };
        let unimported = exists && tree.kind == TreeKind::Sealed && {
            let recorded = tree.tip();
            let head = opened.ok().and_then(|(_, door)| peek_head(&door));
            let kept = seen.as_ref().and_then(|seen| seen.kept.as_deref());
            head.is_none_or(|head| head != recorded && Some(head.as_str()) != kept)
        };
        TreeView {
            exists,
            dirty: seen.as_ref().map_or(Dirty::Unknown, |seen| seen.dirty),
            ahead: seen.as_ref().map(|seen| seen.ahead),
            behind: seen.as_ref().map(|seen| seen.behind),
            landed: seen.as_ref().and_then(|seen| seen.landed),
            unimported,
            status_at: seen.as_ref().map(|seen| seen.status_at),
            look: seen.map(|seen| seen.look),
            problem,
            tree,
        }
    }

    /// Brings the target's refs inside a sealed tree up to date; never a branch that the agent works on. Answers whether
    /// there was anything to change.
    pub(crate) fn refresh_target(
        &self,
        tree: &Tree,
        site: &Site,
        look: &Look,
    ) -> Result<bool, TreeError> {
        if tree.kind == TreeKind::Linked {
            return Ok(false);
        }
        let Some(tip) = self.target_tip(tree)? else {
            return Ok(false);
        };
        let mut wanted = Vec::new();
        if look.branch.as_deref() != Some(&tree.target) {
            wanted.push((format!("refs/heads/{}", tree.target), tip));
        }
        let remote = format!("refs/remotes/origin/{}", tree.target);
        if let Some(commit) = self.repository().resolve(&remote)? {
            wanted.push((remote, commit.as_str().to_owned()));
        }
        let door = Door::open(&site.path).ok();
        let held = |name: &str| door.as_ref().and_then(|door| peek_ref(door, name));
        let mut changes = Vec::new();
        for (name, new) in wanted {
            match held(&name) {
                Some(old) if old == new => {}
                // An agent's own commits on it stay.
                Some(old) if !self.contains(&new, &old)? => {}
                old => changes.push((name, new, old)),
            }
        }
        if changes.is_empty() {
            return Ok(false);
        }
        // A tree whose own refs are in the way keeps them; the look itself succeeded.
        let _ = self.visit(tree.name.as_str(), site, UpdateRefs(changes));
        Ok(true)
    }
}

/// What an inner HEAD holds, as far as the host dares to read it.
pub fn peek_head(door: &Door) -> Option<String> {
    let text = door.read(".git/HEAD", 4096).ok()?;
    match Reference::parse(String::from_utf8_lossy(&text).trim_end())? {
        Reference::Direct(commit) => Some(commit.as_str().to_owned()),
        Reference::Symbolic(name) => peek_ref(door, &name),
    }
}

fn peek_ref(door: &Door, name: &str) -> Option<String> {
    let loose = door.read(&format!(".git/{name}"), 4096).ok();
    let loose = loose.and_then(|text| {
        Commit::parse(String::from_utf8_lossy(&text).trim_end()).map(String::from)
    });
    loose.or_else(|| {
        let packed = door.read(".git/packed-refs", 64 * PEEK).ok()?;
        let packed = String::from_utf8_lossy(&packed);
        let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
        let (id, _) = lines.find(|(_, known)| *known == name)?;
        Commit::parse(id).map(String::from)
    })
}
