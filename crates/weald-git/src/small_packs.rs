//! Small packs become loose objects: a pack for every import and every landing would slow down each git process on the
//! vault, and packs are dropped late.
//!
//! What comes from an agent is unpacked in a folder of its own and moves in when all of it was checked. Nothing that was
//! refused is ever there for the next pack to lead to.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::process::{Git, GitError};
use crate::steps::step;

/// From so many objects on a pack stays one, as with git's own `fetch.unpackLimit`.
pub(crate) const FEW_OBJECTS: usize = 100;

/// From so many bytes on a pack stays one.
const SMALL: u64 = 1 << 20;

/// The header of a pack: signature, version, count.
const HEADER: usize = 12;

/// The start of a pack, or all of it when it is small: so many bytes and so few objects.
pub(crate) enum Start {
    Small(Vec<u8>),
    Large(Vec<u8>),
}

/// Reads as much of a pack as is needed to know its size.
pub(crate) fn start_of(pack: &mut impl Read) -> Start {
    let mut bytes = Vec::new();
    let read = pack.by_ref().take(SMALL).read_to_end(&mut bytes);
    let is_whole = read.is_ok_and(|read| (read as u64) < SMALL);
    let count = bytes.get(8..HEADER).and_then(|count| count.try_into().ok());
    let count = count.map_or(u32::MAX, u32::from_be_bytes);
    match is_whole && (count as usize) < FEW_OBJECTS {
        true => Start::Small(bytes),
        false => Start::Large(bytes),
    }
}

/// Runs an `unpack-objects` on the repository `git_dir`; what it made moves in only if it succeeds.
pub(crate) fn unpack_apart(git_dir: &Path, unpack: Git) -> Result<(), GitError> {
    let failed = |source| GitError::NotStarted { source };
    let objects = git_dir.join("objects");
    let apart = Apart::new(&objects).map_err(failed)?;
    unpack.env("GIT_OBJECT_DIRECTORY", &apart.0).run()?;
    step("import.unpacked");
    apart.move_in(&objects).map_err(failed)
}

/// A folder of objects that see those of a repository, but are not seen there. Dropping it deletes it; of a process that
/// was killed, `doctor` does.
struct Apart(PathBuf);

impl Apart {
    fn new(objects: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = objects.join(format!("tmp_incoming-{}-{number}", std::process::id()));
        // A process of the same number that was killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("info"))?;
        let apart = Self(path);
        fs::write(apart.0.join("info/alternates"), "..\n")?;
        Ok(apart)
    }

    /// Moves every object by a rename. Nothing leads to them yet, so a kill in between leaves some that nobody misses.
    fn move_in(&self, objects: &Path) -> io::Result<()> {
        for folder in fs::read_dir(&self.0)? {
            let folder = folder?;
            if folder.file_name() == "info" || !folder.file_type()?.is_dir() {
                continue;
            }
            let to = objects.join(folder.file_name());
            match fs::create_dir(&to) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            for object in fs::read_dir(folder.path())? {
                let object = object?;
                fs::rename(object.path(), to.join(object.file_name()))?;
            }
        }
        Ok(())
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
