//! Seals: what a spare was made from, how its directory looked then, and what must not have changed since.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_core::config::Config;
use weald_git::{Digest, Git};

use crate::files;
use crate::trees::building::identity_of;
use crate::trees::inner::INFO_FILES;
use crate::trees::{TreeError, Trees};
use weald_core::tree::DirectoryIdentity;

/// The longest seal, and the longest configuration file that counts.
const LIMIT: u64 = 1 << 20;

/// Made anew when what weald puts into a tree changes.
const FORMAT: &str = "1";

/// What is known of a checkout in the pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seal {
    /// Everything but the commit that decides what a checkout looks like.
    pub key: String,
    /// The commit.
    pub base: String,
    /// The start of the machine it was made in: after a power cut nothing of it is sure.
    pub boot: String,
    directory: DirectoryIdentity,
    looks: [(i64, i64, u64); 3],
}

impl Seal {
    /// Seals the tree in `holder`.
    pub(crate) fn put(holder: &Path, key: &str, base: &str, boot: &str) -> Result<(), TreeError> {
        let tree = holder.join("tree");
        let seal = Self {
            key: key.to_owned(),
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

impl Trees<'_> {
    /// Everything but the commit that decides what a checkout looks like: the settings of main, of the user and of the
    /// machine that git reads, and ours.
    pub(super) fn pool_key(&self, commit: &str) -> Result<String, TreeError> {
        let mut digest = Digest::default();
        digest.add(FORMAT.as_bytes());
        digest.add(commit.len().to_string().as_bytes());
        for key in ["sandbox.sockets", "tree.lfs"] {
            digest.add(shown(self.config, key).as_bytes());
        }
        let mut is_indirect = false;
        for file in self.settings_of_git() {
            let text = files::read_small(&file, LIMIT).ok().flatten();
            let text = text.unwrap_or_default();
            let lower = text.to_ascii_lowercase();
            is_indirect |= lower.contains("[include") || lower.contains("attributesfile");
            digest.add(text.as_bytes());
        }
        if is_indirect {
            digest.add(&self.indirect_settings()?);
        }
        Ok(digest.finish())
    }

    fn settings_of_git(&self) -> Vec<PathBuf> {
        let common_dir = self.place.repository().common_dir();
        let own = ["config", "config.worktree"].into_iter().chain(INFO_FILES);
        let mut found: Vec<_> = own.map(|file| common_dir.join(file)).collect();
        let home = self.host.home.as_deref();
        found.extend(home.map(|home| home.join(".gitconfig")));
        let configured = self.variable("XDG_CONFIG_HOME").map(PathBuf::from);
        let directory = configured.or_else(|| home.map(|home| home.join(".config")));
        for file in ["config", "attributes"] {
            found.extend(
                directory
                    .as_ref()
                    .map(|directory| directory.join("git").join(file)),
            );
        }
        found.extend(["/etc/gitconfig", "/etc/gitattributes"].map(PathBuf::from));
        found
    }

    /// What included files say, and the attributes that a setting names.
    fn indirect_settings(&self) -> Result<Vec<u8>, TreeError> {
        let asked = |arguments: &[&str]| {
            Git::with_own_config(self.place.repository().common_dir(), "config")
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

    fn variable(&self, name: &str) -> Option<std::ffi::OsString> {
        let mut known = self.host.environment.iter();
        let found = known.find(|(known, _)| known.as_os_str() == std::ffi::OsStr::new(name));
        found.map(|(_, value)| value.clone())
    }
}

fn shown(config: &Config, key: &str) -> String {
    match key {
        "sandbox.sockets" => config.list(key).join("\n"),
        _ => config.text(key).to_owned(),
    }
}
