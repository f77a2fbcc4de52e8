//! The board: adding tasks, changing what they say, and looking at them.

use serde::{Deserialize, Serialize};
use weald_core::agent::Usage;
use weald_core::id::TaskId;
use weald_core::meant::Word;
use weald_core::name::SessionName;
use weald_core::store::{TaskClass, TaskFilter, TaskOrder};
use weald_core::task::{Priority, Task};
use weald_core::task_rules::TaskEdit;

use super::{Broker, Inside, Operation, asked};
use crate::{Ask, Call, Engine, Failure, NewTask, StageView, TaskDetail};

entries!(
    AddTask,
    ListTasks,
    ReadyTasks,
    ShowTask,
    EditTask,
    ChangeDependencies
);

/// A task as it is now.
#[derive(Debug, Serialize)]
pub struct OneTask {
    /// As it is now.
    pub task: Task,
}

/// Several tasks, and how many there are without the limit.
#[derive(Debug, Serialize, Deserialize)]
pub struct Tasks {
    /// No more than were asked for.
    pub tasks: Vec<Task>,
    /// How many there are, also those over the limit.
    pub total: u64,
}

/// Puts a task on the board.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddTask {
    /// One line.
    pub subject: String,
    /// All that an agent has to know.
    pub description: String,
    /// How to see that it is done.
    pub acceptance: String,
    /// What has to be completed before.
    pub blocked_by: Vec<Word>,
    /// What is claimed first.
    pub priority: Priority,
    /// Its own id; without one it gets a number.
    pub id: Option<TaskId>,
    /// Words to find it by.
    pub labels: Vec<String>,
    /// The board or epic that it belongs to.
    pub plan: Option<String>,
    /// Where its worktree starts, and lands.
    pub base_branch: Option<String>,
    /// Whether a plan has to be approved before it is completed.
    pub needs_plan: bool,
}

impl Operation for AddTask {
    const NAME: &'static str = "task_add";
    type Output = OneTask;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<OneTask, Failure> {
        let ground = call.ground()?;
        let engine = &ground.engine;
        let actor = call.actor(engine)?;
        let new = NewTask {
            id: self.id,
            subject: self.subject,
            description: self.description,
            acceptance: self.acceptance,
            priority: self.priority,
            blocked_by: ground.tasks_to_come(call, &self.blocked_by)?,
            labels: self.labels,
            plan: self.plan,
            base_branch: self.base_branch,
            needs_plan: self.needs_plan,
        };
        let task = engine.add_task(actor.as_ref(), new)?;
        call.tell(engine);
        warn_of_missing(call, engine, &task)?;
        Ok(OneTask { task })
    }
}

/// Tasks in order of creation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListTasks {
    /// In any of these; see `TaskClass::named`.
    #[serde(default)]
    pub status: Vec<String>,
    /// Only those that this session has.
    #[serde(default)]
    pub owner: Option<SessionName>,
    /// Only those with this one.
    #[serde(default)]
    pub label: Option<String>,
    /// At most so many.
    #[serde(default)]
    pub limit: Option<u64>,
}

impl ListTasks {
    /// What `status` takes: the statuses, and words that people use for sets of them.
    pub const STATUSES: [&'static str; 10] = [
        "pending",
        "in_progress",
        "needs_merge",
        "blocked",
        "failed",
        "completed",
        "cancelled",
        "ready",
        "waiting",
        "done",
    ];

    /// As the store takes it.
    pub fn filter(&self) -> TaskFilter {
        let status = self.status.iter();
        TaskFilter {
            classes: status.flat_map(|word| TaskClass::named(word)).collect(),
            owner: self.owner.clone(),
            label: self.label.clone(),
            limit: self.limit,
            ..TaskFilter::default()
        }
    }
}

impl Operation for ListTasks {
    const NAME: &'static str = "task_list";
    const READS: bool = true;
    type Output = Tasks;

    fn validate(&self) -> Result<(), Failure> {
        let mut words = self.status.iter();
        if let Some(word) = words.find(|word| TaskClass::named(word).is_empty()) {
            return Err(Failure::no_word("status", word, &Self::STATUSES));
        }
        Ok(())
    }

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<Tasks, Failure> {
        let (tasks, total) = call.engine()?.tasks(&self.filter())?;
        Ok(Tasks { tasks, total })
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<Tasks> {
        Some(asked(broker, call, Ask::TaskList(self.clone())))
    }
}

/// Tasks that can be claimed now, most urgent first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadyTasks {
    /// At most so many.
    #[serde(default)]
    pub limit: Option<u64>,
}

impl ReadyTasks {
    /// As the store takes it.
    pub fn filter(&self) -> TaskFilter {
        TaskFilter {
            classes: vec![TaskClass::Ready],
            order: TaskOrder::Claim,
            limit: self.limit,
            ..TaskFilter::default()
        }
    }
}

impl Operation for ReadyTasks {
    const NAME: &'static str = "task_ready";
    const READS: bool = true;
    type Output = Tasks;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<Tasks, Failure> {
        let (tasks, total) = call.engine()?.tasks(&self.filter())?;
        if total > tasks.len() as u64 {
            call.note(&format!("{} of {total}; --limit shows more", tasks.len()));
        }
        Ok(Tasks { tasks, total })
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<Tasks> {
        Some(asked(broker, call, Ask::TaskReady(self.clone())))
    }
}

/// Everything about one task: the one given, or the one that the variables of a worker name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowTask {
    /// The caller's own unless given.
    #[serde(default)]
    pub id: Option<Word>,
}

/// One task in full.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShownTask {
    /// With what it waits for, and what waits for it.
    pub task: TaskDetail,
    /// The phases that it went through; none inside a sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageView>,
    /// What its agents used, if anything is known of it; not inside a sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Usage>,
}

impl Operation for ShowTask {
    const NAME: &'static str = "task_show";
    const READS: bool = true;
    type Output = ShownTask;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<ShownTask, Failure> {
        let ground = call.ground()?;
        let id = ground.own_or_task(call, self.id.as_ref())?;
        let engine = &ground.engine;
        Ok(ShownTask {
            task: engine.task(&id)?,
            stages: engine.stages(&id)?,
            used: Some(engine.used_on(&id)?).filter(|used| used.tokens() > 0),
        })
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<ShownTask> {
        let id = self.id.as_ref();
        let id = id.map(|word| word.anywhere(call.directory()));
        Some(asked(broker, call, Ask::TaskShow(Self { id })))
    }
}

/// Changes what a task says; what is not given stays.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditTask {
    /// The caller's own unless given.
    pub id: Option<Word>,
    /// One line.
    pub subject: Option<String>,
    /// All that an agent has to know.
    pub description: Option<String>,
    /// How to see that it is done.
    pub acceptance: Option<String>,
    /// What is claimed first.
    pub priority: Option<Priority>,
    /// Empty text removes it, as with the next.
    pub plan: Option<String>,
    /// Where its worktree starts, and lands.
    pub base_branch: Option<String>,
    /// In addition to those that it has.
    pub add_labels: Vec<String>,
    /// Labels to take off.
    pub remove_labels: Vec<String>,
    /// Whether a plan has to be approved before it is completed.
    pub needs_plan: Option<bool>,
}

impl Operation for EditTask {
    const NAME: &'static str = "task_edit";
    type Output = OneTask;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<OneTask, Failure> {
        let ground = call.ground()?;
        let id = ground.own_or_task(call, self.id.as_ref())?;
        let engine = &ground.engine;
        let actor = call.actor(engine)?;
        let edit = TaskEdit {
            subject: self.subject,
            description: self.description,
            acceptance: self.acceptance,
            priority: self.priority,
            plan: self.plan,
            base_branch: self.base_branch,
            add_labels: self.add_labels,
            remove_labels: self.remove_labels,
            needs_plan: self.needs_plan,
            ..TaskEdit::default()
        };
        let task = engine.edit_task(actor.as_ref(), &id, edit)?;
        call.tell(engine);
        Ok(OneTask { task })
    }
}

/// Changes what a task waits for; a circle is refused.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeDependencies {
    /// The caller's own unless given.
    pub id: Option<Word>,
    /// It waits for these, too.
    pub add: Vec<Word>,
    /// It no longer waits for these.
    pub remove: Vec<Word>,
}

impl Operation for ChangeDependencies {
    const NAME: &'static str = "task_dep";
    type Output = OneTask;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<OneTask, Failure> {
        let ground = call.ground()?;
        let id = ground.own_or_task(call, self.id.as_ref())?;
        let engine = &ground.engine;
        let actor = call.actor(engine)?;
        let add = ground.tasks_to_come(call, &self.add)?;
        let remove = ground.tasks_to_come(call, &self.remove)?;
        let task = engine.change_dependencies(actor.as_ref(), &id, &add, &remove)?;
        call.tell(engine);
        warn_of_missing(call, engine, &task)?;
        Ok(OneTask { task })
    }
}

/// Warns of dependencies that do not exist: a task may be added before what it waits for, or wait for ever.
fn warn_of_missing(call: &Call<'_>, engine: &Engine, task: &Task) -> Result<(), Failure> {
    if task.blocked_by.is_empty() {
        return Ok(());
    }
    let id = &task.id;
    for missing in engine.task(id)?.waiting_for.missing {
        call.warn(&format!(
            "task {id} depends on task {missing}, which does not exist (to drop it: weald task dep {id} --remove {missing})"
        ));
    }
    Ok(())
}
