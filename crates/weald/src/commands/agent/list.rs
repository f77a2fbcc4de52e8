//! `weald agent list`

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use weald_app::operations::agent_views::ListAgents;
use weald_app::{AgentSort, Failure};
use weald_core::agent_view::Alert;
use weald_core::id::Seq;

use super::print_table;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, HEADING, Out, joined, paint};

/// List agents and show which ones need attention
///
/// With --since, lists only agents that changed after that event. Pass the answer's `seq` to the next call.
#[derive(Args)]
pub struct List {
    /// Include agents that have ended
    #[arg(long)]
    all: bool,
    /// Only agents in these states (comma-separated)
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',', value_parser = ListAgents::STATES)]
    states: Vec<String>,
    /// Sort order
    #[arg(long, value_name = "ORDER", default_value = "id")]
    sort: Sort,
    /// Maximum number of agents; 0 for all
    #[arg(long, value_name = "N", default_value_t = ListAgents::LIMIT)]
    limit: usize,
    /// Number of agents to skip
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,
    /// Only agents that changed after this event
    #[arg(long, value_name = "SEQ")]
    since: Option<Seq>,
}

impl Default for List {
    fn default() -> Self {
        Self {
            all: false,
            states: Vec::new(),
            sort: Sort::Id,
            limit: ListAgents::LIMIT,
            offset: 0,
            since: None,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Sort {
    Id,
    State,
    Idle,
    Task,
}

impl List {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let list = context.perform(ListAgents {
            all: self.all,
            states: self.states,
            sort: match self.sort {
                Sort::Id => AgentSort::Id,
                Sort::State => AgentSort::State,
                Sort::Idle => AgentSort::Idle,
                Sort::Task => AgentSort::Task,
            },
            limit: self.limit,
            offset: self.offset,
            since: self.since,
        })?;
        context.ui.show(&list, |out| {
            match list.agents.is_empty() {
                true => writeln!(out, "No agents running. Start one: weald agent spawn TASK")?,
                false => print_table(out, &list.agents)?,
            }
            let shown = self.offset + list.agents.len();
            if shown < list.total {
                let more = format!("and {} more: --offset {shown}", list.total - shown);
                writeln!(out, "{}", paint(DIM, more))?;
            }
            print_alerts(out, &list.alerts)
        })
    }
}

fn print_alerts(out: &mut Out, alerts: &[Alert]) -> io::Result<()> {
    if alerts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", paint(HEADING, "needs attention"))?;
    for alert in alerts {
        let text = joined(&alert.text);
        writeln!(out, "  {} {text}", paint(ACCENT, alert.agent))?;
        writeln!(out, "    {}", alert.command)?;
    }
    Ok(())
}
