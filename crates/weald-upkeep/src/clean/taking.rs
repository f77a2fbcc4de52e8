//! Taking one tree: one look into it, by which it is judged and removed at once.
//!
//! What is around the trees is read again while the trees go, but not for each: of a thousand, each reading costs more than
//! a removal. Whatever a record can tell is compared once more in the step that announces the removal.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use weald_core::approval::Patterns;
use weald_core::clean::{self, CleanRules};
use weald_core::event::{Change, EventKind};
use weald_core::id::Seq;
use weald_core::objections::Contents;
use weald_core::store::Durability;
use weald_core::tree::Tree;

use super::Taken;
use super::looking::Seen;
use crate::Upkeep;
use crate::survey::Survey;
use weald_control::steps::step;
use weald_trees::remove::{AsJudged, Verdict};
use weald_trees::{RemoveRequest, TreeError, Trees};

/// For how long what is around the trees counts as known.
const YOUNG: Duration = Duration::from_millis(200);

/// A clean that takes what may go.
pub(super) struct Taking<'t> {
    upkeep: &'t Upkeep<'t>,
    rules: &'t CleanRules,
    begun: Mutex<Option<Seq>>,
    recent: Mutex<Option<Arc<Recent<'t>>>>,
}

/// What was around the trees a moment ago.
struct Recent<'t> {
    read_at: Instant,
    survey: Survey<'t>,
    looking: Trees<'t>,
}

impl<'t> Taking<'t> {
    /// Nothing was taken yet.
    pub(super) fn new(upkeep: &'t Upkeep<'t>, rules: &'t CleanRules) -> Self {
        Self {
            upkeep,
            rules,
            begun: Mutex::default(),
            recent: Mutex::default(),
        }
    }

    /// The event that began it all, recorded before the first tree goes.
    pub(super) fn operation(&self) -> Result<Seq, TreeError> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(operation) = *begun {
            return Ok(operation);
        }
        let begins = Change::fact(EventKind::CLEAN_BEGUN);
        let operation = self.upkeep.record(Durability::Process, begins)?;
        step("clean.begun");
        *begun = Some(operation);
        Ok(operation)
    }

    fn recent(&self) -> Result<Arc<Recent<'t>>, TreeError> {
        let mut kept = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let young = kept.as_ref().filter(|it| it.read_at.elapsed() < YOUNG);
        if let Some(recent) = young {
            return Ok(Arc::clone(recent));
        }
        let recent = Arc::new(Recent {
            read_at: Instant::now(),
            survey: Survey::new(self.upkeep.trees, &[]),
            looking: self.upkeep.trees.with_refs_of_now()?,
        });
        *kept = Some(Arc::clone(&recent));
        Ok(recent)
    }

    /// Looks into a tree that could go, and takes it if nothing speaks against it.
    pub(super) fn take(&self, tree: &Tree) -> Seen {
        self.upkeep.trees.reserve().release();
        let seen = self.try_to_take(tree);
        self.upkeep.trees.reserve().regain();
        seen.unwrap_or_else(|error| Seen::unreadable(error.to_string()))
    }

    fn try_to_take(&self, tree: &Tree) -> Result<Seen, TreeError> {
        let recent = self.recent()?;
        let looking = &recent.looking;
        let ignored = &self.upkeep.trees.config.clean_ignore_dirty;
        let mut verdict = Verdict::of(tree.clone());
        let request = RemoveRequest {
            ignore_dirty: ignored.to_vec(),
            ..RemoveRequest::default()
        };
        let contents = match looking.contents(&mut verdict, &request)? {
            Contents::Unknown(why) => return Ok(Seen::unreadable(why)),
            contents => contents,
        };
        let Some(reply) = verdict.reply.clone() else {
            // Gone since.
            return Ok(Seen::unreadable(String::new()));
        };
        let patterns = Patterns::new(ignored.iter().map(String::as_str));
        let upkeep = Upkeep::new(looking);
        let found = upkeep.found(tree, reply, &upkeep.names_and_tips()?, &patterns)?;
        let mut seen = Seen {
            standing: Some(upkeep.compared(tree, &found)?),
            found: Ok(found),
            taken: None,
        };
        seen.taken = Some(self.take_seen(tree, &seen, verdict, contents));
        Ok(seen)
    }

    /// Takes a tree, if what was found in it and what is around it now speak for it.
    fn take_seen(
        &self,
        tree: &Tree,
        seen: &Seen,
        verdict: Verdict,
        contents: Contents,
    ) -> Result<Taken, TreeError> {
        let recent = self.recent()?;
        let mut known = recent.survey.records()?.iter();
        let current = known.find(|known| known.id == tree.id);
        let current = current.ok_or_else(|| TreeError::NotFound {
            name: tree.name.to_string(),
        })?;
        let (mut facts, _) = recent.survey.facts_of(current)?;
        if current.last_used_at == verdict.tree.last_used_at {
            // That its commits were taken in just now is no use of it.
            facts.last_used = Some(tree.last_used_at);
        }
        seen.fill(&mut facts);
        if let Err(blockers) = clean::judge(&facts, self.rules, self.upkeep.trees.now()?) {
            let name = current.name.clone();
            return Err(TreeError::ChangedMeanwhile { name, blockers });
        }
        let request = RemoveRequest {
            operation: Some(self.operation()?),
            as_judged: Some(AsJudged {
                id: current.id,
                status: facts.status,
                task: facts.task,
            }),
            ..RemoveRequest::default()
        };
        let removed = recent.looking.remove_seen(verdict, contents, &request)?;
        step("clean.taken");
        Ok(removed.into())
    }
}
