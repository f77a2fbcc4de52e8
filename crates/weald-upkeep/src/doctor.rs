//! Doctor: what create, import, rm and restore can leave behind, what people move about, and what breaks by itself.
//!
//! It repairs only what is weald's own and provably so; everything else is reported. A second run finds nothing that the first
//! one repaired. Each part is looked at on its own: one that can't be is a finding. Where a part was repaired, the next one
//! works from a new survey. The ground (`ground`, `vault`, `locks`) needs neither records nor a git that works.

mod derived;
mod entries;
mod ground;
mod landings;
mod locks;
mod records;
mod trees;
mod vault;

use std::path::PathBuf;

use crate::Code;
use crate::finding::{Check, Finding, Ledger};
use crate::leftovers;
use crate::survey::Survey;
use weald_control::place::Place;
use weald_trees::Trees;

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

/// What goes by the records, in this order.
const PARTS: [(&str, Check); 20] = [
    ("locks of unfinished operations", locks::of_unfinished),
    ("entries in worktrees/", entries::check),
    ("trees", trees::check),
    ("bindings", records::bindings),
    ("sessions and agents", records::sessions),
    ("leftovers", leftovers::in_the_making),
    ("the trash", leftovers::trash),
    ("gates", leftovers::gates),
    ("runs", leftovers::runs),
    ("branches", records::branches),
    ("file views", derived::views),
    ("the journal", derived::journal),
    // A tree may have been finished, taken back or moved by a repair.
    ("ports", leftovers::ports),
    ("ports", records::ports),
    ("landings", landings::moves),
    ("landings", landings::unsettled),
    ("landings", landings::leftovers),
    ("landings", landings::stashes),
    ("kept packs", leftovers::keeps),
    ("processes", locks::stopped_holders),
];

impl Checkup<'_> {
    /// Looks for everything that does not fit, and repairs what it may. The ground comes first, then what is on record,
    /// then locks that a repair may have taken away.
    pub fn run(&self) -> Vec<Finding> {
        let mut ledger = Ledger::new(self.place, self.trees, self.fix);
        let read = |trees| Survey::new(trees, self.places);
        self.check_ground(self.trees.map(read).as_ref(), &mut ledger);
        if let Some(trees) = self.trees {
            let mut survey = read(trees);
            // Records that lack trees are not to be trusted with repairs.
            ledger.fix = self.fix_records && !entries::are_lost(&survey);
            for (part, check) in PARTS {
                let before = ledger.findings.len();
                if !ledger.note(part, check(&survey)) {
                    continue;
                }
                survey = read(trees);
                let led = ledger.repaired(Code::PointerWrong, before);
                if !led.is_empty() && ledger.note(part, trees::behind_pointers(&survey, &led)) {
                    survey = read(trees);
                }
            }
        }
        ledger.add(locks::of_main(self.place));
        ledger.findings
    }
}
