//! The engine: one repository's store, clock, processes and derived files.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use weald_core::event::Event;
use weald_core::file_view::ViewKind;
use weald_core::name::SessionName;
use weald_core::role::Role;
use weald_core::session::ProcessTable;
use weald_core::store::{Durability, EventFilter, Read, Store, StoreError, Write};
use weald_core::{SignedDuration, Timestamp};

use crate::journal::Journal;
use crate::place::Place;
use crate::standing::CopyOf;
use crate::views::Views;

/// Hears of events after they were written.
pub type Listener = dyn Fn(&Engine, &[Event]) + Send + Sync;

/// What the engine takes from the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How long a claim holds.
    pub lease_ttl: SignedDuration,
    /// From when on a heartbeat is old.
    pub stale_after: SignedDuration,
    /// Whether binding a tree starts its task; then one that nobody has may still be claimed.
    pub binding_starts: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease_ttl: SignedDuration::from_mins(15),
            stale_after: SignedDuration::from_mins(5),
            binding_starts: false,
        }
    }
}

/// Everything that can be done with a repository's control plane.
pub struct Engine {
    store: Box<dyn Store>,
    journal: Option<Journal>,
    pub views: Option<Views>,
    notices: Mutex<Vec<String>>,
    /// Set once something was changed.
    changed: Arc<AtomicBool>,
    /// Hears of every event that this engine wrote.
    listener: Option<Box<Listener>>,
    pub processes: Arc<dyn ProcessTable>,
    pub settings: Settings,
    pub role: Role,
    /// Set in a copy: its records speak of the original's worktrees, so nothing is done by them.
    pub copy_of: Option<CopyOf>,
}

impl Engine {
    /// An engine on a store, without derived files.
    pub fn new(
        store: Box<dyn Store>,
        processes: Arc<dyn ProcessTable>,
        settings: Settings,
    ) -> Self {
        Self {
            store,
            journal: None,
            views: None,
            notices: Mutex::default(),
            changed: Arc::default(),
            listener: None,
            processes,
            settings,
            role: Role::default(),
            copy_of: None,
        }
    }

    /// The same for a copy of a repository: its records can be read, and nothing else.
    pub fn for_copy(mut self, copy: CopyOf) -> Self {
        self.copy_of = Some(copy);
        self
    }

    /// The same for somebody who may change less than others.
    pub fn for_role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// The same with the journal of a repository. A store that ends before it is refused.
    pub fn with_journal(mut self, place: &Place) -> Result<Self, StoreError> {
        let journal = Journal::new(place.private(), place.source());
        journal.require_newest(self.store())?;
        self.journal = Some(journal);
        Ok(self)
    }

    /// The same with the files of another system in the main checkout.
    pub fn with_views(mut self, place: &Place, kind: ViewKind) -> Self {
        self.views = Views::new(place, kind);
        self
    }

    /// The same, and `changed` is set once something was.
    pub fn watched(mut self, changed: Arc<AtomicBool>) -> Self {
        self.changed = changed;
        self
    }

    /// The same, and `listener` hears of every event that it writes.
    pub fn heard_by(mut self, listener: Box<Listener>) -> Self {
        self.listener = Some(listener);
        self
    }

    /// The journal, if there is one.
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// What went wrong next to the work and should be shown.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().expect("nobody panics with the notices"))
    }

    /// Makes all changes so far, and the journal of them, outlive a power cut.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.store.sync()?;
        self.catch_up(Durability::Power);
        Ok(())
    }

    /// Brings the derived files up to date, as after a crash.
    pub fn catch_up(&self, durability: Durability) {
        if self.copy_of.is_some() {
            return;
        }
        if let Some(journal) = &self.journal
            && let Err(error) = journal.catch_up(self.store(), durability)
        {
            self.notice(format!(
                "the journal is behind (the next command tries again): {error}"
            ));
        }
        match self
            .views
            .as_ref()
            .map(|views| views.catch_up(self.store()))
        {
            Some(Ok(problems)) => problems
                .into_iter()
                .for_each(|problem| self.notice(problem)),
            Some(Err(error)) => self.notice(format!(
                "the file views are behind (the next change tries again): {error}"
            )),
            None => {}
        }
    }

    pub fn notice(&self, notice: String) {
        let mut notices = self.notices.lock().expect("nobody panics with the notices");
        // A process that lives for days says a thing once.
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }

    pub fn now(&self) -> Result<Timestamp, StoreError> {
        self.look(|tx| Ok(tx.now()))
    }

    /// Looks at a snapshot.
    pub fn look<T, E: From<StoreError>>(
        &self,
        look: impl FnOnce(&dyn Read) -> Result<T, E>,
    ) -> Result<T, E> {
        look(self.store.read()?.as_ref())
    }

    /// Decides and records in one transaction. If `change` fails nothing is written. A claim or a heartbeat in it
    /// counts as a sign of life of `actor`.
    pub fn change<T, E: From<StoreError>>(
        &self,
        actor: Option<&SessionName>,
        durability: Durability,
        change: impl FnOnce(&mut dyn Write) -> Result<T, E>,
    ) -> Result<T, E> {
        if let Some(copy) = &self.copy_of {
            return Err(StoreError::Copy(copy.to_string()).into());
        }
        let mut transaction = self.store.write(durability)?;
        let before = match &self.listener {
            Some(_) => Some(transaction.last_seq()?),
            None => None,
        };
        let done = change(transaction.as_mut())?;
        if let Some(actor) = actor {
            transaction.touch_session(actor)?;
        }
        let after = match before {
            Some(_) => Some(transaction.last_seq()?),
            None => None,
        };
        transaction.commit()?;
        self.changed.store(true, Ordering::Relaxed);
        self.catch_up(durability);
        if let (Some(listener), Some(before), Some(after)) = (&self.listener, before, after)
            && let Some(count) = after.0.checked_sub(before.0).filter(|count| *count > 0)
        {
            let filter = EventFilter::after(before, count);
            // The change is made, whatever becomes of this.
            let events = self.look(|tx| tx.events(&filter)).unwrap_or_default();
            listener(self, &events);
        }
        Ok(done)
    }
}
