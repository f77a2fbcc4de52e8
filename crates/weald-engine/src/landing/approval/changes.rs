//! What a change of the target needs a person's word for: by its own name, by the names that links give it, and behind
//! gitlinks, which are one entry each while the files behind them are written all the same.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use weald_core::approval::{Protection, Ways};
use weald_git::{Git, GitError};

use super::super::LandError;
use crate::trees::Trees;
use crate::trees::inside::quoted;

/// How git writes that an entry is a submodule's commit.
const GITLINK: &str = "160000";

/// How git writes that an entry is a link.
const LINK: &str = "120000";

/// The longest link that a file system takes.
const LINK_LIMIT: usize = 4096;

/// How deep submodules and the folders of their repositories are followed.
const DEPTH: usize = 64;

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
    links: Vec<(String, String)>,
    ways: Ways,
    unlisted: Vec<String>,
}

/// A repository with what it borrows.
struct Stores<'s> {
    place: &'s Path,
    borrowed: OsString,
}

impl Stores<'_> {
    fn git(&self, name: &str) -> Git {
        let git = Git::new(self.place, name);
        git.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.borrowed)
    }
}

impl Trees<'_> {
    /// What differs between two commits, submodules included; `place` is a repository that has both.
    pub(super) fn changes_between(
        &self,
        place: &Path,
        from: &str,
        to: &str,
        protection: &Protection,
    ) -> Result<Changes, LandError> {
        let mut folders = Vec::new();
        let common = self.place.repository().common_dir();
        stores_below(&common.join("modules"), DEPTH, &mut folders);
        stores_below(&self.vault().path().join("modules"), DEPTH, &mut folders);
        let stores = Stores {
            place,
            borrowed: joined(&folders),
        };
        let mut found = Found::default();
        follow(&stores, "", (from, to), DEPTH, &mut found)?;
        let root = self.place.root();
        read_links(&stores, &root.to_string_lossy(), &mut found)?;
        if let Some(hooks) = self.tracked_hooks()? {
            found.ways.folder(&hooks);
        }
        let Found { changed, ways, .. } = found;
        let files = changed.into_iter().map(|path| {
            let is_protected = ways.protects(protection, &path);
            (path, is_protected)
        });
        Ok(Changes {
            files: files.collect(),
            unlisted: found.unlisted,
        })
    }

    /// The folder of the checkout that the user's configuration has git run hooks from.
    fn tracked_hooks(&self) -> Result<Option<String>, GitError> {
        let home = self.host.home.as_deref();
        let asked = self.place.repository().git_with_user_hooks(home).output()?;
        let value = String::from_utf8_lossy(&asked.stdout).trim_end().to_owned();
        if value.is_empty() {
            return Ok(None);
        }
        let path = match (value.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(&value),
        };
        if path.is_relative() {
            return Ok(Some(value));
        }
        let root = self.place.root();
        let below = path.strip_prefix(&root).map(Path::to_owned).ok();
        let resolved = || {
            path.canonicalize()
                .ok()?
                .strip_prefix(&root)
                .map(Path::to_owned)
                .ok()
        };
        let below = below.or_else(resolved);
        Ok(below.map(|below| below.to_string_lossy().into_owned()))
    }
}

/// Collects what differs between two commits and, behind every gitlink that differs, between those it names. Without the
/// old commit everything in the new one counts.
fn follow(
    stores: &Stores<'_>,
    prefix: &str,
    (old, new): (&str, &str),
    depth: usize,
    found: &mut Found,
) -> Result<(), GitError> {
    let listing = stores.git("ls-tree").args(["-r", "-z", new]).run()?;
    let listing = String::from_utf8_lossy(&listing).into_owned();
    let args = ["-r", "-z", "--raw", "--no-abbrev", "--no-renames", old, new];
    let differing = stores.git("diff-tree").args(args).output()?;
    let differing = differing.status.success().then_some(differing.stdout);
    let mut gitlinks = Vec::new();
    for line in listing.split('\0') {
        let Some((about, path)) = line.split_once('\t') else {
            continue;
        };
        let path = format!("{prefix}{path}");
        let mut words = about.split(' ');
        let (mode, id) = (words.next(), words.nth(1).unwrap_or_default());
        found.ways.entry(&path);
        if mode == Some(LINK) {
            found.links.push((path.clone(), id.to_owned()));
        }
        if differing.is_none() {
            if mode == Some(GITLINK) {
                gitlinks.push((path.clone(), String::new(), id.to_owned()));
            }
            found.changed.push(path);
        }
    }
    let differing = String::from_utf8_lossy(&differing.unwrap_or_default()).into_owned();
    let mut fields = differing.split('\0');
    while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
        let words: Vec<_> = about.trim_start_matches(':').split(' ').collect();
        let path = format!("{prefix}{path}");
        if let [_, GITLINK, old, new, ..] = words[..] {
            gitlinks.push((path.clone(), old.to_owned(), new.to_owned()));
        }
        found.changed.push(path);
    }
    for (path, old, new) in gitlinks {
        let inner = format!("{path}/");
        let is_listed = depth > 0 && follow(stores, &inner, (&old, &new), depth - 1, found).is_ok();
        if !is_listed {
            found.unlisted.push(path);
        }
    }
    Ok(())
}

/// Finds out what the links lead to; one that is too long for any file system leads nowhere once it is checked out.
fn read_links(stores: &Stores<'_>, root: &str, found: &mut Found) -> Result<(), GitError> {
    if found.links.is_empty() {
        return Ok(());
    }
    let ask = |links: &[(String, String)], how: &str| {
        let ids: String = links.iter().map(|(_, id)| format!("{id}\n")).collect();
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
            Err(_) => found.unlisted.push(link.0),
        }
    }
    let texts = ask(&links, "--batch=")?;
    let mut rest = &texts[..];
    for ((path, _), size) in links.iter().zip(lengths) {
        // An empty line, the text, and the end of its line.
        let (Some(text), Some(next)) = (rest.get(1..=size), rest.get(size + 2..)) else {
            return Err(GitError::Unexpected {
                command: "cat-file".to_owned(),
                answer: path.clone(),
            });
        };
        let text = String::from_utf8_lossy(text);
        let from_top = text.strip_prefix(root).filter(|rest| rest.starts_with('/'));
        match from_top {
            Some(rest) => {
                let up = "../".repeat(path.matches('/').count());
                found.ways.link(path, &format!("{up}.{rest}"));
            }
            None => found.ways.link(path, &text),
        }
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

/// The objects of submodules, nested ones too.
fn stores_below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if depth == 0 {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let objects = entry.path().join("objects");
        match objects.is_dir() && entry.path().join("HEAD").is_file() {
            true => {
                found.push(objects);
                stores_below(&entry.path().join("modules"), depth - 1, found);
            }
            false => stores_below(&entry.path(), depth - 1, found),
        }
    }
}
