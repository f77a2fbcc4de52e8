//! Names of refs that are safe to join to a path, by the rules of `git check-ref-format`.

use std::fmt;
use std::path::{Path, PathBuf};

/// The full name of a ref below `refs/`. Whoever has one may join it to a git directory: no part leads up or is empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RefName(String);

impl RefName {
    /// Checks a full name, `refs/heads/main`.
    pub fn parse(name: &str) -> Option<Self> {
        (name.starts_with("refs/") && is_well_formed(name)).then(|| Self(name.to_owned()))
    }

    /// Checks the name of a branch, `main`, also by what git demands of branches alone.
    pub fn branch(name: &str) -> Option<Self> {
        let is_branch = !name.starts_with('-') && name != "HEAD";
        is_branch
            .then(|| Self::parse(&format!("refs/heads/{name}")))
            .flatten()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its file, if it is loose.
    pub fn file_in(&self, git_dir: &Path) -> PathBuf {
        git_dir.join(&self.0)
    }

    /// The lock that a git holds while it changes the ref.
    pub fn lock_in(&self, git_dir: &Path) -> PathBuf {
        git_dir.join(format!("{}.lock", self.0))
    }

    pub fn log_in(&self, git_dir: &Path) -> PathBuf {
        git_dir.join("logs").join(&self.0)
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a name can be that of a ref: one below `refs/`, or a root ref such as `HEAD`.
pub(crate) fn is_readable(name: &str) -> bool {
    let is_root = |name: &str| {
        let is_plain = |byte: u8| byte.is_ascii_uppercase() || byte == b'_' || byte == b'-';
        !name.is_empty() && name.bytes().all(is_plain)
    };
    is_root(name) || RefName::parse(name).is_some()
}

/// The rules of `git check-ref-format`.
fn is_well_formed(name: &str) -> bool {
    let is_odd = |byte: u8| byte.is_ascii_control() || b" ~^:?*[\\".contains(&byte);
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    !name.bytes().any(is_odd)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
        && name.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Git;

    const NAMES: [&str; 40] = [
        "main",
        "wt/a",
        "a.b",
        "a@b",
        "@",
        "ä",
        "a-b",
        "-a",
        "HEAD",
        "a/HEAD",
        "",
        "/",
        "a/",
        "/a",
        "a//b",
        ".a",
        "a/.b",
        "a.",
        "a./b",
        "a..b",
        "../x",
        "../../../config",
        "a/../b",
        "a.lock",
        "a.lock/b",
        "a b",
        "a~",
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[",
        "a\\b",
        "a@{b",
        "a\tb",
        "a\nb",
        "a\u{7f}",
        "{a}",
        "a/b/c/d",
        "~/x",
    ];

    #[test]
    fn x14_a_branch_is_what_git_takes_for_one() {
        for name in NAMES {
            let asked = Git::outside(Path::new("/"), "check-ref-format")
                .args(["--branch", name])
                .output()
                .unwrap();
            let expected = asked.status.success();
            assert_eq!(RefName::branch(name).is_some(), expected, "{name:?}");
        }
    }

    #[test]
    fn x14_no_name_of_a_ref_leads_out_of_the_repository() {
        for name in [
            "refs/heads/../../config",
            "refs/../config",
            "/etc/passwd",
            "config",
            "../x",
        ] {
            assert!(
                RefName::parse(name).is_none() && !is_readable(name),
                "{name}"
            );
        }
        for name in [
            "HEAD",
            "ORIG_HEAD",
            "WEALD_FENCE",
            "refs/stash",
            "refs/heads/a",
        ] {
            assert!(is_readable(name), "{name}");
        }
    }
}
