//! The repository that merges are tried in: it borrows from the vault and from main, and may be deleted at any time.
//!
//! What trees hold that nobody imported yet, and what merging makes, goes here and not into the vault, where nothing is ever
//! deleted. It has no refs and nothing else depends on it.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::memory::Memory;
use crate::LandError;
use crate::Landings;
use weald_trees::at;
use weald_trees::inside::quoted;

/// It begins anew when so many packs came from trees.
const PACKS: usize = 300;

/// It begins anew when merging left about so many files.
const LOOSE: usize = 40_000;

/// Where it says which one it is.
const STAMP: &str = "weald-stamp";

impl Landings<'_> {
    /// The repository, made where there is none or where it grew large. States in another one are forgotten.
    pub(super) fn radar_repository(&self, memory: &mut Memory) -> Result<PathBuf, LandError> {
        let path = self.trees.place.private().join("radar.git");
        let stamp = fs::read_to_string(path.join(STAMP)).unwrap_or_default();
        if !stamp.is_empty() && !has_grown(&path) {
            if stamp != memory.stamp {
                memory.states.clear();
                memory.stamp = stamp;
            }
            return Ok(path);
        }
        memory.states.clear();
        // It goes first and as a whole: half of one is not taken for one.
        let _ = fs::remove_file(path.join(STAMP));
        if path.exists() {
            fs::remove_dir_all(&path).map_err(at(&path))?;
        }
        self.lay_out(&path)?;
        memory.stamp = self.trees.now()?.to_string();
        let file = path.join(STAMP);
        fs::write(&file, &memory.stamp).map_err(at(&file))?;
        Ok(path)
    }

    /// An empty repository that borrows from the vault and from main.
    pub(super) fn lay_out(&self, path: &Path) -> Result<(), LandError> {
        for folder in ["objects/info", "objects/pack", "refs"] {
            let folder = path.join(folder);
            fs::create_dir_all(&folder).map_err(at(&folder))?;
        }
        let write = |name: &str, text: &[u8]| {
            let file = path.join(name);
            fs::write(&file, text).map_err(at(&file))
        };
        let vault = self.trees.vault();
        let config = vault.path().join("config");
        write("config", &fs::read(&config).map_err(at(&config))?)?;
        write("HEAD", b"ref: refs/heads/none\n")?;
        let mut lines = Vec::new();
        let main = self.trees.place.repository().common_dir().join("objects");
        for objects in [vault.objects(), main] {
            quoted(&mut lines, objects.as_os_str().as_bytes());
            lines.push(b'\n');
        }
        write("objects/info/alternates", &lines)?;
        Ok(())
    }
}

/// Whether it holds so much that beginning anew is better.
fn has_grown(path: &Path) -> bool {
    let count = |folder: &str| fs::read_dir(path.join(folder)).map_or(0, Iterator::count);
    // Objects are spread evenly over 256 folders.
    count("objects/pack") > 3 * PACKS || count("objects/17") > LOOSE / 256
}
