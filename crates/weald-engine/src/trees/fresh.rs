//! Looking into many trees at once: a few at a time, each by itself.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::view::{Dirty, TreeView};
use super::{TreeError, Trees};

/// How many trees are looked into at the same time, at most; fewer where there are fewer processors.
const AT_ONCE: usize = 8;

impl Trees<'_> {
    /// Every tree that is there or should be, by number, each looked at now.
    pub fn list_fresh(&self) -> Result<Vec<TreeView>, TreeError> {
        let views = self.list()?;
        let looking = self.with_refs_of_now()?;
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut looked = Vec::new();
            while let Some(view) = views.get(next.fetch_add(1, Ordering::Relaxed)) {
                looked.push(looking.refreshed(view.clone()));
            }
            looked
        };
        let mut looked: Vec<TreeView> = thread::scope(|scope| {
            let workers: Vec<_> = (0..cores.min(AT_ONCE).min(views.len()))
                .map(|_| scope.spawn(work))
                .collect();
            let done = workers.into_iter().map(|worker| worker.join());
            done.flat_map(|looked| looked.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        looked.sort_by_key(|view| view.tree.id);
        Ok(looked)
    }

    /// One tree that can't be looked into does not hide the others.
    fn refreshed(&self, view: TreeView) -> TreeView {
        if !view.tree.is_live() {
            return view;
        }
        self.look_at(view.tree.clone())
            .unwrap_or_else(|error| TreeView {
                dirty: Dirty::Unknown,
                problem: Some(error.to_string()),
                ..view
            })
    }

    /// The same trees, with main's refs read once for all of them.
    fn with_refs_of_now(&self) -> Result<Trees<'_>, TreeError> {
        Ok(Trees {
            engine: self.engine,
            place: self.place,
            config: self.config,
            target: self.target.clone(),
            host: self.host.clone(),
            known_refs: Some(self.main_refs()?),
        })
    }
}
