//! `weald agent …`: see agents, and steer them.

mod diff;
mod list;
mod logs;
mod orders;
mod pulse;
mod show;
mod starts;
mod take;

use std::io::{self, Write};

use clap::{Args, Subcommand};
use weald_app::operations::Operation;
use weald_app::operations::agent_views::{ListAgents, OneAgent, ShowAgent};
use weald_app::operations::orders::FollowLog;
use weald_app::{AgentView, Failure};
use weald_core::agent::Agent as Record;

use super::attach;
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Out, Table, joined, paint};

/// List agents; start, watch and steer them in the background
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AgentArgs {
    #[command(subcommand)]
    command: Option<Agent>,
}

impl AgentArgs {
    /// Does what was asked; alone, it lists agents.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self.command {
            Some(command) => command.run(context),
            None => list::List::default().run(context),
        }
    }

    /// Whether it only reads, so that it also works in a copy and on a read-only file system.
    pub fn only_reads(&self) -> bool {
        match &self.command {
            None | Some(Agent::List(_)) => ListAgents::READS,
            Some(Agent::Logs(_)) => FollowLog::READS,
            Some(Agent::Show(_)) => ShowAgent::READS,
            Some(_) => false,
        }
    }
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Agent {
    Spawn(starts::Spawn),
    #[command(visible_alias = "ls")]
    List(list::List),
    Pulse(pulse::Pulse),
    Show(show::Show),
    Diff(diff::Diff),
    Logs(logs::Logs),
    Attach(attach::Attach),
    Take(take::Take),
    Steer(orders::Steer),
    Pause(orders::Pause),
    Resume(orders::Resume),
    Stop(orders::Stop),
    Restart(starts::Restart),
    Wait(orders::Wait),
}

impl Agent {
    fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Spawn(command) => command.run(context),
            Self::List(command) => command.run(context),
            Self::Pulse(command) => command.run(context),
            Self::Show(command) => command.run(context),
            Self::Diff(command) => command.run(context),
            Self::Logs(command) => command.run(context),
            Self::Attach(command) => command.run(context),
            Self::Take(command) => command.run(context),
            Self::Steer(command) => command.run(context),
            Self::Pause(command) => command.run(context),
            Self::Resume(command) => command.run(context),
            Self::Stop(command) => command.run(context),
            Self::Restart(command) => command.run(context),
            Self::Wait(command) => command.run(context),
        }
    }
}

#[derive(Args)]
struct Which {
    /// Agent ID or name, or its task, worktree, branch or path
    #[arg(value_name = "ID", add = completion::agents())]
    id: String,
}

/// One agent as it is now.
fn print_agent(context: &Context<'_>, answer: &OneAgent, told: &str) -> Result<u8, Failure> {
    let id = answer.view().agent.id;
    context
        .ui
        .show(answer, |out| writeln!(out, "{} {told}", paint(ACCENT, id)))
}

/// Agents in a table.
pub fn print_table(out: &mut Out, views: &[AgentView]) -> io::Result<()> {
    let with_names = views.iter().any(|view| own_name(&view.agent).is_some());
    let mut heads = vec!["AGENT", "NAME", "STATE", "IDLE", "TASK", "WORKTREE", "LAST"];
    heads.retain(|head| with_names || *head != "NAME");
    let mut table = Table::new(&heads);
    for view in views {
        let agent = &view.agent;
        let tree = agent.tree.as_ref().map(ToString::to_string);
        let mut row = vec![(agent.id.to_string(), ACCENT)];
        if with_names {
            row.push((own_name(agent).unwrap_or_default(), Default::default()));
        }
        row.extend([
            (state(view), Default::default()),
            (idle(view), Default::default()),
            (format!("#{}", agent.task), Default::default()),
            (tree.unwrap_or_default(), Default::default()),
            (joined(last(view)), DIM),
        ]);
        table.row(row);
    }
    table.print(out)
}

/// The name it works under, if that is not its id.
pub fn own_name(agent: &Record) -> Option<String> {
    let name = agent.session.to_string();
    Some(name).filter(|name| *name != agent.id.to_string())
}

/// How an agent stands, in one word or two.
pub fn state(view: &AgentView) -> String {
    match &view.agent.end {
        Some(end) => end.outcome.as_str().replace('_', " "),
        None => view.state.as_str().to_owned(),
    }
}

/// For how long it did nothing.
pub fn idle(view: &AgentView) -> String {
    match view.idle_seconds {
        None => "-".to_owned(),
        Some(seconds @ 0..60) => format!("{seconds}s"),
        Some(seconds @ 60..3_600) => format!("{}m", seconds / 60),
        Some(seconds) => format!("{}h", seconds / 3_600),
    }
}

/// The last thing that is known of it.
pub fn last(view: &AgentView) -> &str {
    match (&view.question_text, &view.agent.end) {
        (Some(question), _) => question,
        (None, Some(end)) if !end.why.is_empty() => &end.why,
        _ if !view.last_action.is_empty() => &view.last_action,
        _ => &view.last_output,
    }
}
