//! How much room a tree takes, as far as can be told in a given time.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Access, InsideError, Job, Workplace};
use crate::untrusted::{BYTES, Reply};

/// How much room files take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// In bytes of their disk.
    pub bytes: u64,
    /// Whether all of them were counted.
    pub is_whole: bool,
}

/// Adds up how much room the tree takes, as far as that can be done in so many milliseconds.
#[derive(Serialize, Deserialize)]
pub struct MeasureSize {
    pub millis: u64,
}

impl Job for MeasureSize {
    type Reply = Size;
    const ACCESS: Access = Access::Read;

    fn work(&self, at: &Workplace) -> Result<Size, InsideError> {
        let limit = Duration::from_millis(self.millis);
        Ok(measure(vec![at.work_tree.clone()], Instant::now() + limit))
    }
}

impl Reply for Size {
    fn checked(mut self) -> Option<Self> {
        self.bytes = self.bytes.min(BYTES);
        Some(self)
    }
}

/// Adds up what files take on their disk; links are not followed, and what is below a mount is another disk's.
fn measure(mut folders: Vec<PathBuf>, deadline: Instant) -> Size {
    let device = |path: &PathBuf| path.symlink_metadata().map(|found| found.dev()).ok();
    let own = folders.first().and_then(device);
    let mut bytes = 0;
    while let Some(folder) = folders.pop() {
        if Instant::now() >= deadline {
            return Size {
                bytes,
                is_whole: false,
            };
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else {
                continue;
            };
            bytes += found.blocks() * 512;
            if found.is_dir() && Some(found.dev()) == own {
                folders.push(entry.path());
            }
        }
    }
    Size {
        bytes,
        is_whole: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p11_sizes_count_files_once_and_stop_in_time() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("below")).unwrap();
        fs::write(root.path().join("below/file"), vec![7; 1 << 20]).unwrap();
        std::os::unix::fs::symlink("/", root.path().join("everything")).unwrap();
        let all = || vec![root.path().to_owned()];
        let size = measure(all(), Instant::now() + Duration::from_secs(60));
        assert!(size.is_whole);
        assert!((1 << 20..2 << 20).contains(&size.bytes), "{size:?}");
        assert!(!measure(all(), Instant::now()).is_whole);
    }
}
