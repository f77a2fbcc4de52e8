//! `weald agent show`

use std::io::{self, Write};

use clap::Args;
use weald_app::Failure;
use weald_app::operations::agent_views::{ShowAgent, ShownAgent};
use weald_core::Timestamp;

use super::{Which, pulse};
use crate::context::Context;
use crate::ui::{DIM, Out, clean, joined, paint, within};

/// Show everything about an agent
///
/// Its task, driver, model, worktree, branch and conversation, its times, tokens and end, and the last lines of its output.
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    which: Which,
}

impl Show {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(ShowAgent {
            agent: self.which.id,
        })?;
        let now = context.now();
        context.ui.show(&answer, |out| told(out, &answer, now))
    }
}

fn told(out: &mut Out, answer: &ShownAgent, now: Timestamp) -> io::Result<()> {
    let view = answer.view();
    let agent = &view.agent;
    pulse::print_head(out, view)?;
    let text = |text: &str| Some(joined(text)).filter(|text| !text.is_empty());
    let command = agent.command.join(" ");
    let fields = [
        ("subject", answer.subject.as_deref().and_then(text)),
        ("command", text(&command)),
        ("model", agent.model.as_deref().and_then(text)),
        ("role", agent.role.as_deref().and_then(text)),
        (
            "path",
            view.path.as_ref().map(|path| path.display().to_string()),
        ),
        ("conversation", agent.conversation.as_deref().and_then(text)),
        ("continues", agent.resumes.map(|before| before.to_string())),
        (
            "started by",
            agent.spawned_by.as_ref().map(ToString::to_string),
        ),
        ("exit code", agent.code.map(|code| code.to_string())),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            writeln!(out, "  {name:<12} {}", within(&value, 15))?;
        }
    }
    pulse::print_fields(out, view, now)?;
    if !answer.last_lines.is_empty() {
        writeln!(
            out,
            "{}",
            paint(
                DIM,
                format!("  last lines (all: weald agent logs {}):", agent.id)
            )
        )?;
    }
    for line in &answer.last_lines {
        writeln!(out, "  {}", within(&clean(line), 2))?;
    }
    Ok(())
}
