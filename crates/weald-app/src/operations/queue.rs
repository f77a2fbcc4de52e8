//! The merge queue, to look at.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weald_core::id::LandingId;
use weald_core::landing::Landing;
use weald_core::queue::{QueueHolder, QueuePause};

use super::{Entry, Operation};
use crate::landing::as_json;
use crate::{Call, Failure, Landings};

pub(super) fn entries() -> Vec<Entry> {
    vec![Entry::of::<QueueStatus>(), Entry::of::<QueueLog>()]
}

/// Queued landings, and the process that works on them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueStatus {
    /// Those that have ended, too, newest first.
    pub all: bool,
    /// At most so many of all.
    pub limit: Option<usize>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Queued {
    pub queue: Vec<Value>,
    pub holder: Option<QueueHolder>,
    pub paused: Option<QueuePause>,
    #[serde(skip)]
    pub landings: Vec<Landing>,
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
            queue: shown.iter().map(as_json).collect(),
            holder: holder.filter(|holder| !landings.is_gone(holder)),
            paused: view.queue.paused,
            landings: shown,
        })
    }
}

/// The test output of a landing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueLog {
    pub landing: LandingId,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct LoggedLanding {
    pub landing: Value,
    pub log: PathBuf,
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
            landing: as_json(&landing),
            log,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }
}
