//! Checks of file views: behind, missing, edited, or at a place that somebody else has.

use std::fs;

use super::{Finding, Round, Severity};
use crate::trees::{TreeError, at};
use crate::views::{WRITTEN_FILE, Wrong};

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
        let problems = match self.fix && !found.is_empty() {
            true => Some(views.rebuild(engine.store())?),
            false => None,
        };
        for problem in problems.iter().flatten() {
            let would = "look at what is in the way".to_owned();
            self.told("view_blocked", Severity::Warn, problem.clone(), would);
        }
        let rest = found.len().saturating_sub(NAMED);
        for difference in found.into_iter().take(NAMED) {
            let (code, what, would) = told(difference.wrong);
            self.findings.push(Finding {
                code,
                severity: Severity::Warn,
                what: format!("{} {what}", difference.path),
                would: would.to_owned(),
                fixed: problems.as_ref().is_some_and(Vec::is_empty),
            });
        }
        if rest > 0 {
            let what = format!("{rest} more files of views are not as they should be");
            let would = "write them anew".to_owned();
            self.told("view_edited", Severity::Info, what, would);
        }
        Ok(())
    }

    /// Views that are switched off grow old where they lie.
    fn check_old_views(&mut self) {
        let file = self.trees.place.private().join(WRITTEN_FILE);
        if !file.exists() {
            return;
        }
        let what = "file views were switched off; their files are not kept up to date".to_owned();
        let would = "forget them (the files stay; delete them if nobody reads them)";
        self.found("views_old", Severity::Info, what, would, || {
            fs::remove_file(&file).map_err(at(&file))
        });
    }
}

fn told(wrong: Wrong) -> (&'static str, &'static str, &'static str) {
    match wrong {
        Wrong::Behind => ("view_behind", "lack the last changes", "write them"),
        Wrong::Missing => ("view_missing", "is not there", "write it"),
        Wrong::Edited => (
            "view_edited",
            "was edited by hand; edits of views are not read back",
            "write it anew",
        ),
        Wrong::Blocked => (
            "view_blocked",
            "is not weald's, so the view is not there",
            "move it aside (.before-weald) and write the view",
        ),
    }
}
