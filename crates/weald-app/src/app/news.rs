//! What the tracker that tasks come from has to do with a call: whether it may have to be told something, and whether
//! somebody is there to be shown what it was not told.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::{Engine, Place, follow_for_tracker};
use weald_core::source::Tracker;

/// News of one call.
#[derive(Default)]
pub struct News {
    /// Set once something was changed, by this call or by an agent through it.
    changed: Arc<AtomicBool>,
    /// The tracker, and the private directory of the repository that was looked at.
    tracker: OnceLock<(Tracker, PathBuf)>,
    /// Set for what goes on in the background: nobody reads what it says.
    is_behind: AtomicBool,
}

impl News {
    /// For a call that is part of this one, and shows nothing itself.
    pub(super) fn for_another(&self) -> Self {
        Self {
            changed: Arc::clone(&self.changed),
            ..Self::default()
        }
    }

    /// From here on changes of this engine are news.
    pub(crate) fn follow(&self, engine: Engine, place: &Place, tracker: Tracker) -> Engine {
        follow_for_tracker(&engine, place.private(), tracker);
        let _ = self.tracker.set((tracker, place.private().to_owned()));
        engine.watched(Arc::clone(&self.changed))
    }

    /// Whether something was changed.
    pub fn has_changes(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    /// Nobody reads what this call says.
    pub fn go_behind(&self) {
        self.is_behind.store(true, Ordering::Relaxed);
    }

    /// The tracker of the repository that was looked at, if what it was not told can be shown to somebody.
    pub fn shown(&self) -> Option<(Tracker, &Path)> {
        let (tracker, private) = self.tracker.get()?;
        let is_behind = self.is_behind.load(Ordering::Relaxed);
        (!is_behind).then_some((*tracker, private.as_path()))
    }
}
