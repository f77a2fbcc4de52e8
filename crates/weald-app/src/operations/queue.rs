//! The merge queue, to look at.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weald_core::id::LandingId;
use weald_core::queue::{QueueHolder, QueuePause};

use super::Operation;
use super::landing::LandingView;
use crate::{Call, Failure, Landings};

entries!(QueueStatus, QueueLog);

/// Queued landings, and the process that works on them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueStatus {
    /// Those that have ended, too, newest first.
    pub all: bool,
    /// At most so many of all.
    pub limit: Option<usize>,
}

/// The queue as it is now.
#[derive(Debug, Serialize)]
pub struct Queued {
    /// In the order in which they land, or newest first if ended ones were asked for, too.
    pub queue: Vec<LandingView>,
    /// The process that works it, unless that is known to have ended.
    pub holder: Option<QueueHolder>,
    /// While it is paused nothing lands.
    pub paused: Option<QueuePause>,
}

impl Operation for QueueStatus {
    const NAME: &'static str = "queue_status";
    const READS: bool = true;
    type Output = Queued;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<Queued, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let landings = Landings::new(&trees);
        let view = landings.queue()?;
        let holder = view.queue.holder;
        let shown = match self.all {
            true => landings.landings(self.limit.unwrap_or(50))?,
            false => view.open,
        };
        Ok(Queued {
            queue: shown.into_iter().map(LandingView::from).collect(),
            holder: holder.filter(|holder| !landings.is_gone(holder)),
            paused: view.queue.paused,
        })
    }
}

/// The test output of a landing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueLog {
    /// One that was tested.
    pub landing: LandingId,
}

/// What the last test of a landing printed.
#[derive(Debug, Serialize)]
pub struct LoggedLanding {
    landing: LandingView,
    /// The file that has it.
    log: PathBuf,
    /// All of it, as far as it was kept.
    pub text: String,
}

impl Operation for QueueLog {
    const NAME: &'static str = "queue_log";
    const READS: bool = true;
    type Output = LoggedLanding;

    fn run(self, call: &Call<'_>) -> Result<LoggedLanding, Failure> {
        let ground = call.ground()?;
        let landing = Landings::new(&ground.trees(call)?).landing(self.landing)?;
        let gate = landing.gate.as_ref().and_then(|gate| gate.log.clone());
        let log = landing.log.clone().or(gate);
        let log = log.ok_or_else(|| Failure::no_log(self.landing))?;
        let bytes = std::fs::read(&log).map_err(|error| Failure::file(&log, &error))?;
        Ok(LoggedLanding {
            landing: landing.into(),
            log,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }
}
