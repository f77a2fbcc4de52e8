//! A conversation inside a tree's sandbox: everything is asked of the broker of its run.

use std::path::{Path, PathBuf};

use weald_app::operations::looking::ShowTree;
use weald_app::operations::sessions::NoteSession;
use weald_app::operations::snapshots::TakeSnapshot;
use weald_app::{Ask, Edit, Failure, TaskDetail, TreeView, bound_for};
use weald_core::claude::{Bound, Finish, Situation};
use weald_core::error_code::ErrorCode;
use weald_core::message::Message;
use weald_core::name::TreeName;

use super::contract::Moment;
use super::side::{Side, note_of};
use crate::commands::inside::{Inside, field};

/// The broker, and the run's own folders.
pub struct BrokerSide<'a> {
    inside: &'a Inside<'a>,
    allowed: Vec<PathBuf>,
}

impl<'a> BrokerSide<'a> {
    /// The side of this run.
    pub fn new(inside: &'a Inside<'a>, hook: &Moment<'_>) -> Self {
        Self {
            inside,
            allowed: hook.own_folders(),
        }
    }

    /// The own messages; a run without a session has none.
    fn inbox(&self, consume: bool) -> Result<Vec<Message>, Failure> {
        let asked = self.inside.ask(Ask::MsgInbox {
            consume,
            all: false,
            limit: None,
        });
        match asked {
            Err(failure) if is_nobodys(&failure) => Ok(Vec::new()),
            asked => field(&asked?, "messages"),
        }
    }

    /// The tree's name and folder.
    fn tree(&self) -> Result<(TreeName, PathBuf), Failure> {
        let reply = self.inside.ask(Ask::Overview {})?;
        let name = field(&reply, "tree")?;
        let reply = self.inside.ask(Ask::Path {
            tree: None,
            check: None,
        })?;
        Ok((name, field(&reply, "path")?))
    }
}

/// Whether a request was refused because the run has no session: a hook asks for nothing else that is refused.
fn is_nobodys(failure: &Failure) -> bool {
    failure.code == ErrorCode::NotAllowedInside
}

impl Side for BrokerSide<'_> {
    fn arrive(&self) -> Result<Situation, Failure> {
        let reply = self.inside.ask(Ask::Overview {})?;
        let task: Option<TaskDetail> = field(&reply, "task")?;
        let status = self.inside.ask(Ask::Status(ShowTree::default()))?;
        let view: TreeView = field(&status, "tree")?;
        let tree = view.tree;
        Ok(Situation {
            session: field(&reply, "session")?,
            tree: Some((tree.name, tree.branch, tree.target)),
            is_in_tree: true,
            lost: None,
            task: task.map(|detail| {
                let task = detail.task;
                let status = task.status.as_str().to_owned();
                (task.id, status, task.subject, task.description)
            }),
            finish: match (field(&reply, "lands")?, reply.answer.contains_key("lead")) {
                (true, _) => Finish::LandsAtEnd,
                // Whoever has a lead was started by weald, and reports.
                (false, true) => Finish::Reports,
                (false, false) => Finish::Stays,
            },
        })
    }

    fn unread(&self) -> Result<Vec<Message>, Failure> {
        self.inbox(false)
    }

    fn take_messages(&self) -> Result<Vec<Message>, Failure> {
        // Most often there is nothing, and a look costs no room in the store.
        match self.inbox(false)?.is_empty() {
            true => Ok(Vec::new()),
            false => self.inbox(true),
        }
    }

    fn judge(&self, path: &Path) -> Result<Option<(TreeName, Edit)>, Failure> {
        let (name, folder) = self.tree()?;
        let bound = bound_for(path, &folder, &self.allowed);
        let out = match bound.map_err(|error| Failure::file(path, &error))? {
            Bound::Inside => return Ok(Some((name, Edit::Inside))),
            Bound::ByLink(out) => return Ok(Some((name, Edit::by_link(&out)))),
            Bound::Elsewhere(out) => out,
        };
        // What was meant: the broker knows where main is.
        let meant = self.inside.ask(Ask::Path {
            tree: None,
            check: Some(out.display().to_string()),
        });
        let edit = match meant {
            Ok(reply) => Edit::Outside {
                why: "it is in the main checkout".to_owned(),
                meant: Some(field(&reply, "path")?),
            },
            Err(failure) if failure.code == ErrorCode::OutsideTree => Edit::Outside {
                why: failure.message,
                meant: None,
            },
            Err(failure) => return Err(failure),
        };
        Ok(Some((name, edit)))
    }

    fn beside(&self, path: &Path) -> Result<Vec<TreeName>, Failure> {
        let (_, folder) = self.tree()?;
        let Ok(below) = path.strip_prefix(&folder) else {
            return Ok(Vec::new());
        };
        let reply = self.inside.ask(Ask::Beside {
            path: below.display().to_string(),
        })?;
        field(&reply, "trees")
    }

    fn keep(&self, said: Option<&str>) -> Result<(), Failure> {
        let kept = self.inside.ask(Ask::SnapshotCreate(TakeSnapshot {
            tree: None,
            if_changed: true,
        }));
        match kept {
            // The host takes snapshots of its own while it runs.
            Err(failure) if is_nobodys(&failure) => return Ok(()),
            kept => kept?,
        };
        let note = |text| Ask::SessionNote(NoteSession { text });
        let before = self.inside.ask(note(None)).ok();
        let before = before.and_then(|reply| {
            let note = reply.answer.get("note")?;
            note["text"].as_str().map(str::to_owned)
        });
        if let Some(text) = note_of(said, before.as_deref()) {
            // A note is a courtesy: a run whose session is not registered has none.
            let _ = self.inside.ask(note(Some(text)));
        }
        Ok(())
    }
}
