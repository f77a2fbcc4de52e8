//! The board: adding tasks, changing what they say, and looking at them.

use std::io::{self, Write};

use clap::Args;
use clap::builder::PossibleValuesParser;
use weald_app::operations::tasks::{
    AddTask, ChangeDependencies, EditTask, ListTasks, ReadyTasks, ShowTask, Tasks,
};
use weald_app::{Failure, StageView, TaskDetail, stages_in_words};
use weald_core::Timestamp;
use weald_core::cost::in_words;
use weald_core::id::TaskId;
use weald_core::meant::Word;
use weald_core::name::SessionName;
use weald_core::needs::TO_DECIDE;
use weald_core::task::{Priority, Task as Record};

use super::{print_line, print_task};
use crate::cli::SessionArg;
use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Out, Table, ago, clean, left, paint, status_style};

/// Add a task
#[derive(Args)]
pub struct Add {
    /// Subject of the task, in one line
    subject: String,
    /// Longer description
    #[arg(long, short, value_name = "TEXT", default_value = "")]
    description: String,
    /// Conditions for completion
    #[arg(long, value_name = "TEXT", default_value = "")]
    acceptance: String,
    /// Task that must finish first (may be repeated)
    #[arg(long, value_name = "ID", value_delimiter = ',', add = completion::tasks())]
    after: Vec<Word>,
    /// Priority from P0 (highest) to P3 (lowest)
    #[arg(long, short, value_name = "P0..P3", default_value = "P2")]
    priority: Priority,
    /// Your own ID, for example gh-12
    #[arg(long, value_name = "ID")]
    id: Option<TaskId>,
    /// Label to filter by (may be repeated)
    #[arg(long, value_name = "WORD")]
    label: Vec<String>,
    /// Board or epic it belongs to
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// Branch to start from and land on
    #[arg(long, value_name = "BRANCH")]
    base_branch: Option<String>,
    /// Refuse completion until a plan is approved
    #[arg(long)]
    needs_plan: bool,
    #[command(flatten)]
    session: SessionArg,
}

impl Add {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let caller = self.session.caller();
        let request = AddTask {
            subject: self.subject,
            description: self.description,
            acceptance: self.acceptance,
            blocked_by: self.after,
            priority: self.priority,
            id: self.id,
            labels: self.label,
            plan: self.plan,
            base_branch: self.base_branch,
            needs_plan: self.needs_plan,
        };
        print_task(context, &context.perform_as(&caller, request)?)
    }
}

/// List tasks
///
/// Lists them in order of creation.
#[derive(Args, Default)]
pub struct List {
    /// Only tasks with this status (may be repeated)
    ///
    /// `blocked` includes tasks that wait for other tasks.
    #[arg(long, short, value_name = "STATUS", value_delimiter = ',', value_parser = PossibleValuesParser::new(ListTasks::STATUSES))]
    status: Vec<String>,
    /// Only tasks of this session
    #[arg(long, value_name = "NAME", add = completion::sessions())]
    owner: Option<SessionName>,
    /// Only tasks with this label
    #[arg(long, value_name = "WORD")]
    label: Option<String>,
    /// Maximum number of tasks
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

impl List {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(ListTasks {
            status: self.status,
            owner: self.owner,
            label: self.label,
            limit: self.limit,
        })?;
        print_tasks(context, &answer, "no tasks")
    }
}

/// List tasks that can be claimed now, most urgent first
#[derive(Args)]
pub struct Ready {
    /// Maximum number of tasks
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: u64,
}

impl Ready {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let limit = Some(self.limit);
        let answer = context.perform(ReadyTasks { limit })?;
        print_tasks(context, &answer, "nothing is ready")
    }
}

/// Show a task
#[derive(Args)]
pub struct Show {
    /// Task ID, worktree, agent or branch (default: $WEALD_TASK)
    #[arg(value_name = "ID", add = completion::all_tasks())]
    id: Option<Word>,
}

impl Show {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(ShowTask { id: self.id })?;
        let now = context.now();
        context.ui.show(&answer, |out| {
            print_detail(out, &answer.task, &answer.stages, now)?;
            match &answer.used {
                Some(used) => writeln!(out, "  {} {}", paint(DIM, "used       "), in_words(used)),
                None => Ok(()),
            }
        })
    }
}

/// Edit a task
#[derive(Args)]
pub struct Edit {
    /// Task ID, or its worktree, agent, branch or path
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Word,
    #[command(flatten)]
    texts: Texts,
    #[command(flatten)]
    session: SessionArg,
}

#[derive(Args)]
#[group(required = true, multiple = true)]
struct Texts {
    /// New subject
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,
    /// New description
    #[arg(long, short, value_name = "TEXT")]
    description: Option<String>,
    /// New acceptance notes
    #[arg(long, value_name = "TEXT")]
    acceptance: Option<String>,
    /// New priority
    #[arg(long, short, value_name = "P0..P3")]
    priority: Option<Priority>,
    /// New board or epic; empty removes it
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// New branch to start from and land on; empty removes it
    #[arg(long, value_name = "BRANCH")]
    base_branch: Option<String>,
    /// Add a label (may be repeated)
    #[arg(long, value_name = "WORD")]
    label: Vec<String>,
    /// Remove a label (may be repeated)
    #[arg(long, value_name = "WORD")]
    unlabel: Vec<String>,
    /// Whether completion needs an approved plan
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    needs_plan: Option<bool>,
}

impl Edit {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let caller = self.session.caller();
        let texts = self.texts;
        let request = EditTask {
            id: Some(self.id),
            subject: texts.subject,
            description: texts.description,
            acceptance: texts.acceptance,
            priority: texts.priority,
            plan: texts.plan,
            base_branch: texts.base_branch,
            add_labels: texts.label,
            remove_labels: texts.unlabel,
            needs_plan: texts.needs_plan,
        };
        print_task(context, &context.perform_as(&caller, request)?)
    }
}

/// Change the dependencies of a task
#[derive(Args)]
pub struct Dep {
    /// Task ID, or its worktree, agent, branch or path
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Word,
    #[command(flatten)]
    dependencies: Dependencies,
    #[command(flatten)]
    session: SessionArg,
}

#[derive(Args)]
#[group(required = true, multiple = true)]
struct Dependencies {
    /// Add a dependency on this task (may be repeated)
    #[arg(long, value_name = "ID", value_delimiter = ',', add = completion::tasks())]
    add: Vec<Word>,
    /// Remove the dependency on this task (may be repeated)
    #[arg(long, value_name = "ID", value_delimiter = ',', add = completion::tasks())]
    remove: Vec<Word>,
}

impl Dep {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let caller = self.session.caller();
        let request = ChangeDependencies {
            id: Some(self.id),
            add: self.dependencies.add,
            remove: self.dependencies.remove,
        };
        print_task(context, &context.perform_as(&caller, request)?)
    }
}

/// Tasks as a table, or what to say of none.
fn print_tasks(context: &Context<'_>, answer: &Tasks, none: &str) -> Result<u8, Failure> {
    context
        .ui
        .show(answer, |out| match answer.tasks.is_empty() {
            true => writeln!(out, "{none}"),
            false => print_table(out, &answer.tasks),
        })
}

fn print_table(out: &mut Out, tasks: &[Record]) -> io::Result<()> {
    let mut table = Table::new(&[
        "ID", "STATUS", "PRI", "OWNER", "AFTER", "WORKTREE", "SUBJECT",
    ]);
    for task in tasks {
        let owner = task
            .owner
            .as_ref()
            .map_or_else(String::new, ToString::to_string);
        let after = task
            .blocked_by
            .iter()
            .map(TaskId::to_string)
            .collect::<Vec<_>>()
            .join(",");
        let tree = task
            .worktree
            .as_ref()
            .map_or_else(String::new, ToString::to_string);
        table.row(vec![
            (task.id.to_string(), ACCENT),
            (task.status.to_string(), status_style(task.status)),
            (task.priority.to_string(), Default::default()),
            (owner, Default::default()),
            (after, Default::default()),
            (tree, Default::default()),
            (task.subject.clone(), Default::default()),
        ]);
    }
    table.print(out)
}

/// One task, for people.
pub fn print_detail(
    out: &mut Out,
    detail: &TaskDetail,
    stages: &[StageView],
    now: Timestamp,
) -> io::Result<()> {
    let task = &detail.task;
    print_line(out, task)?;
    let mut line = |name: &str, value: String| match value.is_empty() {
        true => Ok(()),
        false => writeln!(
            out,
            "  {} {}",
            paint(DIM, format!("{name:<11}")),
            clean(&value)
        ),
    };
    let ids = |ids: &[TaskId]| {
        ids.iter()
            .map(TaskId::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let owner = match (&task.owner, &task.lease) {
        (Some(owner), Some(lease)) => {
            format!(
                "{owner} (token {}, {})",
                lease.token,
                left(lease.expires_at, now)
            )
        }
        (Some(owner), None) => owner.to_string(),
        (None, _) => String::new(),
    };
    let waiting = match detail.waiting_for.is_empty() {
        true => String::new(),
        false => detail.waiting_for.to_string(),
    };
    line("owner", owner)?;
    line("parked", text(&task.parked))?;
    line("continue", continued(task))?;
    line("waits for", waiting)?;
    line("after", ids(&task.blocked_by))?;
    line("blocks", ids(&detail.blocks))?;
    line("labels", task.labels.join(", "))?;
    line("plan", text(&task.plan))?;
    line(
        "worktree",
        task.worktree
            .as_ref()
            .map_or_else(String::new, ToString::to_string),
    )?;
    line("phases", stages_in_words(stages))?;
    line("acceptance", task.acceptance.clone())?;
    line("report", text(&task.report))?;
    line("created", format!("{} ago", ago(task.created_at, now)))?;
    line("updated", format!("{} ago", ago(task.updated_at, now)))?;
    match task.description.is_empty() {
        true => Ok(()),
        false => writeln!(out, "\n{}", clean(&task.description)),
    }
}

/// The command that continues a parked task. A race says itself what to pick.
fn continued(task: &Record) -> String {
    match (task.parked.as_deref(), &task.worktree) {
        (Some(TO_DECIDE), Some(tree)) => format!("weald land {tree}"),
        (Some(parked), _) if !parked.contains("; see it and pick: ") => {
            format!("weald resume {}", task.id)
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a7_a_parked_task_shows_the_command_that_continues_it() {
        let shown = |parked: Option<&str>| {
            let worktree = Some("fix".parse().unwrap());
            let parked = parked.map(str::to_owned);
            let now = Timestamp::UNIX_EPOCH;
            continued(&Record {
                parked,
                worktree,
                ..Record::new(TaskId::Number(3), "x", now)
            })
        };
        assert_eq!(shown(None), "");
        assert_eq!(shown(Some("its tests failed")), "weald resume 3");
        assert_eq!(shown(Some(TO_DECIDE)), "weald land fix");
        assert_eq!(shown(Some("two; see it and pick: weald race 3")), "");
    }
}
