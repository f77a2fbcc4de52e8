//! `info/exclude`: git's own list of what it must not see, so that no tracked file has to say it.

use std::fs;
use std::io;
use std::path::Path;

use crate::files;

/// Adds lines that are not there yet. `private` is where the lock against other processes of weald lies.
pub(crate) fn add(common_dir: &Path, private: &Path, lines: &[&str]) -> io::Result<()> {
    let file = common_dir.join("info/exclude");
    files::edit_alone(&private.join("exclude"), || {
        let mut text = fs::read_to_string(&file).unwrap_or_default();
        let missing: Vec<_> = lines
            .iter()
            .filter(|line| !text.lines().any(|known| known == **line))
            .copied()
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        for line in missing {
            text.push_str(&format!("{line}\n"));
        }
        files::replace(&file, &text)
    })
    .and_then(|done| done)
}
