//! Does what a run asks and is allowed to ask, with the authority of its session alone.
//!
//! The answers are the objects that commands print outside.

mod cost;
mod taking;

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use weald_app::operations::looking::DiffTree;
use weald_app::{
    Ask, Authority, DiffStyle, Engine, Failure, InboxQuery, LandWish, Landings, Mandate,
    MessageError, NotAllowed, Report, Trees, exit,
};
use weald_core::SignedDuration;
use weald_core::agent::FinalReport;
use weald_core::cloud_event::CloudEvent;
use weald_core::event::Event;
use weald_core::id::{MessageId, TaskId};
use weald_core::meant::{Unclear, Wanted, Word};
use weald_core::name::{SessionName, TreeName};
use weald_core::store::{EventFilter, TaskFilter};

pub(super) use cost::Cost;

use super::authority::permits;
use super::limits;
use super::protocol::{Reply, Request};

/// The most tasks that one answer lists.
const TASKS: u64 = 500;
/// The most messages that one answer lists.
const MESSAGES: u64 = 50;
/// The most that is taken out at once, in bytes of text.
const TAKEN: usize = 512 << 10;

/// Lands the run's own worktree as an agent's session does; the worktree stays.
pub trait Lander: Sync {
    fn land(&self, authority: &Authority, wish: &LandWish) -> Result<Reply, Failure>;
}

/// Where a run's requests are dealt with.
pub struct Desk<'a> {
    engine: &'a Engine,
    trees: &'a Trees<'a>,
    source: String,
    authority: Authority,
    lander: &'a dyn Lander,
    /// One look into the tree at a time.
    looking: Mutex<()>,
    landing: Mutex<()>,
}

impl<'a> Desk<'a> {
    /// A desk for a run that speaks for `authority`; `source` is the repository as events name it.
    pub fn new(
        engine: &'a Engine,
        trees: &'a Trees<'a>,
        source: String,
        authority: Authority,
        lander: &'a dyn Lander,
    ) -> Self {
        Self {
            engine,
            trees,
            source,
            authority,
            lander,
            looking: Mutex::new(()),
            landing: Mutex::new(()),
        }
    }

    /// Answers a request, whatever becomes of it.
    pub fn answer(&self, request: Request) -> Reply {
        let answered = match permits(&self.authority, &request) {
            Ok(()) => self.perform(request.ask),
            Err(refusal) => Err(refusal.into()),
        };
        answered.unwrap_or_else(|failure| Reply::fault(&failure.into()))
    }

    fn perform(&self, ask: Ask) -> Result<Reply, Failure> {
        match ask {
            Ask::Overview {} => self.overview(),
            Ask::TaskList(list) => self.tasks(list.filter()),
            Ask::TaskReady(ready) => self.tasks(ready.filter()),
            Ask::TaskShow(show) => {
                let id = match &show.id {
                    None => self.own_task()?,
                    Some(word) => self.task_meant(word)?,
                };
                Ok(Reply::new().with("task", &self.engine.task(&id)?))
            }
            Ask::TaskClaim { .. } => self.own_claim(),
            Ask::TaskRenew { .. } => self.renew(),
            Ask::TaskDone { report, .. } => self.finish(true, report),
            Ask::TaskFail { report, .. } => self.finish(false, report),
            // Messages go out in the own name, and come from the own inbox.
            Ask::MsgSend(message) => {
                let task = message.task.as_ref();
                let task = task.map(|word| self.task_meant(word)).transpose()?;
                let sent = message.send(self.engine, self.own_session()?.clone(), task)?;
                let mut reply = Reply::of(&sent);
                reply.notes = sent.notices;
                Ok(reply)
            }
            Ask::MsgReply(reply) => {
                let replied = reply.reply(self.engine, self.own_session()?.clone())?;
                Ok(Reply::of(&replied))
            }
            Ask::MsgAnswer { id } => self.answer_to(id),
            Ask::MsgInbox {
                consume,
                all,
                limit,
            } => self.inbox(consume, all, limit),
            Ask::SessionList(list) => Ok(Reply::of(&list.list(self.engine)?)),
            Ask::SessionNote(note) => self.note(note.text),
            Ask::Events(list) => {
                let task = list.task.as_ref();
                let task = task.map(|word| self.task_meant(word)).transpose()?;
                let tree = list.tree.as_ref();
                let tree = tree.map(|word| self.tree_meant(word)).transpose()?;
                self.events(list.filter(task, tree))
            }
            ask => self.perform_on_tree(ask),
        }
    }

    /// What is about the own tree: it was compared before, so its own name is used.
    fn perform_on_tree(&self, ask: Ask) -> Result<Reply, Failure> {
        let name = Some(self.authority.tree.as_str());
        if let Ask::Land(wish) = &ask {
            return self.land(wish);
        }
        let turn = self.looking.lock();
        let reply = match ask {
            Ask::Path { check, .. } => {
                let check = check.unwrap_or_default();
                let path = self.trees.scoped(name, Path::new(&check))?;
                let text = path.display().to_string();
                Reply::new().with("path", text.strip_suffix('/').unwrap_or(&text))
            }
            Ask::Beside { path } => Reply::new().with(
                "trees",
                &Landings::new(self.trees).also_changed(name, Path::new(&path))?,
            ),
            Ask::Diff(wanted) => self.diff(&wanted)?,
            Ask::Sync(wanted) => self.sync(&wanted)?,
            Ask::SnapshotCreate(wanted) => {
                Reply::new().with("snapshot", &self.snapshot(wanted.if_changed)?)
            }
            Ask::SnapshotList(_) => Reply::new().with("snapshots", &self.trees.snapshots(name)?),
            _ => Reply::new().with("tree", &self.trees.look(name)?),
        };
        drop(turn);
        Ok(reply)
    }

    fn overview(&self) -> Result<Reply, Failure> {
        let own = &self.authority;
        let unread = match &own.session {
            Some(session) => self.engine.inbox(session, InboxQuery::default())?.len(),
            None => 0,
        };
        let mut reply = Reply::new()
            .with("session", &own.session)
            .with("tree", &own.tree)
            .with("unread", &unread)
            .with(
                "lands",
                &matches!(own.mandate, Mandate::Land | Mandate::Wish),
            )
            .with("mcp_aliases", self.trees.config.mcp_aliases.as_str());
        if let Some(agent) = own.agent {
            reply = reply.with("lead", &self.engine.agent(agent)?.spawned_by);
        }
        if let Some(id) = &own.task {
            reply = reply.with("task", &self.engine.task(id)?);
        }
        Ok(reply)
    }

    fn tasks(&self, mut filter: TaskFilter) -> Result<Reply, Failure> {
        filter.limit = Some(filter.limit.unwrap_or(TASKS).min(TASKS));
        let (tasks, total) = self.engine.tasks(&filter)?;
        let mut reply = Reply::new().with("tasks", &tasks).with("total", &total);
        if total > tasks.len() as u64 {
            reply.notes.push(format!("{} of {total}", tasks.len()));
        }
        Ok(reply)
    }

    fn own_task(&self) -> Result<TaskId, NotAllowed> {
        self.authority.task.clone().ok_or(NotAllowed::NoTask)
    }

    /// The task that a word means: the own one by all its names, any other by its id.
    fn task_meant(&self, word: &Word) -> Result<TaskId, Failure> {
        let unknown = || Unclear::unknown(word, Wanted::Task).into();
        self.authority.task_meant(word).ok_or_else(unknown)
    }

    /// The same for a worktree, whose events anybody may read.
    fn tree_meant(&self, word: &Word) -> Result<TreeName, Failure> {
        if self.authority.permits_tree(Some(word.as_str())).is_ok() {
            return Ok(self.authority.tree.clone());
        }
        let name = word.bare().parse::<TreeName>();
        name.map_err(|_| Unclear::unknown(word, Wanted::Worktree).into())
    }

    fn own_session(&self) -> Result<&SessionName, NotAllowed> {
        self.authority.session.as_ref().ok_or(NotAllowed::Nobody)
    }

    /// The claim that the run works under, as often as it asks.
    fn own_claim(&self) -> Result<Reply, Failure> {
        let detail = self.engine.task(&self.own_task()?)?;
        let lease = detail.task.lease.clone();
        match lease.filter(|lease| Some(lease.token) == self.authority.token) {
            Some(lease) => Ok(Reply::new()
                .with("task", &detail.task)
                .with("lease", &lease)),
            None => Err(NotAllowed::NoTask.into()),
        }
    }

    /// For as long as is configured: nobody holds a task for ever by asking once.
    fn renew(&self) -> Result<Reply, Failure> {
        let own = &self.authority;
        let id = self.own_task()?;
        let finished =
            self.engine
                .renew(own.session.as_ref(), &id, own.token, None::<SignedDuration>)?;
        Ok(Reply::new()
            .with("task", &finished.task)
            .with("unblocked", &finished.unblocked))
    }

    /// An agent reports, and its supervisor does the rest.
    fn finish(&self, success: bool, report: Report) -> Result<Reply, Failure> {
        let own = &self.authority;
        let id = self.own_task()?;
        if report.length() > limits::TEXT {
            return Err(too_long());
        }
        let words = report.text.clone().unwrap_or_default();
        let (Some(agent), Some(token)) = (own.agent, own.token) else {
            return Err(NotAllowed::NoTask.into());
        };
        let report = FinalReport {
            success,
            report: words,
            files_changed: report.files_changed,
            verification: report.verification,
            verified_by: report.verified_by,
            inferred: false,
            at: self.engine.now()?,
        };
        self.engine.report_agent(agent, token, report)?;
        let mut reply = Reply::new()
            .with("task", &self.engine.task(&id)?.task)
            .with("unblocked", &[(); 0]);
        reply
            .notes
            .push("reported; the rest follows when you end".to_owned());
        Ok(reply)
    }

    /// The reply to a question, for whoever asked it.
    fn answer_to(&self, id: MessageId) -> Result<Reply, Failure> {
        let not_found = || MessageError::NotFound { id };
        let reply = self
            .engine
            .await_reply(id, Duration::ZERO, &self.trees.host.cancel)?;
        match reply.to == *self.own_session()? {
            true => Ok(Reply::new().with("messages", &[reply])),
            false => Err(not_found().into()),
        }
    }

    fn inbox(&self, consume: bool, all: bool, limit: Option<u64>) -> Result<Reply, Failure> {
        let session = self.own_session()?;
        let limit = limit.unwrap_or(MESSAGES).min(MESSAGES);
        let looked = self.engine.inbox(
            session,
            InboxQuery {
                all,
                limit: Some(limit),
                ..InboxQuery::default()
            },
        )?;
        if !consume || looked.is_empty() {
            return Ok(Reply::new().with("messages", &looked));
        }
        // What is taken out has to fit into the answer.
        let mut room = TAKEN;
        let fits = looked.iter().take_while(|message| {
            let fits = message.text.len() <= room;
            room = room.saturating_sub(message.text.len());
            fits
        });
        let count = (fits.count() as u64).max(1);
        let taken = self.engine.inbox(
            session,
            InboxQuery {
                consume: true,
                limit: Some(count),
                ..InboxQuery::default()
            },
        )?;
        Ok(Reply::new().with("messages", &taken))
    }

    fn note(&self, text: Option<String>) -> Result<Reply, Failure> {
        let session = self.own_session()?;
        let view = match text {
            Some(text) if text.len() > limits::TEXT => return Err(too_long()),
            Some(text) => self.engine.note(session, text)?,
            None => self.engine.session(session)?,
        };
        let note = view.session.note.clone().ok_or_else(no_note)?;
        Ok(Reply::new().with("session", &view).with("note", &note))
    }

    fn events(&self, filter: EventFilter) -> Result<Reply, Failure> {
        let events = self.engine.events(&filter)?;
        let told = events.into_iter().map(|mut event| {
            self.close_letter(&mut event);
            CloudEvent::wrap(event, &self.source)
        });
        Ok(Reply::new().with("events", &told.collect::<Vec<_>>()))
    }

    /// The log has every message. What others write to each other is not for a run to read.
    fn close_letter(&self, event: &mut Event) {
        let own = self.authority.session.as_ref();
        if let Some(message) = &mut event.after.message
            && own != Some(&message.from)
            && own != Some(&message.to)
        {
            message.text.clear();
        }
    }

    fn diff(&self, wanted: &DiffTree) -> Result<Reply, Failure> {
        let name = Some(self.authority.tree.as_str());
        let diff = self.trees.diff(name, wanted.against(), wanted.form())?;
        let reply = Reply::new()
            .with("files", &diff.files)
            .with("truncated", &diff.truncated);
        Ok(match wanted.style {
            DiffStyle::Files => reply,
            _ => reply.with("text", &diff.text),
        })
    }
}

fn no_note() -> Failure {
    let message = "your session has no note";
    Failure::new("no_note", exit::NOT_FOUND, message).hint("weald session note \"what is next\"")
}

fn too_long() -> Failure {
    let message = format!("a report or a note has at most {} bytes", limits::TEXT);
    Failure::new("text_too_long", exit::REFUSED, message)
        .hint("put it in a file in the worktree and name that file")
}
