//! What may happen to a landing: `(landing, input, now) -> (landing, change)` or a refusal.

use jiff::Timestamp;

use crate::event::{Change, EventKind};
use crate::landing::{Landing, LandingInput, LandingRefusal, LandingStatus, Reason};

/// Puts a landing into the queue.
pub fn queue(landing: Landing) -> (Landing, Change) {
    let landing = Landing {
        status: LandingStatus::Queued,
        ..landing
    };
    let change = Change::landing(EventKind::LANDING_QUEUED, landing.clone());
    (landing, change)
}

/// Decides one input. Nothing leaves a final state.
pub fn decide(
    landing: &Landing,
    input: LandingInput,
    now: Timestamp,
) -> Result<(Landing, Change), LandingRefusal> {
    let Some((status, kind)) = follows(landing.status, &input) else {
        return Err(LandingRefusal {
            id: landing.id,
            from: landing.status,
            input: Box::new(input),
        });
    };
    let mut next = Landing {
        status,
        updated_at: now,
        ..landing.clone()
    };
    let error = apply(&mut next, input);
    next.intent = next.intent.filter(|_| status == LandingStatus::Moving);
    if !matches!(status, LandingStatus::Moving | LandingStatus::Landed) {
        next.signature = None;
    }
    Ok((next.clone(), Change::landing(kind, next).with_error(error)))
}

/// The table: which status and which event follow; `None` where the input makes no sense.
fn follows(from: LandingStatus, input: &LandingInput) -> Option<(LandingStatus, EventKind)> {
    use EventKind as Kind;
    use LandingInput as In;
    use LandingStatus::*;
    let next = match (input, from) {
        (In::Test { .. }, Queued | Testing) => (Testing, Kind::LANDING_TESTING),
        (In::Move { .. }, Queued | Testing) => (Moving, Kind::LANDING_MOVING),
        (In::Land, Moving) => (Landed, Kind::LANDING_LANDED),
        (In::Requeue, Testing | Moving) => (Queued, Kind::LANDING_QUEUED),
        (In::NothingToLand, Queued | Testing) => (NothingToLand, Kind::LANDING_NOTHING),
        (In::Conflict { .. }, Queued | Testing) => (Conflict, Kind::LANDING_CONFLICT),
        (In::Red { .. }, Queued | Testing) => (Red, Kind::LANDING_RED),
        (In::Refuse(_), Queued | Testing | Moving) => (Refused, Kind::LANDING_REFUSED),
        (In::Drop, Queued | Testing) => (Dropped, Kind::LANDING_DROPPED),
        (In::CleanedUp(_), Landed | NothingToLand) => (from, Kind::LANDING_CLEANED),
        (In::Kept(_), _) => (from, Kind::LANDING_KEPT_CHANGES),
        (In::Reverted { .. }, Landed) => (Landed, Kind::LANDING_REVERTED),
        _ => return None,
    };
    Some(next)
}

/// Writes what the input says into the record; answers the error it carries.
fn apply(landing: &mut Landing, input: LandingInput) -> Option<String> {
    match input {
        LandingInput::Test {
            old_tip,
            onto,
            new_tip,
        } => stands_between(landing, old_tip, onto, new_tip),
        LandingInput::Move {
            old_tip,
            onto,
            new_tip,
            intent,
            gate,
            signature,
        } => {
            stands_between(landing, old_tip, onto, new_tip);
            (landing.intent, landing.signature) = (Some(*intent), signature);
            landing.gate = gate.map(|gate| *gate);
        }
        LandingInput::Conflict { paths } => {
            landing.conflicts = paths;
            return Some(landing.conflicts.join("\n"));
        }
        LandingInput::Red { error, log } => {
            landing.log = log;
            landing.reason = Some(Reason {
                code: "gate_red".into(),
                message: error.clone(),
                hint: Some(format!("weald queue log {}", landing.id)),
                paths: Vec::new(),
            });
            return Some(error);
        }
        LandingInput::Refuse(reason) => {
            let error = reason.message.clone();
            landing.reason = Some(reason);
            return Some(error);
        }
        LandingInput::CleanedUp(cleanup) => landing.cleanup = Some(cleanup),
        LandingInput::Kept(kept) => {
            let error = kept.text();
            landing.kept_changes.retain(|known| !known.is_same(&kept));
            landing.kept_changes.push(kept);
            return Some(error);
        }
        LandingInput::Reverted { by } => landing.reverted_by = Some(by),
        LandingInput::Land
        | LandingInput::Requeue
        | LandingInput::NothingToLand
        | LandingInput::Drop => {}
    }
    None
}

fn stands_between(landing: &mut Landing, old_tip: String, onto: String, new_tip: String) {
    (landing.old_tip, landing.onto, landing.new_tip) = (Some(old_tip), Some(onto), Some(new_tip));
}
