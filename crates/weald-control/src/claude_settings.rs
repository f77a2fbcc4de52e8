//! Claude Code's settings files, as far as they speak of worktrees.
//!
//! Read in the user's folder and in the main checkout, in Claude Code's own order; never in a tree.

use std::path::Path;

use weald_core::claude::WorktreeSettings;

use crate::files;
use crate::place::Place;

/// The largest file that is read.
const LIMIT: u64 = 4 << 20;

/// What they say, and which of them can't be used. `own` is the user's folder of Claude Code.
pub fn worktree_settings(own: Option<&Path>, place: &Place) -> (WorktreeSettings, Vec<String>) {
    let project = place.root().join(".claude");
    let files = [
        own.map(|own| own.join("settings.json")),
        Some(project.join("settings.json")),
        Some(project.join("settings.local.json")),
    ];
    let mut settings = WorktreeSettings::default();
    let mut notes = Vec::new();
    for file in files.into_iter().flatten() {
        let read = match files::read_small(&file, LIMIT) {
            Ok(None) => continue,
            Ok(Some(text)) => settings.add(&text),
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = read {
            notes.push(format!("ignoring {}: {why}", file.display()));
        }
    }
    (settings, notes)
}
