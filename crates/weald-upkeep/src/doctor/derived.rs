//! Checks of derived files: the journal, and file views that are behind, missing, edited, or at a place that somebody
//! else has.

use crate::finding::{Finding, Found};
use crate::repair::Repair;
use crate::survey::Survey;
use crate::{Code, Severity};
use weald_control::journal::JournalState;
use weald_control::views::{WRITTEN_FILE, Wrong};

/// How many files are named one by one.
const NAMED: usize = 20;

pub(super) fn views(survey: &Survey<'_>) -> Found {
    let engine = survey.trees.engine;
    let Some(views) = &engine.views else {
        return Ok(old_views(survey).into_iter().collect());
    };
    let differences = views.differences(engine.store())?;
    let rest = differences.len().saturating_sub(NAMED);
    let mut repair = Repair::WriteViews;
    let mut found = Vec::new();
    for difference in differences.into_iter().take(NAMED) {
        let (code, what, would) = told(difference.wrong);
        let what = format!("{} {what}", difference.path);
        let repair = std::mem::replace(&mut repair, Repair::WithLast);
        found.push(Finding::new(code, what, would).repair(repair));
    }
    if rest > 0 {
        let what = format!("{rest} more view files are out of date");
        let finding = Finding::new(Code::ViewEdited, what, "write them again");
        found.push(finding.rated(Severity::Info));
    }
    Ok(found)
}

/// The next change brings the journal up to date, too.
pub(super) fn journal(survey: &Survey<'_>) -> Found {
    let engine = survey.trees.engine;
    let Some(journal) = engine.journal() else {
        return Ok(Vec::new());
    };
    let path = journal.path();
    let (code, what, would) = match journal.state(engine.store())? {
        JournalState::Current => return Ok(Vec::new()),
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
            return Ok(vec![
                Finding::new(Code::JournalBroken, what, would).at(path),
            ]);
        }
    };
    let what = format!("{} {what}", path.display());
    let finding = Finding::new(code, what, would).at(path);
    Ok(vec![finding.repair(Repair::WriteJournal)])
}

/// Views that are switched off grow old where they lie.
fn old_views(survey: &Survey<'_>) -> Option<Finding> {
    let file = survey.trees.place.private().join(WRITTEN_FILE);
    file.exists().then(|| {
        let what = "file views were switched off; their files are not kept up to date";
        let would = "stop tracking them (the files stay; delete them if nothing reads them)";
        Finding::new(Code::ViewsOld, what, would).repair(Repair::Delete(file))
    })
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
