//! Landing, as every face does it: the queue is worked until what was asked for has ended.

mod watching;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use weald_core::id::LandingId;
use weald_core::landing::{Landing, LandingStatus};

pub use watching::LandingWatch;

use crate::failure::landing::refusal_exit;
use crate::{
    Call, Failure, Ground, LandError, LandRequest, Landings, LeftConflict, OnConflict, QueueEnd,
    Trees, exit, last_output,
};

/// The number of a landing that was not recorded.
pub const DRY_RUN: LandingId = LandingId(0);

/// What happened in addition to the landings themselves.
#[derive(Default)]
pub struct Beside {
    /// The conflict that waits in the checkout of the target.
    pub left: Option<(LandingId, LeftConflict)>,
}

impl Beside {
    /// The conflict that waits because of this landing.
    pub fn left_by(&self, landing: &Landing) -> Option<&LeftConflict> {
        let left = self.left.as_ref().filter(|(id, _)| *id == landing.id);
        left.map(|(_, left)| left)
    }
}

/// Whether to work the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Leave it to others.
    Queue,
    /// Work it until these have ended.
    Work,
}

/// What became of landings.
pub struct Worked {
    /// The repository, with the configuration that held at the end.
    pub ground: Ground,
    /// As they are now.
    pub landings: Vec<Landing>,
    /// What else happened.
    pub beside: Beside,
    /// The exit code, if a signal decides it.
    pub exit: Option<u8>,
}

/// Works the queue until `ids` have ended. A signal takes those out again that have not begun to move.
pub fn work_landings(
    call: &Call<'_>,
    mut ground: Ground,
    ids: &[LandingId],
    request: &LandRequest,
    mode: Mode,
) -> Result<Worked, Failure> {
    let before = match ids.is_empty() {
        true => Landings::new(&ground.trees(call)?).queue()?.open,
        false => Vec::new(),
    };
    let told: Vec<_> = before.iter().map(|landing| landing.id).collect();
    let told = [&told[..], ids].concat();
    let stage = call.stage("working the queue");
    let mut watch = LandingWatch::new(&ground.config().gate_command);
    let worked = match mode {
        Mode::Queue => Ok(QueueEnd::Done),
        Mode::Work => loop {
            let trees = ground.trees(call)?;
            let work = || Landings::new(&trees).work_queue(ids, request);
            match watch.during(&trees, &*stage, &told, work) {
                Ok(QueueEnd::Reload) => {
                    call.tell(&ground.engine);
                    ground = call.landing_ground()?;
                }
                ended => break ended,
            }
        },
    };
    drop(stage);
    let trees = ground.trees(call)?;
    let exit = match worked {
        Err(LandError::Interrupted(signal)) => {
            let is_cut_short = Landings::new(&trees).withdraw(ids)? > 0 || ids.is_empty();
            is_cut_short.then_some(128 + signal)
        }
        worked => {
            if worked? == QueueEnd::Paused {
                call.warn("the queue is paused; to resume it: weald queue resume");
            }
            None
        }
    };
    // A gate may have taken a spare.
    call.refill_pool(&trees, &ground.place.root());
    call.keep_vault_up(&trees, &ground.place.root());
    let landings: Vec<_> = told
        .iter()
        .map(|id| Landings::new(&trees).landing(*id))
        .collect::<Result<_, _>>()?;
    let mut beside = Beside::default();
    if request.on_conflict == OnConflict::Leave {
        beside.left = left_conflict(call, &trees, &landings);
    }
    drop(trees);
    Ok(Worked {
        ground,
        landings,
        beside,
        exit,
    })
}

/// Leaves the first conflict in the checkout of its target; those behind it were taken out.
fn left_conflict(
    call: &Call<'_>,
    trees: &Trees<'_>,
    landings: &[Landing],
) -> Option<(LandingId, LeftConflict)> {
    let is_conflict = |landing: &&Landing| landing.status == LandingStatus::Conflict;
    let landing = landings.iter().find(is_conflict)?;
    match Landings::new(trees).leave_conflict(landing) {
        Ok(left) => Some((landing.id, left)),
        Err(error) => {
            call.warn(&error.to_string());
            None
        }
    }
}
/// The exit code: the worst of them.
pub fn exit_of<'a>(landings: impl IntoIterator<Item = &'a Landing>) -> u8 {
    let codes = landings.into_iter().map(|landing| match landing.status {
        LandingStatus::Conflict => exit::CONFLICT,
        LandingStatus::Red | LandingStatus::Dropped => exit::REFUSED,
        LandingStatus::Landed if landing.reverted_by.is_some() => exit::REFUSED,
        LandingStatus::Refused => landing.reason.as_ref().map_or(exit::REFUSED, refusal_exit),
        _ => exit::DONE,
    });
    codes.max().unwrap_or(exit::DONE)
}

/// How many lines of the tests' output are shown when they fail.
const SHOWN: usize = 20;

/// The last lines that the tests of a landing printed, if they failed.
pub fn test_output(landing: &Landing) -> Option<String> {
    let log = landing.log.as_deref();
    let log = log.filter(|_| landing.status == LandingStatus::Red)?;
    Some(last_output(log, SHOWN).join("\n"))
}

/// A landing as programs see it.
pub fn as_json(landing: &Landing) -> Value {
    let mut value = serde_json::to_value(landing).unwrap_or_default();
    let is_dry = landing.id == DRY_RUN;
    let outcome = match landing.status {
        LandingStatus::Testing if is_dry => "would_land",
        LandingStatus::Testing | LandingStatus::Moving => "queued",
        status => status.as_str(),
    };
    value["outcome"] = json!(outcome);
    if landing.status == LandingStatus::Landed {
        value["commit"] = json!(landing.new_tip);
    }
    if value.get("conflicts").is_none() {
        value["conflicts"] = json!([]);
    }
    value
}

/// The same as part of an answer.
pub fn serialize<S: Serializer>(
    landing: &Option<Landing>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    landing.as_ref().map(as_json).serialize(serializer)
}
