//! Filling the stage: the new files, as the user's own git writes them, and the new index.
//!
//! Where the index is plain and known to be clean, weald works the new index out, and git gets a small one to write files
//! from: only what the landing touches, and the attributes. Otherwise git merges the trees into the index (`read-tree`).
//! git writes into an empty folder either way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use weald_git::{CheckoutIndex, EntryKind, NewEntry};

use super::super::LandError;
use super::Move;
use super::checkout::Checkout;
use super::examine::Examined;
use super::folder::Folder;
use super::stage::Stage;
use super::touched::{Side, Touched};
use super::users_git::UsersGit;
use crate::Landings;
use crate::refusal::Refusal;
use weald_trees::at;

/// Where git keeps what it knows of paths.
const ATTRIBUTES: &[u8] = b".gitattributes";

/// The index after the landing, and the part of it that files are written from.
struct NewIndex {
    whole: CheckoutIndex,
    part: CheckoutIndex,
    /// Whether any file has to be written.
    is_needed: bool,
}

impl Landings<'_> {
    /// Writes the new files, as the user's own git would, into an empty folder; and the new index.
    pub(super) fn fill_stage(
        &self,
        wanted: &Move,
        checkout: &Checkout,
        stage: &Stage,
        examined: &Examined,
    ) -> Result<(), LandError> {
        let Some(new) = new_index(checkout, examined) else {
            let merge = ["read-tree", "-m", "-u", &wanted.old, &wanted.new];
            return self.write_files(checkout, stage, &stage.new_index(), &merge);
        };
        let part = stage.path.join("index.part");
        fs::write(&part, new.part.to_bytes()).map_err(at(&part))?;
        if new.is_needed {
            self.write_files(checkout, stage, &part, &["checkout-index", "-a"])?;
        }
        require_files(stage, &examined.touched)?;
        let index = stage.new_index();
        Ok(fs::write(&index, new.whole.to_bytes()).map_err(at(&index))?)
    }

    fn write_files(
        &self,
        checkout: &Checkout,
        stage: &Stage,
        index: &Path,
        args: &[&str],
    ) -> Result<(), LandError> {
        let answer = self.users_git(&UsersGit {
            checkout,
            work_tree: &stage.files(),
            index: Some(index),
            write: vec![stage.path.clone()],
            args,
        })?;
        if answer.code == 0 {
            return Ok(());
        }
        Err(Refusal::FilesNotWritten(
            answer.stderr.contains("filter"),
            match answer.stderr.is_empty() {
                true => format!("it exited with code {}", answer.code),
                false => answer.stderr,
            },
        )
        .into())
    }
}

/// The new index, if everything about it is plain.
fn new_index(checkout: &Checkout, examined: &Examined) -> Option<NewIndex> {
    let known = examined.clean.as_ref()?;
    let patterns = checkout.git_dir.join("info/sparse-checkout");
    let are_plain = examined.touched.iter().all(is_plain);
    if patterns.symlink_metadata().is_ok() || !are_plain {
        return None;
    }
    let mut changes = BTreeMap::new();
    for one in &examined.touched {
        let entry = match &one.new {
            Some(side) => Some(entry_of(side)?),
            None => None,
        };
        changes.insert(one.path.clone(), entry);
    }
    let whole = known.edited(&changes)?;
    let written = examined.touched.iter().filter(|one| one.new.is_some());
    let written: BTreeSet<_> = written.map(|one| one.path.as_slice()).collect();
    let part = whole.part(&written, |path| {
        path.rsplit(|byte| *byte == b'/').next() == Some(ATTRIBUTES)
    })?;
    Some(NewIndex {
        whole,
        part,
        is_needed: !written.is_empty(),
    })
}

fn entry_of(side: &Side) -> Option<NewEntry> {
    let kind = match side.mode.as_str() {
        "100644" => EntryKind::File,
        "100755" => EntryKind::Executable,
        "120000" => EntryKind::Link,
        "160000" => EntryKind::Submodule,
        _ => return None,
    };
    let id = hex::decode(&side.id).ok()?;
    Some(NewEntry { kind, id })
}

/// Whether git would take a path into an index without a second look. It refuses some, which `.git` is behind.
fn is_plain(one: &Touched) -> bool {
    let is_link = one.new.as_ref().is_some_and(|side| side.mode == "120000");
    one.path.split(|byte| *byte == b'/').all(|name| {
        let name = name.to_ascii_lowercase();
        let is_odd = |byte: &u8| byte.is_ascii_control() || b"\\:~".contains(byte);
        match name.strip_prefix(b".") {
            _ if name.is_empty() || name.iter().any(is_odd) => false,
            None => true,
            Some(rest) if !rest.is_ascii() || rest.is_empty() || rest == b"." => false,
            Some(rest) => match rest.strip_prefix(b"git") {
                Some(rest) => !is_link && rest.first().is_some_and(u8::is_ascii_alphabetic),
                None => true,
            },
        }
    })
}

/// git has to have written everything.
fn require_files(stage: &Stage, touched: &[Touched]) -> Result<(), LandError> {
    let files = Folder::open(&stage.files()).map_err(at(&stage.path))?;
    for one in touched {
        let Some(side) = &one.new else {
            continue;
        };
        let found = files.stamp(&one.path).map_err(at(&stage.path))?;
        if found.is_none_or(|found| found.is_directory() != side.is_gitlink()) {
            let path = String::from_utf8_lossy(&one.path);
            return Err(Refusal::FilesNotWritten(false, format!("{path} is missing")).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m7_paths_that_lead_to_a_repository_are_left_to_git_to_refuse() {
        let one = |path: &str, mode: &str| Touched {
            path: path.into(),
            old: None,
            new: Some(Side {
                mode: mode.to_owned(),
                id: "1".repeat(40),
            }),
        };
        for path in [
            "a",
            "a b/\u{e9}",
            ".x/y",
            ".gitignore",
            "d/.gitattributes",
            ".github/x",
            "...",
            "git",
        ] {
            assert!(is_plain(&one(path, "100644")), "{path}");
        }
        let odd = [
            "",
            "/a",
            "a/",
            "a//b",
            ".",
            "a/..",
            ".git",
            "d/.GIT/hooks/x",
            ".git.",
            ".git ",
            ".git::$x",
            "git~1/x",
            "a\\.git",
            ".g\u{200c}it/config",
            "a\nb",
            ".gi\u{17f}t",
        ];
        for path in odd {
            assert!(!is_plain(&one(path, "100644")), "{path}");
        }
        assert!(!is_plain(&one(".gitmodules", "120000")));
        assert!(is_plain(&one("link", "120000")));
    }
}
