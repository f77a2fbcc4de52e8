//! `weald verify`

use std::io::{self, Write};

use clap::Args;
use weald_app::operations::Operation;
use weald_app::operations::landing::VerifyTarget;
use weald_app::{Failure, Verification};

use crate::context::Context;
use crate::ui::{ACCENT, DIM, Out, clean, clean_line, paint};

/// Find commits on the target that bypassed the queue
///
/// Such commits come from a commit, merge or reset by hand. weald can detect but not prevent them, because anyone with write
/// access to .git can move a branch. With policy.gate = human, also finds landings without an approval.
///
/// Exits 1 if such a commit is not on the remote's branch, if a landing is gone from the target, or if one was not approved.
#[derive(Args)]
pub struct Verify {
    /// Start after this commit (default: before the first landing)
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,
    /// Branch to check (default: target)
    #[arg(long, value_name = "BRANCH")]
    target: Option<String>,
}

impl Verify {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let found = context.perform(VerifyTarget {
            since: self.since,
            target: self.target,
        })?;
        context.ui.show(&found, |out| told(out, &found))?;
        Ok(VerifyTarget::exit(&found))
    }
}

fn told(out: &mut Out, found: &Verification) -> io::Result<()> {
    let target = clean(&found.target);
    if found.since.is_none() {
        return writeln!(
            out,
            "nothing has landed on {target} yet, so there is nothing to compare with \
             (from a commit on: weald verify --since COMMIT)"
        );
    }
    if found.commits.is_empty() && found.is_sound() {
        return writeln!(out, "{} on {target}, all recorded", commits(found.checked));
    }
    for commit in &found.commits {
        let mark = match (found.has_remote, commit.on_remote) {
            (false, _) => String::new(),
            (true, true) => format!(" {}", paint(DIM, "on the remote")),
            (true, false) => " not on the remote".to_owned(),
        };
        writeln!(
            out,
            "{} {} ({}){mark}",
            paint(ACCENT, &commit.commit[..12.min(commit.commit.len())]),
            clean_line(&commit.subject),
            clean(&commit.committer),
        )?;
    }
    for id in &found.missing {
        writeln!(out, "landing {id} is no longer on {target}")?;
    }
    for id in &found.unapproved {
        writeln!(
            out,
            "landing {id} was not approved, and policy.gate is human (if that is newer: --since COMMIT)"
        )?;
    }
    if !found.commits.is_empty() {
        writeln!(
            out,
            "{} of {} on {target} bypassed the queue: they were committed, merged or pulled there.",
            found.commits.len(),
            commits(found.checked)
        )?;
    }
    if found.commits.iter().any(|commit| !commit.on_remote) {
        let what = match found.has_remote {
            true => "what is not on the remote",
            false => "these",
        };
        writeln!(
            out,
            "No gate tested {what}. weald can detect this, not prevent it: anyone who can write .git can move {target}."
        )?;
    }
    Ok(())
}

fn commits(count: usize) -> String {
    match count {
        1 => "1 commit".to_owned(),
        count => format!("{count} commits"),
    }
}
