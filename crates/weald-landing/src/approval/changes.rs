//! What a change of the target needs a person's word for: by its own name, by the names that links give it, and behind
//! gitlinks, which are one entry each while the files behind them are written all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weald_core::approval::{Protection, Ways};
use weald_git::{Git, GitError};

use super::super::LandError;
use super::host::{note_returning, repositories_below};
use crate::Landings;
use crate::differences::raw_difference;
use weald_control::files::{read_small_bytes, replace_private};
use weald_trees::inside::quoted;

/// How git writes that an entry is a submodule's commit.
const GITLINK: &str = "160000";

/// How git writes that an entry is a link.
const LINK: &str = "120000";

/// The longest link that a file system takes.
const LINK_LIMIT: usize = 4096;

/// How deep submodules and the folders of their repositories are followed.
pub(super) const DEPTH: usize = 64;

/// Names of entries that make git take a folder for a repository.
const NAMES: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// What one commit of a submodule gives further names is at most as long, and so many are kept.
const KEPT_LIMIT: u64 = 16 << 20;
const KEPT: usize = 1000;

/// What differs between two commits.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Every path, from the top of the superproject, and whether it is protected.
    pub files: Vec<(String, bool)>,
    /// Gitlinks whose files can't be listed, and links that can't be read.
    pub unlisted: Vec<String>,
}

/// What is found on the way.
#[derive(Default)]
struct Found {
    changed: Vec<String>,
    links: Vec<Link>,
    ways: Ways,
    /// Folders with tracked files, the top among them, but for those of submodules.
    folders: BTreeSet<String>,
    /// Every submodule that the new commit has.
    submodules: Vec<String>,
    unlisted: Vec<String>,
}

struct Link {
    path: String,
    id: String,
    /// Whether it is in a repository that changes, so that what it says must be known.
    counts: bool,
}

impl Found {
    /// Notes what an entry gives further names, and says whether it is a submodule.
    fn note(&mut self, mode: &str, id: &str, path: &str, counts: bool) -> bool {
        self.ways.entry(path);
        match mode {
            LINK => self.links.push(Link {
                path: path.to_owned(),
                id: id.to_owned(),
                counts,
            }),
            GITLINK => self.submodules.push(path.to_owned()),
            _ => {}
        }
        mode == GITLINK
    }
}

/// A repository with what it borrows.
struct Stores<'s> {
    place: &'s Path,
    borrowed: OsString,
    /// Where it is kept what names commits of submodules give.
    kept: PathBuf,
}

impl Stores<'_> {
    fn git(&self, name: &str) -> Git {
        let git = Git::new(self.place, name);
        git.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.borrowed)
    }

    fn listing(&self, commit: &str) -> Result<String, GitError> {
        let listing = self.git("ls-tree").args(["-r", "-z", commit]).run()?;
        Ok(String::from_utf8_lossy(&listing).into_owned())
    }

    /// The entries of a submodule's commit that give files further names. A commit never changes, so git is asked once.
    fn naming_entries(&self, commit: &str) -> Result<String, GitError> {
        let file = self.kept.join(commit);
        if let Ok(Some(known)) = read_small_bytes(&file, KEPT_LIMIT) {
            return Ok(String::from_utf8_lossy(&known).into_owned());
        }
        let listing = self.listing(commit)?;
        let names = |line: &&str| match line.split_once('\t') {
            Some((about, path)) => {
                let is_named = path.split('/').any(|name| NAMES.contains(&name));
                is_named || about.starts_with(LINK) || about.starts_with(GITLINK)
            }
            None => false,
        };
        let mut naming: Vec<_> = listing.split('\0').filter(names).collect();
        naming.push("");
        let naming = naming.join("\0");
        self.keep(&file, &naming);
        Ok(naming)
    }

    /// What can't be kept is asked again.
    fn keep(&self, file: &Path, text: &str) {
        let kept = fs::read_dir(&self.kept).into_iter().flatten().flatten();
        let kept: Vec<_> = kept.map(|entry| entry.path()).collect();
        for old in kept.iter().filter(|_| kept.len() > KEPT) {
            let _ = fs::remove_file(old);
        }
        let _ = DirBuilder::new().mode(0o700).create(&self.kept);
        let _ = replace_private(file, text.as_bytes());
    }
}

impl Landings<'_> {
    /// What differs between two commits, submodules included; `place` is a repository that has both.
    pub(super) fn changes_between(
        &self,
        place: &Path,
        from: &str,
        to: &str,
        protection: &Protection,
    ) -> Result<Changes, LandError> {
        let common = self.trees.place.repository().common_dir();
        let mut repositories = Vec::new();
        repositories_below(&common.join("modules"), DEPTH, &mut repositories);
        let vault = self.trees.vault().path().join("modules");
        repositories_below(&vault, DEPTH, &mut repositories);
        let folders: Vec<_> = repositories.iter().map(|it| it.join("objects")).collect();
        let stores = Stores {
            place,
            borrowed: joined(&folders),
            kept: self.trees.place.private().join("submodule-names"),
        };
        let root = self.trees.place.root();
        let mut found = Found {
            ways: Ways::at(&root.to_string_lossy()),
            ..Found::default()
        };
        let differing = self.difference(place, from, to).ok();
        follow(&stores, "", to, differing, DEPTH, &mut found)?;
        if found.changed.is_empty() {
            return Ok(Changes::default());
        }
        read_links(&stores, &mut found)?;
        let submodules = std::mem::take(&mut found.submodules);
        self.note_host(submodules, &found.folders, &mut found.ways)?;
        let outside = found.ways.reach(protection).outside().to_vec();
        let rest = note_returning(&root, &outside, &mut found.ways);
        found.unlisted.extend(rest);
        let mut reach = found.ways.reach(protection);
        let files = found.changed.into_iter().map(|path| {
            let is_protected = reach.protects(&path);
            (path, is_protected)
        });
        Ok(Changes {
            files: files.collect(),
            unlisted: found.unlisted,
        })
    }
}

/// Collects what a commit differs in from another and, behind every gitlink that differs, what those it names differ in.
/// Without a difference everything in the commit counts.
fn follow(
    stores: &Stores<'_>,
    prefix: &str,
    new: &str,
    differing: Option<Arc<[u8]>>,
    depth: usize,
    found: &mut Found,
) -> Result<(), GitError> {
    let listing = stores.listing(new)?;
    let mut gitlinks = BTreeMap::new();
    for (mode, id, path) in entries(&listing, prefix) {
        if found.note(mode, id, &path, true) {
            // The same on both sides, unless the difference says otherwise.
            let old = if differing.is_some() { id } else { "" };
            gitlinks.insert(path.clone(), (old.to_owned(), id.to_owned()));
        }
        if prefix.is_empty() {
            note_folder(&path, &mut found.folders);
        }
        if differing.is_none() {
            found.changed.push(path);
        }
    }
    let differing = String::from_utf8_lossy(differing.as_deref().unwrap_or_default());
    let mut fields = differing.split('\0');
    while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
        let words: Vec<_> = about.trim_start_matches(':').split(' ').collect();
        let path = format!("{prefix}{path}");
        match words[..] {
            [_, GITLINK, old, new, ..] => {
                gitlinks.insert(path.clone(), (old.to_owned(), new.to_owned()));
            }
            [GITLINK, _, old, ..] => removed(stores, &path, old, depth, found),
            _ => {}
        }
        found.changed.push(path);
    }
    for (path, (old, new)) in gitlinks {
        let inner = format!("{path}/");
        if old == new {
            // Where its commit is not here, neither are its files.
            let _ = look(stores, &inner, &new, depth, found);
            continue;
        }
        let mut follow_inner = || {
            let differing = raw_difference(stores.git("diff-tree"), &old, &new).ok();
            follow(stores, &inner, &new, differing, depth - 1, found)
        };
        let is_listed = depth > 0 && follow_inner().is_ok();
        if !is_listed {
            found.unlisted.push(path);
        }
    }
    Ok(())
}

/// Collects what a submodule that stays as it is gives further names.
fn look(
    stores: &Stores<'_>,
    prefix: &str,
    commit: &str,
    depth: usize,
    found: &mut Found,
) -> Result<(), GitError> {
    if depth == 0 {
        return Ok(());
    }
    let listing = stores.naming_entries(commit)?;
    for (mode, id, path) in entries(&listing, prefix) {
        if found.note(mode, id, &path, false) {
            let _ = look(stores, &format!("{path}/"), id, depth - 1, found);
        }
    }
    Ok(())
}

/// Collects the files of a submodule that goes.
fn removed(stores: &Stores<'_>, path: &str, commit: &str, depth: usize, found: &mut Found) {
    let listing = stores.listing(commit).ok().filter(|_| depth > 0);
    let Some(listing) = listing else {
        found.unlisted.push(path.to_owned());
        return;
    };
    for (mode, id, path) in entries(&listing, &format!("{path}/")) {
        if mode == GITLINK {
            removed(stores, &path, id, depth - 1, found);
        }
        found.changed.push(path);
    }
}

/// Mode, id and path of what `ls-tree` lists.
fn entries<'l>(
    listing: &'l str,
    prefix: &'l str,
) -> impl Iterator<Item = (&'l str, &'l str, String)> {
    listing.split('\0').filter_map(move |line| {
        let (about, path) = line.split_once('\t')?;
        let mut words = about.split(' ');
        let (mode, id) = (words.next()?, words.nth(1)?);
        Some((mode, id, format!("{prefix}{path}")))
    })
}

/// Notes the folders above a path.
fn note_folder(path: &str, folders: &mut BTreeSet<String>) {
    let mut path = path;
    while let Some((above, _)) = path.rsplit_once('/') {
        if !folders.insert(above.to_owned()) {
            return;
        }
        path = above;
    }
    folders.insert(String::new());
}

/// Finds out what the links lead to; one that is too long for any file system leads nowhere once it is checked out.
fn read_links(stores: &Stores<'_>, found: &mut Found) -> Result<(), GitError> {
    if found.links.is_empty() {
        return Ok(());
    }
    let ask = |links: &[Link], how: &str| {
        let ids: String = links.iter().map(|link| format!("{}\n", link.id)).collect();
        stores.git("cat-file").args([how]).input(ids).run()
    };
    let sizes = ask(&found.links, "--batch-check=%(objectsize)")?;
    let sizes = String::from_utf8_lossy(&sizes).into_owned();
    let sizes = sizes.lines().map(str::parse::<usize>);
    let mut links = Vec::new();
    let mut lengths = Vec::new();
    for (link, size) in std::mem::take(&mut found.links).into_iter().zip(sizes) {
        match size {
            Ok(size) if size > LINK_LIMIT => {}
            Ok(size) => {
                links.push(link);
                lengths.push(size);
            }
            Err(_) if link.counts => found.unlisted.push(link.path),
            Err(_) => {}
        }
    }
    let texts = ask(&links, "--batch=")?;
    let mut rest = &texts[..];
    for (Link { path, .. }, size) in links.iter().zip(lengths) {
        // An empty line, the text, and the end of its line.
        let (Some(text), Some(next)) = (rest.get(1..=size), rest.get(size + 2..)) else {
            return Err(GitError::Unexpected {
                command: "cat-file".to_owned(),
                answer: path.clone(),
            });
        };
        let text = String::from_utf8_lossy(text);
        found.ways.link(path, &text);
        rest = next;
    }
    Ok(())
}

/// Paths of object stores as git takes them: in quotes, since one may have a colon.
fn joined(folders: &[PathBuf]) -> OsString {
    let mut text = Vec::new();
    for folder in folders {
        if !text.is_empty() {
            text.push(b':');
        }
        quoted(&mut text, folder.as_os_str().as_bytes());
    }
    OsString::from_vec(text)
}
