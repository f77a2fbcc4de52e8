//! The HEAD of a worktree's entry where refs are in tables: stubs that git wants to find, and tables that git alone writes.

use std::fs;
use std::io;
use std::path::Path;

use crate::git_files::replace;
use crate::process::{Git, GitError};
use crate::ref_tables::tabled_ref;
use crate::reference::Reference;
use crate::refs::while_tables_are_held;

/// What every git wants to find in place of HEAD and of the refs, and the list of tables, which begins empty.
pub(crate) const STUBS: [(&str, &str); 3] = [
    ("HEAD", "ref: refs/heads/.invalid\n"),
    ("refs/heads", "this repository uses the reftable format\n"),
    ("reftable/tables.list", ""),
];

/// Makes an entry's HEAD say `head`. The entry may still be in the making, away from its place.
pub(crate) fn set_head(common_dir: &Path, entry: &Path, head: &Reference) -> io::Result<()> {
    for (name, text) in STUBS {
        let path = entry.join(name);
        let is_odd = name == "HEAD" && fs::read(&path).ok().as_deref() != Some(text.as_bytes());
        if is_odd || path.symlink_metadata().is_err() {
            fs::create_dir_all(path.parent().unwrap_or(entry))?;
            replace(&path, text.as_bytes())?;
        }
    }
    let change = || {
        let git = match head {
            Reference::Symbolic(name) => Git::new(entry, "symbolic-ref").args(["HEAD", name]),
            Reference::Direct(commit) => Git::new(entry, "update-ref")
                .args(["--no-deref", "-m", "weald: detached", "HEAD"])
                .args([commit.as_str()]),
        };
        // Where the entry will be, `commondir` leads there; where it is made, it does not.
        git.env("GIT_COMMON_DIR", common_dir)
            .env("GIT_COMMITTER_NAME", "weald")
            .env("GIT_COMMITTER_EMAIL", "weald@localhost")
            .run()
    };
    let as_file_error = |error: GitError| io::Error::other(error.to_string());
    if tabled_ref(entry, "HEAD").ok().flatten().as_ref() == Some(head) {
        return Ok(());
    }
    while_tables_are_held(change)
        .map(drop)
        .map_err(as_file_error)
}

/// What is wrong with the tables of an entry.
pub(crate) fn tables_fault(entry: &Path) -> Result<(), String> {
    let list = entry.join("reftable/tables.list");
    if !list.symlink_metadata().is_ok_and(|found| found.is_file()) {
        return Err("its list of tables is missing".to_owned());
    }
    match tabled_ref(entry, "HEAD") {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err("its tables hold no HEAD".to_owned()),
        Err(_) => Err("its tables can't be read".to_owned()),
    }
}
