//! A conversation outside of any sandbox: the registry is here.

use std::path::{Path, PathBuf};

use weald_app::{
    Edit, Failure, Ground, IdentitySource, InboxQuery, Landings, Place, PlaceError,
    SystemProcesses, TaskError, TreeError, Trees, is_news, program_above,
};
use weald_core::claude::{Finish, Situation};
use weald_core::id::TaskId;
use weald_core::message::Message;
use weald_core::name::{SessionName, TreeName};
use weald_core::store::{TaskClass, TaskFilter};
use weald_core::task::TaskStatus;
use weald_core::tree::Tree;
use weald_store::DATABASE_FILE;

use super::contract::Moment;
use super::side::{Side, note_of};
use crate::context::Context;

/// The registry, and who asks.
pub struct HostSide<'a> {
    context: &'a Context<'a>,
    ground: Ground,
    session: Option<SessionName>,
    /// Folders that may be edited from any tree.
    allowed: Vec<PathBuf>,
}

/// Where the work of a conversation belongs.
struct Workplace {
    /// Its tree, and whether it is in it.
    tree: Option<(Tree, bool)>,
    /// Why the tree of its claim can't be worked in.
    lost: Option<Failure>,
}

/// The place of a directory; `None` where weald is not used.
pub fn place_of(context: &Context<'_>, directory: &Path) -> Result<Option<Place>, Failure> {
    if context.is_confined() {
        return Ok(None);
    }
    let (home, state) = (context.environment.home(), context.environment.state());
    match Place::find(directory, home.as_deref(), state.as_deref()) {
        Ok(place) => Ok(Some(place).filter(|place| place.private().join(DATABASE_FILE).exists())),
        Err(PlaceError::Discover(_) | PlaceError::ForeignState { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl<'a> HostSide<'a> {
    /// The registry of where the conversation is; `None` where weald is not used.
    pub fn find(hook: &'a Moment<'a>) -> Result<Option<Self>, Failure> {
        let context = &hook.context;
        if place_of(context, context.directory())?.is_none() {
            return Ok(None);
        }
        let ground = context.ground()?;
        let identity = context.identity(&ground.engine, None)?;
        let session = Some(identity.name).filter(|_| identity.source != IdentitySource::Anonymous);
        let home = context.environment.home();
        let own = ground.config().hook_allow.iter().map(|path| {
            let below = path.strip_prefix("~/").zip(home.as_ref());
            below.map_or_else(|| PathBuf::from(path), |(below, home)| home.join(below))
        });
        let allowed = own.chain(hook.own_folders()).collect();
        Ok(Some(Self {
            context,
            session,
            allowed,
            ground,
        }))
    }

    fn trees(&self) -> Result<Trees<'_>, Failure> {
        self.ground.trees(self.context)
    }

    /// The tree that the conversation is in, else the one of its claim; and whether it is in it.
    fn tree(&self, trees: &Trees<'_>) -> Result<Option<(Tree, bool)>, TreeError> {
        if self.ground.place.inside().is_some() {
            return match trees.named(None) {
                Ok(tree) => Ok(Some((tree, true))),
                Err(TreeError::NoTree) => Ok(None),
                Err(error) => Err(error),
            };
        }
        match self.claim()?.1 {
            Some(name) => Ok(Some((trees.named(Some(name.as_str()))?, false))),
            None => Ok(None),
        }
    }

    /// The same, or why the tree of its claim can't be worked in: no reason to tell nothing at all.
    fn tree_or_lost(&self, trees: &Trees<'_>) -> Result<Workplace, Failure> {
        match self.tree(trees) {
            Ok(found) => Ok(Workplace {
                tree: found,
                lost: None,
            }),
            Err(error @ (TreeError::InTrash { .. } | TreeError::NotFound { .. })) => {
                Ok(Workplace {
                    tree: None,
                    lost: Some(error.into()),
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The task that the conversation claimed last, and that one's tree. Who registered later, or not at all, is known by its claims.
    fn claim(&self) -> Result<(Option<TaskId>, Option<TreeName>), TaskError> {
        let Some(name) = &self.session else {
            return Ok((None, None));
        };
        if let Ok(view) = self.ground.engine.session(name)
            && view.session.tree.is_some()
        {
            return Ok((view.session.task, view.session.tree));
        }
        let filter = TaskFilter {
            classes: vec![TaskClass::Status(TaskStatus::InProgress)],
            owner: Some(name.clone()),
            ..TaskFilter::default()
        };
        let held = self.ground.engine.tasks(&filter)?.0.into_iter();
        let held = held.max_by_key(|task| task.lease.as_ref().map(|lease| lease.acquired_at));
        let tree = held.as_ref().and_then(|task| task.worktree.clone());
        Ok((held.map(|task| task.id), tree))
    }

    /// Makes the conversation known as a session whose process is the agent's: it lives as long as that does, and what else
    /// the agent starts, its MCP server too, speaks for it.
    fn register(&self) {
        let Some(session) = &self.session else {
            return;
        };
        let pid = match session.as_str().starts_with("codex-") {
            // It names its process nowhere.
            true => program_above(&SystemProcesses, "codex"),
            false => {
                let named = self.context.environment.get("CLAUDE_PID");
                named.and_then(|pid| pid.parse().ok())
            }
        };
        if pid.is_some() {
            // A name that a supervisor holds stays with it.
            let _ = self.ground.engine.register_given(session, pid);
        }
    }

    /// Takes the work out of a tree, behind the answer: a look into a tree takes longer than a conversation should wait.
    /// Nothing needs it at once, because whatever lands or removes a tree looks for itself.
    fn keep_work(&self, trees: &Trees<'_>, tree: &Tree) -> Result<(), Failure> {
        let words = ["snapshot", "create", tree.name.as_str(), "--background"];
        let root = self.ground.place.root();
        let is_begun =
            self.ground.config().hook_background && self.context.start_behind(&root, &words);
        if !is_begun {
            trees.keep_work(tree)?;
        }
        Ok(())
    }

    fn inbox(&self, consume: bool) -> Result<Vec<Message>, Failure> {
        let Some(session) = &self.session else {
            return Ok(Vec::new());
        };
        let query = InboxQuery {
            consume,
            ..InboxQuery::default()
        };
        Ok(self.ground.engine.inbox(session, query)?)
    }
}

impl Side for HostSide<'_> {
    fn arrive(&self) -> Result<Situation, Failure> {
        self.register();
        let trees = self.trees()?;
        let Workplace { tree, lost } = self.tree_or_lost(&trees)?;
        let claimed = self.claim()?.0;
        let bound = tree.as_ref().and_then(|(tree, _)| tree.task.clone());
        let task = match bound.or(claimed) {
            Some(id) => Some(self.ground.engine.task(&id)?.task),
            None => None,
        };
        Ok(Situation {
            session: self.session.clone(),
            is_in_tree: tree.as_ref().is_some_and(|(_, is_in)| *is_in),
            tree: tree.map(|(tree, _)| (tree.name, tree.branch, tree.target)),
            lost: lost.map(|lost| (lost.message, lost.hint.unwrap_or_default())),
            task: task.map(|task| {
                let status = task.status.as_str().to_owned();
                (task.id, status, task.subject, task.description)
            }),
            finish: Finish::Lands,
        })
    }

    fn unread(&self) -> Result<Vec<Message>, Failure> {
        self.inbox(false)
    }

    fn take_messages(&self) -> Result<Vec<Message>, Failure> {
        self.inbox(true)
    }

    fn judge(&self, path: &Path) -> Result<Option<(TreeName, Edit)>, Failure> {
        let trees = self.trees()?;
        let Some((tree, _)) = self.tree(&trees)? else {
            return Ok(None);
        };
        let edit = trees.judge_edit(&tree, path, &self.allowed)?;
        Ok(Some((tree.name, edit)))
    }

    fn beside(&self, path: &Path) -> Result<Vec<TreeName>, Failure> {
        let trees = self.trees()?;
        let Some((tree, _)) = self.tree_or_lost(&trees)?.tree else {
            return Ok(Vec::new());
        };
        let Ok(below) = path.strip_prefix(&tree.path) else {
            return Ok(Vec::new());
        };
        let mut others = Landings::new(&trees).also_changed(Some(tree.name.as_str()), below)?;
        others.retain(|other| {
            let told = format!("{}\n{other}\n{}", tree.id, below.display());
            is_news(&self.ground.place, &told)
        });
        Ok(others)
    }

    fn keep(&self, said: Option<&str>) -> Result<(), Failure> {
        let trees = self.trees()?;
        match self.tree_or_lost(&trees)? {
            Workplace {
                tree: Some((tree, _)),
                ..
            } => {
                self.keep_work(&trees, &tree)?;
            }
            Workplace {
                lost: Some(lost), ..
            } => {
                self.context.warn(&lost.in_short());
            }
            Workplace { .. } => return Ok(()),
        }
        let Some(name) = &self.session else {
            return Ok(());
        };
        if let Ok(view) = self.ground.engine.session(name) {
            let before = view.session.note.as_ref().map(|note| note.text.as_str());
            if let Some(note) = note_of(said, before) {
                self.ground.engine.note(name, note)?;
            }
        }
        self.context.tell(&self.ground.engine);
        Ok(())
    }
}
