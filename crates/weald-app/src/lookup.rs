//! What the words of a caller mean in a repository: the only place where a name becomes a worktree, a task, an agent or a
//! landing.

use weald_control::lookup::{Lookup, LookupError};
use weald_core::agent::Agent;
use weald_core::id::{LandingId, TaskId, TreeId};
use weald_core::meant::{Counts, Form, Unclear, Wanted, Word};
use weald_core::name::TreeName;
use weald_core::tree::{Tree, TreeStatus};

use crate::tracker::known;
use crate::{Call, Failure, Ground, exit};

impl Ground {
    fn lookup<'g>(&'g self, call: &'g Call<'_>) -> Lookup<'g> {
        Lookup {
            engine: &self.engine,
            directory: call.directory(),
            slashes: self.config().name_slashes,
        }
    }

    /// The worktree that is meant.
    pub fn tree(&self, call: &Call<'_>, word: &str) -> Result<Tree, Failure> {
        Ok(self.lookup(call).tree(&read(word, Wanted::Worktree)?)?)
    }

    /// The name of the worktree that is meant, if one is given.
    pub fn tree_name(
        &self,
        call: &Call<'_>,
        word: Option<&str>,
    ) -> Result<Option<String>, Failure> {
        let tree = word.map(|word| self.tree(call, word)).transpose()?;
        Ok(tree.map(|tree| tree.name.to_string()))
    }

    /// The worktree that is meant, if one of this status is: in the trash, or deleted for good.
    pub fn removed_tree(
        &self,
        call: &Call<'_>,
        word: &str,
        status: TreeStatus,
    ) -> Result<Option<TreeId>, Failure> {
        let Ok(word) = word.parse::<Word>() else {
            return Ok(None);
        };
        match self.lookup(call).removed(&word, status) {
            Ok(tree) => Ok(Some(tree.id)),
            Err(LookupError::Unclear(Unclear::Unknown { .. })) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The name of the worktree that is meant, or that one has had or will have.
    pub fn tree_or_name(&self, call: &Call<'_>, word: &Word) -> Result<TreeName, Failure> {
        let may_be = matches!(word.form(), None | Some(Form::Worktree));
        match (
            self.lookup(call).tree(word),
            word.bare().parse::<TreeName>(),
        ) {
            (Ok(tree), _) => Ok(tree.name),
            (Err(LookupError::Unclear(unclear)), Ok(name))
                if may_be && !matches!(unclear, Unclear::Ambiguous { .. }) =>
            {
                Ok(name)
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    /// The task that is meant.
    pub fn task(&self, call: &Call<'_>, word: &Word) -> Result<TaskId, Failure> {
        let found = self.lookup(call).task(word);
        self.or_of_tracker(call, word, found)
    }

    /// The task that is meant: the one given, or the one that the variables of a worker speak of.
    pub fn own_or_task(&self, call: &Call<'_>, given: Option<&Word>) -> Result<TaskId, Failure> {
        if let Some(word) = given {
            return self.task(call, word);
        }
        let own = call.environment.get("WEALD_TASK");
        own.and_then(|id| id.parse().ok()).ok_or_else(|| {
            Failure::new("usage", exit::USAGE, "no task given")
                .hint("give its ID, or set WEALD_TASK")
        })
    }

    /// The same where a flag or a field says that it is a task: an id comes before all else.
    pub fn task_by_id(&self, call: &Call<'_>, word: &Word) -> Result<TaskId, Failure> {
        let found = self.lookup(call).task_before_others(word);
        self.or_of_tracker(call, word, found)
    }

    /// The same for a task that may be made later: an id that nothing has stays what it is.
    pub fn task_to_come(&self, call: &Call<'_>, word: &Word) -> Result<TaskId, Failure> {
        match (self.lookup(call).task_before_others(word), word.task_id()) {
            (Err(LookupError::Unclear(Unclear::Unknown { .. })), Some(id)) => Ok(id),
            (found, _) => Ok(found?),
        }
    }

    /// The same for several.
    pub fn tasks_to_come(&self, call: &Call<'_>, words: &[Word]) -> Result<Vec<TaskId>, Failure> {
        let tasks = words.iter().map(|word| self.task_to_come(call, word));
        tasks.collect()
    }

    /// A number that no task has may be the number of an issue in the tracker.
    fn or_of_tracker(
        &self,
        call: &Call<'_>,
        word: &Word,
        found: Result<TaskId, LookupError>,
    ) -> Result<TaskId, Failure> {
        if let (Err(LookupError::Unclear(Unclear::Unknown { .. })), Some(id)) =
            (&found, word.task_id())
        {
            let issue = known(call, self, &id);
            if issue != id {
                return Ok(issue);
            }
        }
        Ok(found?)
    }

    /// The agent that is meant.
    pub fn agent(&self, call: &Call<'_>, word: &str) -> Result<Agent, Failure> {
        Ok(self.lookup(call).agent(&read(word, Wanted::Agent)?)?)
    }

    /// The landing that is meant: of a worktree or a task the newest one that counts.
    pub fn landing(
        &self,
        call: &Call<'_>,
        word: &Word,
        counts: Counts,
    ) -> Result<LandingId, Failure> {
        Ok(self.lookup(call).landing(word, counts)?)
    }
}

fn read(word: &str, wanted: Wanted) -> Result<Word, Failure> {
    let read = word.parse::<Word>();
    read.map_err(|_| Unclear::no_name(word, wanted).into())
}
