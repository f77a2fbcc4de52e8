//! What a word stands for that somebody wrote where weald takes a worktree, a task, an agent or a landing.
//!
//! The decision is here, from records alone. A word is looked up in every form that it can have. One thing found is the
//! answer, several are refused with the way to say each of them, and a word that is only near to a name is never taken for it.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::agent::{Agent, AgentId};
use crate::choice::words;
use crate::id::{LandingId, TaskId, TreeId};
use crate::landing::{Landing, LandingStatus};
use crate::name::TreeName;
use crate::nearest::nearest;
use crate::task::Task;
use crate::tree::{Tree, TreeStatus};

/// The longest word, in bytes: no path is longer.
const LONGEST: usize = 4096;

words! {
    /// What a word names. Its name before a colon says so: `task:12`, `branch:fix`.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Form {
        Worktree = "worktree",
        Branch = "branch",
        Path = "path",
        Task = "task",
        Agent = "agent",
        Landing = "landing",
    }
}

/// A word as it was given, not looked up yet. In JSON a number is a task's, as `#12` is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Raw", into = "String")]
pub struct Word(String);

#[derive(Deserialize)]
#[serde(untagged)]
enum Raw {
    Number(u64),
    Text(String),
}

/// Why a text can stand for nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WordError {
    #[error("the name is empty")]
    Empty,
    #[error("a name has at most {LONGEST} bytes")]
    TooLong,
    #[error("a name has no control characters")]
    Control,
    /// It would read as an option, or as something for a shell.
    #[error("{0:?} can't be in a name; write a path with a slash")]
    Odd(char),
}

/// What is in no name that weald gives or takes. A path may have it.
const ODD: &str = " ;&|<>$`\"'()*?[]{}!\\";

impl FromStr for Word {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let may_be_path = text.contains('/') || text.starts_with("path:");
        let odd = text.chars().find(|c| c.is_whitespace() || ODD.contains(*c));
        match (text, odd) {
            ("", _) => Err(WordError::Empty),
            _ if text.len() > LONGEST => Err(WordError::TooLong),
            _ if text.chars().any(char::is_control) => Err(WordError::Control),
            _ if text.starts_with('-') => Err(WordError::Odd('-')),
            (_, Some(odd)) if !may_be_path => Err(WordError::Odd(odd)),
            _ => Ok(Self(text.to_owned())),
        }
    }
}

impl TryFrom<Raw> for Word {
    type Error = WordError;
    fn try_from(raw: Raw) -> Result<Self, WordError> {
        match raw {
            Raw::Number(number) => Ok(Self(format!("#{number}"))),
            Raw::Text(text) => text.parse(),
        }
    }
}

impl From<Word> for String {
    fn from(word: Word) -> Self {
        word.0
    }
}

impl From<&TaskId> for Word {
    fn from(id: &TaskId) -> Self {
        Self(format!("task:{id}"))
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Word {
    /// As it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What it names, if it says so, and the rest.
    fn parts(&self) -> (Option<Form>, &str) {
        if let Some(task) = self.0.strip_prefix('#') {
            return (Some(Form::Task), task);
        }
        let said = self.0.split_once(':').and_then(|(form, rest)| {
            let form = Form::ALL.into_iter().find(|known| known.as_str() == form)?;
            Some((Some(form), rest))
        });
        said.unwrap_or((None, &self.0))
    }

    /// The form that it says it has.
    pub fn form(&self) -> Option<Form> {
        self.parts().0
    }

    /// Without the form that it says it has.
    pub fn bare(&self) -> &str {
        self.parts().1
    }

    /// The task's id that it would be.
    pub fn task_id(&self) -> Option<TaskId> {
        let (form, rest) = self.parts();
        let may_be = matches!(form, None | Some(Form::Task)) && !rest.starts_with('#');
        rest.parse().ok().filter(|_| may_be)
    }

    /// The agent's id that it would be.
    pub fn agent_id(&self) -> Option<AgentId> {
        let (form, rest) = self.parts();
        let may_be = matches!(form, None | Some(Form::Agent));
        rest.parse().ok().filter(|_| may_be)
    }

    /// The landing's number that it would be. `#12` is a task.
    pub fn landing_id(&self) -> Option<LandingId> {
        let (form, rest) = self.parts();
        let may_be = matches!(form, None | Some(Form::Landing));
        rest.parse().ok().filter(|_| may_be)
    }

    /// The path that it would be, from `directory`. A word without a slash is a path only if it says so: what lies in the
    /// current directory gives no other word another meaning.
    pub fn path(&self, directory: &Path) -> Option<PathBuf> {
        let (form, rest) = self.parts();
        let may_be = match form {
            None => rest.contains('/') || matches!(rest, "." | ".."),
            Some(form) => form == Form::Path,
        };
        may_be.then(|| flat(&directory.join(rest)))
    }

    /// Whether it can be nothing but a path.
    pub fn is_path(&self) -> bool {
        let starts = ["/", "./", "../"];
        let (form, rest) = self.parts();
        form == Some(Form::Path)
            || form.is_none()
                && (matches!(rest, "." | "..")
                    || starts.iter().any(|start| rest.starts_with(start)))
    }

    /// The same wherever it is read: a path that starts in `directory` is written in full.
    #[must_use]
    pub fn anywhere(&self, directory: &Path) -> Self {
        let path = self.path(directory).filter(|_| self.is_path());
        let text = path.and_then(|path| Some(path.to_str()?.to_owned()));
        text.map_or_else(|| self.clone(), Self)
    }
}

/// A path without `.` and `..`, whatever lies there.
fn flat(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(flat.pop()),
            part => flat.push(part),
        }
    }
    flat
}

words! {
    /// What a command takes.
    pub enum Wanted {
        Worktree = "worktree",
        Task = "task",
        Agent = "agent",
        Landing = "landing",
    }
}

impl Wanted {
    /// The command that lists what there is.
    pub fn list(self) -> &'static str {
        match self {
            Self::Worktree => "weald list",
            Self::Task => "weald task list",
            Self::Agent => "weald agent list --all",
            Self::Landing => "weald queue status --all",
        }
    }
}

/// Something that a word can mean, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The word that means it and nothing else.
    pub say: String,
    /// What it is.
    pub is: String,
}

/// Why a word means nothing, or not one thing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// Several things have it for a name. Nothing is guessed.
    #[error("{word} is ambiguous: it can mean {}; nothing was done", listed(.choices))]
    Ambiguous { word: String, choices: Vec<Choice> },
    /// What it names has none.
    #[error("{} has no {}", .what.is, .wanted.as_str())]
    Without { what: Choice, wanted: Wanted },
    /// It names a worktree that is in the trash.
    #[error("worktree {name} is in the trash")]
    InTrash { name: TreeName, id: TreeId },
    #[error("there is no {} {word}", noun(*.form, *.wanted))]
    Unknown {
        word: String,
        /// As what it was named, if that was said.
        form: Option<Form>,
        wanted: Wanted,
        /// The name that may have been meant.
        nearest: Option<String>,
    },
}

fn noun(form: Option<Form>, wanted: Wanted) -> &'static str {
    match form {
        None => wanted.as_str(),
        Some(Form::Path) => "worktree at",
        Some(form) => form.as_str(),
    }
}

fn listed(choices: &[Choice]) -> String {
    let all: Vec<_> = choices.iter().map(|choice| choice.is.as_str()).collect();
    all.join(" or ")
}

impl Unclear {
    /// What can't be a name is none.
    pub fn no_name(text: &str, wanted: Wanted) -> Self {
        Self::Unknown {
            word: text.to_owned(),
            form: None,
            wanted,
            nearest: None,
        }
    }

    pub fn unknown(word: &Word, wanted: Wanted) -> Self {
        Self::Unknown {
            word: word.bare().to_owned(),
            form: word.form().or(word.is_path().then_some(Form::Path)),
            wanted,
            nearest: None,
        }
    }

    /// The same with the nearest of the names that are known. Numbers have no misspellings.
    #[must_use]
    pub fn with_nearest<'n>(self, known: impl IntoIterator<Item = &'n str>) -> Self {
        let Self::Unknown {
            word, form, wanted, ..
        } = self
        else {
            return self;
        };
        let is_number = word
            .parse::<TaskId>()
            .is_ok_and(|id| id.counted().is_some());
        let is_numbered = is_number || word.parse::<AgentId>().is_ok();
        let near = nearest(&word, known).filter(|_| !is_numbered);
        let nearest = near.map(str::to_owned);
        Self::Unknown {
            word,
            form,
            wanted,
            nearest,
        }
    }
}

/// The records that a word is looked up in.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// The name of a worktree that the word would be.
    pub name: Option<TreeName>,
    /// Where the word leads as a path: as it is written, and with links followed. One that does not say it is a path counts
    /// only where something is.
    pub places: Vec<PathBuf>,
    /// All of them, by number.
    pub trees: Vec<Tree>,
    /// The one with the id that the word would be.
    pub task: Option<Task>,
    /// By number; at least the one with the id that the word would be.
    pub agents: Vec<Agent>,
    /// By number, where the word may need one.
    pub landings: Vec<Landing>,
}

/// What a word was found to be.
#[derive(Debug, Clone, Copy)]
enum Thing<'r> {
    Tree(&'r Tree),
    Task(&'r Task),
    Agent(&'r Agent),
    Landing(&'r Landing),
}

/// What a word was found to be, and how to say that.
struct Meaning<'r> {
    thing: Thing<'r>,
    choice: Choice,
}

impl<'r> Meaning<'r> {
    fn of(form: Form, thing: Thing<'r>) -> Self {
        let (name, is) = match thing {
            Thing::Tree(tree) => {
                let is = match &tree.task {
                    Some(task) => format!("worktree {} of task {task}", tree.name),
                    None => format!("worktree {}", tree.name),
                };
                let name = match form {
                    Form::Branch => tree.branch.clone(),
                    Form::Path => tree.path.display().to_string(),
                    _ => tree.name.to_string(),
                };
                let how = match form {
                    Form::Branch => format!("{is}, on branch {}", tree.branch),
                    Form::Path => format!("{is}, at that path"),
                    _ => is,
                };
                (name, how)
            }
            Thing::Task(task) => {
                let is = match &task.worktree {
                    Some(tree) => format!("task {} with worktree {tree}", task.id),
                    None => format!("task {}", task.id),
                };
                (task.id.to_string(), is)
            }
            Thing::Agent(agent) => {
                let id = agent.id.to_string();
                (id, format!("agent {} on task {}", agent.id, agent.task))
            }
            Thing::Landing(landing) => {
                let id = landing.id.to_string();
                (id, format!("landing {} of {}", landing.id, landing.tree))
            }
        };
        let say = format!("{}:{name}", form.as_str());
        Self {
            thing,
            choice: Choice { say, is },
        }
    }
}

impl Records {
    /// Everything that has the word for a name. The names of sessions count where agents are wanted: in the course of time
    /// many agents work under one.
    fn meanings(&self, word: &Word, wanted: Wanted) -> Vec<Meaning<'_>> {
        let (said, text) = word.parts();
        let may_be = |form| said.is_none_or(|said| said == form);
        let mut found = Vec::new();
        if may_be(Form::Worktree)
            && let Some(tree) = self.name.as_ref().and_then(|name| self.tree_called(name))
        {
            found.push(Meaning::of(Form::Worktree, Thing::Tree(tree)));
        }
        if may_be(Form::Task) {
            let task = self.task.iter();
            found.extend(task.map(|task| Meaning::of(Form::Task, Thing::Task(task))));
        }
        if may_be(Form::Agent) {
            let id = word.agent_id();
            let by_name = said == Some(Form::Agent) || wanted == Wanted::Agent;
            let is_it =
                |agent: &&Agent| Some(agent.id) == id || by_name && agent.session.as_str() == text;
            let agents = chosen(self.agents.iter().filter(is_it));
            found.extend(agents.map(|agent| Meaning::of(Form::Agent, Thing::Agent(agent))));
        }
        if said == Some(Form::Landing) {
            let landing = word.landing_id().and_then(|id| self.landing_of(id));
            found.extend(landing.map(|one| Meaning::of(Form::Landing, Thing::Landing(one))));
        }
        let live = || self.trees.iter().filter(|tree| tree.is_wanted());
        if may_be(Form::Branch) {
            let on = live().filter(|tree| tree.branch == text);
            found.extend(on.map(|tree| Meaning::of(Form::Branch, Thing::Tree(tree))));
        }
        if found.is_empty() || word.is_path() {
            for place in &self.places {
                let holding = live().filter(|tree| place.starts_with(&tree.path));
                let nearest = holding.max_by_key(|tree| tree.path.components().count());
                found.extend(nearest.map(|tree| Meaning::of(Form::Path, Thing::Tree(tree))));
            }
        }
        found
    }

    /// The worktree that has a name, else the newest one that had it.
    fn tree_called(&self, name: &TreeName) -> Option<&Tree> {
        let mut called = self.trees.iter().rev().filter(|tree| tree.name == *name);
        let newest = called.clone().next();
        called.find(|tree| tree.is_wanted()).or(newest)
    }

    fn live(&self, id: TreeId) -> Option<&Tree> {
        let mut live = self.trees.iter().filter(|tree| tree.is_wanted());
        live.find(|tree| tree.id == id)
    }

    fn landing_of(&self, id: LandingId) -> Option<&Landing> {
        self.landings.iter().find(|landing| landing.id == id)
    }

    /// The worktree that a word means.
    pub fn tree(&self, word: &Word) -> Result<Tree, Unclear> {
        let wanted = Wanted::Worktree;
        let of = |thing| match thing {
            Thing::Tree(tree) => Some(tree).filter(|tree| tree.is_wanted()),
            Thing::Task(task) => {
                let name = task.worktree.as_ref()?;
                self.tree_called(name).filter(|tree| tree.is_wanted())
            }
            Thing::Agent(agent) => self.live(agent.tree_id?),
            Thing::Landing(landing) => self.live(landing.tree_id),
        };
        let meanings = self.meanings(word, wanted);
        let leads = meanings.iter().map(|one| (&one.choice, of(one.thing)));
        match (one(word, wanted, leads, |tree| tree.id), &meanings[..]) {
            (Ok(tree), _) => Ok(tree.clone()),
            (
                Err(Unclear::Without { .. }),
                [
                    Meaning {
                        thing: Thing::Tree(tree),
                        ..
                    },
                ],
            ) => Err(match tree.status {
                TreeStatus::Trashed => Unclear::InTrash {
                    name: tree.name.clone(),
                    id: tree.id,
                },
                _ => Unclear::unknown(word, wanted),
            }),
            (Err(unclear), _) => Err(unclear),
        }
    }

    /// The worktree with this status that a word means, after its removal. A number alone is its own; of several that had a
    /// name the newest is meant.
    pub fn removed(&self, word: &Word, status: TreeStatus) -> Result<Tree, Unclear> {
        let wanted = Wanted::Worktree;
        let (said, text) = word.parts();
        let number = text.parse().ok().filter(|_| said.is_none()).map(TreeId);
        let is_it = |tree: &&Tree| tree.status == status && Some(tree.id) == number;
        if let Some(tree) = self.trees.iter().find(is_it) {
            return Ok(tree.clone());
        }
        let agent = self
            .agents
            .iter()
            .find(|agent| Some(agent.id) == word.agent_id());
        let is_of = |form: Form, tree: &Tree| match form {
            Form::Worktree => Some(&tree.name) == self.name.as_ref(),
            Form::Branch => tree.branch == text,
            Form::Path => self
                .places
                .iter()
                .any(|place| place.starts_with(&tree.path)),
            Form::Task => {
                let was = tree.trash.as_ref().and_then(|trash| trash.task.as_ref());
                let id = word.task_id();
                id.is_some() && tree.task.as_ref().or(was) == id.as_ref()
            }
            Form::Agent => agent.is_some_and(|agent| agent.tree_id == Some(tree.id)),
            Form::Landing => false,
        };
        let meant = |form: Form| {
            let mut newest = self.trees.iter().rev().filter(|tree| tree.status == status);
            let tree = newest.find(|tree| is_of(form, tree))?;
            Some((Meaning::of(form, Thing::Tree(tree)).choice, tree))
        };
        let forms = Form::ALL.into_iter();
        let forms = forms.filter(|form| said.is_none_or(|said| said == *form));
        let found: Vec<_> = forms.filter_map(meant).collect();
        let leads = found.iter().map(|(choice, tree)| (choice, Some(*tree)));
        one(word, wanted, leads, |tree| tree.id).cloned()
    }

    /// The task that a word means.
    pub fn task(&self, word: &Word) -> Result<TaskId, Unclear> {
        let wanted = Wanted::Task;
        // An entry of a race works on a task that is not bound to its worktree.
        let worked_on = |tree: &Tree| {
            let mut there = self.agents.iter().rev();
            let newest = there.find(|agent| agent.tree_id == Some(tree.id))?;
            Some(newest.task.clone())
        };
        let of = |thing| match thing {
            Thing::Tree(tree) => {
                let before = tree.trash.as_ref().and_then(|trash| trash.task.clone());
                tree.task.clone().or(before).or_else(|| worked_on(tree))
            }
            Thing::Task(task) => Some(task.id.clone()),
            Thing::Agent(agent) => Some(agent.task.clone()),
            Thing::Landing(landing) => landing.task.clone(),
        };
        let meanings = self.meanings(word, wanted);
        let leads = meanings.iter().map(|one| (&one.choice, of(one.thing)));
        one(word, wanted, leads, Clone::clone)
    }

    /// The agent that a word means: of a worktree or a task the one that is at work, else the last one.
    pub fn agent(&self, word: &Word) -> Result<Agent, Unclear> {
        let wanted = Wanted::Agent;
        let of = |thing: Thing<'_>| -> Vec<&Agent> {
            let is_there = |agent: &&Agent| match thing {
                Thing::Tree(tree) => agent.tree_id == Some(tree.id),
                Thing::Task(task) => agent.task == task.id,
                Thing::Agent(one) => agent.id == one.id,
                Thing::Landing(landing) => agent.tree_id == Some(landing.tree_id),
            };
            chosen(self.agents.iter().filter(is_there)).collect()
        };
        let mut leads = Vec::new();
        let meanings = self.meanings(word, wanted);
        for meaning in &meanings {
            let agents = of(meaning.thing);
            let as_agent = |agent| Meaning::of(Form::Agent, Thing::Agent(agent)).choice;
            match &agents[..] {
                [] => leads.push((meaning.choice.clone(), None)),
                [agent] => leads.push((meaning.choice.clone(), Some(*agent))),
                several => {
                    let several = several.iter().map(|agent| (as_agent(agent), Some(*agent)));
                    leads.extend(several);
                }
            }
        }
        let leads = leads.iter().map(|(choice, agent)| (choice, *agent));
        one(word, wanted, leads, |agent| agent.id).cloned()
    }

    /// The landing that a word means. A number alone is a landing's, whatever else has it; of a worktree, a task or an agent it
    /// is the newest one that `counts`.
    pub fn landing(&self, word: &Word, counts: Counts) -> Result<LandingId, Unclear> {
        let wanted = Wanted::Landing;
        if let Some(id) = word.landing_id() {
            let known = self.landing_of(id).map(|landing| landing.id);
            return known.ok_or_else(|| Unclear::unknown(word, wanted));
        }
        let of = |thing| {
            let is_of = |landing: &&Landing| match thing {
                Thing::Tree(tree) => landing.tree_id == tree.id,
                Thing::Task(task) => landing.task.as_ref() == Some(&task.id),
                Thing::Agent(agent) => match agent.end.as_ref().and_then(|end| end.landing) {
                    Some(id) => landing.id == id,
                    None => agent.tree_id == Some(landing.tree_id),
                },
                Thing::Landing(one) => landing.id == one.id,
            };
            let counting = |landing: &&Landing| match counts {
                Counts::All => true,
                Counts::Landed => {
                    landing.status == LandingStatus::Landed && landing.reverts.is_none()
                }
            };
            let mut newest = self.landings.iter().rev().filter(is_of);
            newest.find(counting).map(|landing| landing.id)
        };
        let meanings = self.meanings(word, wanted);
        let leads = meanings.iter().map(|one| (&one.choice, of(one.thing)));
        one(word, wanted, leads, |id| *id)
    }
}

/// Which landings of a worktree or a task a command means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    All,
    /// Those that moved the target and took nothing back.
    Landed,
}

/// Of several agents those that are at work, else the newest.
fn chosen<'r>(agents: impl Iterator<Item = &'r Agent>) -> impl Iterator<Item = &'r Agent> {
    let all: Vec<_> = agents.collect();
    let open = all.iter().filter(|agent| !agent.status.is_over());
    let open: Vec<_> = open.copied().collect();
    match open.is_empty() {
        true => all.last().copied().into_iter().collect::<Vec<_>>(),
        false => open,
    }
    .into_iter()
}

/// The one thing that all meanings lead to.
fn one<'c, T, K: PartialEq>(
    word: &Word,
    wanted: Wanted,
    leads: impl Iterator<Item = (&'c Choice, Option<T>)>,
    key: impl Fn(&T) -> K,
) -> Result<T, Unclear> {
    let mut found: Vec<(&Choice, T)> = Vec::new();
    let mut without = None;
    for (choice, thing) in leads {
        match thing {
            None => without = without.or(Some(choice)),
            Some(thing) if found.iter().any(|(_, known)| key(known) == key(&thing)) => {}
            Some(thing) => found.push((choice, thing)),
        }
    }
    if found.len() > 1 {
        return Err(Unclear::Ambiguous {
            word: word.to_string(),
            choices: found
                .into_iter()
                .map(|(choice, _)| choice.clone())
                .collect(),
        });
    }
    match (found.pop(), without) {
        (Some((_, thing)), _) => Ok(thing),
        (None, Some(choice)) => Err(Unclear::Without {
            what: choice.clone(),
            wanted,
        }),
        (None, None) => Err(Unclear::unknown(word, wanted)),
    }
}

/// What a run may address: its own worktree, by everything that this is called.
#[derive(Debug, Clone, Copy)]
pub struct Own<'o> {
    pub tree: &'o TreeName,
    pub branch: &'o str,
    pub path: &'o Path,
    pub task: Option<&'o TaskId>,
    pub agent: Option<AgentId>,
}

impl Own<'_> {
    /// Whether a word names it. Nothing but its own records is looked at, so what others are called makes no difference.
    pub fn is_named(&self, word: &Word) -> bool {
        let (said, text) = word.parts();
        let may_be = |form| said.is_none_or(|said| said == form);
        let is_within = || {
            let path = word.path(Path::new("/")).filter(|_| word.is_path());
            path.is_some_and(|path| path.starts_with(self.path))
        };
        may_be(Form::Worktree) && text == self.tree.as_str()
            || may_be(Form::Branch) && text == self.branch
            || self.task.is_some() && word.task_id().as_ref() == self.task
            || self.agent.is_some() && word.agent_id() == self.agent
            || is_within()
    }
}

#[cfg(test)]
mod tests;
