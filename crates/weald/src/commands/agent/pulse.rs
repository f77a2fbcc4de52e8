//! `weald agent pulse`

use std::io::{self, Write};

use clap::Args;
use weald_app::operations::agent_views::PulseAgent;
use weald_app::{AgentView, Failure, refusals_told};
use weald_core::Timestamp;
use weald_core::cost::{in_words, own};

use super::{Which, idle, state};
use crate::context::Context;
use crate::ui::{ACCENT, Out, ago, because, clean, indented, joined, paint};

/// Show how an agent is doing
#[derive(Args)]
pub struct Pulse {
    #[command(flatten)]
    which: Which,
}

impl Pulse {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(PulseAgent {
            agent: self.which.id,
        })?;
        let now = context.now();
        context
            .ui
            .show(&answer, |out| told(out, answer.view(), now))
    }
}

fn told(out: &mut Out, view: &AgentView, now: Timestamp) -> io::Result<()> {
    print_head(out, view)?;
    print_fields(out, view, now)
}

/// Which agent it is, and how it stands.
pub fn print_head(out: &mut Out, view: &AgentView) -> io::Result<()> {
    let agent = &view.agent;
    let (state, condition) = (state(view), view.condition.as_str());
    let condition = match state == condition {
        true => String::new(),
        false => format!(" ({condition})"),
    };
    writeln!(
        out,
        "{} {state}{condition}, attempt {} on task {}",
        paint(ACCENT, agent.id),
        agent.attempt,
        agent.task
    )
}

/// What is known of it, and its report.
pub fn print_fields(out: &mut Out, view: &AgentView, now: Timestamp) -> io::Result<()> {
    let agent = &view.agent;
    let idle = view.idle_seconds.map(|_| format!("{} ago", idle(view)));
    let text = |text: &str| Some(joined(text)).filter(|text| !text.is_empty());
    let place = agent
        .tree
        .as_ref()
        .zip(agent.branch.as_ref())
        .map(|(tree, branch)| format!("{tree} (branch {branch})"));
    let question = view.question.zip(view.question_text.as_ref());
    let used = Some(own(agent)).filter(|used| used.tokens() > 0);
    let usage = used.map(|used| match agent.spent_is_partial {
        true => format!("{} so far", in_words(&used)),
        false => in_words(&used),
    });
    for (name, value) in [
        ("active", idle),
        ("last action", text(&view.last_action)),
        ("last output", text(&view.last_output)),
        (
            "asks",
            question
                .map(|(id, words)| format!("{} (weald msg reply {id} \"…\")", indented(words, 15))),
        ),
        ("refused", refusals_told(&view.refused, view.refusals)),
        ("tree", place),
        ("name", Some(agent.session.to_string())),
        ("driver", text(&agent.driver)),
        ("process", view.pid.map(|pid| pid.to_string())),
        ("used", usage),
        (
            "told",
            (agent.told > 0).then(|| {
                format!(
                    "its owner was notified {} times that it is idle",
                    agent.told
                )
            }),
        ),
        (
            "started",
            Some(format!("{} ago", ago(agent.started_at, now))),
        ),
        (
            "ended",
            agent
                .end
                .as_ref()
                .map(|end| because(format!("{} ago", ago(end.at, now)), &indented(&end.why, 15))),
        ),
    ] {
        if let Some(value) = value {
            writeln!(out, "  {name:<12} {value}")?;
        }
    }
    let report = agent.report.as_ref().map(|report| &report.report);
    for words in report.into_iter().chain(&agent.stalled) {
        writeln!(out, "{}", clean(words.trim()))?;
    }
    Ok(())
}
