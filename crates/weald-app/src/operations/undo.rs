//! Taking back what weald did last.

use serde::{Deserialize, Serialize};
use weald_core::id::{LandingId, Seq};
use weald_core::landing::{LandingStatus, RevertCause};
use weald_core::undo::{Operation as Undoable, Way};

use super::Operation;
use super::landing::{OneLanding, RevertLanding, reverted};
use crate::{Call, Failure, Ground, Undone, Upkeep, exit};

entries!(ListUndoable, Undo);

/// How many operations are listed.
const LISTED: usize = 20;

/// Lists what can be undone, the newest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListUndoable {}

/// What can be undone.
#[derive(Debug, Serialize)]
pub struct AllUndoable {
    /// Each with what it was.
    pub operations: Vec<Undoable>,
}

impl Operation for ListUndoable {
    const NAME: &'static str = "undo_list";
    type Output = AllUndoable;

    fn run(self, call: &Call<'_>) -> Result<AllUndoable, Failure> {
        let ground = call.ground()?;
        let operations = Upkeep::new(&ground.trees(call)?).undoable(LISTED)?;
        Ok(AllUndoable { operations })
    }
}

/// Undoes one operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Undo {
    /// The event that began it; weald's last operation unless given.
    pub event: Option<Seq>,
    /// Only say what would be undone.
    pub dry_run: bool,
    /// Ask a person at a terminal before the target changes.
    #[serde(default)]
    pub ask: bool,
}

/// What was undone, or would be.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Undid {
    /// Nothing was done yet.
    Would(Box<WouldUndo>),
    /// It is undone.
    Done(Box<UndoneOne>),
    /// A landing is undone by another one, which did not land.
    NotLanded(Box<OneLanding>),
}

/// What an undo would do.
#[derive(Debug, Serialize)]
pub struct WouldUndo {
    /// The operation.
    pub would_undo: Undoable,
    /// What is said in addition.
    pub notes: Vec<String>,
}

/// An operation that was undone.
#[derive(Debug, Serialize)]
pub struct UndoneOne {
    /// What came back.
    #[serde(flatten)]
    pub undone: Undone,
    /// What it was, in words.
    #[serde(skip)]
    pub what: String,
}

impl Operation for Undo {
    const NAME: &'static str = "undo";
    type Output = Undid;

    fn run(self, call: &Call<'_>) -> Result<Undid, Failure> {
        if !self.dry_run {
            call.refuse_agent("weald undo")?;
        }
        let ground = call.landing_ground()?;
        let trees = ground.trees(call)?;
        let upkeep = Upkeep::new(&trees);
        let chosen = match self.event {
            Some(event) => upkeep.operation(event)?,
            None => upkeep.last_operation()?,
        };
        if self.dry_run {
            let notes = upkeep.require_undoable(&chosen)?;
            let would_undo = chosen;
            return Ok(Undid::Would(Box::new(WouldUndo { would_undo, notes })));
        }
        if let Way::Revert { landing, .. } = chosen.way {
            upkeep.require_undoable(&chosen)?;
            call.note(&upkeep.what_undoing_lands(&chosen, landing)?);
            if self.ask && !call.progress.confirm("Undo it?")? {
                return Err(Failure::declined("nothing was undone"));
            }
            drop(trees);
            return undo_landing(call, ground, landing, &chosen);
        }
        let undone = upkeep.undo(&chosen)?;
        call.tell(&ground.engine);
        Ok(Undid::of(&chosen, undone))
    }

    fn exit(undid: &Undid) -> u8 {
        match undid {
            Undid::NotLanded(one) => RevertLanding::exit(one),
            Undid::Would(_) | Undid::Done(_) => exit::DONE,
        }
    }
}

impl Undid {
    fn of(chosen: &Undoable, undone: Undone) -> Self {
        let what = chosen.to_string();
        Self::Done(Box::new(UndoneOne { undone, what }))
    }
}

/// Reverts by the queue. What does not land is answered as `weald revert` answers it.
fn undo_landing(
    call: &Call<'_>,
    ground: Ground,
    landing: LandingId,
    chosen: &Undoable,
) -> Result<Undid, Failure> {
    let (ground, one) = reverted(call, ground, landing, RevertCause::Undo)?;
    let revert = &one.landing.landing;
    if revert.status != LandingStatus::Landed {
        call.tell(&ground.engine);
        return Ok(Undid::NotLanded(Box::new(one)));
    }
    let undone = Upkeep::new(&ground.trees(call)?).undo_landed(chosen, revert)?;
    call.tell(&ground.engine);
    for kept in &revert.kept_changes {
        call.warn(&format!("{}; get it back: {}", kept.text(), kept.command));
    }
    Ok(Undid::of(chosen, undone))
}
