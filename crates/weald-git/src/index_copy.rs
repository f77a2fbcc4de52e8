//! Copies of an index.

use std::fs::{self, File, FileTimes, Metadata};
use std::io;
use std::path::Path;

/// Copies an index, with its time. By that git knows which files may have changed in the very tick in which they were
/// staged; with a later time it would take such a change for none.
pub fn copy_index(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let copy = File::options().write(true).open(to)?;
    keep_index_time(&fs::metadata(from)?, &copy)
}

/// Gives a copy of an index the time of the index.
pub fn keep_index_time(index: &Metadata, copy: &File) -> io::Result<()> {
    copy.set_times(FileTimes::new().set_modified(index.modified()?))
}
