//! Bringing work to its target, taking it back, and the queue in which that happens.

use std::ops::Not;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weald_core::config::Gate;
use weald_core::id::{LandingId, TaskId, Token};
use weald_core::landing::{Landing, LandingStatus, RevertCause, Strategy};
use weald_core::landing_message::WORK_IN_PROGRESS;
use weald_core::meant::{Counts, Word};
use weald_core::queue::QueuePause;
use weald_core::tree::Tree;

use super::{Broker, Inside, Operation, asked};
use crate::landing::{Beside, Mode, as_json, exit_of, test_output, work_landings};
use crate::{
    Ask, Call, CommitScope, Failure, Ground, LandRequest, LandWish, Landings, LeftConflict,
    OnConflict, Verification, exit,
};

entries!(
    LandTrees,
    RevertLanding,
    VerifyTarget,
    PauseQueue,
    ResumeQueue,
    DropLanding,
    RetryLanding,
    RecoverLanding
);

/// The longest message of a commit that lands.
const LONGEST: usize = 64 << 10;

/// A landing as programs see it, and the conflict that it left in a checkout, if it left one.
#[derive(Debug)]
pub struct LandingView {
    /// Its record.
    pub landing: Landing,
    /// Waits in the checkout of the target for a person.
    pub left: Option<LeftConflict>,
    /// The last lines that its tests printed, if they failed.
    pub test_output: Option<String>,
}

impl LandingView {
    /// A landing that was waited for, with what its tests printed if they failed.
    pub fn ended(landing: Landing) -> Self {
        Self {
            test_output: test_output(&landing),
            ..landing.into()
        }
    }
}

impl Serialize for LandingView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = as_json(&self.landing);
        if let Some(left) = &self.left {
            value["left"] = left.path.to_string_lossy().into();
        }
        if let Some(output) = &self.test_output {
            value["test_output"] = output.as_str().into();
        }
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LandingView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Told {
            #[serde(flatten)]
            landing: Landing,
            #[serde(default)]
            test_output: Option<String>,
        }
        let told = Told::deserialize(deserializer)?;
        Ok(Self {
            test_output: told.test_output,
            ..told.landing.into()
        })
    }
}

impl From<Landing> for LandingView {
    fn from(landing: Landing) -> Self {
        Self {
            landing,
            left: None,
            test_output: None,
        }
    }
}

/// One landing.
#[derive(Debug, Serialize)]
pub struct OneLanding {
    /// As it is now.
    pub landing: LandingView,
    /// The exit code, if a signal decides it.
    #[serde(skip)]
    pub signal: Option<u8>,
}

impl From<Landing> for OneLanding {
    fn from(landing: Landing) -> Self {
        Self {
            landing: landing.into(),
            signal: None,
        }
    }
}

/// What became of landings.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Landed {
    /// Those that were asked for, or that were open.
    pub landings: Vec<LandingView>,
    /// In a shell of `weald shell`: a person is asked when that ends, and nothing has landed yet.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub wished: bool,
    /// Where the caller's shell goes: the worktree that it was in is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<PathBuf>,
    /// Whether something landed that no test command was set up for: nobody should believe that it was tested.
    #[serde(skip)]
    pub untested: bool,
    /// The exit code, if a signal decides it.
    #[serde(skip)]
    pub signal: Option<u8>,
}

impl Landed {
    fn of(ground: &Ground, landings: Vec<Landing>, beside: &Beside, signal: Option<u8>) -> Self {
        let config = ground.config();
        let is_set = !config.gate_command.is_empty() || config.policy_gate == Gate::None;
        let is_untested =
            |landing: &Landing| landing.status == LandingStatus::Landed && landing.gate.is_none();
        let untested = !is_set && landings.iter().any(is_untested);
        let view = |landing: Landing| LandingView {
            left: beside.left_by(&landing).cloned(),
            ..LandingView::ended(landing)
        };
        Self {
            landings: landings.into_iter().map(view).collect(),
            untested,
            signal,
            ..Self::default()
        }
    }

    fn exit(&self) -> u8 {
        let landings = self.landings.iter().map(|view| &view.landing);
        self.signal.unwrap_or_else(|| exit_of(landings))
    }
}

/// Works the queue until `ids` have ended.
fn worked(
    call: &Call<'_>,
    ground: Ground,
    ids: &[LandingId],
    request: &LandRequest,
    mode: Mode,
) -> Result<Landed, Failure> {
    let worked = work_landings(call, ground, ids, request, mode)?;
    call.tell(&worked.ground.engine);
    let (landings, beside) = (worked.landings, worked.beside);
    Ok(Landed::of(&worked.ground, landings, &beside, worked.exit))
}

/// Tests worktrees and merges them into their target, in the order of their tasks' dependencies. Without names it is the
/// worktree that the caller is in; outside of worktrees the queue is worked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LandTrees {
    /// Worktrees, or their tasks.
    pub names: Vec<String>,
    /// As configured unless given.
    pub strategy: Option<Strategy>,
    /// Queue it; the next process on the queue lands it.
    pub no_wait: bool,
    /// Only say what would happen.
    pub dry_run: bool,
    /// Keep the worktree, its branch and its record.
    pub keep: bool,
    /// Land even if its task, report or phase is not ready.
    pub force: bool,
    /// A conflict takes those behind it out of the queue.
    pub stop_on_conflict: bool,
    /// What becomes of one.
    pub at_conflict: OnConflict,
    /// Commit these changes before.
    pub commit: Option<CommitScope>,
    /// The message of the commit that lands, and of one that is made before.
    pub message: Option<String>,
    /// For the task that this completes.
    pub report: Option<String>,
    /// The caller's shell leaves the worktree that it is in if that is removed, so being in it does not keep it.
    pub leaves: bool,
}

impl Operation for LandTrees {
    const NAME: &'static str = "land";
    type Output = Landed;

    fn validate(&self) -> Result<(), Failure> {
        if self.dry_run && (self.no_wait || self.report.is_some()) {
            return Err(Failure::dry_run_alone());
        }
        let message = self.message.as_deref();
        match message.map(|message| (message.trim().is_empty(), self.names.len())) {
            Some((true, _)) => Err(Failure::bad_message("the message is empty")),
            Some(_) if message.is_some_and(|text| text.len() > LONGEST || text.contains('\0')) => {
                Err(Failure::bad_message(
                    "a message has at most 64 KiB and no NUL",
                ))
            }
            Some((_, 2..)) => Err(Failure::bad_message(
                "one message can't name the work of several worktrees",
            )),
            _ => Ok(()),
        }
    }

    fn run(self, call: &Call<'_>) -> Result<Landed, Failure> {
        let ground = call.landing_ground()?;
        match (self.leaves, ground.place.inside()) {
            (true, Some(_)) => self.run_and_leave(call, &ground),
            _ => self.run_here(call, ground),
        }
    }

    /// A run lands its own commits, as configured; its worktree stays. In a shell it is a wish.
    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<Landed> {
        if self.names.len() > 1 || self.at_conflict == OnConflict::Leave || self.force {
            return Some(Err(Failure::not_allowed_inside()));
        }
        let wish = LandWish {
            tree: call.anywhere(self.names.first().map(String::as_str)),
            strategy: self.strategy,
            report: self.report.clone(),
            dry_run: self.dry_run,
            no_wait: self.no_wait,
            keep: self.keep,
            commit: self.commit,
            message: self.message.clone(),
        };
        Some(asked(broker, call, Ask::Land(wish)))
    }

    fn exit(landed: &Landed) -> u8 {
        landed.exit()
    }
}

impl LandTrees {
    /// Lands as from the main checkout.
    fn run_and_leave(mut self, call: &Call<'_>, ground: &Ground) -> Result<Landed, Failure> {
        let named = self.names.iter().map(|word| ground.tree(call, word));
        let mut named = named.collect::<Result<Vec<_>, _>>()?;
        if named.is_empty() {
            named.push(ground.trees(call)?.named(None)?);
        }
        self.names = named.iter().map(|tree| tree.name.to_string()).collect();
        let main = ground.place.root();
        let app = &call.app.elsewhere(main.clone());
        let outside = Call { app, ..*call };
        let landed = self.run_here(&outside, outside.landing_ground()?)?;
        let is_gone = !call.directory().is_dir();
        Ok(Landed {
            back: is_gone.then(|| call.came_from(&main)),
            ..landed
        })
    }

    fn run_here(self, call: &Call<'_>, ground: Ground) -> Result<Landed, Failure> {
        ground.warn_of_settings(call);
        if self.force {
            call.refuse_agent("--force")?;
        }
        let trees = ground.trees(call)?;
        let named = self.names.iter().map(|word| ground.tree(call, word));
        let named = named.collect::<Result<Vec<_>, _>>()?;
        let request = self.request(call, &ground, &named)?;
        if self.dry_run {
            let found = Landings::new(&trees).dry_run(&request)?;
            call.tell(&ground.engine);
            return Ok(Landed::of(&ground, found, &Beside::default(), None));
        }
        let mode = match self.no_wait {
            true => {
                call.refuse_lost_settings()?;
                Mode::Queue
            }
            false => {
                call.refuse_settings_of_others(&trees)?;
                call.cancel.catch_hangup();
                Mode::Work
            }
        };
        let mut ids = Vec::new();
        if self.names.is_empty() && ground.place.inside().is_none() && self.message.is_some() {
            return Err(Failure::bad_message(
                "a message needs the worktree that it is for",
            ));
        }
        if !self.names.is_empty() || ground.place.inside().is_some() {
            let stage = call.stage("importing the commits");
            let queued = Landings::new(&trees).queue_landings(&request)?;
            drop(stage);
            ids.extend(queued.iter().map(|landing| landing.id));
        }
        drop(trees);
        worked(call, ground, &ids, &request, mode)
    }

    fn request(
        &self,
        call: &Call<'_>,
        ground: &Ground,
        named: &[Tree],
    ) -> Result<LandRequest, Failure> {
        let message = self.message.clone();
        let words = message.clone();
        let words = words.unwrap_or_else(|| WORK_IN_PROGRESS.to_owned());
        Ok(LandRequest {
            names: named.iter().map(|tree| tree.name.to_string()).collect(),
            strategy: self.strategy,
            no_wait: self.no_wait,
            keep: self.keep,
            interim: false,
            force: self.force,
            supervised: false,
            by_agent: call.agent_above(&ground.engine)?.is_some(),
            stop_on_conflict: self.stop_on_conflict,
            on_conflict: self.at_conflict,
            token: claim(call, named),
            report: self.report.clone(),
            message,
            commit: self.commit.map(|scope| (scope, words)),
            found: None,
        })
    }
}

/// The claim that the caller works under.
fn claim(call: &Call<'_>, named: &[Tree]) -> Option<(TaskId, Token)> {
    let task = match (call.caller.token, named) {
        (Some(_), [tree]) => tree.task.clone(),
        _ => {
            let own = call.environment.get("WEALD_TASK");
            own.and_then(|id| id.parse().ok())
        }
    };
    let token = task.as_ref().and_then(|task| call.token(task));
    task.zip(token)
}

/// Undoes a landing on its target, by a commit that goes through the same queue and gate.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevertLanding {
    /// One that has landed, or what landed last.
    pub landing: Word,
}

impl Operation for RevertLanding {
    const NAME: &'static str = "revert";
    type Output = OneLanding;

    fn run(self, call: &Call<'_>) -> Result<OneLanding, Failure> {
        let ground = call.landing_ground()?;
        let landing = ground.landing(call, &self.landing, Counts::Landed)?;
        let (ground, one) = reverted(call, ground, landing, RevertCause::Asked)?;
        call.tell(&ground.engine);
        Ok(one)
    }

    fn exit(one: &OneLanding) -> u8 {
        one.signal
            .unwrap_or_else(|| exit_of([&one.landing.landing]))
    }
}

/// Reverts a landing by the queue. With it comes the repository, with the configuration that held at the end.
pub(super) fn reverted(
    call: &Call<'_>,
    ground: Ground,
    landing: LandingId,
    cause: RevertCause,
) -> Result<(Ground, OneLanding), Failure> {
    call.cancel.catch_hangup();
    let id = Landings::new(&ground.trees(call)?)
        .queue_revert(landing, cause)?
        .id;
    let request = LandRequest::default();
    let worked = work_landings(call, ground, &[id], &request, Mode::Work)?;
    let mut landings = worked.landings.into_iter();
    let landing = landings.next().ok_or_else(Failure::bug)?;
    let one = OneLanding {
        landing: LandingView::ended(landing),
        signal: worked.exit,
    };
    Ok((worked.ground, one))
}

/// Finds commits on the target that bypassed the queue.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyTarget {
    /// Start after this commit, instead of before the first landing.
    pub since: Option<String>,
    /// The branch; as configured unless given.
    pub target: Option<String>,
}

impl Operation for VerifyTarget {
    const NAME: &'static str = "verify";
    const READS: bool = true;
    type Output = Verification;

    fn run(self, call: &Call<'_>) -> Result<Verification, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let (target, since) = (self.target.as_deref(), self.since.as_deref());
        Ok(Landings::new(&trees).verify(target, since)?)
    }

    fn exit(found: &Verification) -> u8 {
        match found.is_sound() {
            true => exit::DONE,
            false => exit::REFUSED,
        }
    }
}

/// Lands nothing until it is resumed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseQueue {
    /// Shown to processes that wait.
    pub reason: String,
}

/// Whether the queue is paused now.
#[derive(Debug, Serialize)]
pub struct Paused {
    /// Since when, and why.
    pub paused: Option<QueuePause>,
}

impl Operation for PauseQueue {
    const NAME: &'static str = "queue_pause";
    type Output = Paused;

    fn run(self, call: &Call<'_>) -> Result<Paused, Failure> {
        let ground = call.ground()?;
        let queue = Landings::new(&ground.trees(call)?).pause_queue(&self.reason)?;
        call.tell(&ground.engine);
        Ok(Paused {
            paused: queue.paused,
        })
    }
}

/// Ends a pause, and lands what waited.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResumeQueue {
    /// Only end the pause.
    pub no_work: bool,
}

impl Operation for ResumeQueue {
    const NAME: &'static str = "queue_resume";
    type Output = Landed;

    fn run(self, call: &Call<'_>) -> Result<Landed, Failure> {
        call.cancel.catch_hangup();
        let ground = call.landing_ground()?;
        Landings::new(&ground.trees(call)?).resume_queue()?;
        let mode = match self.no_work {
            true => Mode::Queue,
            false => Mode::Work,
        };
        worked(call, ground, &[], &LandRequest::default(), mode)
    }

    fn exit(landed: &Landed) -> u8 {
        landed.exit()
    }
}

/// Takes a landing out of the queue.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropLanding {
    /// One that has not begun to move the target.
    pub landing: Word,
}

impl Operation for DropLanding {
    const NAME: &'static str = "queue_drop";
    type Output = OneLanding;

    fn run(self, call: &Call<'_>) -> Result<OneLanding, Failure> {
        let ground = call.ground()?;
        let landing = ground.landing(call, &self.landing, Counts::All)?;
        let dropped = Landings::new(&ground.trees(call)?).drop_landing(landing)?;
        call.tell(&ground.engine);
        Ok(dropped.into())
    }
}

/// Queues a landing that failed once more, with the worktree as it is now.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryLanding {
    /// One that ended without landing.
    pub landing: Word,
}

impl Operation for RetryLanding {
    const NAME: &'static str = "queue_retry";
    type Output = Landed;

    fn run(self, call: &Call<'_>) -> Result<Landed, Failure> {
        call.cancel.catch_hangup();
        let ground = call.landing_ground()?;
        let landing = ground.landing(call, &self.landing, Counts::All)?;
        let id = Landings::new(&ground.trees(call)?)
            .retry_landing(landing)?
            .id;
        worked(call, ground, &[id], &LandRequest::default(), Mode::Work)
    }

    fn exit(landed: &Landed) -> u8 {
        landed.exit()
    }
}

/// Recovers a landing whose process is known to have ended by somebody who can see that; weald could not find out.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoverLanding {
    /// One that a killed process left in the middle of a move.
    pub landing: Word,
}

impl Operation for RecoverLanding {
    const NAME: &'static str = "queue_recover";
    type Output = OneLanding;

    fn run(self, call: &Call<'_>) -> Result<OneLanding, Failure> {
        let ground = call.ground()?;
        let landing = ground.landing(call, &self.landing, Counts::All)?;
        let landing = Landings::new(&ground.trees(call)?).recover_by_hand(landing)?;
        call.tell(&ground.engine);
        Ok(landing.into())
    }
}
