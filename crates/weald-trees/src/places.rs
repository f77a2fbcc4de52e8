//! Where weald may put worktrees, gate worktrees and trash.
//!
//! The repository chooses no place: `tree.path` and `trash.path` are the user's own or a profile's. But a profile may put
//! them into the checkout, and what is in the checkout came with the repository, links included. So nothing is made
//! there behind a link, and nothing among git's own files.

use std::path::{Component, Path, PathBuf};

use super::{TreeError, Trees};

impl Trees<'_> {
    /// Refuses to make anything at `path` if the template at `key` must not lead there. A link at `path` itself is not
    /// followed: whoever makes something there finds the place taken.
    pub(crate) fn require_safe_place(
        &self,
        key: &'static str,
        path: &Path,
    ) -> Result<(), TreeError> {
        let root = self.place.root();
        let common_dir = self.common_dir();
        let refused = |why: &str| {
            Err(TreeError::UnsafePlace {
                key,
                origin: self.config.get(key).1.to_string(),
                path: path.to_owned(),
                why: why.to_owned(),
            })
        };
        if !path.is_absolute() {
            return refused("it is not an absolute path");
        }
        let Some(real) = really(path) else {
            return refused("its `..` leads through a directory that does not exist");
        };
        if root.starts_with(&real) || common_dir.starts_with(&real) {
            return refused("the repository itself is there");
        }
        if root == common_dir {
            // A bare repository has no checkout to bring links.
            return Ok(());
        }
        let own = common_dir.join("weald");
        if real.starts_with(common_dir) && !(key == "trash.path" && real.starts_with(own)) {
            return refused("it is among git's own files");
        }
        let Ok(inside) = path.strip_prefix(&root) else {
            return Ok(());
        };
        if inside.components().any(|part| part == Component::ParentDir) {
            // Only the user writes such a template, and means what is there.
            return Ok(());
        }
        let is_git = |part: Component<'_>| part.as_os_str().eq_ignore_ascii_case(".git");
        if !real.starts_with(common_dir) && inside.components().any(is_git) {
            return refused("it is among git's own files");
        }
        match root
            .canonicalize()
            .is_ok_and(|root| real == root.join(inside))
        {
            true => Ok(()),
            false => refused("a link in the repository leads elsewhere"),
        }
    }
}

/// The path with the links on its way followed, as far as it exists; `None` if `..` comes after that.
fn really(path: &Path) -> Option<PathBuf> {
    let is_there = |above: &&Path| above.symlink_metadata().is_ok();
    let known = path.parent()?.ancestors().find(is_there)?;
    let rest = path.strip_prefix(known).ok()?;
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    let real = known.canonicalize().ok()?;
    rest.components().all(is_plain).then(|| real.join(rest))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn x14_a_path_is_known_behind_its_links() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        symlink("/", home.join("out")).unwrap();
        symlink("nowhere", home.join("dangling")).unwrap();
        let found = |path: &str| really(&home.join(path));
        assert_eq!(found("a/b"), Some(home.join("a/b")));
        assert_eq!(found("out/x-y/z"), Some(PathBuf::from("/x-y/z")));
        assert_eq!(found("out"), Some(home.join("out")));
        assert_eq!(
            found("../x-y"),
            home.parent().map(|above| above.join("x-y"))
        );
        assert_eq!(found("a/../b"), None);
        assert_eq!(found("dangling/b"), None);
    }
}
