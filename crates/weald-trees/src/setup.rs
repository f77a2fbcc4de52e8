//! Setting a new tree up: files of main that git ignores, shared folders, the user's hook, commands.
//!
//! With nothing configured it costs a few looks at files and no process. Files are copied by the host before anybody is in
//! the tree; whatever runs, runs in the tree's sandbox at the configured level. Commands that the repository proposes run only after
//! somebody approved exactly these.

mod cargo;
mod commands;
mod copying;
mod hook;
mod sharing;
mod trust;

use std::path::Path;

use weald_core::config::OnFailure;
use weald_core::setup::{SetupOutcome, is_approved};
use weald_core::store::Durability;
use weald_core::tree::Tree;
use weald_core::tree_rules::TreeInput;
use weald_sandbox::SandboxError;

use super::new_tree::{CreateOutcome, Created};
use super::remove::RemoveRequest;
use super::setup_report::SetupReport;
use super::site::Site;
use super::{TreeError, Trees};
pub use commands::Step;
use trust::Wanted;
pub use trust::{Proposed, Trust};

/// A set-up in the making.
#[derive(Default)]
pub(super) struct Setup {
    report: SetupReport,
    notes: Vec<String>,
    unavailable: Option<SandboxError>,
    has_begun: bool,
}

impl Setup {
    /// There is something to do, so there will be something to tell.
    fn begins(&mut self) {
        self.has_begun = true;
    }

    /// What went wrong so far.
    pub(super) fn failure(&self) -> Option<&str> {
        self.report.error.as_deref()
    }

    /// What was brought, and what a person should know about it.
    pub(super) fn told(self) -> Vec<String> {
        let copied = Some(self.report.copied).filter(|count| *count > 0);
        let copied = copied.map(|count| format!("{count} ignored files were copied from main"));
        let shared = self.report.shared.into_iter();
        let shared = shared.map(|path| format!("{path} is shared"));
        copied.into_iter().chain(shared).chain(self.notes).collect()
    }

    fn fails(&mut self, outcome: SetupOutcome, why: String) {
        self.begins();
        self.report.outcome = outcome;
        self.report.error = Some(why);
    }
}

impl Trees<'_> {
    /// Sets a tree up again: what is missing is brought, what is there stays, the commands run.
    pub fn set_up_again(&self, name: Option<&str>) -> Result<Created, TreeError> {
        let tree = self.named(name)?;
        self.require_own(&tree)?;
        self.site(&tree)?;
        self.require_idle(&tree)?;
        let (tree, note) = self.hold_ports(tree, None)?;
        let (tree, mut setup) = self.set_up(tree, None)?;
        setup.notes.extend(note);
        match setup.into_created(Created::of(tree, CreateOutcome::Reused)) {
            (_, Some(failure)) => Err(failure),
            (made, None) => Ok(made),
        }
    }

    /// A tree that was just made, set up. One whose set-up fails stays, or goes to the trash if the configuration says so.
    /// `begun` has what was done while it was made.
    pub(super) fn with_setup(
        &self,
        made: Created,
        begun: Option<Setup>,
    ) -> Result<Created, TreeError> {
        let (tree, setup) = self.set_up(made.tree, begun)?;
        let (mut made, failure) = setup.into_created(Created { tree, ..made });
        let Some(failure) = failure else {
            return Ok(made);
        };
        let outcome = made.setup.as_ref().map(|report| report.outcome);
        let goes = self.config.setup_on_failure == OnFailure::Rollback
            && made.outcome == CreateOutcome::Created
            && outcome != Some(SetupOutcome::Unapproved);
        if goes {
            let request = RemoveRequest {
                discard: true,
                force: 2,
                reason: Some("its set-up failed".to_owned()),
                ..RemoveRequest::default()
            };
            self.remove(Some(made.tree.name.as_str()), &request)?;
            return Err(match failure {
                TreeError::SetUp { name, report, .. } => TreeError::SetUp {
                    name,
                    report,
                    trash: Some(made.tree.id),
                },
                other => other,
            });
        }
        made.notes.push(match outcome {
            Some(SetupOutcome::Unapproved) => format!(
                "{failure}; review and approve them with `weald trust`, then run `weald setup {}`",
                made.tree.name
            ),
            _ => format!(
                "{failure}; the worktree is kept, to try again: `weald setup {}`",
                made.tree.name
            ),
        });
        Ok(made)
    }

    /// Does all of it, and records how it ended if there was anything to do.
    fn set_up(&self, tree: Tree, begun: Option<Setup>) -> Result<(Tree, Setup), TreeError> {
        let mut tree = tree;
        let mut setup = match begun {
            Some(begun) => begun,
            None => {
                let mut setup = Setup::default();
                if let Err(error) = self.share(&tree, &mut setup) {
                    setup.fails(SetupOutcome::Failed, error.to_string());
                }
                setup
            }
        };
        if setup.report.outcome == SetupOutcome::Done
            && let Err(error) = self.set_up_by_commands(&mut tree, &mut setup)
        {
            setup.fails(SetupOutcome::Failed, error.to_string());
        }
        if !setup.has_begun {
            return Ok((tree, setup));
        }
        let input = TreeInput::SetUp {
            outcome: setup.report.outcome,
            error: setup.report.error.clone(),
        };
        let tree = self.decide(&tree, Durability::Process, input)?;
        Ok((tree, setup))
    }

    /// Brings files of main into a tree in the making, before anybody can be in it.
    pub(super) fn set_up_files(&self, tree: &Tree, site: &Site, index: &Path) -> Setup {
        let mut setup = Setup::default();
        if let Err(error) = self.share_into(tree, site, Some(index), &mut setup) {
            setup.fails(SetupOutcome::Failed, error.to_string());
        }
        setup
    }

    /// The commands that set up new trees, approved or not.
    pub fn setup_commands(&self) -> Result<Vec<String>, TreeError> {
        let wanted = self.wanted_commands(&mut Vec::new())?;
        Ok(wanted.map_or(Vec::new(), |wanted| wanted.proposal.commands))
    }

    /// The steps that set up a tree which is on no record. `None` while nobody approved the repository's commands.
    pub fn setup_steps(&self, tree: &Tree) -> Result<Option<Vec<Step>>, TreeError> {
        let mut steps: Vec<_> = self.hook_step(tree).into_iter().collect();
        if let Some(wanted) = self.wanted_commands(&mut Vec::new())? {
            if !self.may_run(&wanted)? {
                return Ok(None);
            }
            let own = self.command_steps(tree, &wanted.proposal);
            let unreadable = |why| TreeError::unreadable(&wanted.proposal.from, why);
            steps.extend(own.map_err(unreadable)?);
        }
        Ok(Some(steps))
    }

    fn may_run(&self, wanted: &Wanted) -> Result<bool, TreeError> {
        Ok(wanted.is_own || is_approved(&self.approvals()?, &wanted.proposal))
    }

    fn set_up_by_commands(&self, tree: &mut Tree, setup: &mut Setup) -> Result<(), TreeError> {
        let mut steps: Vec<_> = self.hook_step(tree).into_iter().collect();
        if let Some(wanted) = self.wanted_commands(&mut setup.notes)? {
            let proposal = &wanted.proposal;
            setup.begins();
            setup.report.from = Some(proposal.from.clone());
            match (self.may_run(&wanted)?, self.command_steps(tree, proposal)) {
                (true, Ok(own)) => steps.extend(own),
                (true, Err(why)) => {
                    setup.fails(SetupOutcome::Failed, why);
                    return Ok(());
                }
                (false, _) => {
                    let why = format!("the set-up commands of {} are not approved", proposal.from);
                    setup.fails(SetupOutcome::Unapproved, why);
                }
            }
        }
        if !steps.is_empty() {
            *tree = self.run_steps(tree.clone(), &steps, setup)?;
        }
        Ok(())
    }
}

impl Setup {
    /// What came about, and the failure if it is one.
    fn into_created(self, mut made: Created) -> (Created, Option<TreeError>) {
        made.notes.extend(self.notes);
        let failed = self.has_begun && self.report.outcome != SetupOutcome::Done;
        let failure = failed.then(|| match self.unavailable {
            Some(error) => error.into(),
            None => TreeError::SetUp {
                name: made.tree.name.clone(),
                report: Box::new(self.report.clone()),
                trash: None,
            },
        });
        made.setup = self.has_begun.then_some(self.report);
        (made, failure)
    }
}
