//! Checks of landings: moves that were cut short, what they left, and changes that wait in the stash.

use weald_core::landing::{Landing, LandingStatus};
use weald_core::session::ProcessState;

use crate::Code;
use crate::finding::{Finding, Found};
use crate::repair::{Repair, of_landing};
use crate::survey::Survey;
use weald_control::stashes::stash_entries;
use weald_landing::{Landings, LeftoverKind, QueueView};
use weald_trees::TreeError;

/// The queue, unless a process works it: what that makes is its own. With whether its holder is known to be gone.
fn idle_queue(survey: &Survey<'_>) -> Result<Option<(QueueView, bool)>, TreeError> {
    let trees = survey.trees;
    let view = Landings::new(trees).queue();
    let view = view.map_err(|error| of_landing(trees, error))?;
    let Some(holder) = &view.queue.holder else {
        return Ok(Some((view, true)));
    };
    let is_free = match trees.engine.processes.state(&holder.process) {
        ProcessState::Running => return Ok(None),
        ProcessState::Unknown => trees.now()? >= holder.expires_at,
        ProcessState::Gone => true,
    };
    Ok(Some((view, is_free)))
}

pub(super) fn moves(survey: &Survey<'_>) -> Found {
    let view = idle_queue(survey)?;
    let open = view.map(|(view, _)| view.open).unwrap_or_default();
    let moving = open
        .iter()
        .filter(|one| one.status == LandingStatus::Moving);
    Ok(moving.filter_map(|one| cut_short(survey, one)).collect())
}

pub(super) fn unsettled(survey: &Survey<'_>) -> Found {
    let free = idle_queue(survey)?.filter(|(_, is_free)| *is_free);
    let unsettled = free.map(|(view, _)| view.unsettled).unwrap_or_default();
    let found = unsettled.iter().map(|landing| {
        let what = format!(
            "{} has landing {} of worktree {}, but its clean-up did not run",
            landing.target, landing.id, landing.tree
        );
        let would = "complete its task and clean up its worktree as configured";
        Finding::new(Code::LandingUnsettled, what, would).repair(Repair::SettleLandings)
    });
    Ok(found.collect())
}

pub(super) fn leftovers(survey: &Survey<'_>) -> Found {
    if !idle_queue(survey)?.is_some_and(|(_, is_free)| is_free) {
        return Ok(Vec::new());
    }
    let left = Landings::new(survey.trees).landing_leftovers();
    let left = left.map_err(|error| of_landing(survey.trees, error))?;
    let found = left.into_iter().map(|left| {
        let (place, landing) = (left.path.display(), left.landing);
        if left.kind == LeftoverKind::Unknown {
            let what = format!(
                "{place} is named like a stage of landing {landing}, but weald has no record of it"
            );
            let would = format!("check it; if nothing in it is yours: rm -r {place}");
            return Finding::new(Code::LandingLeftover, what, would);
        }
        let what = format!("{place} is left over from landing {landing}");
        let would = "put back its content, then delete it";
        Finding::new(Code::LandingLeftover, what, would).repair(Repair::ClearLanding(left))
    });
    Ok(found.collect())
}

pub(super) fn stashes(survey: &Survey<'_>) -> Found {
    if !idle_queue(survey)?.is_some_and(|(_, is_free)| is_free) {
        return Ok(Vec::new());
    }
    let entries = stash_entries(survey.trees.place.repository())?.into_iter();
    let found = entries.filter_map(|entry| {
        let (landing, name) = (entry.landing?, entry.name);
        let what =
            format!("changes that were in the way of landing {landing} are in the stash ({name})");
        let would = format!("git stash pop --index {name}, in the checkout they came from");
        Some(Finding::new(Code::LandingStash, what, would))
    });
    Ok(found.collect())
}

fn cut_short(survey: &Survey<'_>, landing: &Landing) -> Option<Finding> {
    let (id, tree, target) = (landing.id, &landing.tree, &landing.target);
    let worker = landing.intent.as_ref().map(|intent| &intent.worker);
    match worker.map(|worker| (worker, survey.trees.engine.processes.state(worker))) {
        Some((_, ProcessState::Running)) => None,
        Some((worker, ProcessState::Unknown)) => {
            let what = format!(
                "landing {id} of worktree {tree} is moving {target}, and it is unknown whether its process ({} on {}) is alive",
                worker.pid, worker.host
            );
            let would = format!("if that process is gone: weald doctor --recover {id}");
            Some(Finding::new(Code::LandingUnfinished, what, would))
        }
        Some((_, ProcessState::Gone)) | None => {
            let what =
                format!("landing {id} of worktree {tree} was interrupted while {target} moved");
            let would = "finish it if it got far enough, else undo it";
            let finding = Finding::new(Code::LandingUnfinished, what, would);
            Some(finding.repair(Repair::RecoverLanding(id)))
        }
    }
}
