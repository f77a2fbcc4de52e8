//! Doctor: what create, import, rm and restore can leave behind, what people move about, and what breaks by itself.
//!
//! It repairs only what is weald's own and provably so; everything else is told. A second run finds nothing that the
//! first one mended. Each part is looked at on its own: one that can't be is a finding, and the others go on. The
//! ground (`ground`) needs neither records nor a git that works.

mod codes;
mod derived;
mod disk;
mod entries;
mod finding;
mod gates;
mod ground;
mod holders;
mod landing;
mod leftovers;
mod live;
mod locks;
mod ports;
mod refs;
mod run_folders;
mod unfinished;
mod vault;
mod whereabouts;
mod whole;

use std::collections::HashSet;
use std::path::PathBuf;

use weald_core::tree::{Tree, TreeStatus};

use crate::Upkeep;
use finding::Ledger;
use weald_trees::{TreeError, Trees};
pub(crate) use whereabouts::Whereabouts;

pub use codes::Code;
pub use finding::{Finding, Severity};
pub use ground::GroundCheck;

/// A round of checks in the making.
struct Round<'r, 'a> {
    trees: &'r Trees<'a>,
    ledger: Ledger,
    whereabouts: Whereabouts,
    /// Entries in `worktrees/` that are weald's and broken.
    broken_entries: HashSet<String>,
}

impl Upkeep<'_> {
    /// Looks for everything that does not fit; repairs what can be with `fix`. `places` are further directories in which
    /// moved trees may be.
    pub fn doctor(&self, fix: bool, places: &[PathBuf]) -> Vec<Finding> {
        let mut round = Round {
            trees: self.trees,
            ledger: Ledger::new(fix),
            whereabouts: Whereabouts::new(places),
            broken_entries: HashSet::new(),
        };
        round.attempt("locks of unfinished operations", Round::clear_named_locks);
        round.attempt("entries in worktrees/", Round::check_entries);
        round.attempt("trees", Round::check_trees);
        round.attempt("bindings", Round::check_bindings);
        round.attempt("sessions and agents", Round::check_sessions);
        round.attempt("leftovers", Round::check_leftovers);
        round.attempt("the trash", Round::check_trash);
        round.check_gates();
        round.check_run_folders();
        round.attempt("branches", Round::check_branches);
        round.attempt("file views", Round::check_views);
        round.attempt("the journal", Round::check_journal);
        round.attempt("ports", Round::check_ports);
        round.attempt("landings", Round::check_landings);
        round.attempt("kept packs", Round::check_keeps);
        round.attempt("processes", Round::check_holders);
        round.ledger.findings
    }
}

impl<'r, 'a> Round<'r, 'a> {
    /// Does one part; if that can't be done, says so and goes on with the others.
    fn attempt(&mut self, part: &str, check: fn(&mut Self) -> Result<(), TreeError>) {
        let done = check(self);
        self.ledger.note_failure(part, done);
    }

    /// Notes a finding; repairs it if asked to.
    fn found(
        &mut self,
        code: Code,
        severity: Severity,
        what: String,
        would: &str,
        repair: impl FnOnce() -> Result<(), TreeError>,
    ) {
        self.ledger.found(code, severity, what, would, repair);
    }

    /// Notes what only a person can mend.
    fn told(&mut self, code: Code, severity: Severity, what: String, would: String) {
        self.ledger.told(code, severity, what, would);
    }

    fn check_trees(&mut self) -> Result<(), TreeError> {
        let known = self.trees.records()?;
        for tree in &known {
            let before = self.ledger.findings.len();
            self.check(tree);
            let new = &mut self.ledger.findings[before..];
            new.iter_mut().for_each(|finding| finding.of(tree));
        }
        self.check_paths(&known);
        Ok(())
    }

    fn check(&mut self, tree: &Tree) {
        let trees = self.trees;
        let at_work = tree
            .worker
            .as_ref()
            .is_some_and(|worker| trees.may_live(worker));
        if at_work {
            return;
        }
        match tree.status {
            TreeStatus::Creating => self.unfinished_creation(tree),
            TreeStatus::Trashed => self.check_trashed(tree),
            TreeStatus::Removed => self.check_removed(tree),
            _ if tree.removing => self.unfinished_removal(tree),
            _ => self.check_live(tree),
        }
    }
}
