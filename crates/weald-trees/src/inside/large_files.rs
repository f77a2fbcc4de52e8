//! Large files of Git LFS, inside: copied from main before a checkout wants them, and sent to the host when it asks.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weald_git::{Door, Git, LargeFile, LargeFileStore, POINTER_LIMIT, list_pointers};

use super::{Access, InsideError, Job, Workplace, read_capped};
use crate::untrusted::Reply;

/// A file in a repository that says that main lacked large files of its checkout.
pub(crate) const LACKING: &str = "lfs/weald-lacking";

/// What pointers stand for, by their blobs.
type Pointers = BTreeMap<String, LargeFile>;

/// An address that git-lfs gives up on without trying: a visit has no network, and real ones are tried for a minute.
const NOWHERE: &str = "none";

/// How git-lfs works in a visit.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LargeFiles {
    /// Whether files get their content, as far as main has it; otherwise they stay pointers.
    pub smudges: bool,
    /// Main's folder of large files, where their content is wanted.
    pub main: Option<PathBuf>,
    /// Where git-lfs writes in a visit that must not write the tree.
    pub scratch: Option<PathBuf>,
}

impl LargeFiles {
    /// A command that git-lfs may be started by: it asks nobody, and what nobody has stays a pointer.
    pub(super) fn configure(&self, git: Git) -> Git {
        let skips = if self.smudges { "0" } else { "1" };
        let git = git
            .env("GIT_LFS_SKIP_SMUDGE", skips)
            .env("GIT_LFS_SKIP_DOWNLOAD_ERRORS", "1")
            .config("lfs.url", NOWHERE);
        match &self.scratch {
            Some(scratch) => git.config("lfs.storage", scratch),
            None => git,
        }
    }
}

/// Says which of these files are here, then sends those, one after the other.
#[derive(Serialize, Deserialize)]
pub struct SendLargeFiles {
    /// The repository, relative to the tree's own: that, or one of a submodule.
    pub repository: PathBuf,
    /// Their ids and sizes.
    pub files: Vec<(String, u64)>,
    /// More than this is not sent.
    pub limit: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LargeFilesReply {
    /// Which of the files that were asked for are here.
    pub here: Vec<bool>,
}

impl Job for SendLargeFiles {
    type Reply = LargeFilesReply;
    const ACCESS: Access = Access::Read;

    fn work(&self, at: &Workplace) -> Result<LargeFilesReply, InsideError> {
        let door = self.door(at)?;
        let here = self.files.iter().map(|one| found(&door, one).is_some());
        Ok(LargeFilesReply {
            here: here.collect(),
        })
    }

    fn send(&self, at: &Workplace, reply: &LargeFilesReply) -> Result<(), InsideError> {
        let door = self.door(at)?;
        let sent = self
            .files
            .iter()
            .zip(&reply.here)
            .filter(|(_, here)| **here);
        let sent: Vec<_> = sent.map(|(one, _)| one).collect();
        let sizes = sent.iter().map(|(_, size)| *size);
        if sizes.fold(0, u64::saturating_add) > self.limit {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        for one in sent {
            let copied = match found(&door, one) {
                Some(file) => io::copy(&mut file.take(one.1), &mut out)?,
                None => 0,
            };
            if copied != one.1 {
                let why = format!("large file {} changed while it was read", one.0);
                return Err(InsideError::Damaged(why));
            }
        }
        Ok(())
    }
}

impl Reply for LargeFilesReply {
    fn checked(self) -> Option<Self> {
        Some(self)
    }
}

impl SendLargeFiles {
    fn door(&self, at: &Workplace) -> Result<Door, InsideError> {
        Ok(Door::open(&at.git_dir.join(&self.repository))?)
    }
}

/// A large file, if it is here and as long as it should be.
fn found(door: &Door, (id, size): &(String, u64)) -> Option<File> {
    let file = LargeFile::new(id, *size)?;
    let opened = door.open_file(&format!("lfs/{}", file.place())).ok()?;
    (opened.metadata().ok()?.len() == *size).then_some(opened)
}

impl Workplace {
    /// Copies the large files of a commit into the tree's repository, as far as main has them, and answers the pointers of
    /// those that are new there. A link would let whoever works in the tree write main's.
    pub(super) fn bring_large_files(&self, commit: &str) -> Result<Pointers, InsideError> {
        // A linked tree uses main's folder itself.
        let is_linked = self.git_dir == self.main || self.git_dir.join("commondir").exists();
        let main = self.large.main.as_ref().map(LargeFileStore::at);
        let Some(main) = main.filter(|main| main.exists() && !is_linked) else {
            return Ok(Pointers::new());
        };
        let own = LargeFileStore::at(self.git_dir.join("lfs"));
        let mut brought = Pointers::new();
        let mut is_whole = true;
        let pointers = list_pointers(|name| self.git(name), &format!("{commit}^{{tree}}\n"))?;
        for (blob, file) in pointers {
            if own.holds(&file) {
                continue;
            }
            match main.holds(&file) {
                true => {
                    own.copy_from(&main, &file)?;
                    brought.insert(blob, file);
                }
                false => is_whole = false,
            }
        }
        let mark = self.git_dir.join(LACKING);
        match is_whole {
            true if mark.exists() => fs::remove_file(mark)?,
            true => {}
            false => {
                fs::create_dir_all(self.git_dir.join("lfs"))?;
                fs::write(mark, "")?;
            }
        }
        Ok(brought)
    }

    /// Files of a checkout that had to stay pointers, and whose content came by now. Answers whether there were any.
    pub(super) fn fill_pointers(
        &self,
        commit: &str,
        brought: &Pointers,
    ) -> Result<bool, InsideError> {
        if brought.is_empty() {
            return Ok(false);
        }
        let listed = self.git("ls-tree").args(["-r", "-z", commit]).run()?;
        let mut paths = Vec::new();
        for line in listed.split(|byte| *byte == 0) {
            let Some(end) = line.iter().position(|byte| *byte == b'\t') else {
                continue;
            };
            let (entry, path) = (String::from_utf8_lossy(&line[..end]), &line[end + 1..]);
            let file = entry.rsplit(' ').next().and_then(|id| brought.get(id));
            let full = self.work_tree.join(OsStr::from_bytes(path));
            let is_pointer = |file| {
                let found = full.symlink_metadata().is_ok_and(|found| found.is_file());
                let text = read_capped(&full, POINTER_LIMIT).filter(|_| found);
                text.and_then(|text| LargeFile::from_pointer(&text))
                    .as_ref()
                    == Some(file)
            };
            if file.is_some_and(is_pointer) {
                fs::remove_file(&full)?;
                paths.extend_from_slice(path);
                paths.push(0);
            }
        }
        let has_any = !paths.is_empty();
        if has_any {
            self.checkout_git("checkout-index")
                .args(["-f", "-u", "-z", "--stdin"])
                .input(paths)
                .run()?;
        }
        Ok(has_any)
    }
}
