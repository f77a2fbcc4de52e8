//! `weald sandbox explain`

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use weald_app::Failure;
use weald_app::operations::sandboxes::{ExplainSandbox, Explanation};
use weald_sandbox::Network;

use crate::completion;
use crate::context::Context;
use crate::ui::{DIM, HEADING, Out, paint};

/// Show what a sandboxed run may do
///
/// Covers a run in a worktree or one that writes DIR. Also shows whether the sandbox works here and what it does not cover.
#[derive(Args, Default)]
pub struct Explain {
    /// Worktree or writable directory (default: current directory)
    #[arg(value_name = "NAME|DIR", add = completion::trees())]
    tree: Option<PathBuf>,
}

impl Explain {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(ExplainSandbox { of: self.tree })?;
        let explained = &answer.sandbox;
        context.ui.show(&answer, |out| print(out, explained))
    }
}

fn print(out: &mut Out, explained: &Explanation) -> io::Result<()> {
    let level = explained.level.as_str();
    writeln!(out, "{} {level}", paint(HEADING, "level"))?;
    match &explained.missing {
        None => writeln!(
            out,
            "  works here (Landlock ABI {})",
            explained.landlock_abi
        )?,
        Some(missing) => {
            writeln!(out, "  {missing}")?;
            writeln!(out, "  {} {}", paint(DIM, "hint:"), explained.hint)?;
        }
    }
    if let Some(note) = &explained.home_note {
        writeln!(out, "  {note}")?;
    }
    let mut unseen = [explained.masked.clone(), explained.hidden.clone()].concat();
    unseen.sort();
    unseen.dedup();
    let agents = "agents: the hosts of their model, too";
    let reached = match explained.network {
        Network::On => vec!["everything that this machine reaches".to_owned()],
        Network::Off => Vec::new(),
        Network::Allow => [explained.hosts.clone(), vec![agents.to_owned()]].concat(),
    };
    let lists = [
        ("can write", &explained.write),
        ("has for itself", &explained.private),
        ("does not see", &unseen),
        (
            "hides (to reveal one: weald config set sandbox.reveal NAME)",
            &explained.hidden_secrets,
        ),
        ("may connect to", &explained.sockets),
        ("may reach on the network", &reached),
        ("may use", &explained.devices),
        (
            "refuses, with an error that programs can handle",
            &explained.refuses,
        ),
        ("does not cover", &explained.not_covered),
    ];
    lists
        .iter()
        .try_for_each(|(name, lines)| print_list(out, name, lines))?;
    if !explained.proposed_hosts.is_empty() {
        let name = "seems to need (to allow them: weald config set sandbox.hosts +HOST,HOST)";
        print_list(out, name, &explained.proposed_hosts)?;
    }
    Ok(())
}

fn print_list(out: &mut Out, name: &str, lines: &[String]) -> io::Result<()> {
    writeln!(out, "{}", paint(HEADING, name))?;
    if lines.is_empty() {
        return writeln!(out, "  nothing");
    }
    lines.iter().try_for_each(|line| writeln!(out, "  {line}"))
}
