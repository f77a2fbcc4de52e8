//! Which conversation an agent had last, by the transcripts in its private state: its own screen does not say.
//!
//! The agent wrote these files, so only names and times are read, through a [`Door`], and what comes out is checked.

use std::path::Path;
use std::time::Duration;

use weald_git::Door;

/// The most entries that are looked at.
const ENTRIES: usize = 10_000;

/// The transcript below `folder` that was written last. `id_of` finds the conversation in the name of a file.
pub(super) fn newest(
    home: &Path,
    folder: &str,
    depth: usize,
    id_of: fn(&str) -> Option<&str>,
) -> Option<String> {
    let mut search = Search {
        door: Door::open(home).ok()?,
        id_of,
        room: ENTRIES,
        found: None,
    };
    search.look_into(folder, depth);
    search.found.map(|(_, id)| id)
}

struct Search {
    door: Door,
    id_of: fn(&str) -> Option<&str>,
    room: usize,
    found: Option<(Duration, String)>,
}

impl Search {
    fn look_into(&mut self, folder: &str, depth: usize) {
        let Some(names) = self.door.names(folder, self.room) else {
            return;
        };
        self.room -= names.len();
        for (name, is_folder) in names {
            let path = format!("{folder}/{name}");
            match (is_folder, (self.id_of)(&name)) {
                (true, _) if depth > 0 => self.look_into(&path, depth - 1),
                (false, Some(id)) if is_uuid(id) => {
                    let age = self.door.age(&path);
                    if let Some(age) = age
                        && self.found.as_ref().is_none_or(|(least, _)| age < *least)
                    {
                        self.found = Some((age, id.to_owned()));
                    }
                }
                _ => {}
            }
        }
    }
}

fn is_uuid(text: &str) -> bool {
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, byte): (usize, u8)| match is_dash(at) {
        true => byte == b'-',
        false => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}
