//! Checks of derived files: the journal, and file views that are behind, missing, edited, or at a place that somebody
//! else has.

use std::fs;

use weald_core::store::Durability;

use super::{Code, Finding, Round, Severity};
use weald_control::journal::JournalState;
use weald_control::views::{WRITTEN_FILE, Wrong};
use weald_trees::{TreeError, at};

/// How many files are named one by one.
const NAMED: usize = 20;

impl Round<'_, '_> {
    pub(super) fn check_views(&mut self) -> Result<(), TreeError> {
        let engine = self.trees.engine;
        let Some(views) = &engine.views else {
            self.check_old_views();
            return Ok(());
        };
        let found = views.differences(engine.store())?;
        // One round mends all of them.
        let problems = match self.ledger.fix && !found.is_empty() {
            true => Some(views.rebuild(engine.store())?),
            false => None,
        };
        for problem in problems.iter().flatten() {
            self.note(Finding::new(
                Code::ViewBlocked,
                problem,
                "check what is in the way",
            ));
        }
        let rest = found.len().saturating_sub(NAMED);
        for difference in found.into_iter().take(NAMED) {
            let (code, what, would) = told(difference.wrong);
            let what = format!("{} {what}", difference.path);
            let finding = Finding::new(code, what, would);
            self.ledger.findings.push(Finding {
                fixable: true,
                fixed: problems.as_ref().is_some_and(Vec::is_empty),
                ..finding
            });
        }
        if rest > 0 {
            let what = format!("{rest} more view files are out of date");
            let finding = Finding::new(Code::ViewEdited, what, "write them again");
            self.note(finding.rated(Severity::Info));
        }
        Ok(())
    }

    /// The next change brings the journal up to date, too.
    pub(super) fn check_journal(&mut self) -> Result<(), TreeError> {
        let engine = self.trees.engine;
        let Some(journal) = engine.journal() else {
            return Ok(());
        };
        let path = journal.path();
        let (code, what, would) = match journal.state(engine.store())? {
            JournalState::Current => return Ok(()),
            JournalState::Behind => (Code::JournalBehind, "lacks the last events", "write them"),
            JournalState::Torn => (
                Code::JournalTorn,
                "ends in the middle of a line",
                "close the line and write its event again",
            ),
            JournalState::Foreign => (
                Code::JournalForeign,
                "belongs to other records",
                "keep it under another name and start a new one",
            ),
            JournalState::Broken(why) => {
                let what = format!("{} can't be used: {why}", path.display());
                let would = "move it out of the way; the next change writes a new one";
                self.note(Finding::new(Code::JournalBroken, what, would).at(path));
                return Ok(());
            }
        };
        let what = format!("{} {what}", path.display());
        let mend = || {
            // One of other records is put aside first, and that is an error.
            let _ = journal.catch_up(engine.store(), Durability::Process);
            journal.catch_up(engine.store(), Durability::Process)?;
            Ok(())
        };
        self.note(Finding::new(code, what, would).at(path).repair(mend));
        Ok(())
    }

    /// Views that are switched off grow old where they lie.
    fn check_old_views(&mut self) {
        let file = self.trees.place.private().join(WRITTEN_FILE);
        if !file.exists() {
            return;
        }
        let what = "file views were switched off; their files are not kept up to date";
        let would = "stop tracking them (the files stay; delete them if nothing reads them)";
        let finding = Finding::new(Code::ViewsOld, what, would);
        self.note(finding.repair(|| fs::remove_file(&file).map_err(at(&file))));
    }
}

fn told(wrong: Wrong) -> (Code, &'static str, &'static str) {
    match wrong {
        Wrong::Behind => (Code::ViewBehind, "lack the last changes", "write them"),
        Wrong::Missing => (Code::ViewMissing, "is not there", "write it"),
        Wrong::Edited => (
            Code::ViewEdited,
            "was edited by hand; edits of views are not read back",
            "write it again",
        ),
        Wrong::Blocked => (
            Code::ViewBlocked,
            "was not written by weald, so the view is missing",
            "move it aside (.before-weald) and write the view",
        ),
    }
}
