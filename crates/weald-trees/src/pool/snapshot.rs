//! btrfs: a donor that is a subvolume is seen again in one step, however large it is.
//!
//! Done by the file system's own tool; where it is not installed or refuses, files are copied.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// What `statfs` says of btrfs.
const BTRFS: i64 = 0x9123_683E;

/// The number of every subvolume's top directory.
const TOP: u64 = 256;

/// Whether a directory is on btrfs.
pub(super) fn is_btrfs(directory: &Path) -> bool {
    rustix::fs::statfs(directory).is_ok_and(|found| found.f_type == BTRFS)
}

/// Whether a directory is the top of a subvolume.
pub(super) fn is_subvolume(directory: &Path) -> bool {
    directory
        .symlink_metadata()
        .is_ok_and(|found| found.ino() == TOP)
        && is_btrfs(directory)
}

/// Makes an empty subvolume.
pub(super) fn make(directory: &Path) -> io::Result<()> {
    btrfs(&["subvolume", "create"], &[directory])
}

/// Makes `to` a snapshot of the subvolume `from`.
pub(super) fn snapshot(from: &Path, to: &Path) -> io::Result<()> {
    btrfs(&["subvolume", "snapshot"], &[from, to])
}

fn btrfs(arguments: &[&str], paths: &[&Path]) -> io::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a tool of the file system, on directories that are weald's own"
    )]
    let mut command = Command::new("btrfs");
    let ended = command
        .args(arguments)
        .arg("--")
        .args(paths)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    match ended.success() {
        true => Ok(()),
        false => Err(io::Error::other("btrfs refused")),
    }
}
