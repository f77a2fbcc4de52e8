//! Repositories of submodules, inside: which there are, and what they hold.

use std::fs;
use std::path::Path;

use super::{InsideError, Reply, Request, Tips, say};

/// How deep the names of submodules may be.
const DEPTH: usize = 8;

impl Request {
    /// Names every repository below `modules/`.
    pub(super) fn list_modules(&self) -> Result<(), InsideError> {
        let mut paths = Vec::new();
        find(&self.git_dir.join("modules"), "", DEPTH, &mut paths);
        Ok(say(&Reply {
            paths,
            ..Reply::default()
        })?)
    }

    /// Everything that a submodule's repository holds on to, as a pack.
    pub(super) fn send_module(&self, name: &str, haves: &[String]) -> Result<(), InsideError> {
        let module = Self {
            git_dir: self.git_dir.join("modules").join(name),
            ..self.clone()
        };
        let lines = |command: &str, arguments: &[&str]| -> Result<Vec<String>, InsideError> {
            let told = module.git(command).args(arguments).run()?;
            let told = String::from_utf8_lossy(&told).into_owned();
            Ok(told.lines().map(str::to_owned).collect())
        };
        let mut held = lines("for-each-ref", &["--format=%(objectname)"])?;
        held.extend(lines("rev-parse", &["-q", "--verify", "HEAD"])?);
        held.extend(lines("reflog", &["--all", "--format=%H"])?);
        held.sort();
        held.dedup();
        say(&Reply {
            tips: Some(Tips {
                refs: held
                    .iter()
                    .enumerate()
                    .map(|(number, id)| (format!("refs/held/{number}"), id.clone()))
                    .collect(),
                ..Tips::default()
            }),
            ..Reply::default()
        })?;
        let wanted: Vec<_> = held.iter().map(String::as_str).collect();
        if wanted.iter().all(|id| haves.iter().any(|have| have == id)) {
            return Ok(());
        }
        let haves: Vec<_> = haves.iter().collect();
        module.send(&wanted, &haves, &[], None)
    }
}

/// Repositories below a directory; what can't be read is no repository that git could use.
fn find(directory: &Path, name: &str, depth: usize, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(part) = entry.file_name().into_string() else {
            continue;
        };
        let name = match name {
            "" => part,
            above => format!("{above}/{part}"),
        };
        let path = entry.path();
        if path.join("HEAD").symlink_metadata().is_ok() && path.join("objects").is_dir() {
            found.push(name.clone());
        }
        if depth > 0 && path.is_dir() && !path.is_symlink() {
            find(&path, &name, depth - 1, found);
        }
    }
}
