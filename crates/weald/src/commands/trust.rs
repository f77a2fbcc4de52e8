//! `weald trust`

use std::io::{self, Write};

use clap::Args;
use weald_app::operations::trust::{ApproveCommands, ListTrust, RevokeTrust};
use weald_app::{Failure, Trust as Trusted};
use weald_core::setup::Proposal;

use crate::context::Context;
use crate::ui::{ACCENT, Out, paint};

/// Approve the commands and hosts that the repository proposes
///
/// Shows the set-up commands, the gate, the check and the hosts in weald.toml at the target's tip, and the set-up commands in
/// another tool's settings. Once approved, the commands run for new worktrees and landings, sandboxed, and runs may reach the
/// hosts. A change needs a new approval; your own configuration needs none.
#[derive(Args)]
pub struct Trust {
    /// List what is proposed and approved; approve nothing
    #[arg(long)]
    list: bool,
    /// Revoke every approval
    #[arg(long, conflicts_with = "list")]
    revoke: bool,
}

impl Trust {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = match (self.list, self.revoke) {
            (true, _) => context.perform(ListTrust {})?,
            (_, true) => context.perform(RevokeTrust {})?,
            _ => context.perform(ApproveCommands {})?,
        };
        context.ui.show(&answer, |out| match self.list {
            true => listed(out, &answer.trust),
            false => told(out, &answer.trust),
        })
    }
}

fn told(out: &mut Out, trust: &Trusted) -> io::Result<()> {
    if trust.proposal.is_none() && trust.landing.is_empty() && trust.hosts.is_none() {
        return writeln!(out, "the repository proposes no commands");
    }
    if let Some(proposal) = &trust.proposal {
        let state = match trust.approved {
            true => "approved: they run in new worktrees",
            false => "not approved: they don't run",
        };
        written(out, proposal, state)?;
    }
    for proposed in &trust.landing {
        let state = match proposed.approved {
            true => "approved: landings run it",
            false => "not approved: it doesn't run, and nothing lands without it",
        };
        written(out, &proposed.proposal, state)?;
    }
    if let Some(hosts) = &trust.hosts {
        let state = match hosts.approved {
            true => "approved: runs may reach them where sandbox.network is allow",
            false => "not approved: runs don't reach them",
        };
        written(out, &hosts.proposal, state)?;
    }
    Ok(())
}

fn listed(out: &mut Out, trust: &Trusted) -> io::Result<()> {
    told(out, trust)?;
    let others = trust.landing.iter().chain(&trust.hosts);
    let others = others.map(|proposed| &proposed.proposal);
    let now: Vec<_> = trust.proposal.iter().chain(others).collect();
    let approvals = trust.approvals.iter();
    for approval in approvals.filter(|approval| !now.contains(&&approval.proposal)) {
        let state = format!("approved at {}, not proposed now", approval.at);
        written(out, &approval.proposal, &state)?;
    }
    Ok(())
}

fn written(out: &mut Out, proposal: &Proposal, state: &str) -> io::Result<()> {
    writeln!(out, "{} ({state})", paint(ACCENT, &proposal.from))?;
    for line in proposal.commands.iter().flat_map(|command| command.lines()) {
        writeln!(out, "  {}", crate::ui::clean(line))?;
    }
    Ok(())
}
