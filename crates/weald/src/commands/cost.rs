//! `weald cost`

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use weald_app::Failure;
use weald_app::operations::cost::{Cost as Row, CostBy, Costs, ShowCost};
use weald_core::cost::{money, short};
use weald_core::{SignedDuration, TimeZone, Timestamp};

use crate::context::Context;
use crate::ui::{ACCENT, DIM, Out, Table, paint};

/// Show the tokens and the money that agents used
///
/// Claude Code reports money, Codex only tokens; weald has no prices of its own. Usage is recorded hourly. Days
/// follow your time zone (UTC with --json). Interrupted agents are marked +; their totals are minimums.
#[derive(Args)]
pub struct Cost {
    /// What each row is about
    #[arg(long, value_name = "WHAT", default_value = "agent")]
    by: By,
    /// Count only usage since WHEN (7d, 12h, 2026-11-19)
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<Since>,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    Agent,
    Task,
    Day,
    Model,
}

#[derive(Clone, Copy)]
enum Since {
    Ago(SignedDuration),
    At(Timestamp),
}

fn since(text: &str) -> Result<Since, String> {
    if let Ok(date) = text.parse::<weald_core::Date>() {
        let at = date.to_zoned(TimeZone::system());
        return at
            .map(|at| Since::At(at.timestamp()))
            .map_err(|error| error.to_string());
    }
    let ago = weald_core::config::parse_duration(text);
    ago.map(Since::Ago).map_err(|_| {
        format!("`{text}` is neither a time such as 7d or 12h nor a date such as 2026-11-19")
    })
}

impl Cost {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let since = self.since.map(|since| match since {
            Since::At(at) => at,
            Since::Ago(ago) => context.now().checked_sub(ago).unwrap_or(Timestamp::MIN),
        });
        let answer = context.perform(ShowCost {
            by: match self.by {
                By::Agent => CostBy::Agent,
                By::Task => CostBy::Task,
                By::Day => CostBy::Day,
                By::Model => CostBy::Model,
            },
            since,
            local_days: !context.ui.is_json(),
        })?;
        context.ui.show(&answer, |out| print(out, &answer))
    }
}

fn print(out: &mut Out, costs: &Costs) -> io::Result<()> {
    if costs.costs.is_empty() {
        return writeln!(out, "no usage recorded yet");
    }
    let head = match costs.by {
        CostBy::Agent => "AGENT",
        CostBy::Task => "TASK",
        CostBy::Day => "DAY",
        CostBy::Model => "MODEL",
    };
    let mut table = Table::new(&[head, "IN", "OUT", "COST", ""]);
    let total = [&costs.total];
    let rows = costs
        .costs
        .iter()
        .chain(total.into_iter().filter(|_| costs.costs.len() > 1));
    for row in rows {
        let name = match (row.name.as_str(), costs.by) {
            ("", _) => "total".to_owned(),
            (name, CostBy::Task) => format!("#{name}"),
            (name, _) => name.to_owned(),
        };
        let plain = |text: String| (text, Default::default());
        let partial = if row.partial { "+" } else { "" };
        table.row(vec![
            (name, ACCENT),
            plain(short(row.usage.input_tokens)),
            plain(format!("{}{partial}", short(row.usage.output_tokens))),
            plain(cost(row)),
            (row.driver.clone().unwrap_or_default(), DIM),
        ]);
    }
    table.print(out)?;
    if costs.costs.iter().any(|row| row.partial) {
        writeln!(out, "{}", paint(DIM, "+ interrupted: at least this much"))?;
    }
    Ok(())
}

/// The money, and for how many tokens there is none.
fn cost(row: &Row) -> String {
    let without = row.tokens_without_cost;
    match row.usage.cost_usd {
        None => "not reported".to_owned(),
        Some(usd) if without == 0 => money(usd),
        Some(usd) => format!("{} ({} tokens unpriced)", money(usd), short(without)),
    }
}

#[cfg(test)]
mod tests {
    use weald_core::agent::Usage;

    use super::*;

    #[test]
    fn a12_tokens_without_a_price_are_named_as_such() {
        let row = |cost_usd, tokens_without_cost| Row {
            name: "a1".to_owned(),
            agents: Vec::new(),
            usage: Usage {
                cost_usd,
                ..Usage::default()
            },
            tokens_without_cost,
            partial: false,
            driver: None,
        };
        let told = cost(&row(Some(0.0001), 4));
        assert_eq!(told, "$0.0001 (4 tokens unpriced)");
        assert_eq!(cost(&row(Some(0.0001), 0)), "$0.0001");
        assert_eq!(cost(&row(None, 4)), "not reported");
    }
}
