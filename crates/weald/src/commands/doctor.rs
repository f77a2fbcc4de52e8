//! `weald doctor`

mod adopting;
mod opening;
mod rebuilding;
mod sandbox;
mod told;

use std::path::PathBuf;

use clap::Args;
use weald_app::{Checkup, Code, Failure, Finding, Severity, exit};
use weald_core::id::LandingId;

use super::queue;
use crate::context::Context;
use crate::ui::Fields;

use opening::Patient;

/// Check for inconsistencies and repair weald's own state
///
/// Use it after a crash, or after moving a repository or a worktree. A part that can't be read is reported as a finding, and
/// the other checks still run. Exits 0 if no finding above info remains. docs/doctor.md explains each finding by its code.
#[derive(Args)]
pub struct Doctor {
    /// Repair findings where nothing can be lost
    #[arg(long)]
    fix: bool,
    /// Rebuild the registry from its log, git and the worktrees
    ///
    /// Without --fix, only shows the result.
    #[arg(long, conflicts_with = "places")]
    rebuild: bool,
    /// Take over restored worktrees or this copy of a repository
    #[arg(long, conflicts_with_all = ["fix", "rebuild"])]
    adopt: bool,
    /// Complete or roll back a landing whose process is gone
    ///
    /// Use it only if you know that the process has ended; weald could not find out.
    #[arg(long, value_name = "LANDING", conflicts_with_all = ["fix", "rebuild", "adopt", "places"])]
    recover: Option<LandingId>,
    /// New locations of moved worktrees
    #[arg(value_name = "PLACE")]
    places: Vec<PathBuf>,
}

impl Doctor {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if let Some(landing) = self.recover {
            return queue::Recover { landing }.run(context);
        }
        if self.rebuild {
            return rebuilding::run(context, self.fix);
        }
        let resolve = |path: &PathBuf| {
            path.canonicalize()
                .map_err(|error| Failure::file(path, &error))
        };
        let places: Vec<_> = self.places.iter().map(resolve).collect::<Result<_, _>>()?;
        if self.adopt {
            return adopting::run(context, &places);
        }
        let patient = Patient::find(context)?;
        let progress = context.stage("looking");
        let mut findings = vec![sandbox::sandbox(context)?];
        findings.extend(self.examined(context, patient, &places));
        drop(progress);
        context.ui.answer(
            || Fields::new().with("findings", &findings),
            |out| told::told(out, &findings, self.fix),
        )?;
        Ok(match findings.iter().any(is_open) {
            false => exit::DONE,
            true => exit::REFUSED,
        })
    }

    /// What could not be opened, then everything else.
    fn examined(
        &self,
        context: &Context<'_>,
        mut patient: Patient,
        places: &[PathBuf],
    ) -> Vec<Finding> {
        let mut findings = std::mem::take(&mut patient.findings);
        let is_copy = findings.iter().any(|one| one.code == Code::RepositoryCopy);
        let ground = patient.ground;
        let trees = match ground
            .as_ref()
            .map(|ground| ground.trees_with_any_git(context))
        {
            Some(Err(failure)) => {
                let what = format!("records could not be checked: {}", failure.message);
                let would = failure.hint.unwrap_or_default();
                findings.push(Finding::new(Code::CheckFailed, what, would));
                None
            }
            trees => trees.and_then(Result::ok),
        };
        let fix = self.fix && patient.is_safe;
        let checkup = Checkup {
            place: &patient.place,
            is_copy,
            trees: trees.as_ref(),
            min_free: patient.min_free,
            places,
            fix,
            fix_records: fix && patient.is_understood,
        };
        findings.extend(checkup.run());
        if let Some(ground) = &ground {
            context.tell(&ground.engine);
        }
        findings
    }
}

/// Whether it is worse than good to know, and still there.
fn is_open(finding: &Finding) -> bool {
    finding.severity != Severity::Info && !finding.fixed
}
