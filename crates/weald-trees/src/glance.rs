//! A glance at a sealed tree from outside: whether nobody changed anything in it.
//!
//! All is seen through the door: nothing in the tree runs, and of its files only those of its repository are read, none of
//! which is believed to say more than that nothing happened. Only a yes counts, and says what a visit would have said.
//! Whatever is not plain, an ignored file even, is for a visit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use weald_core::tree::{Tree, TreeKind, TreeStatus};
use weald_git::{CheckoutIndex, Commit, Door, MainRef, Reference, trees_of};

use super::Trees;
use super::inside::{CONFIG_LIMIT, CONFIGS, InspectReply, Look, Tips, judging, judging_lines};
use super::site::Site;
use super::untrusted::Reply;

/// The largest index that the host takes into its memory.
const INDEX_LIMIT: u64 = 256 << 20;

/// The largest of the repository's other files.
const FILE_LIMIT: u64 = 4 << 20;

/// The largest file of a single ref. Many are read at once.
const REF_LIMIT: u64 = 8 << 10;

/// How many refs may be in files of their own.
const LOOSE_REFS: usize = 200;

/// How deep these may lie.
const DEPTH: usize = 8;

/// What is there while something goes on, or while there is more than a branch: commits, or files elsewhere.
const MORE: [&str; 10] = [
    ".git/rebase-merge",
    ".git/rebase-apply",
    ".git/MERGE_HEAD",
    ".git/CHERRY_PICK_HEAD",
    ".git/REVERT_HEAD",
    ".git/BISECT_LOG",
    ".git/logs/refs/stash",
    ".git/worktrees",
    ".git/reftable",
    ".git/commondir",
];

/// Files that change when somebody works by hand, as a survey goes by them.
const TOUCHED: [&str; 5] = [
    ".git/index",
    ".git/HEAD",
    ".git/logs/HEAD",
    ".git/COMMIT_EDITMSG",
    ".",
];

impl Trees<'_> {
    /// What a visit would answer, if a tree is at the commit that its record says, and neither it nor its repository holds
    /// anything else; `None` if that can't be told.
    pub fn glance(&self, tree: &Tree, site: &Site, mains: &[MainRef]) -> Option<InspectReply> {
        if tree.kind != TreeKind::Sealed || tree.status == TreeStatus::Trashed {
            return None;
        }
        let door = Door::open(&site.path).ok()?;
        // Before anything is read: what is written meanwhile is younger.
        let seen_at = |path: &&str| door.trace(path).map(|trace| trace.written());
        let touched_at = TOUCHED.iter().filter_map(seen_at).max();
        let written = door.trace(".git/index")?.written();
        let refs = refs_of(&door)?;
        let text = door.read(".git/HEAD", REF_LIMIT).ok()?;
        let (head, branch) = match Reference::parse(&String::from_utf8_lossy(&text))? {
            Reference::Direct(head) => (head.as_str().to_owned(), None),
            Reference::Symbolic(name) => (refs.get(&name)?.clone(), Some(name)),
        };
        let is_mains = |(name, id): (&String, &String)| {
            let mut mains = mains.iter();
            *id == head || mains.any(|known| known.name == *name && known.commit == *id)
        };
        let is_plain = head == *tree.head.as_ref().unwrap_or(&tree.base.commit)
            && refs.iter().all(is_mains)
            && MORE.iter().all(|path| door.is_absent(path))
            && is_logged_alone(&door, &head)
            && self.has_mains_judgement(&door)
            && self.is_left_from_here(&site.path);
        if !is_plain {
            return None;
        }
        let bytes = door.read(".git/index", INDEX_LIMIT).ok()?;
        let index = CheckoutIndex::parse(bytes, head.len() == 64)?;
        let is_untouched = index.tree()? == self.known_tree_of(&head)?
            && door.is_as_indexed(&index, written).ok()?;
        let short = |name: String| match name.strip_prefix("refs/heads/") {
            Some(short) => short.to_owned(),
            None => name,
        };
        let reply = InspectReply {
            look: Look {
                head: Some(head.clone()),
                branch: branch.map(short),
                ..Look::default()
            },
            tips: Tips {
                refs: refs.into_iter().collect(),
                reflog: vec![head],
                ..Tips::default()
            },
            paths: Vec::new(),
            truncated: false,
            touched_at,
            changed: None,
        };
        // Names in it are the tree's own.
        is_untouched.then(|| reply.checked()).flatten()
    }

    /// Whether a tree's own settings let git take no more for the same than main's do: else what its index has may be what
    /// only they call the same.
    fn has_mains_judgement(&self, door: &Door) -> bool {
        let own: Result<Vec<_>, _> = CONFIGS
            .iter()
            .map(|name| format!(".git/{name}"))
            .filter(|path| !door.is_absent(path))
            .map(|path| door.read(&path, CONFIG_LIMIT))
            .collect();
        let mains = judging_lines(self.common_dir());
        own.is_ok_and(|texts| judging(texts.into_iter()) == mains)
    }

    /// The git tree of a commit that the vault has. Most trees are at a few commits.
    fn known_tree_of(&self, commit: &str) -> Option<String> {
        let known = self.known_trees.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        if !known.contains_key(commit) {
            known.extend(trees_of(self.vault().path(), &BTreeSet::from([commit])).ok()?);
        }
        known.get(commit).cloned()
    }
}

/// Every ref of an inner repository but those that stand for others; `None` if there is anything odd.
fn refs_of(door: &Door) -> Option<BTreeMap<String, String>> {
    // Loose ones first: a ref that is packed meanwhile is seen twice, not never.
    let loose = loose_refs(door)?;
    let mut refs = match door.is_absent(".git/packed-refs") {
        true => BTreeMap::new(),
        false => packed_refs(door.read(".git/packed-refs", FILE_LIMIT).ok()?)?,
    };
    let mut aliases = Vec::new();
    for (name, reference) in loose {
        match reference {
            Reference::Direct(id) => drop(refs.insert(name, id.as_str().to_owned())),
            Reference::Symbolic(to) => aliases.push(to),
        }
    }
    aliases
        .iter()
        .all(|to| refs.contains_key(to))
        .then_some(refs)
}

/// What the file of packed refs says; `None` if a line of it is odd.
pub(super) fn packed_refs(text: Vec<u8>) -> Option<BTreeMap<String, String>> {
    let mut refs = BTreeMap::new();
    for line in String::from_utf8(text).ok()?.lines() {
        match line.split_once(' ') {
            Some(("#", _)) => {}
            Some((id, name)) => drop(refs.insert(name.to_owned(), id_of(id)?)),
            None => drop(id_of(line.strip_prefix('^')?)?),
        }
    }
    Some(refs)
}

/// Refs that are files of their own.
fn loose_refs(door: &Door) -> Option<Vec<(String, Reference)>> {
    let mut refs = Vec::new();
    let mut open = vec!["refs".to_owned()];
    let mut found = 0;
    while let Some(folder) = open.pop() {
        for (name, is_folder) in door.names(&format!(".git/{folder}"), LOOSE_REFS)? {
            let name = format!("{folder}/{name}");
            found += 1;
            if found > LOOSE_REFS || name.matches('/').count() > DEPTH {
                return None;
            }
            if is_folder {
                open.push(name);
                continue;
            }
            let text = door.read(&format!(".git/{name}"), REF_LIMIT).ok()?;
            refs.push((name, Reference::parse(&String::from_utf8(text).ok()?)?));
        }
    }
    Some(refs)
}

fn id_of(text: &str) -> Option<String> {
    Commit::parse(text).map(String::from)
}

/// Whether HEAD never held another commit, as far as its log goes.
fn is_logged_alone(door: &Door, head: &str) -> bool {
    if door.is_absent(".git/logs/HEAD") {
        return true;
    }
    let Ok(text) = door.read(".git/logs/HEAD", FILE_LIMIT) else {
        return false;
    };
    logs_alone(&text, head)
}

/// The same of the log's text.
pub(super) fn logs_alone(text: &[u8], head: &str) -> bool {
    let is_it = |id: &str| id == head || id.bytes().all(|digit| digit == b'0');
    String::from_utf8_lossy(text)
        .lines()
        .all(|line| line.split(' ').take(2).all(is_it))
}
