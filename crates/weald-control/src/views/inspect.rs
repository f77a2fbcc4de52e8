//! Whether the views on disk are what they should be.

use std::collections::BTreeSet;

use weald_core::file_view::{ViewKind, index_text, is_marked};
use weald_core::id::Seq;
use weald_core::store::{AgentFilter, EventFilter, Read, Store, StoreError, TaskFilter};
use weald_git::Door;

use super::folder::Folder;
use super::round::{newest_landings, state_of};
use super::{BATCH, Views, is_of};

/// The longest file of events that is compared.
const EVENTS_LIMIT: u64 = 1 << 30;

/// What is wrong with a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// Changes are not in the views yet.
    Behind,
    /// It is not there.
    Missing,
    /// It says something else.
    Edited,
    /// Somebody else's file is at its place.
    Blocked,
}

/// One view that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Relative to the main checkout.
    pub path: String,
    pub wrong: Wrong,
}

impl Views {
    pub fn differences(&self, store: &dyn Store) -> Result<Vec<Difference>, StoreError> {
        // Nobody writes in between; a moment later somebody may.
        self.alone(|written| {
            let read = store.read()?;
            let read = read.as_ref();
            if read.last_seq()? == Seq(0) {
                return Ok(Vec::new());
            }
            let current = match &written {
                Some(written) => is_of(read, written)? && written.seq == read.last_seq()?,
                None => false,
            };
            if !current {
                return Ok(vec![Difference {
                    path: format!("the files of views = {}", self.kind.as_str()),
                    wrong: Wrong::Behind,
                }]);
            }
            let mut found = Vec::new();
            let left_alone = written
                .map(|written| written.left_alone)
                .unwrap_or_default();
            let mut compare = |path: String, expected: &str| {
                let wrong = match self.existing(&path) {
                    Ok(Some(bytes)) if bytes == expected.as_bytes() => return,
                    _ if left_alone.contains(&path) => Wrong::Blocked,
                    Ok(None) => Wrong::Missing,
                    _ => Wrong::Edited,
                };
                found.push(Difference { path, wrong });
            };
            self.expected(read, &mut compare)?;
            if let Some(path) = self.kind.event_file() {
                let wrong = match self.events_on_disk(path) {
                    Some(bytes) if has_all_events(read, self.kind, &bytes)? => None,
                    _ if left_alone.contains(path) => Some(Wrong::Blocked),
                    Some(_) => Some(Wrong::Edited),
                    None => Some(Wrong::Missing),
                };
                let path = path.to_owned();
                found.extend(wrong.map(|wrong| Difference { path, wrong }));
            }
            Ok(found)
        })
    }

    /// Every file but that of events, with what it should say.
    fn expected(
        &self,
        read: &dyn Read,
        compare: &mut dyn FnMut(String, &str),
    ) -> Result<(), StoreError> {
        for task in read.tasks(&TaskFilter::default())? {
            if let Some(path) = self.kind.task_file(&task.id) {
                compare(path, &self.kind.task_text(&task));
            }
        }
        let trees = read.trees()?;
        if let Some(path) = self.kind.index_file() {
            compare(path.to_owned(), &index_text(&trees));
        }
        if self.kind != ViewKind::JeanClaude {
            return Ok(());
        }
        let landings = newest_landings(read)?;
        let mut names: Vec<_> = trees.into_iter().map(|tree| tree.name).collect();
        names.sort();
        names.dedup();
        for name in names {
            if let (Some(path), Some(text)) = (
                self.kind.state_file(&name),
                state_of(read, &name, &landings)?,
            ) {
                compare(path, &text);
            }
        }
        Ok(())
    }

    /// Deletes every view, and folders that are empty then. What weald did not write stays.
    pub fn take_away(&self, store: &dyn Store) -> Result<(), StoreError> {
        self.alone(|_| {
            let read = store.read()?;
            let mut files: Vec<_> = self
                .kind
                .event_file()
                .map(str::to_owned)
                .into_iter()
                .collect();
            self.expected(read.as_ref(), &mut |path, _| files.push(path))?;
            files.retain(|path| {
                let found = self.existing(path).ok().flatten();
                found.is_some_and(|bytes| bytes.is_empty() || is_marked(&bytes))
            });
            let mut folders: BTreeSet<String> = BTreeSet::new();
            for tree in read.trees()? {
                folders.extend(self.kind.log_folder(&tree.name));
                for agent in read.agents(&AgentFilter::default())? {
                    let log = self.kind.log_file(&tree.name, agent.id);
                    let is_link = |path: &String| self.root.join(path).is_symlink();
                    files.extend(log.filter(is_link));
                }
            }
            for path in &files {
                let removed =
                    Folder::of(&self.root, path).and_then(|(folder, name)| folder.remove(name));
                removed.map_err(StoreError::file(self.root.join(path)))?;
                folders.extend(path.rsplit_once('/').map(|(above, _)| above.to_owned()));
            }
            for folder in folders
                .iter()
                .filter(|folder| self.root.join(folder).is_dir())
            {
                Folder::remove_empty(&self.root, folder);
            }
            Ok(())
        })
    }

    fn events_on_disk(&self, path: &str) -> Option<Vec<u8>> {
        let door = Door::open(&self.root).ok()?;
        door.read(path, EVENTS_LIMIT).ok()
    }
}

fn has_all_events(read: &dyn Read, kind: ViewKind, bytes: &[u8]) -> Result<bool, StoreError> {
    let mut rest = bytes;
    let mut last = Seq(0);
    loop {
        let filter = EventFilter::after(last, BATCH);
        let events = read.events(&filter)?;
        let Some(newest) = events.last() else {
            return Ok(rest.is_empty());
        };
        last = newest.seq;
        for line in events.iter().filter_map(|event| kind.event_line(event)) {
            let line = line + "\n";
            let Some(after) = rest.strip_prefix(line.as_bytes()) else {
                return Ok(false);
            };
            rest = after;
        }
    }
}
