//! Seals: what a spare was made from, how its directory looked then, and what must not have changed since.
//!
//! Below the top folder, the repository and the index nothing is compared: that would cost as much as a checkout. It is
//! not needed either, because only weald writes there and the sandbox keeps runs out. A seal counts until the machine
//! starts again, because the files of a spare are not synced.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_git::{Digest, Git};

use crate::inner::INFO_FILES;
use crate::site::identity_of;
use crate::{TreeError, Trees};
use weald_control::files;
use weald_core::tree::DirectoryIdentity;

/// The longest seal, and the longest configuration file that counts.
const LIMIT: u64 = 1 << 20;

/// Made anew when what weald puts into a tree changes.
const FORMAT: &str = "2";

/// What is known of a checkout in the pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seal {
    /// What it was made from, besides the commit.
    pub settings: Settings,
    pub base: String,
    /// The start of the machine it was made in: after a power cut nothing of it is sure.
    pub boot: String,
    directory: DirectoryIdentity,
    looks: [(i64, i64, u64); 3],
}

impl Seal {
    /// Seals the tree in `holder`.
    pub(crate) fn put(
        holder: &Path,
        settings: &Settings,
        base: &str,
        boot: &str,
    ) -> Result<(), TreeError> {
        let tree = holder.join("tree");
        let seal = Self {
            settings: settings.clone(),
            base: base.to_owned(),
            boot: boot.to_owned(),
            directory: identity_of(&tree)?,
            looks: looks(&tree).ok_or_else(|| TreeError::Missing {
                name: "spare".parse().expect("a plain name"),
                path: tree.clone(),
            })?,
        };
        let text = serde_json::to_string(&seal).expect("plain data");
        files::replace(&holder.join("seal"), &text).map_err(super::at(holder))
    }

    /// The seal in `holder`.
    pub(crate) fn read(holder: &Path) -> Option<Self> {
        let text = files::read_small(&holder.join("seal"), LIMIT).ok()??;
        serde_json::from_str(&text).ok()
    }

    /// Whether the directory is the sealed one and nobody opened it since.
    pub(crate) fn fits(&self, tree: &Path) -> bool {
        identity_of(tree).is_ok_and(|found| found == self.directory)
            && looks(tree) == Some(self.looks)
    }
}

/// Times and length of the directory, its repository and its index.
fn looks(tree: &Path) -> Option<[(i64, i64, u64); 3]> {
    let look = |path: PathBuf| {
        let found = path.symlink_metadata().ok()?;
        Some((found.ctime(), found.ctime_nsec(), found.len()))
    };
    let git_dir = tree.join(".git");
    Some([
        look(tree.to_owned())?,
        look(git_dir.clone())?,
        look(git_dir.join("index"))?,
    ])
}

/// What the contents of a pool are made from, besides a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// What decides how files look.
    pub files: String,
    /// What is written into an inner repository.
    pub repository: String,
}

/// Sections of git's configuration that have no say in how a checkout looks.
const NOT_ABOUT_FILES: [&str; 38] = [
    "advice",
    "alias",
    "author",
    "blame",
    "branch",
    "color",
    "commit",
    "committer",
    "credential",
    "diff",
    "difftool",
    "fetch",
    "format",
    "gc",
    "gpg",
    "gui",
    "help",
    "http",
    "init",
    "log",
    "maintenance",
    "merge",
    "mergetool",
    "pack",
    "pager",
    "pretty",
    "pull",
    "push",
    "rebase",
    "remote",
    "rerere",
    "safe",
    "sendemail",
    "stash",
    "status",
    "submodule",
    "tag",
    "user",
];

/// The lines of a configuration file that may decide how files look.
fn about_files(text: &str) -> String {
    let mut is_about = true;
    let counted = text.lines().filter(|line| {
        if let Some(head) = line.trim_start().strip_prefix('[') {
            let end = head.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let section = head[..end.unwrap_or(head.len())].to_ascii_lowercase();
            // A second section on one line may be about anything.
            let is_alone = !head.trim_end().trim_end_matches(']').contains(['[', ']']);
            is_about = !(is_alone && NOT_ABOUT_FILES.contains(&section.as_str()));
        }
        is_about
    });
    counted.collect::<Vec<_>>().join("\n")
}

impl Trees<'_> {
    /// The settings of main, of the user and of the machine that git reads, and ours.
    pub fn pool_settings(&self, commit: &str) -> Result<Settings, TreeError> {
        let (mut checkout, mut repository) = (Digest::default(), Digest::default());
        for digest in [&mut checkout, &mut repository] {
            digest.add(FORMAT.as_bytes());
            digest.add(commit.len().to_string().as_bytes());
        }
        checkout.add(self.config.tree_lfs.as_str().as_bytes());
        checkout.add(umask().as_bytes());
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        checkout.add(format!("{user:?} {group:?}").as_bytes());
        repository.add(self.config.sandbox_sockets.join("\n").as_bytes());
        let mut is_indirect = false;
        for file in self.configurations() {
            let text = read(&file);
            let lower = text.to_ascii_lowercase();
            is_indirect |= lower.contains("[include") || lower.contains("attributesfile");
            checkout.add(about_files(&text).as_bytes());
            repository.add(text.as_bytes());
        }
        if is_indirect {
            let text = self.indirect_settings()?;
            checkout.add(&text);
            repository.add(&text);
        }
        let common_dir = self.common_dir();
        for file in INFO_FILES {
            let text = read(&common_dir.join(file));
            repository.add(text.as_bytes());
            if file != "info/exclude" {
                checkout.add(text.as_bytes());
            }
        }
        let own = self.user_directory().map(|own| own.join("attributes"));
        for file in own.into_iter().chain(["/etc/gitattributes".into()]) {
            checkout.add(read(&file).as_bytes());
        }
        Ok(Settings {
            files: checkout.finish(),
            repository: repository.finish(),
        })
    }

    /// What included files say, and the attributes that a setting names.
    fn indirect_settings(&self) -> Result<Vec<u8>, TreeError> {
        let asked = |arguments: &[&str]| {
            Git::with_own_config(self.common_dir(), "config")
                .with_user_config(self.host.home.as_deref())
                .args(arguments)
                .output()
        };
        let mut text = asked(&["--list", "--includes", "-z"])?.stdout;
        let named = asked(&["--includes", "--path", "--get", "core.attributesFile"])?.stdout;
        let named = String::from_utf8_lossy(&named).trim_end().to_owned();
        if !named.is_empty() {
            text.extend(fs::read(named).unwrap_or_default());
        }
        Ok(text)
    }
}

/// Which rights new files don't get: a spare has them from whoever filled the pool.
fn umask() -> String {
    let status = read(Path::new("/proc/self/status"));
    let line = status.lines().find(|line| line.starts_with("Umask:"));
    line.unwrap_or_default().to_owned()
}

/// A file as text, byte for byte if it is no UTF-8. One that is there and can't be read is told from every other.
fn read(file: &Path) -> String {
    match files::read_small_bytes(file, LIMIT) {
        Ok(None) => String::new(),
        Ok(Some(bytes)) => bytes.iter().map(|byte| char::from(*byte)).collect(),
        Err(error) => format!("[unreadable]\n{error} {}", std::process::id()),
    }
}

#[cfg(test)]
mod tests {
    use super::about_files;

    #[test]
    fn remotes_and_branches_do_not_spoil_a_spare_and_filters_do() {
        let base = "[core]\n\tautocrlf = true\n";
        for section in [
            "[remote \"origin\"]",
            "  [branch \"a.b\"]",
            "[User]",
            "[branch.old]",
        ] {
            let more = format!("{base}{section}\n\tx = y\n");
            assert_eq!(about_files(&more), about_files(base), "{section}");
        }
        for section in [
            "[filter \"lfs\"]",
            "[core]",
            "[remotely]",
            "[lfs]",
            "[user][core]",
        ] {
            let more = format!("{base}[remote \"x\"]\n\ta = b\n{section}\n\tx = y\n");
            assert_ne!(about_files(&more), about_files(base), "{section}");
        }
    }
}
