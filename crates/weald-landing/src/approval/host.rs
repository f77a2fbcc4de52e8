//! What programs on the host run or obey around a checkout: hooks where git finds them, the configuration that git reads,
//! programs that it names, and links that are in the checkout without being tracked.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use weald_core::approval::{ConfigPlace, Ways, places_named};
use weald_git::{Git, GitError};

use crate::Landings;
use weald_control::files::read_small_bytes;
use weald_trees::at;

use super::super::LandError;

/// How many links are followed on one way.
const HOPS: usize = 40;

/// So many links that lead out of the checkout are looked at.
const OUTSIDE: usize = 1000;

/// In so many folders of the checkout links that are not tracked are looked for, those near the top first.
const FOLDERS: usize = 5000;

/// The longest configuration file of a submodule that is read without git.
const CONFIG_LIMIT: u64 = 1 << 20;

/// Sections that the configuration of a submodule has by itself, with nothing in them that names a program.
const PLAIN: [&str; 6] = [
    "core",
    "remote",
    "branch",
    "submodule",
    "extensions",
    "user",
];

/// Keys of those sections that do.
const NAMING: [&str; 12] = [
    "!",
    "ext::",
    "hookspath",
    "fsmonitor",
    "command",
    "proxy",
    "editor",
    "pager",
    "askpass",
    "attributesfile",
    "pack",
    "vcs",
];

/// So many files that are included under a condition are looked at, and so long git may take for one.
const INCLUDES: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(10);

/// The checkouts of a repository. Maps paths on the host to paths inside them.
pub(super) struct Checkouts {
    home: Option<PathBuf>,
    /// The main one first.
    roots: Vec<PathBuf>,
    /// Submodules, from the top.
    submodules: Vec<String>,
}

impl Landings<'_> {
    /// Notes what the host runs or obeys; `folders` are those that the commit has.
    pub(super) fn note_host(
        &self,
        submodules: Vec<String>,
        folders: &BTreeSet<String>,
        ways: &mut Ways,
    ) -> Result<(), LandError> {
        let repository = self.trees.place.repository();
        let common = repository.common_dir();
        let mut roots = vec![self.trees.place.root()];
        let registered = self.trees.registrations().list().map_err(at(common))?;
        roots.extend(
            registered
                .iter()
                .filter_map(|it| it.path().map(Path::to_owned)),
        );
        let home = self.trees.host.home.clone();
        let here = Checkouts {
            home,
            roots,
            submodules,
        };
        let listed = repository.config_as_user(here.home.as_deref());
        let listed = listed.args(["--list", "--show-origin", "-z"]).run()?;
        let mut conditional = here.note_config(&listed, "", ways);
        let is_on = b"extensions.worktreeconfig\ntrue".as_slice();
        if listed.split(|byte| *byte == 0).any(|entry| entry == is_on) {
            for entry in &registered {
                let git_dir = self.trees.registrations().directory(&entry.name);
                conditional.push(git_dir.join("config.worktree"));
            }
        }
        here.note_files(conditional, "", ways);
        here.note_links_of(common, ways);
        let mut modules = Vec::new();
        repositories_below(&common.join("modules"), super::changes::DEPTH, &mut modules);
        for module in &modules {
            here.note_module(module, ways)?;
        }
        here.note_untracked(folders, ways);
        Ok(())
    }
}

impl Checkouts {
    /// Records the files that git's configuration names. `listed` is the output of `git config --list --show-origin -z`;
    /// `top` is the path of the checkout it belongs to, relative to ours. Answers what is included under a condition.
    fn note_config(&self, listed: &[u8], top: &str, ways: &mut Ways) -> Vec<PathBuf> {
        let mut conditional = Vec::new();
        let listed = String::from_utf8_lossy(listed);
        let mut fields = listed.split_terminator('\0');
        let mut origins = BTreeSet::new();
        while let (Some(origin), Some(entry)) = (fields.next(), fields.next()) {
            let origin = origin.strip_prefix("file:").map(Path::new);
            if let Some(origin) = origin.filter(|origin| origins.insert(*origin)) {
                self.places_of(origin).iter().for_each(|it| ways.file(it));
            }
            let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
            for place in places_named(key, value) {
                match place {
                    ConfigPlace::Included(path) => {
                        let folder = origin.and_then(Path::parent).unwrap_or(Path::new("/"));
                        let path = folder.join(self.expanded(&path));
                        self.places_of(&path).iter().for_each(|it| ways.file(it));
                        if key.starts_with("includeif.") {
                            conditional.push(path);
                        }
                    }
                    ConfigPlace::Folder(path) => {
                        self.places_below(top, &path)
                            .iter()
                            .for_each(|it| ways.folder(it));
                    }
                    ConfigPlace::File(path) => {
                        self.places_below(top, &path)
                            .iter()
                            .for_each(|it| ways.file(it));
                    }
                }
            }
        }
        conditional
    }

    /// What a submodule's own repository has configured, and its hooks.
    fn note_module(&self, module: &Path, ways: &mut Ways) -> Result<(), GitError> {
        self.note_links_of(module, ways);
        let file = module.join("config");
        let text = match read_small_bytes(&file, CONFIG_LIMIT) {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(_) => b"[include".to_vec(),
        };
        let text = String::from_utf8_lossy(&text).to_lowercase();
        let is_plain = |line: &str| match line.trim_start().strip_prefix('[') {
            Some(section) => PLAIN.iter().any(|plain| {
                let rest = section.strip_prefix(plain);
                rest.is_some_and(|rest| rest.starts_with([']', ' ', '\t', '.']))
            }),
            None => true,
        };
        let names_none = !NAMING.iter().any(|naming| text.contains(naming));
        if names_none && text.lines().all(is_plain) {
            return Ok(());
        }
        let listed = self.listed_in(&file)?;
        for submodule in &self.submodules {
            let conditional = self.note_config(&listed, submodule, ways);
            self.note_files(conditional, submodule, ways);
        }
        Ok(())
    }

    /// Notes files of configuration that git reads only under a condition, or in another worktree: it may hold later. What
    /// git can't read it does not obey.
    fn note_files(&self, mut open: Vec<PathBuf>, top: &str, ways: &mut Ways) {
        let mut seen = BTreeSet::new();
        while let Some(file) = open.pop() {
            if !file.is_file() || seen.len() == INCLUDES || !seen.insert(file.clone()) {
                continue;
            }
            if let Ok(listed) = self.listed_in(&file) {
                open.extend(self.note_config(&listed, top, ways));
            }
        }
    }

    /// The entries of a file of configuration, with what it includes.
    fn listed_in(&self, file: &Path) -> Result<Vec<u8>, GitError> {
        let git = Git::outside(Path::new("/"), "config")
            .args([OsStr::new("--file"), file.as_os_str()])
            .args(["--includes", "--list", "--show-origin", "-z"])
            .limit(PATIENCE);
        match &self.home {
            Some(home) => git.env("HOME", home),
            None => git,
        }
        .run()
    }

    /// Links of a repository that lead into the checkout: its hooks, one by one or all of them, and attributes.
    fn note_links_of(&self, git_dir: &Path, ways: &mut Ways) {
        let hooks = git_dir.join("hooks");
        let mut links = vec![
            hooks.clone(),
            git_dir.join("info"),
            git_dir.join("info/attributes"),
        ];
        links.extend(links_in(&hooks));
        for link in links.iter().filter(|link| link.is_symlink()) {
            self.places_of(link).iter().for_each(|it| ways.folder(it));
        }
    }

    /// Links among the tracked files that are not tracked themselves.
    fn note_untracked(&self, folders: &BTreeSet<String>, ways: &mut Ways) {
        let Some(root) = self.roots.first().filter(|root| root.join(".git").exists()) else {
            return;
        };
        let mut nearest: Vec<_> = folders.iter().collect();
        nearest.sort_by_key(|folder| folder.matches('/').count());
        for folder in nearest.into_iter().take(FOLDERS) {
            for link in links_in(&root.join(folder)) {
                let (Ok(text), Ok(path)) = (fs::read_link(&link), link.strip_prefix(root)) else {
                    continue;
                };
                ways.link(&path.to_string_lossy(), &text.to_string_lossy());
            }
        }
    }

    /// A path of the configuration in all checkouts; a relative one also in every submodule.
    fn places_below(&self, top: &str, path: &str) -> BTreeSet<String> {
        let path = self.expanded(path);
        if path.is_absolute() {
            return self.places_of(&path);
        }
        let mut found = BTreeSet::new();
        let submodules = self.submodules.iter().map(String::as_str);
        for top in [top]
            .into_iter()
            .chain(submodules.filter(|_| top.is_empty()))
        {
            found.extend(self.places_of(&self.roots[0].join(top).join(&path)));
        }
        found
    }

    /// The same place from the top of each checkout that it is in, as it is spelled and with all links followed.
    pub(super) fn places_of(&self, path: &Path) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for path in [plain(path), real(path)] {
            for root in &self.roots {
                if let Ok(below) = path.strip_prefix(root) {
                    found.insert(below.to_string_lossy().into_owned());
                }
            }
        }
        found
    }

    fn expanded(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(path),
        }
    }
}

/// Notes links that lead out of a checkout and, by another name of it, back; returns those that are too many to look at.
pub(super) fn note_returning(
    root: &Path,
    outside: &[(String, String)],
    ways: &mut Ways,
) -> Vec<String> {
    for (link, place) in outside.iter().take(OUTSIDE) {
        let place = real(Path::new(place));
        if place.starts_with(root) {
            ways.link(link, &place.to_string_lossy());
        }
    }
    let rest = outside.iter().skip(OUTSIDE);
    rest.map(|(link, _)| link.clone()).collect()
}

/// The links in a folder that is no link.
fn links_in(folder: &Path) -> Vec<PathBuf> {
    if folder.is_symlink() {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.map(|entry| entry.path()).collect()
}

/// A path without `.` and `..`, as it is spelled.
fn plain(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            Component::CurDir => {}
            part => found.push(part),
        }
    }
    found
}

/// Where a path leads, or would if the last of it were there.
fn real(path: &Path) -> PathBuf {
    let parts = |path: &Path| -> Vec<PathBuf> {
        let parts = path.components().rev();
        parts.map(|part| PathBuf::from(part.as_os_str())).collect()
    };
    let (mut here, mut open) = (PathBuf::from("/"), parts(path));
    let (mut hops, mut is_there) = (0, true);
    while let Some(part) = open.pop() {
        if part == Path::new("..") {
            here.pop();
            is_there = true;
            continue;
        }
        // An absolute target starts again from the root.
        here.push(part);
        if !is_there || hops == HOPS {
            continue;
        }
        match fs::read_link(&here) {
            Ok(text) => {
                hops += 1;
                here.pop();
                open.extend(parts(&text));
            }
            Err(error) => is_there = error.kind() != io::ErrorKind::NotFound,
        }
    }
    here
}

/// The repositories of submodules, nested ones too.
pub(super) fn repositories_below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if depth == 0 {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        match path.join("objects").is_dir() && path.join("HEAD").is_file() {
            true => {
                repositories_below(&path.join("modules"), depth - 1, found);
                found.push(path);
            }
            false => repositories_below(&path, depth - 1, found),
        }
    }
}
