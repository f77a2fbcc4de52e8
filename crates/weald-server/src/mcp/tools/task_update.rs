//! `task_update`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::Report;
use weald_app::operations::claims::{Move, MoveTask};
use weald_app::operations::tasks::{ChangeDependencies, EditTask, ShowTask};
use weald_core::meant::Word;
use weald_core::name::SessionName;

use super::{Audience, Call, Effect, Fault, JsonObject, TaskRef, Tool, answers, parsed, words};

pub struct TaskUpdate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Which task; your own unless given.
    task_id: Option<TaskRef>,
    /// New subject.
    subject: Option<String>,
    /// New description.
    description: Option<String>,
    /// New acceptance notes.
    acceptance: Option<String>,
    /// New priority, P0 to P3.
    priority: Option<String>,
    /// What it belongs to: a board, an epic. The empty text takes it away.
    plan: Option<String>,
    /// Labels to add.
    #[serde(default)]
    add_labels: Vec<String>,
    /// Labels to take away.
    #[serde(default)]
    remove_labels: Vec<String>,
    /// Tasks that it has to wait for, too.
    #[serde(default)]
    add_blocked_by: Vec<TaskRef>,
    /// Tasks that it need not wait for any more.
    #[serde(default)]
    remove_blocked_by: Vec<TaskRef>,
    /// Where it should stand: pending (given back, or opened again), in_progress (started, without a claim), completed, failed
    /// or cancelled.
    status: Option<Status>,
    /// Who works on it from now on, without a claim; starts it.
    owner: Option<String>,
    /// What to do with it: start (without a claim), release (give it back), renew (hold it for longer), fail (give up),
    /// cancel (not wanted) or reopen.
    action: Option<Action>,
    /// Why, for fail and cancel.
    reason: Option<String>,
    /// The token of the claim, if your session is not the one that claimed it.
    token: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
    Failed,
    #[serde(alias = "deleted")]
    Cancelled,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Start,
    Release,
    Renew,
    #[serde(skip)]
    Complete,
    Fail,
    Cancel,
    Reopen,
}

impl Tool for TaskUpdate {
    const NAME: &'static str = "task_update";
    const TITLE: &'static str = "Change a task";
    const DESCRIPTION: &'static str = "Changes a task's text, labels or dependencies, or moves it with status and owner, or with action. release and fail are for the task that you claimed. To finish it call land with a report, or task_complete if there is nothing to land.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Confined;
    type Input = Input;
    type Output = answers::OneTask;

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let (id, caller) = call.held(input.task_id.clone(), input.token).await?;
        // What makes no sense is refused before anything is changed.
        let actions = input.actions(&id, call).await?;
        let (edit, dependencies) = (input.edit(&id)?, input.dependencies(&id)?);
        let owner = input.owner.as_deref();
        let owner = owner.map(|name| parsed("owner", name)).transpose()?;
        let mut answer = None;
        if let Some(edit) = edit {
            answer = Some(call.perform(edit).await?);
        }
        if let Some(dependencies) = dependencies {
            answer = Some(call.perform(dependencies).await?);
        }
        for action in actions {
            let to = action.to(owner.clone(), input.reason.clone());
            let id = id.clone();
            answer = Some(call.perform_as(caller.clone(), MoveTask { id, to }).await?);
        }
        if answer.is_none() && (input.status.is_some() || input.owner.is_some()) {
            // It stands there already.
            answer = Some(call.perform(ShowTask { id }).await?);
        }
        answer.ok_or_else(|| {
            Fault::new("bad_arguments", 2, "there is nothing to change")
                .hint("give a field to change, a status, or an action")
        })
    }
}

impl Input {
    /// The steps that are asked for, by name or by where the task should stand.
    async fn actions(&self, id: &Option<Word>, call: &Call<'_>) -> Result<Vec<Action>, Fault> {
        use Status::{Completed, InProgress};
        let refused = |why: &str, hint: &str| Err(Fault::new("bad_arguments", 2, why).hint(hint));
        let status = match (self.action, self.status, &self.owner) {
            (Some(_), Some(_), _) => {
                return refused("action and status both move the task", "give one of them");
            }
            (None, Some(status), Some(_)) if ![InProgress, Completed].contains(&status) => {
                let hint = "give owner with status in_progress or completed";
                return refused("a task with that status has no owner", hint);
            }
            (Some(action), None, _) => return Ok(vec![action]),
            (None, Some(status), _) => status,
            (None, None, Some(_)) => InProgress,
            (None, None, None) => return Ok(Vec::new()),
        };
        let shown = call.perform(ShowTask { id: id.clone() }).await?;
        let now = &shown["task"];
        let is_owned = self.owner.is_none() || now["owner"].as_str() == self.owner.as_deref();
        Ok(steps(
            now["status"].as_str().unwrap_or_default(),
            status,
            is_owned,
        ))
    }

    fn edit(&self, id: &Option<Word>) -> Result<Option<EditTask>, Fault> {
        let texts = [
            &self.subject,
            &self.description,
            &self.acceptance,
            &self.priority,
            &self.plan,
        ];
        let is_some = texts.iter().any(|text| text.is_some())
            || !(self.add_labels.is_empty() && self.remove_labels.is_empty());
        let priority = self.priority.as_deref();
        let priority = priority.map(|word| parsed("priority", word)).transpose()?;
        Ok(is_some.then(|| EditTask {
            id: id.clone(),
            subject: self.subject.clone(),
            description: self.description.clone(),
            acceptance: self.acceptance.clone(),
            priority,
            plan: self.plan.clone(),
            base_branch: None,
            add_labels: self.add_labels.clone(),
            remove_labels: self.remove_labels.clone(),
            needs_plan: None,
        }))
    }

    fn dependencies(&self, id: &Option<Word>) -> Result<Option<ChangeDependencies>, Fault> {
        let request = ChangeDependencies {
            id: id.clone(),
            add: words(&self.add_blocked_by)?,
            remove: words(&self.remove_blocked_by)?,
        };
        let is_some = !(request.add.is_empty() && request.remove.is_empty());
        Ok(Some(request).filter(|_| is_some))
    }
}

/// How a task comes from where it stands to where it should.
fn steps(now: &str, wanted: Status, is_owned: bool) -> Vec<Action> {
    match (wanted, now) {
        (Status::Pending, "pending") => Vec::new(),
        (Status::Pending, "in_progress") => vec![Action::Release],
        (Status::Pending, _) => vec![Action::Reopen],
        (Status::InProgress, "in_progress") if is_owned => Vec::new(),
        (Status::InProgress, _) => vec![Action::Start],
        (Status::Completed, "completed") => Vec::new(),
        (Status::Completed, "pending") => vec![Action::Start, Action::Complete],
        (Status::Completed, "in_progress") if !is_owned => vec![Action::Start, Action::Complete],
        (Status::Completed, _) => vec![Action::Complete],
        (Status::Failed, "failed") => Vec::new(),
        (Status::Failed, _) => vec![Action::Fail],
        (Status::Cancelled, "cancelled") => Vec::new(),
        (Status::Cancelled, _) => vec![Action::Cancel],
    }
}

impl Action {
    fn to(self, owner: Option<SessionName>, reason: Option<String>) -> Move {
        let report = Report {
            text: reason.clone(),
            ..Report::default()
        };
        match self {
            Self::Start => Move::Start { owner },
            Self::Complete => Move::Complete { report },
            Self::Release => Move::Release,
            Self::Renew => Move::Renew { ttl: None },
            Self::Fail => Move::Fail { report },
            Self::Cancel => Move::Cancel { reason },
            Self::Reopen => Move::Reopen,
        }
    }
}
