//! Clean-up: which trees may go and why, what keeps each of the others, and taking those that may.
//!
//! Without `apply` nothing is written, neither in the repository nor in a tree: trees are surveyed by visits that only
//! read, and commits are compared beside the vault. With it, each tree that could go is looked into and taken in one go,
//! by the same way as `rm`, judged again under its own guards, into the trash. Nothing here overrules a guard.

mod looking;
mod orphans;
mod taking;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weald_core::clean::{self, Blocker, CleanFacts, CleanRules, Reason, is_stale};
use weald_core::id::{TaskId, TreeId};
use weald_core::name::TreeName;
use weald_core::tree::{Tree, TreeStatus};
use weald_core::{SignedDuration, Timestamp};

use crate::Upkeep;
use crate::survey::Survey;
pub use orphans::{Orphan, OrphanClass, OrphanOutcome};
use taking::Taking;
use weald_trees::{BranchOutcome, Removed, TreeError};

/// Finds worktrees that are finished, and moves them to the trash.
#[derive(Debug, Clone, Default)]
pub struct CleanRequest {
    /// Do it, instead of only listing them.
    pub apply: bool,
    /// For how long a worktree must be unused, instead of what is configured; zero asks for nothing.
    pub min_age: Option<SignedDuration>,
    /// Only worktrees of these tasks, unless empty.
    pub tasks: Vec<TaskId>,
    pub tree: Option<TreeName>,
    /// With `apply`: act on orphans, too.
    pub orphans: bool,
    /// Fetch the targets' remotes first.
    pub fetch: bool,
}

/// A tree that may go.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Candidate {
    pub tree: TreeName,
    pub id: TreeId,
    pub reason: Reason,
    pub path: PathBuf,
    pub branch: String,
    pub task: Option<TaskId>,
    /// When it was last used.
    pub last_used_at: Option<Timestamp>,
}

/// A tree that stays.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Skipped {
    pub tree: TreeName,
    pub id: TreeId,
    /// Everything that speaks against it.
    pub blockers: Vec<Blocker>,
    /// What there is to say about them.
    pub notes: Vec<String>,
    /// Whether it was looked into. One that is kept anyway is not, where there are too many.
    pub looked: bool,
    pub path: PathBuf,
    /// When it was last used.
    pub last_used_at: Option<Timestamp>,
}

/// A tree that nobody touched for a while.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stale {
    pub tree: TreeName,
    /// When it was last used.
    pub last_used_at: Timestamp,
}

/// A tree that went.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Taken {
    pub tree: TreeName,
    /// Its number, by which the trash knows it.
    pub id: TreeId,
    pub outcome: String,
    /// What became of its branch.
    pub branch: BranchOutcome,
    /// How to get it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore: Option<String>,
}

impl From<Removed> for Taken {
    fn from(removed: Removed) -> Self {
        Self {
            tree: removed.tree.name,
            id: removed.tree.id,
            outcome: removed.outcome,
            branch: removed.branch,
            restore: removed.restore,
        }
    }
}

/// Something that was to go and did not.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NotTaken {
    pub tree: String,
    pub error: String,
}

/// What a clean found and did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CleanReport {
    pub candidates: Vec<Candidate>,
    /// What stays, each with everything that keeps it.
    pub skipped: Vec<Skipped>,
    /// What has only one of record, directory and registration.
    pub orphans: Vec<Orphan>,
    /// What nobody touched for longer than `clean.stale_after`.
    pub stale: Vec<Stale>,
    /// Whether anything was to be changed.
    pub applied: bool,
    pub removed: Vec<Taken>,
    /// What was to go and did not.
    pub failed: Vec<NotTaken>,
    /// Where what went waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trash: Option<PathBuf>,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// Whether a record leads to where no tree may be.
    #[serde(skip)]
    pub has_odd_record: bool,
}

/// One tree with what was found out about it.
struct Judged {
    tree: Tree,
    facts: CleanFacts,
    notes: Vec<String>,
    looked: bool,
    verdict: Result<Reason, Vec<Blocker>>,
    /// How its removal ended, where it was tried.
    taken: Option<Result<Taken, TreeError>>,
}

impl Upkeep<'_> {
    /// Says what may go and what keeps the rest; takes it if asked to.
    pub fn clean(&self, request: &CleanRequest) -> Result<CleanReport, TreeError> {
        let rules = self.clean_rules(request);
        let mut report = CleanReport {
            applied: request.apply,
            ..CleanReport::default()
        };
        if request.fetch {
            report.warnings = self.fetch_targets()?;
        }
        let survey = Survey::new(self.trees, &[]);
        if request.tasks.is_empty() && request.tree.is_none() {
            report.orphans = self.orphans(&survey)?;
        }
        let taking = Taking::new(self, &rules);
        let judged = self.judge_all(&survey, request, &rules, request.apply.then_some(&taking))?;
        tell_records(&survey, &judged, &mut report)?;
        let now = self.trees.now()?;
        let stale_after = self.trees.config.clean_stale_after;
        for one in &judged {
            let used = one.facts.last_used;
            if let (Some(last_used_at), true) = (used, is_stale(used, stale_after, now)) {
                report.stale.push(Stale {
                    tree: one.tree.name.clone(),
                    last_used_at,
                });
            }
            match &one.verdict {
                Ok(reason) => report.candidates.push(candidate(one, *reason)),
                Err(blockers) => report.skipped.push(skipped(one, blockers.clone())),
            }
        }
        if request.apply {
            tell_taken(judged, &mut report);
            if let Some(first) = report.candidates.first() {
                report.trash = self.trees.trash_directory(&first.path).ok();
            }
        }
        if request.apply && request.orphans && report.orphans.iter().any(|found| found.acts) {
            self.take_orphans(taking.operation()?, &mut report);
        }
        if !report.removed.is_empty() {
            self.trees.engine.sync()?;
        }
        Ok(report)
    }

    /// The worktrees that a clean would take, if it only asked for what is configured.
    pub(crate) fn finished(&self, survey: &Survey<'_>) -> Result<BTreeSet<TreeName>, TreeError> {
        let request = CleanRequest::default();
        let rules = self.clean_rules(&request);
        let judged = self.judge_all(survey, &request, &rules, None)?.into_iter();
        let finished = judged.filter(|one| one.verdict.is_ok());
        Ok(finished.map(|one| one.tree.name).collect())
    }

    fn clean_rules(&self, request: &CleanRequest) -> CleanRules {
        let configured = || self.trees.config.clean_min_age;
        CleanRules {
            requires: self.trees.config.clean_requires,
            min_age: request.min_age.unwrap_or_else(configured),
        }
    }

    /// Judges the trees that are asked for, and takes those that may go, if asked to. Those that could go are all looked
    /// into, the others as long as there is time.
    fn judge_all(
        &self,
        survey: &Survey<'_>,
        request: &CleanRequest,
        rules: &CleanRules,
        taking: Option<&Taking<'_>>,
    ) -> Result<Vec<Judged>, TreeError> {
        let is_asked = |tree: &&Tree| {
            let is_there = tree.is_live() || tree.status == TreeStatus::Creating;
            let of_task = |id: &TaskId| tree.task.as_ref() == Some(id);
            is_there
                && (request.tasks.is_empty() || request.tasks.iter().any(of_task))
                && request.tree.as_ref().is_none_or(|name| *name == tree.name)
        };
        let mut found = Vec::new();
        for tree in survey.records()?.iter().filter(is_asked) {
            let (facts, notes) = survey.facts_of(tree)?;
            found.push((tree, facts, notes));
        }
        let facts: Vec<_> = found
            .iter()
            .map(|(tree, facts, _)| (*tree, facts))
            .collect();
        let surveyed = self.look_into_all(survey, &facts, rules, taking)?;
        // The clock of the looks themselves: what was touched during them is no future.
        let now = self.trees.now()?;
        let judged = found.into_iter().zip(surveyed);
        Ok(judged
            .map(|((tree, mut facts, mut notes), seen)| {
                let looked = seen.is_some();
                notes.extend(seen.as_ref().and_then(|seen| seen.fill(&mut facts)));
                let taken = seen.and_then(|seen| seen.taken);
                let mut verdict = clean::judge(&facts, rules, now);
                if let (false, Err(blockers)) = (looked, &mut verdict) {
                    // Nobody looked, which says nothing about what is in it. Others keep it.
                    let is_said = |blocker: &Blocker| match blocker {
                        Blocker::DiffError => false,
                        Blocker::BranchSafetyUnknown => !facts.branch_fits,
                        _ => true,
                    };
                    blockers.retain(is_said);
                }
                Judged {
                    tree: tree.clone(),
                    verdict,
                    facts,
                    notes,
                    looked,
                    taken,
                }
            })
            .collect())
    }

    /// Asks the remotes for the targets of all trees; one that does not answer is told, and what is known here counts.
    fn fetch_targets(&self) -> Result<Vec<String>, TreeError> {
        let mut targets: Vec<_> = self
            .trees
            .records()?
            .into_iter()
            .filter(Tree::is_live)
            .map(|tree| tree.target)
            .collect();
        targets.sort();
        targets.dedup();
        let mut warnings = Vec::new();
        for target in targets {
            let Some(upstream) = self.trees.upstream(&format!("refs/heads/{target}"))? else {
                continue;
            };
            if let Err(error) = self.trees.fetch(&upstream) {
                warnings.push(format!(
                    "{} could not be fetched, so weald uses the local copy: {error}",
                    upstream.name()
                ));
            }
        }
        Ok(warnings)
    }
}

/// A record that leads to where no tree may be, and that nothing in the repository confirms, is worth an alarm.
fn tell_records(
    survey: &Survey<'_>,
    judged: &[Judged],
    report: &mut CleanReport,
) -> Result<(), TreeError> {
    for one in judged {
        if one.facts.path_fits || survey.is_registered(&one.tree)? {
            continue;
        }
        report.has_odd_record = true;
        report.warnings.push(format!(
            "the record of worktree {} points to {}, which is not a worktree of this repository; nothing there was changed: weald doctor",
            one.tree.name,
            one.tree.path.display()
        ));
    }
    Ok(())
}

fn candidate(one: &Judged, reason: Reason) -> Candidate {
    Candidate {
        tree: one.tree.name.clone(),
        id: one.tree.id,
        reason,
        path: one.tree.path.clone(),
        branch: one.tree.branch.clone(),
        task: one.tree.task.clone(),
        last_used_at: one.facts.last_used,
    }
}

fn skipped(one: &Judged, blockers: Vec<Blocker>) -> Skipped {
    Skipped {
        tree: one.tree.name.clone(),
        id: one.tree.id,
        blockers,
        notes: one.notes.clone(),
        looked: one.looked,
        path: one.tree.path.clone(),
        last_used_at: one.facts.last_used,
    }
}

/// Tells what went, and of what was to go and did not, why. What stays anyway is told by its blockers.
fn tell_taken(judged: Vec<Judged>, report: &mut CleanReport) {
    for one in judged {
        match one.taken {
            Some(Ok(taken)) => report.removed.push(taken),
            Some(Err(error)) if one.verdict.is_ok() => report.failed.push(NotTaken {
                tree: one.tree.name.to_string(),
                error: error.to_string(),
            }),
            _ => {}
        }
    }
}
