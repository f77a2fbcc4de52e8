//! The pattern: the repositories of a field, made by git once and copied for every attempt.
//!
//! Making them costs some twenty processes, a copy costs none. Nothing runs in the pattern itself.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::surroundings::{command, fresh_root};

/// What every field has: a main repository, a tree that borrows its objects, a sibling.
pub struct Pattern {
    root: PathBuf,
}

impl Pattern {
    /// Has git make the repositories.
    pub fn make() -> io::Result<Self> {
        let pattern = Self {
            root: fresh_root()?,
        };
        build_repositories(&pattern.root)?;
        Ok(pattern)
    }

    /// Puts a copy of them into a field. The tree borrows from the main of its own field.
    pub(super) fn copy_to(&self, field: &Path) -> io::Result<()> {
        copy_folder(&self.root, field)?;
        let lender = field.join("main/.git/objects");
        let borrows = field.join("tree/.git/objects/info/alternates");
        fs::write(borrows, format!("{}\n", lender.display()))
    }
}

impl Drop for Pattern {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Files and folders only: git makes no links here.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &place)?,
            false => drop(fs::copy(entry.path(), place)?),
        }
    }
    Ok(())
}

fn build_repositories(root: &Path) -> io::Result<()> {
    let script = r#"
        cd "$1"; mkdir tree sibling; export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
        git() { command git -c user.name=x -c user.email=x@example.com -c init.defaultBranch=main "$@"; }
        git init -q --template= main; cd main; echo 1 > a; git add a; git commit -qm one; echo 2 > a; git commit -qam two
        git branch side; git tag old HEAD~1; mkdir -p .git/weald/private; echo secret > .git/weald/private/secret
        for whose in own other; do
            mkdir -p .git/weald/runs/$whose .git/weald/homes/$whose/agent
            echo secret > .git/weald/runs/$whose/secret
        done
        echo {} > .git/weald/homes/other/agent/settings
        echo dirty >> a; echo untracked > u
        cd ../tree; git init -q --template= .; echo "$1/main/.git/objects" > .git/objects/info/alternates
        git fetch -q ../main main; git reset -q --hard FETCH_HEAD; echo inside > inside
        cd ../sibling; git init -q --template= .; echo s > s; git add s; git commit -qm s
    "#;
    let status = command("sh")
        .args(["-ec", script, "sh"])
        .arg(root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(
            "the field's repositories could not be made (is git installed?)",
        )),
    }
}
