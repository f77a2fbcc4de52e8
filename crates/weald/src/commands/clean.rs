//! `weald clean`

mod other;
mod told;
mod words;

use clap::Args;
use weald_app::Failure;
use weald_app::operations::Operation;
use weald_app::operations::cleaning::CleanTrees;
use weald_core::SignedDuration;
use weald_core::meant::Word;

use self::other::Other;
use crate::cli::age;
use crate::commands::enter::quoted;
use crate::completion;
use crate::context::Context;

/// Find what can be cleaned up, and do it with --apply
///
/// Selects worktrees whose work landed or whose task is completed or cancelled, if they were unused for a day and no guard
/// protects them. Without --apply nothing is changed; only --trash deletes worktrees for good, and no flag overrides a guard.
/// docs/cleanup.md explains each reason for keeping a worktree.
#[derive(Args, Default)]
pub struct Clean {
    /// Make the listed changes; worktrees go to the trash
    #[arg(long)]
    pub apply: bool,
    /// Minimum time unused; 0 for any (default: clean.min_age)
    #[arg(long, value_name = "DURATION", value_parser = age)]
    pub min_age: Option<SignedDuration>,
    /// Only worktrees of this task (may be repeated)
    #[arg(long = "task", value_name = "ID", add = completion::all_tasks())]
    pub tasks: Vec<Word>,
    /// Also drop stale records and trash leftover directories
    ///
    /// Needs --apply.
    #[arg(long)]
    pub orphans: bool,
    /// Fetch the target's remote first, so that merges there count
    #[arg(long)]
    pub fetch: bool,
    /// Only this worktree or task: for those who come from other systems.
    #[arg(skip)]
    pub tree: Option<String>,
    #[command(flatten)]
    pub other: Other,
}

impl Clean {
    pub fn run(mut self, context: &Context<'_>) -> Result<u8, Failure> {
        if let Some(done) = std::mem::take(&mut self.other).run(self.apply, context) {
            return done;
        }
        let again = self.with_apply(context);
        let cleaned = context.perform(CleanTrees {
            apply: self.apply,
            min_age: self.min_age,
            tasks: self.tasks,
            tree: self.tree,
            orphans: self.orphans,
            fetch: self.fetch,
        })?;
        context.ui.show(&cleaned, |out| match cleaned.disabled {
            Some(_) => Ok(()),
            None => told::told(out, &cleaned.report, &again, context.now()),
        })?;
        Ok(CleanTrees::exit(&cleaned))
    }

    /// Whether it changes nothing, not even what is known of remotes.
    pub fn only_reads(&self) -> bool {
        !self.apply && !self.fetch && self.other.only_reads()
    }

    /// The same call with --apply.
    fn with_apply(&self, context: &Context<'_>) -> String {
        let mut words = vec!["weald clean".to_owned()];
        if let Some(age) = self.min_age {
            let age = format!("{age:#}").replace(' ', "");
            let age = if self.min_age == Some(SignedDuration::ZERO) {
                "0"
            } else {
                &age
            };
            words.push(format!("--min-age {age}"));
        }
        words.extend(self.tasks.iter().map(|id| format!("--task {id}")));
        for (given, flag) in [(self.orphans, "--orphans"), (self.fetch, "--fetch")] {
            words.extend(given.then(|| flag.to_owned()));
        }
        for pair in context.settings().chunks(2) {
            words.push(format!("--set {}", quoted(&pair[1])));
        }
        words.push("--apply".to_owned());
        words.join(" ")
    }
}
