//! The inner repository of a sealed tree, written file by file into a directory that nobody else uses yet.
//!
//! It feels like the user's own: same remotes, remote-tracking refs, tags, excludes and configuration, except what would
//! point back at main or name a program of the host. It borrows objects from the vault and from nothing else.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use weald_core::tree::Tree;
use weald_git::{Door, Git, GitError, MainRef};

use super::{TreeError, Trees};

/// Keys that would point back at main, or that belong to one checkout.
const NOT_COPIED: [&str; 16] = [
    "core.worktree",
    "core.bare",
    "core.repositoryformatversion",
    "core.hookspath",
    "core.fsmonitor",
    "core.editor",
    "core.pager",
    "core.sshcommand",
    "core.gitproxy",
    "core.askpass",
    "core.alternaterefscommand",
    "core.untrackedcache",
    "core.splitindex",
    "lfs.storage",
    "commit.gpgsign",
    "tag.gpgsign",
];

/// Sections that name programs, or that are ours to set.
const NOT_COPIED_SECTIONS: [&str; 19] = [
    "alias.",
    "browser.",
    "credential.",
    "difftool.",
    "extensions.",
    "gc.",
    "gpg.",
    "guitool.",
    "include.",
    "includeif.",
    "maintenance.",
    "man.",
    "mergetool.",
    "pager.",
    "sendemail.",
    "sequence.",
    "tar.",
    "uploadpack.",
    "worktree.",
];

/// Last parts of keys that name programs.
const PROGRAMS: [&str; 10] = [
    "cmd",
    "command",
    "driver",
    "external",
    "packobjectshook",
    "program",
    "receivepack",
    "textconv",
    "uploadpack",
    "vcs",
];

/// Files of main's that a person put beside its refs.
pub(crate) const INFO_FILES: [&str; 4] = [
    "info/exclude",
    "info/attributes",
    "info/sparse-checkout",
    "shallow",
];

/// What an inner repository is made from.
pub(crate) struct Inner<'a> {
    pub branch: &'a str,
    /// What the branch starts with.
    pub commit: &'a str,
    /// The branch it lands on, and where that is.
    pub target: Option<(&'a str, &'a str)>,
    /// Refs of main that come along: remotes and tags.
    pub refs: &'a [MainRef],
    /// Where the tree will be, for paths that are relative.
    pub path: &'a Path,
}

impl<'a> Inner<'a> {
    /// Of a tree that starts with `commit`; `tip` is its target's.
    pub fn of(tree: &'a Tree, commit: &'a str, tip: Option<&'a str>, refs: &'a [MainRef]) -> Self {
        Self {
            branch: &tree.branch,
            commit,
            target: tip.map(|tip| (tree.target.as_str(), tip)),
            refs,
            path: &tree.path,
        }
    }
}

impl Trees<'_> {
    /// The part that is the same for every tree: directories, configuration, excludes, and a HEAD at `commit`.
    pub(crate) fn write_settings(&self, git_dir: &Path, commit: &str) -> Result<(), TreeError> {
        let config = self.inner_config(commit)?;
        let filled = || -> io::Result<()> {
            let door = Door::open(git_dir)?;
            for directory in ["objects/info", "objects/pack", "refs/heads", "info", "logs"] {
                door.make_folder(directory)?;
            }
            let mut objects = self.vault().objects().as_os_str().as_bytes().to_vec();
            objects.push(b'\n');
            door.write("objects/info/alternates", &objects)?;
            door.write("HEAD", format!("{commit}\n").as_bytes())?;
            door.write("config", config.as_bytes())?;
            self.copy_info(&door)?;
            match &self.wishes.sparse {
                Some(patterns) => door.write("info/sparse-checkout", patterns.as_bytes()),
                None => Ok(()),
            }
        };
        filled().map_err(|source| TreeError::File {
            path: git_dir.to_owned(),
            source,
        })
    }

    /// What is a tree's own: its branch, the refs it sees, and the way to the vault from where it will be.
    pub(crate) fn write_refs(&self, git_dir: &Path, inner: &Inner<'_>) -> Result<(), TreeError> {
        let filled = || -> io::Result<()> {
            // A filter may have run in there: no link that it left is written through.
            let door = Door::open(git_dir)?;
            let head = format!("ref: refs/heads/{}\n", inner.branch);
            door.write("HEAD", head.as_bytes())?;
            door.write("packed-refs", packed_refs(inner).as_bytes())?;
            door.write("objects/info/alternates", &self.alternates(inner.path))?;
            for symbolic in inner.refs.iter().filter(|known| known.symbolic.is_some()) {
                let to = symbolic.symbolic.as_deref().unwrap_or_default();
                door.write(&symbolic.name, format!("ref: {to}\n").as_bytes())?;
            }
            Ok(())
        };
        filled().map_err(|source| TreeError::File {
            path: git_dir.to_owned(),
            source,
        })
    }

    /// Relative when tree and main have a parent in common, so that both can be moved together.
    pub(crate) fn alternates(&self, tree: &Path) -> Vec<u8> {
        let objects = self.vault().objects();
        let from = tree.join(".git/objects");
        let mut line = match self.place.root().parent() {
            Some(parent) if parent.parent().is_some() && tree.starts_with(parent) => {
                relative(&from, &objects).as_os_str().as_bytes().to_vec()
            }
            _ => objects.as_os_str().as_bytes().to_vec(),
        };
        line.push(b'\n');
        line
    }

    /// What a person put beside main's refs: excludes, attributes, the end of a shallow history.
    fn copy_info(&self, door: &Door) -> io::Result<()> {
        let main = self.common_dir();
        for file in INFO_FILES {
            match fs::read(main.join(file)) {
                Ok(bytes) => door.write(file, &bytes)?,
                Err(_) => door.remove(file)?,
            }
        }
        Ok(())
    }

    fn inner_config(&self, commit: &str) -> Result<String, GitError> {
        let sha256 = commit.len() == 64;
        let mut text = format!(
            "[core]\n\trepositoryformatversion = {}\n\tbare = false\n\tlogallrefupdates = true\n",
            u8::from(sha256)
        );
        if let Some(hooks) = self.hooks()? {
            text.push_str(&format!("\thooksPath = {}\n", quoted(&hooks)));
        }
        if sha256 {
            text.push_str("[extensions]\n\tobjectformat = sha256\n");
        }
        text.push_str("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n");
        // Signing needs an agent's socket or a key; without the one it would only fail.
        let signs = !self.config.sandbox_sockets.is_empty();
        if !signs {
            text.push_str("[commit]\n\tgpgsign = false\n[tag]\n\tgpgsign = false\n");
        }
        let listed = self
            .repository()
            .git("config")
            .args(["--local", "--includes", "--list", "-z"])
            .run()?;
        let listed = [listed, self.checkout_config()?].concat();
        if self.has_own_large_files(self.common_dir()) {
            // Large files of a tree are its own, whatever the user's configuration says.
            text.push_str("[lfs]\n\tstorage = lfs\n");
        }
        for entry in listed
            .split(|byte| *byte == 0)
            .filter(|entry| !entry.is_empty())
        {
            let entry = String::from_utf8_lossy(entry);
            let (key, value) = entry.split_once('\n').unwrap_or((&entry, "true"));
            let is_signing = signs && matches!(key, "commit.gpgsign" | "tag.gpgsign");
            if is_copied(key, value) || is_signing {
                text.push_str(&line_of(key, &from_here(key, value, &self.place.root())));
            }
        }
        if self.wishes.sparse.is_some() {
            text.push_str("[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n");
        }
        Ok(text)
    }

    /// What main's checkout has for itself, as a sparse one does.
    fn checkout_config(&self) -> Result<Vec<u8>, GitError> {
        let common_dir = self.common_dir();
        match common_dir.join("config.worktree").is_file() {
            true => Git::new(common_dir, "config")
                .args(["--worktree", "--includes", "--list", "-z"])
                .run(),
            false => Ok(Vec::new()),
        }
    }

    /// Main's hooks, which run inside: its own folder unless the user's configuration names another one.
    pub(crate) fn hooks(&self) -> Result<Option<String>, GitError> {
        let asked = self
            .repository()
            .git_with_user_hooks(self.host.home.as_deref());
        let configured = asked.output()?;
        let value = String::from_utf8_lossy(&configured.stdout)
            .trim_end()
            .to_owned();
        if configured.status.success() && !value.is_empty() {
            return Ok(Some(value));
        }
        let own = self.common_dir().join("hooks");
        Ok(own.is_dir().then(|| own.display().to_string()))
    }
}

/// Whether a key of the user's local configuration makes sense inside.
fn is_copied(key: &str, value: &str) -> bool {
    let key = key.to_lowercase();
    let last = key.rsplit('.').next().unwrap_or_default();
    let runs =
        (key.starts_with("submodule.") && value.starts_with('!')) || PROGRAMS.contains(&last);
    !NOT_COPIED.contains(&key.as_str())
        && !NOT_COPIED_SECTIONS
            .iter()
            .any(|section| key.starts_with(section))
        && !runs
}

/// A remote's address as it reads from inside: a path relative to main is told in full.
fn from_here(key: &str, value: &str, root: &Path) -> String {
    let is_address =
        key.starts_with("remote.") && (key.ends_with(".url") || key.ends_with(".pushurl"));
    match is_address && (value.starts_with("./") || value.starts_with("../")) {
        true => {
            let path = root.join(value);
            path.canonicalize().unwrap_or(path).display().to_string()
        }
        false => value.to_owned(),
    }
}

/// One key as a configuration file says it.
fn line_of(key: &str, value: &str) -> String {
    let Some((section, name)) = key.rsplit_once('.') else {
        return String::new();
    };
    let head = match section.split_once('.') {
        Some((section, sub)) => {
            let sub = sub.replace('\\', "\\\\").replace('"', "\\\"");
            format!("[{section} \"{sub}\"]")
        }
        None => format!("[{section}]"),
    };
    format!("{head}\n\t{name} = {}\n", quoted(value))
}

pub fn quoted(value: &str) -> String {
    let escaped = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
        .replace('\t', "\\t");
    format!("\"{escaped}\"")
}

/// All refs in one file.
fn packed_refs(inner: &Inner<'_>) -> String {
    let mut lines: Vec<_> = inner.refs.iter().filter_map(packed_line).collect();
    if let Some((target, tip)) = inner.target
        && target != inner.branch
        && !clashes(target, inner.branch)
    {
        lines.push((format!("refs/heads/{target}"), tip.to_owned(), None));
    }
    lines.push((
        format!("refs/heads/{}", inner.branch),
        inner.commit.to_owned(),
        None,
    ));
    packed_text(lines)
}

/// Name, object, and what a tag leads to.
type PackedLine = (String, String, Option<String>);

/// A ref that is no other's name.
pub(crate) fn packed_line(known: &MainRef) -> Option<PackedLine> {
    let line = (
        known.name.clone(),
        known.commit.clone(),
        known.peeled.clone(),
    );
    known.symbolic.is_none().then_some(line)
}

/// Refs as git packs them, sorted.
pub(crate) fn packed_text(mut lines: Vec<PackedLine>) -> String {
    lines.sort();
    let mut text = String::from("# pack-refs with: peeled fully-peeled sorted \n");
    for (name, commit, peeled) in lines {
        text.push_str(&format!("{commit} {name}\n"));
        if let Some(peeled) = peeled {
            text.push_str(&format!("^{peeled}\n"));
        }
    }
    text
}

/// Two branches of which one would be a folder of the other.
fn clashes(a: &str, b: &str) -> bool {
    a.starts_with(&format!("{b}/")) || b.starts_with(&format!("{a}/"))
}

/// The way from one directory to another.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from
        .components()
        .zip(to.components())
        .take_while(|(a, b)| a == b)
        .count();
    let up = from.components().skip(shared).map(|_| Path::new(".."));
    up.map(Path::as_os_str)
        .chain(to.components().skip(shared).map(|part| part.as_os_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_a_program_or_points_back_stays_outside() {
        for (key, value) in [
            ("core.worktree", "/srv/app"),
            ("core.hooksPath", "/srv/hooks"),
            ("core.fsmonitor", "true"),
            ("diff.pdf.textconv", "pdftotext"),
            ("merge.ours.driver", "true"),
            ("remote.origin.uploadpack", "/bin/x"),
            ("credential.https://x.helper", "store"),
            ("alias.x", "!sh"),
            ("gpg.ssh.program", "x"),
            ("submodule.a.update", "!sh"),
            ("include.path", "/x"),
            ("extensions.worktreeConfig", "true"),
            ("trailer.sign.cmd", "x"),
        ] {
            assert!(!is_copied(key, value), "{key}");
        }
        for key in [
            "remote.origin.url",
            "user.name",
            "branch.main.remote",
            "core.autocrlf",
            "core.sparseCheckout",
            "filter.lfs.process",
        ] {
            assert!(is_copied(key, "x"), "{key}");
        }
    }

    #[test]
    fn the_way_between_two_directories() {
        let way = relative(
            Path::new("/a/b.weald/t/.git/objects"),
            Path::new("/a/b/.git/weald/o"),
        );
        assert_eq!(way, Path::new("../../../../b/.git/weald/o"));
    }
}
