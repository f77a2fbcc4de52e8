//! The merge queue, to look at.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weald_core::id::LandingId;
use weald_core::landing::{Landing, LandingStatus};
use weald_core::meant::{Counts, Word};
use weald_core::queue::{QueueHolder, QueuePause};

use super::Operation;
use super::landing::LandingView;
use crate::progress::Output;
use crate::{Call, Failure, Ground, Landings, gate_log};

entries!(QueueStatus, QueueLog, FollowQueueLog);

/// How often the log of a gate is read while somebody follows it.
const POLL: Duration = Duration::from_millis(100);

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

/// The test output of a landing, as far as there is any.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueLog {
    /// The one that is tested now, or the last that was, unless given.
    pub landing: Option<Word>,
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
        let id = meant(call, &ground, self.landing.as_ref())?;
        let (landing, log) = logged(call, &ground, id)?;
        let log = log.ok_or_else(|| Failure::no_log(Some(&landing)))?;
        let bytes = std::fs::read(&log).map_err(|error| Failure::file(&log, &error))?;
        Ok(LoggedLanding {
            landing: landing.into(),
            log,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }
}

/// The landing that is named, if one is.
fn meant(
    call: &Call<'_>,
    ground: &Ground,
    word: Option<&Word>,
) -> Result<Option<LandingId>, Failure> {
    word.map(|word| ground.landing(call, word, Counts::All))
        .transpose()
}

/// A landing and its log: the named one, or else the one that is tested now, or else the last that was tested.
fn logged(
    call: &Call<'_>,
    ground: &Ground,
    id: Option<LandingId>,
) -> Result<(Landing, Option<PathBuf>), Failure> {
    let trees = ground.trees(call)?;
    let landings = Landings::new(&trees);
    if let Some(id) = id {
        let landing = landings.landing(id)?;
        let log = gate_log(ground.place.private(), &landing);
        return Ok((landing, log));
    }
    let all = landings.landings(usize::MAX)?;
    let is_tested = |landing: &&Landing| landing.status == LandingStatus::Testing;
    let running = all
        .iter()
        .filter(is_tested)
        .min_by_key(|landing| landing.id);
    let mut newest = running.into_iter().chain(&all).filter_map(|landing| {
        let log = gate_log(ground.place.private(), landing)?;
        Some((landing.clone(), Some(log)))
    });
    newest.next().ok_or_else(|| Failure::no_log(None))
}

/// Shows the test output of a landing while it comes, until the landing has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowQueueLog {
    /// The one that is tested now, or the last that was, unless given.
    pub landing: Option<Word>,
}

/// Nothing: the log was shown while the operation ran.
#[derive(Debug, Serialize)]
pub struct FollowedLog {}

impl Operation for FollowQueueLog {
    const NAME: &'static str = "queue_log_follow";
    const READS: bool = true;
    const TAKES_STREAMS: bool = true;
    type Output = FollowedLog;

    fn run(self, call: &Call<'_>) -> Result<FollowedLog, Failure> {
        let ground = call.ground()?;
        let id = meant(call, &ground, self.landing.as_ref())?;
        let id = logged(call, &ground, id)?.0.id;
        let mut output = call.progress.output();
        let mut open: Option<(PathBuf, File)> = None;
        loop {
            // The record first: what it says has ended wrote its last line before.
            let (landing, log) = logged(call, &ground, Some(id))?;
            let mut is_read = show(&mut output, &mut open)?;
            if let Some(log) = log.filter(|log| open.as_ref().is_none_or(|(open, _)| open != log)) {
                let file = File::open(&log).map_err(|error| Failure::file(&log, &error))?;
                open = Some((log, file));
                is_read = show(&mut output, &mut open)?;
            }
            if !landing.status.is_open() && open.is_none() {
                return Err(Failure::no_log(Some(&landing)));
            }
            if !landing.status.is_open() || !is_read {
                return Ok(FollowedLog {});
            }
            std::thread::sleep(POLL);
        }
    }
}

/// Shows what came since the last time; false when nobody reads any more.
fn show(output: &mut Output, open: &mut Option<(PathBuf, File)>) -> Result<bool, Failure> {
    let Some((path, file)) = open else {
        return Ok(true);
    };
    let mut news = Vec::new();
    file.read_to_end(&mut news)
        .map_err(|error| Failure::file(path, &error))?;
    output(&news)
}
