//! Doctor: what create, import, rm and restore can leave behind, what people move about, and what breaks by itself.
//!
//! It repairs only what is weald's own and provably so; everything else is told. A second run finds nothing that the
//! first one mended. Each part is looked at on its own: one that can't be is a finding, and the others go on. The
//! ground (`ground`) needs neither records nor a git that works.

mod codes;
mod derived;
mod disk;
mod entries;
pub(crate) mod finding;
mod ground;
mod holders;
mod landing;
pub(crate) mod leftovers;
mod live;
mod locks;
mod ports;
mod refs;
mod unfinished;
mod vault;
mod whereabouts;
mod whole;

use std::collections::HashSet;
use std::path::PathBuf;

use weald_core::tree::{Tree, TreeStatus};

use finding::{Ledger, Problem};
use leftovers::{of_gates, of_runs};
use weald_control::place::Place;
use weald_trees::{TreeError, Trees};
pub(crate) use whereabouts::Whereabouts;

pub use codes::Code;
pub use finding::{Finding, Severity};

/// What to look at, and what may be repaired.
pub struct Checkup<'a> {
    pub place: &'a Place,
    /// Whether it is a copy: what its entries lead to is another repository's.
    pub is_copy: bool,
    /// The trees, if there are records.
    pub trees: Option<&'a Trees<'a>>,
    /// How much of a disk should be free.
    pub min_free: u64,
    /// Further directories in which moved trees may be.
    pub places: &'a [PathBuf],
    /// Whether to repair what needs no records.
    pub fix: bool,
    /// Whether to repair what goes by records.
    pub fix_records: bool,
}

/// A round of checks in the making.
struct Round<'r, 'a> {
    trees: &'r Trees<'a>,
    ledger: Ledger,
    whereabouts: Whereabouts,
    /// Entries in `worktrees/` that are weald's and broken.
    broken_entries: HashSet<String>,
}

impl Checkup<'_> {
    /// Looks for everything that does not fit, and repairs what it may. The ground comes first, then what is on record,
    /// then locks that a repair may have taken away.
    pub fn run(&self) -> Vec<Finding> {
        let mut findings = self.check_ground();
        if let Some(trees) = self.trees {
            findings.extend(self.check_records(trees));
        }
        findings.extend(self.check_locks());
        findings
    }

    fn check_records(&self, trees: &Trees<'_>) -> Vec<Finding> {
        let mut round = Round {
            trees,
            ledger: Ledger::new(self.fix_records),
            whereabouts: Whereabouts::new(self.places),
            broken_entries: HashSet::new(),
        };
        round.attempt("locks of unfinished operations", Round::clear_named_locks);
        round.attempt("entries in worktrees/", Round::check_entries);
        round.attempt("trees", Round::check_trees);
        round.attempt("bindings", Round::check_bindings);
        round.attempt("sessions and agents", Round::check_sessions);
        round.attempt("leftovers", Round::check_leftovers);
        round.attempt("the trash", Round::check_trash);
        for of_kind in [of_gates, of_runs] {
            for left in of_kind(trees) {
                round.note(left);
            }
        }
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

    /// Notes a finding; repairs it if asked to. Answers whether it is repaired.
    fn note<'p>(&mut self, problem: impl Into<Problem<'p>>) -> bool {
        self.ledger.note(problem)
    }

    fn check_trees(&mut self) -> Result<(), TreeError> {
        let known = self.trees.records()?;
        for tree in &known {
            let before = self.ledger.findings.len();
            self.check(tree);
            let new = &mut self.ledger.findings[before..];
            new.iter_mut().for_each(|finding| finding.set_tree(tree));
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
