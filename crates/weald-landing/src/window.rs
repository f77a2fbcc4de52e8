//! One turn at the queue: one landing after the other, with the gates of the next ones running ahead.
//!
//! The window holds candidates, each made on top of the one before it. Only the first is ever judged: its gate tested
//! exactly what the target becomes. When it does not land, everything behind it is made and tested again without it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::Scope;
use std::time::Duration;

use weald_core::id::LandingId;
use weald_core::landing::{GateReceipt, Landing, LandingInput, LandingStatus};
use weald_core::queue::QueueRefusal;
use weald_core::session::ProcessState;
use weald_core::store::Durability;

use super::beginning::Ahead;
use super::candidate::{Candidate, Made};
use super::error::{LandError, refusal_of};
use super::gate::{GateRequest, Verdict};
use super::lander::QueueEnd;
use super::moving::{MoveRequest, TargetHold};
use super::queue::Lease;
use super::source::{LandRequest, OnConflict};
use super::unfinished::Blocked;
use crate::Landings;
use crate::refusal::Refusal;
use weald_control::steps::step;

/// How long waiting for a gate looks away.
const GLANCE: Duration = Duration::from_millis(250);

/// How often a landing begins again because the target moved under it.
const ATTEMPTS: u32 = 50;

/// How often before the target is held still meanwhile, where no gate has to be waited for.
const PATIENCE: u32 = 3;

/// A landing with its candidate, and the gate that runs for it.
pub(super) struct Slot {
    pub(super) landing: Landing,
    /// Where the target must be when this one lands.
    pub(super) before: String,
    pub(super) candidate: Candidate,
    verdict: Receiver<Result<Verdict, LandError>>,
    cancel: Arc<AtomicBool>,
    /// Whether the repository's settings are others after it.
    changes_settings: bool,
    /// Keeps others from moving the target until this one has.
    hold: Option<TargetHold>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Release);
    }
}

/// What became of the attempt to make a candidate.
enum Attempt {
    Slot(Box<Slot>),
    /// It ends like this, if it is the first in the window.
    Ends(LandingInput),
    /// It can't be judged before those ahead have ended.
    Later,
}

/// How a slot ended.
enum Ended {
    /// It is on the target.
    Landed,
    /// It is not, or is another commit: those behind it have to be made again.
    Without,
}

pub(super) struct Turn<'t, 'a> {
    pub(super) landings: &'t Landings<'a>,
    pub(super) lease: &'t Lease,
    mine: &'t [LandingId],
    request: &'t LandRequest,
    lost: &'t AtomicBool,
    pub(super) window: VecDeque<Slot>,
    attempts: BTreeMap<LandingId, u32>,
    /// What the remotes have on top of targets; asked once a turn.
    remotes: BTreeMap<String, Result<Option<String>, Box<Refusal>>>,
    /// Targets that nothing can land on.
    blocked: Option<&'t Blocked>,
}

impl<'t, 'a> Turn<'t, 'a> {
    pub(super) fn new(
        landings: &'t Landings<'a>,
        lease: &'t Lease,
        mine: &'t [LandingId],
        request: &'t LandRequest,
        lost: &'t AtomicBool,
    ) -> Self {
        Self {
            landings,
            lease,
            mine,
            request,
            lost,
            window: VecDeque::new(),
            attempts: BTreeMap::new(),
            remotes: BTreeMap::new(),
            blocked: None,
        }
    }

    /// Lets nothing land on these targets.
    pub(super) fn without(mut self, blocked: &'t Blocked) -> Self {
        self.blocked = Some(blocked);
        self
    }

    /// Works until nothing is left for this process.
    pub(super) fn work<'scope>(
        mut self,
        scope: &'scope Scope<'scope, 't>,
    ) -> Result<QueueEnd, LandError> {
        loop {
            self.require_lease()?;
            if self.landings.queue()?.queue.paused.is_some() {
                return Ok(QueueEnd::Paused);
            }
            if self.window.is_empty() && self.next()?.is_some() && self.landings.settings_moved()? {
                return Ok(QueueEnd::Reload);
            }
            self.fill(scope)?;
            let Some(front) = self.window.pop_front() else {
                match self.next()?.is_some() {
                    true => continue,
                    false => return Ok(QueueEnd::Done),
                }
            };
            match self.conclude(front)? {
                Ended::Landed => {}
                // Those behind were made on top of something that is not there.
                Ended::Without => self.window.clear(),
            }
        }
    }

    fn require_lease(&self) -> Result<(), LandError> {
        self.landings.go_on()?;
        match self.lost.load(Ordering::Acquire) {
            true => Err(QueueRefusal::Stale {
                given: self.lease.token,
                current: self.lease.token.next(),
            }
            .into()),
            false => Ok(()),
        }
    }

    /// The next landing for the window. When the caller's own have ended, only those go on that nobody waits for.
    fn next(&self) -> Result<Option<Landing>, LandError> {
        let open = self.landings.queue()?.open;
        let is_own = |landing: &Landing| self.mine.is_empty() || self.mine.contains(&landing.id);
        let own_left = open.iter().any(is_own);
        let next = open.into_iter().find(|landing| {
            landing.status != LandingStatus::Moving
                && self.window.iter().all(|slot| slot.landing.id != landing.id)
        });
        let unattended = |landing: &Landing| {
            let processes = &self.landings.trees.engine.processes;
            let waiter = landing.waiter.as_ref();
            waiter.is_none_or(|one| processes.state(one) == ProcessState::Gone)
        };
        Ok(next.filter(|landing| own_left || unattended(landing)))
    }

    /// Fills the window. What can't land is recorded once it is the first.
    fn fill<'scope>(&mut self, scope: &'scope Scope<'scope, 't>) -> Result<(), LandError> {
        let parallel = self.landings.trees.config.landing_parallel;
        while self.window.len() < parallel {
            let Some(landing) = self.next()? else {
                return Ok(());
            };
            let last = self.window.back();
            if last.is_some_and(|last| last.landing.target != landing.target) {
                return Ok(());
            }
            let attempt = match self.attempt(scope, &landing) {
                // Somebody took it out of the queue, or the target moved: look again.
                Err(LandError::Rule(_) | LandError::Outrun(_)) => return Ok(()),
                Err(error) => Attempt::Ends(refusal_of(error)?),
                Ok(attempt) => attempt,
            };
            match attempt {
                Attempt::Slot(slot) => self.window.push_back(*slot),
                // It may be different when those ahead have ended.
                Attempt::Ends(_) if !self.window.is_empty() => return Ok(()),
                Attempt::Later => return Ok(()),
                Attempt::Ends(end) => return self.end(&landing, end),
            }
        }
        Ok(())
    }

    fn attempt<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, 't>,
        landing: &Landing,
    ) -> Result<Attempt, LandError> {
        if let Some(blocked) = self.blocked {
            blocked.require_free(&landing.target)?;
        }
        let count = self.attempts.entry(landing.id).or_default();
        *count += 1;
        if *count > ATTEMPTS {
            return Err(
                Refusal::TargetKeepsMoving(landing.tree.clone(), landing.target.clone()).into(),
            );
        }
        let is_impatient = *count > PATIENCE && self.window.is_empty();
        let hold = match is_impatient && self.landings.gate_command()?.is_none() {
            true => self.landings.hold_target(landing.id, &landing.target)?,
            false => None,
        };
        let (before, tip) = match self.window.back() {
            Some(last) => (last.candidate.commit.clone(), last.candidate.commit.clone()),
            None => self.tip(&landing.target)?,
        };
        if self.window.iter().any(|slot| slot.is_before(landing)) {
            return Ok(Attempt::Later);
        }
        let ahead: Vec<Ahead> = self.window.iter().map(Slot::as_ahead).collect();
        let candidate = match self.landings.candidate_of(landing, &tip, &ahead)? {
            Made::Candidate(candidate) => candidate,
            Made::Nothing => return Ok(Attempt::Ends(LandingInput::NothingToLand)),
            Made::Conflict(paths) => return Ok(Attempt::Ends(LandingInput::Conflict { paths })),
        };
        self.landings.require_consent(landing, &candidate)?;
        let landing = landing.clone();
        let mut slot = self.start_gate(scope, landing, before, candidate)?;
        slot.hold = hold;
        Ok(Attempt::Slot(Box::new(slot)))
    }

    /// Where a target is, and what a candidate is made on top of: what the remote has more than that, if anything.
    fn tip(&mut self, target: &str) -> Result<(String, String), LandError> {
        let landings = self.landings;
        let here = landings.landing_tip(target)?;
        if !self.remotes.contains_key(target) {
            let found = match landings.fetch_landing_target(target) {
                Ok(fetched) => {
                    fetched
                        .note
                        .into_iter()
                        .for_each(|note| landings.trees.engine.notice(note));
                    Ok(fetched.ahead)
                }
                // A remote that does not answer is not waited for again.
                Err(LandError::Refused(refusal)) => Err(refusal),
                Err(error) => return Err(error),
            };
            self.remotes.insert(target.to_owned(), found);
        }
        let remote = match self.remotes.get(target) {
            Some(Err(refusal)) => return Err(LandError::Refused(refusal.clone())),
            Some(Ok(remote)) => remote.clone(),
            None => None,
        };
        let wanted: Vec<&str> = std::iter::once(here.as_str())
            .chain(remote.as_deref())
            .collect();
        landings
            .trees
            .vault()
            .require(&landings.trees.main_refs()?, &wanted)?;
        match remote {
            Some(remote) if !landings.trees.contains(&here, &remote)? => Ok((here, remote)),
            _ => Ok((here.clone(), here)),
        }
    }

    /// Starts the gate of a candidate; without one its verdict is there at once.
    fn start_gate<'scope>(
        &self,
        scope: &'scope Scope<'scope, 't>,
        landing: Landing,
        before: String,
        candidate: Candidate,
    ) -> Result<Slot, LandError> {
        let (sender, verdict) = mpsc::channel();
        let cancel = Arc::new(AtomicBool::new(false));
        let landing = match self.landings.gate_command()? {
            None => landing,
            Some(command) => {
                if self.window.is_empty() {
                    self.landings.precheck_move(&MoveRequest {
                        landing: landing.id,
                        target: &landing.target,
                        old: &before,
                        new: &candidate.commit,
                        fence: &self.lease.fence,
                    })?;
                }
                let test = LandingInput::Test {
                    old_tip: before.clone(),
                    onto: candidate.onto.clone(),
                    new_tip: candidate.commit.clone(),
                };
                let landing =
                    self.landings
                        .advance(self.lease, landing.id, Durability::Process, test)?;
                let (landings, commit) = (self.landings, candidate.commit.clone());
                let (id, cancel) = (landing.id, Arc::clone(&cancel));
                scope.spawn(move || {
                    let request = GateRequest {
                        landing: id,
                        candidate: &commit,
                        command: &command,
                    };
                    // Nobody listens any more when the window was made anew.
                    let _ = sender.send(landings.run_gate(&request, &cancel));
                });
                landing
            }
        };
        let parallel = self.landings.trees.config.landing_parallel;
        Ok(Slot {
            // Alone in the window, the settings are read again after it anyway.
            changes_settings: parallel > 1
                && self
                    .landings
                    .settings_differ(&candidate.onto, &candidate.commit)?,
            landing,
            before,
            candidate,
            verdict,
            cancel,
            hold: None,
        })
    }

    /// Waits for the gate of the first in the window, and lands it or not.
    fn conclude(&mut self, slot: Slot) -> Result<Ended, LandError> {
        let verdict = loop {
            match slot.verdict.recv_timeout(GLANCE) {
                Ok(verdict) => break Some(verdict),
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) => {
                    self.require_lease()?;
                    if !self.landings.landing(slot.landing.id)?.status.is_open() {
                        return Ok(Ended::Without);
                    }
                }
            }
        };
        if !matches!(verdict, None | Some(Ok(Verdict::Green(_)))) {
            // What a signal cut short says nothing about the work.
            self.landings.go_on()?;
        }
        let receipt = match verdict {
            None => None,
            Some(Ok(Verdict::Green(receipt))) => Some(Box::new(receipt)),
            Some(Ok(Verdict::Cancelled)) => return Ok(Ended::Without),
            Some(Ok(Verdict::Red { why, log })) => {
                let red = LandingInput::Red {
                    error: why,
                    log: Some(log),
                };
                self.end(&slot.landing, red)?;
                return Ok(Ended::Without);
            }
            Some(Err(error)) => {
                self.end(&slot.landing, refusal_of(error)?)?;
                return Ok(Ended::Without);
            }
        };
        // Paused while it was tested: its receipt counts when the queue goes on.
        if self.landings.queue()?.queue.paused.is_some() {
            return Ok(Ended::Without);
        }
        match self.move_target(&slot, receipt) {
            Ok(landed) => {
                self.landings.settle(&landed)?;
                let tip = landed.new_tip.unwrap_or_default();
                Ok(match self.follow_signature(&slot.candidate.commit, &tip) {
                    Ok(()) => Ended::Landed,
                    Err(_) => Ended::Without,
                })
            }
            // The next round begins where the target is then.
            Err(LandError::Outrun(_) | LandError::Rule(_)) => Ok(Ended::Without),
            Err(error) => {
                self.end(&slot.landing, refusal_of(error)?)?;
                Ok(Ended::Without)
            }
        }
    }

    fn move_target(
        &self,
        slot: &Slot,
        gate: Option<Box<GateReceipt>>,
    ) -> Result<Landing, LandError> {
        let (landings, id) = (self.landings, slot.landing.id);
        step("land.ready");
        if landings.landing_tip(&slot.landing.target)? != slot.before {
            return Err(LandError::Outrun(slot.landing.target.clone()));
        }
        let (candidate, signature) = landings.signed(&slot.landing, &slot.candidate)?;
        let prepared = landings.prepare_move(&MoveRequest {
            landing: id,
            target: &slot.landing.target,
            old: &slot.before,
            new: &candidate.commit,
            fence: &self.lease.fence,
        })?;
        let moves = LandingInput::Move {
            old_tip: slot.before.clone(),
            onto: candidate.onto.clone(),
            new_tip: candidate.commit.clone(),
            intent: Box::new(prepared.intent()),
            gate,
            signature,
        };
        landings.advance(self.lease, id, Durability::Power, moves)?;
        step("land.intent");
        match landings.perform_move(prepared) {
            Ok(()) => {}
            Err(outrun @ LandError::Outrun(_)) => {
                landings.advance(self.lease, id, Durability::Process, LandingInput::Requeue)?;
                return Err(outrun);
            }
            Err(error) => return Err(error),
        }
        step("land.moved");
        landings.advance(self.lease, id, Durability::Power, LandingInput::Land)
    }

    /// Records an end other than landing, and what follows from it.
    fn end(&self, landing: &Landing, input: LandingInput) -> Result<(), LandError> {
        let conflicts = matches!(input, LandingInput::Conflict { .. });
        let ended = match self.landings.end_unlanded(self.lease, landing.id, input) {
            // Somebody took it out of the queue.
            Err(LandError::Rule(_)) => return Ok(()),
            ended => ended?,
        };
        self.landings.settle_unlanded(&ended)?;
        if !conflicts || !self.mine.contains(&landing.id) {
            return Ok(());
        }
        if self.request.stop_on_conflict || self.request.on_conflict == OnConflict::Leave {
            for id in self.mine.iter().filter(|id| **id > landing.id) {
                match self.landings.drop_landing(*id) {
                    Ok(_) | Err(LandError::Rule(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

impl Slot {
    /// Whether nothing can be said of `other` before this one has ended: what it undoes, or which settings hold then.
    fn is_before(&self, other: &Landing) -> bool {
        self.changes_settings
            || (self.landing.reverts.is_some() && self.landing.tree_id == other.tree_id)
    }

    fn as_ahead(&self) -> Ahead {
        Ahead {
            tree: self.landing.tree_id,
            head: self.landing.head.clone(),
            tip: self.candidate.commit.clone(),
        }
    }
}
