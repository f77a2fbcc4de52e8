//! One round of writing: the file of events, then the files of what they touch.

use std::collections::BTreeMap;
use std::io;

use weald_core::file_view::{ViewKind, index_text, is_marked, state_text};
use weald_core::id::{Seq, TaskId};
use weald_core::landing::LandingStatus;
use weald_core::name::TreeName;
use weald_core::store::{AgentFilter, EventFilter, Read, StoreError};
use weald_core::tree::Tree;

use super::events::EventFile;
use super::folder::Folder;
use super::{BATCH, Others, Touched, Views, Written};
use crate::tree_records::called;

pub(super) struct Round<'v> {
    pub views: &'v Views,
    pub written: Written,
    /// Whether nothing was written before.
    pub is_first: bool,
    pub others: Others,
    pub problems: Vec<String>,
}

impl Round<'_> {
    pub(super) fn note(&mut self, path: &str, done: io::Result<()>) {
        if let Err(error) = done {
            let problem =
                format!("{path} was not written (weald doctor --fix tries again): {error}");
            self.problems.push(problem);
        }
    }

    /// Brings the file of events up to date; answers what is touched by the new ones.
    pub(super) fn write_events(&mut self, read: &dyn Read) -> Result<Touched, StoreError> {
        let mut touched = match self.is_first {
            true => Touched::all(read)?,
            false => Touched::default(),
        };
        let mut file = self.open_events();
        let before = self.written.seq;
        let mut last = match &file {
            Some(file) if file.is_new() => Seq(0),
            _ => before,
        };
        loop {
            let filter = EventFilter::after(last, BATCH);
            let events = read.events(&filter)?;
            let Some(newest) = events.last() else {
                break;
            };
            (last, self.written.time) = (newest.seq, Some(newest.time));
            if let Some(file) = &mut file {
                let kind = self.views.kind;
                file.add(events.iter().filter_map(|event| kind.event_line(event)));
            }
            if !self.is_first {
                let new = events.into_iter().filter(|event| event.seq > before);
                new.for_each(|event| touched.take(event));
            }
        }
        self.written.seq = last;
        // Without a fingerprint it is written again the next time.
        self.written.events = None;
        match file.map(EventFile::finish) {
            Some(Ok(fingerprint)) => self.written.events = Some(fingerprint),
            Some(Err(error)) => self.note("the file of events", Err(error)),
            None => {}
        }
        Ok(touched)
    }

    fn open_events(&mut self) -> Option<EventFile> {
        let path = self.views.kind.event_file()?;
        // As it was left it is weald's, however long it is.
        let is_as_left = self.written.events.as_ref().is_some_and(|known| {
            Folder::of(&self.views.root, path)
                .is_ok_and(|(folder, name)| known.is_of(&folder, name))
        });
        if !is_as_left && !self.makes_room(path, self.is_first) {
            return None;
        }
        let known = self.written.events.as_ref();
        let opened = Folder::of(&self.views.root, path)
            .and_then(|(folder, name)| EventFile::open(folder, name, known));
        match opened {
            Ok(file) => Some(file),
            Err(error) => {
                self.note(path, Err(error));
                None
            }
        }
    }

    pub(super) fn write_files(
        &mut self,
        read: &dyn Read,
        touched: Touched,
    ) -> Result<(), StoreError> {
        let kind = self.views.kind;
        for (id, (task, is_new)) in touched.tasks {
            if let Some(path) = kind.task_file(&id) {
                self.put(&path, &kind.task_text(&task), is_new);
            }
        }
        if let Some(path) = kind.index_file()
            && (self.is_first || !touched.trees.is_empty())
        {
            self.put(path, &index_text(&read.trees()?), self.is_first);
        }
        if kind == ViewKind::JeanClaude && !touched.trees.is_empty() {
            self.write_states(read, touched.trees)?;
        }
        Ok(())
    }

    fn write_states(
        &mut self,
        read: &dyn Read,
        names: BTreeMap<TreeName, bool>,
    ) -> Result<(), StoreError> {
        let landings = newest_landings(read)?;
        for (name, is_new) in names {
            let Some(text) = state_of(read, &name, &landings)? else {
                continue;
            };
            let kind = self.views.kind;
            if let Some(path) = kind.state_file(&name) {
                self.put(&path, &text, is_new);
            }
            if let Some(path) = kind.log_folder(&name) {
                let made = Folder::make(&self.views.root, &path);
                self.note(&path, made);
                self.link_logs(read, &name)?;
            }
        }
        Ok(())
    }

    /// Links the output of a tree's agents, so that it can be followed while they work.
    fn link_logs(&mut self, read: &dyn Read, name: &TreeName) -> Result<(), StoreError> {
        let tree = called(read, name)?;
        let Some(task) = tree.as_ref().and_then(task_of).cloned() else {
            return Ok(());
        };
        let agents = read.agents(&AgentFilter {
            open: false,
            task: Some(task),
        })?;
        for agent in agents {
            let path = match agent.tree.as_ref() == Some(name) {
                true => self.views.kind.log_file(name, agent.id),
                false => None,
            };
            let Some(path) = path else { continue };
            let log = self.views.log_of(agent.id, &path);
            let linked = Folder::of(&self.views.root, &path)
                .and_then(|(folder, file)| folder.link(file, &log));
            self.note(&path, linked);
        }
        Ok(())
    }

    /// Writes one file, unless it is as it should be or somebody else's.
    fn put(&mut self, path: &str, text: &str, is_new: bool) {
        let existing = self.views.existing(path);
        if existing.is_ok_and(|found| found.as_deref() == Some(text.as_bytes())) {
            self.written.left_alone.remove(path);
        } else if self.makes_room(path, is_new) {
            let put = Folder::of(&self.views.root, path)
                .and_then(|(folder, name)| folder.replace(name, text.as_bytes()));
            self.note(path, put);
        }
    }

    /// Whether a view may be written at `path`. What was there before weald is left alone; what somebody put there since,
    /// without the mark of a view, is moved aside.
    fn makes_room(&mut self, path: &str, is_new: bool) -> bool {
        if let Err(error) = Folder::of(&self.views.root, path) {
            self.note(path, Err(error));
            return false;
        }
        let is_other = match self.views.existing(path) {
            Ok(found) => found.is_some_and(|bytes| !bytes.is_empty() && !is_marked(&bytes)),
            Err(_) => true,
        };
        if !is_other {
            self.written.left_alone.remove(path);
            return true;
        }
        let came_later = !is_new && !self.written.left_alone.contains(path);
        if came_later || self.others == Others::MoveAside {
            let moved = Folder::of(&self.views.root, path)
                .and_then(|(folder, name)| folder.move_aside(name));
            let is_free = moved.is_ok();
            if let (Ok(name), true) = (&moved, came_later) {
                self.problems.push(format!(
                    "{path} was not written by weald and is kept as {name}"
                ));
            }
            self.note(path, moved.map(drop));
            return is_free;
        }
        if self.written.left_alone.insert(path.to_owned()) {
            self.problems.push(format!(
                "{path} was not written by weald and was left alone (weald doctor --fix moves it aside)"
            ));
        }
        false
    }
}

/// The newest landing of every tree.
pub(super) fn newest_landings(
    read: &dyn Read,
) -> Result<BTreeMap<TreeName, LandingStatus>, StoreError> {
    let landings = read.landings()?.into_iter();
    Ok(landings
        .map(|landing| (landing.tree, landing.status))
        .collect())
}

/// The task of a tree, also of one that is in the trash.
fn task_of(tree: &Tree) -> Option<&TaskId> {
    let trashed = tree.trash.as_ref().and_then(|trash| trash.task.as_ref());
    tree.task.as_ref().or(trashed)
}

/// What is said of a tree's work; `None` of one that never was.
pub(super) fn state_of(
    read: &dyn Read,
    name: &TreeName,
    landings: &BTreeMap<TreeName, LandingStatus>,
) -> Result<Option<String>, StoreError> {
    let Some(tree) = called(read, name)?.filter(|tree| tree.identity.is_some()) else {
        return Ok(None);
    };
    let task = match task_of(&tree) {
        Some(id) => read.task(id)?,
        None => None,
    };
    let landing = landings.get(name).copied();
    Ok(Some(state_text(&tree, task.as_ref(), landing)))
}
