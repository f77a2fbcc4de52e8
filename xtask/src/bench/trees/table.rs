//! The table: one row an operation, what each rival took, and whether the goal is met.

use std::fmt;
use std::io;

use crate::bench::say;

/// What a row counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Ms,
    Mb,
    /// Microseconds that each tree more adds.
    MicrosATree,
}

/// What a row is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// So many times faster than git.
    Faster(f64),
    /// At most this, in the row's unit.
    AtMost(f64),
    /// At most this share of git's.
    Share(f64),
}

impl Goal {
    /// Whether it is met; a goal against git that was not measured is not judged.
    fn met(self, ours: f64, git: Option<f64>) -> Option<bool> {
        match self {
            Goal::Faster(times) => git.map(|git| git / ours >= times),
            Goal::AtMost(limit) => Some(ours <= limit),
            Goal::Share(share) => git.map(|git| ours <= git * share),
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::Faster(times) => write!(out, "≥ {times}x"),
            Goal::AtMost(limit) => write!(out, "≤ {limit:.0}"),
            Goal::Share(share) if *share == 1.0 => out.write_str("≤ git"),
            Goal::Share(share) => write!(out, "≤ {:.0} %", share * 100.0),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Row {
    pub operation: String,
    pub unit: Unit,
    pub git: Option<f64>,
    pub peer: Option<f64>,
    /// weald, or why there is no figure.
    pub ours: Result<f64, String>,
    /// What it should reach.
    pub goals: Vec<Goal>,
}

impl Row {
    /// A row that only weald has a figure for, in milliseconds.
    pub fn new(operation: impl Into<String>, ours: Result<f64, String>) -> Self {
        Self {
            operation: operation.into(),
            unit: Unit::Ms,
            git: None,
            peer: None,
            ours,
            goals: Vec::new(),
        }
    }

    /// The row with git's figure.
    pub fn git(mut self, git: impl Into<Option<f64>>) -> Self {
        self.git = git.into();
        self
    }

    /// The row with worktrunk's figure.
    pub fn peer(mut self, peer: Option<f64>) -> Self {
        self.peer = peer;
        self
    }

    /// The row in another unit.
    pub fn in_unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// The row with what it should reach.
    pub fn goals(mut self, goals: &[Goal]) -> Self {
        self.goals = goals.to_vec();
        self
    }

    /// `yes` when every goal is met, `NO` when one is not, else nothing.
    fn verdict(&self) -> &'static str {
        let Ok(ours) = self.ours else {
            return "";
        };
        let met = self.goals.iter().map(|goal| goal.met(ours, self.git));
        let met: Vec<bool> = met.flatten().collect();
        match (met.is_empty(), met.iter().all(|met| *met)) {
            (true, _) => "",
            (false, true) => "yes",
            (false, false) => "NO",
        }
    }

    fn cells(&self) -> [String; 7] {
        let figure = |value: f64| match self.unit {
            Unit::Ms if value < 100.0 => format!("{value:.1} ms"),
            Unit::Ms => format!("{value:.0} ms"),
            Unit::Mb => format!("{value:.1} MB"),
            Unit::MicrosATree => format!("{value:.1} µs"),
        };
        let or_nothing = |value: Option<f64>| value.map(figure).unwrap_or_default();
        let ratio = match (self.git, &self.ours, self.unit) {
            (Some(git), Ok(ours), Unit::Ms) => format!("{:.1}x", git / ours),
            (Some(git), Ok(ours), Unit::Mb) => format!("{:.0} %", ours / git * 100.0),
            _ => String::new(),
        };
        let goals: Vec<String> = self.goals.iter().map(Goal::to_string).collect();
        [
            self.operation.clone(),
            or_nothing(self.git),
            or_nothing(self.peer),
            self.ours.as_ref().copied().map(figure).unwrap_or_default(),
            ratio,
            goals.join(", "),
            self.verdict().to_owned(),
        ]
    }
}

/// Prints rows as they come and counts those that miss.
#[derive(Default)]
pub struct Table {
    only: Option<String>,
    rows: usize,
    missed: usize,
    failed: usize,
}

impl Table {
    /// A table; with `only`, of rows whose operation contains it.
    pub fn new(only: Option<String>) -> Self {
        Self {
            only,
            ..Self::default()
        }
    }

    /// True when one of these operations is wanted.
    pub fn wants(&self, operations: &[&str]) -> bool {
        let Some(only) = &self.only else {
            return true;
        };
        operations.iter().any(|known| known.contains(only.as_str()))
    }

    pub fn add(&mut self, row: &Row) {
        if !self.wants(&[&row.operation]) {
            return;
        }
        if self.rows == 0 {
            let head = ["", "git", "worktrunk", "weald", "ratio", "goal", "met"];
            print(&head.map(str::to_owned));
        }
        self.rows += 1;
        self.missed += usize::from(row.verdict() == "NO");
        print(&row.cells());
        if let Err(reason) = &row.ours {
            self.failed += 1;
            say(&format!("    not measured: {reason}"));
        }
    }

    /// Says why a stage stopped; the others go on.
    pub fn stage(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.failed += 1;
            say(&format!("error: {error}"));
        }
    }

    /// The last line. An error when something that should be there could not be measured.
    pub fn close(&self) -> io::Result<()> {
        say(&format!(
            "{} rows, {} miss their goal",
            self.rows, self.missed
        ));
        match self.failed {
            0 => Ok(()),
            failed => Err(io::Error::other(format!("{failed} could not be measured"))),
        }
    }
}

fn print(cells: &[String; 7]) {
    let [operation, git, peer, ours, ratio, goal, met] = cells;
    let line = format!("{operation:<48} {git:>9} {peer:>9} {ours:>9} {ratio:>8}  {goal:<15} {met}");
    say(line.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_judged_by_what_it_is_held_against() {
        for (goal, ours, git, met) in [
            (Goal::Faster(4.0), 10.0, Some(40.0), Some(true)),
            (Goal::Faster(4.0), 10.0, Some(39.0), Some(false)),
            (Goal::Faster(4.0), 10.0, None, None),
            (Goal::AtMost(15.0), 15.0, None, Some(true)),
            (Goal::AtMost(15.0), 15.1, Some(900.0), Some(false)),
            (Goal::Share(0.2), 20.0, Some(100.0), Some(true)),
            (Goal::Share(0.2), 20.1, Some(100.0), Some(false)),
            (Goal::Share(1.0), 1.0, None, None),
        ] {
            assert_eq!(goal.met(ours, git), met, "{goal} {ours} {git:?}");
        }
    }

    #[test]
    fn a_row_meets_all_of_its_goals_or_none_counts() {
        let goals = [Goal::AtMost(15.0), Goal::Faster(50.0)];
        let row = |ours, git| Row::new("x", ours).git(git).goals(&goals).verdict();
        assert_eq!(row(Ok(10.0), 500.0), "yes");
        assert_eq!(row(Ok(10.0), 400.0), "NO");
        assert_eq!(row(Ok(16.0), 5_000.0), "NO");
        assert_eq!(row(Err("no pool".to_owned()), 500.0), "");
        assert_eq!(Row::new("x", Ok(1.0)).verdict(), "");
    }

    #[test]
    fn only_the_wanted_rows_are_measured() {
        let table = Table::new(Some("remove".to_owned()));
        assert!(table.wants(&["create, 1k", "remove, 10k"]));
        assert!(!table.wants(&["create, 1k"]));
        assert!(Table::new(None).wants(&["create, 1k"]));
    }
}
