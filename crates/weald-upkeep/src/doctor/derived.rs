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
            let would = "check what is in the way".to_owned();
            self.told(Code::ViewBlocked, Severity::Warn, problem.clone(), would);
        }
        let rest = found.len().saturating_sub(NAMED);
        for difference in found.into_iter().take(NAMED) {
            let (code, what, would) = told(difference.wrong);
            let what = format!("{} {what}", difference.path);
            let finding = Finding::new(code, Severity::Warn, what, would.to_owned());
            self.ledger.findings.push(Finding {
                fixable: true,
                fixed: problems.as_ref().is_some_and(Vec::is_empty),
                ..finding
            });
        }
        if rest > 0 {
            let what = format!("{rest} more view files are out of date");
            let would = "write them again".to_owned();
            self.told(Code::ViewEdited, Severity::Info, what, would);
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
        let (code, severity, what, would) = match journal.state(engine.store())? {
            JournalState::Current => return Ok(()),
            JournalState::Behind => (
                Code::JournalBehind,
                Severity::Warn,
                "lacks the last events".to_owned(),
                "write them",
            ),
            JournalState::Torn => (
                Code::JournalTorn,
                Severity::Warn,
                "ends in the middle of a line".to_owned(),
                "close the line and write its event again",
            ),
            JournalState::Foreign => (
                Code::JournalForeign,
                Severity::Warn,
                "belongs to other records".to_owned(),
                "keep it under another name and start a new one",
            ),
            JournalState::Broken(why) => {
                let what = format!("{} can't be used: {why}", path.display());
                let would = "move it out of the way; the next change writes a new one".to_owned();
                let code = Code::JournalBroken;
                self.ledger
                    .told(code, Severity::Error, what, would)
                    .at(path);
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
        self.ledger
            .found(code, severity, what, would, mend)
            .at(path);
        Ok(())
    }

    /// Views that are switched off grow old where they lie.
    fn check_old_views(&mut self) {
        let file = self.trees.place.private().join(WRITTEN_FILE);
        if !file.exists() {
            return;
        }
        let what = "file views were switched off; their files are not kept up to date".to_owned();
        let would = "stop tracking them (the files stay; delete them if nothing reads them)";
        self.found(Code::ViewsOld, Severity::Info, what, would, || {
            fs::remove_file(&file).map_err(at(&file))
        });
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
