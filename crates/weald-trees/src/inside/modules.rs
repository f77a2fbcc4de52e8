//! Repositories of submodules, inside: which there are, and what they hold.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Access, InsideError, Job, Workplace};
use crate::untrusted::{MANY, Reply, is_id, keep_paths};

/// How deep the names of submodules may be.
const DEPTH: usize = 8;

/// Names every repository below `modules/`.
#[derive(Serialize, Deserialize)]
pub struct ListModules;

/// What the repositories are called.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListReply {
    pub names: Vec<String>,
}

/// Sends everything that a submodule's repository holds on to and `haves` lack.
#[derive(Serialize, Deserialize)]
pub struct SendModule {
    pub name: String,
    pub haves: Vec<String>,
}

/// What it holds on to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModuleReply {
    pub held: Vec<String>,
}

impl Job for ListModules {
    type Reply = ListReply;
    const ACCESS: Access = Access::Read;

    fn work(&self, at: &Workplace) -> Result<ListReply, InsideError> {
        let mut names = Vec::new();
        find(&at.git_dir.join("modules"), "", DEPTH, &mut names);
        Ok(ListReply { names })
    }
}

impl Reply for ListReply {
    fn checked(mut self) -> Option<Self> {
        keep_paths(&mut self.names, MANY);
        Some(self)
    }
}

impl Job for SendModule {
    type Reply = ModuleReply;
    const ACCESS: Access = Access::Read;

    fn work(&self, at: &Workplace) -> Result<ModuleReply, InsideError> {
        let module = self.module(at);
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
        Ok(ModuleReply { held })
    }

    fn send(&self, at: &Workplace, reply: &ModuleReply) -> Result<(), InsideError> {
        let wanted: Vec<_> = reply.held.iter().map(String::as_str).collect();
        let haves: Vec<_> = self.haves.iter().collect();
        match wanted.iter().all(|id| haves.iter().any(|have| have == id)) {
            true => Ok(()),
            false => self.module(at).send(&wanted, &haves, &[], None),
        }
    }
}

impl Reply for ModuleReply {
    fn checked(mut self) -> Option<Self> {
        self.held.retain(|id| is_id(id));
        self.held.truncate(MANY);
        Some(self)
    }
}

impl SendModule {
    fn module(&self, at: &Workplace) -> Workplace {
        Workplace {
            git_dir: at.git_dir.join("modules").join(&self.name),
            ..at.clone()
        }
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
