//! What a face shows of landings while they are worked or waited for: their stages, and the newest line of their tests. It comes
//! from the records and from the log, so it is the same whichever process works the queue.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use weald_core::id::LandingId;
use weald_core::landing::{Landing, LandingStatus};
use weald_core::queue::Queue;
use weald_core::store::StoreError;

use crate::progress::Stage;
use crate::{Engine, Trees, gate_log};

/// How often the records are read.
const POLL: Duration = Duration::from_millis(100);

/// How much of the end of a log is read for its last line.
const TAIL: u64 = 4 << 10;

/// What was shown of landings.
#[derive(Default)]
pub struct LandingWatch {
    /// The test command, as configured.
    command: String,
    /// How many stages of each.
    stages: BTreeMap<LandingId, usize>,
    waits_for: String,
    line: String,
}

impl LandingWatch {
    /// Has shown nothing yet. `command` is what tests them.
    pub fn new(command: &str) -> Self {
        let first = command.trim().lines().next().unwrap_or_default();
        Self {
            command: first.to_owned(),
            ..Self::default()
        }
    }

    /// Does `work`, and shows meanwhile what becomes of these landings.
    pub fn during<T>(
        &mut self,
        trees: &Trees<'_>,
        stage: &dyn Stage,
        ids: &[LandingId],
        work: impl FnOnce() -> T,
    ) -> T {
        if !stage.is_shown() {
            return work();
        }
        let (engine, private) = (trees.engine, trees.place.private());
        thread::scope(|scope| {
            let (working, ended) = mpsc::channel::<()>();
            scope.spawn(move || {
                loop {
                    let is_ended = ended.recv_timeout(POLL) != Err(RecvTimeoutError::Timeout);
                    self.look(engine, private, stage, ids);
                    if is_ended {
                        return;
                    }
                }
            });
            let done = work();
            drop(working);
            done
        })
    }

    /// Shows what is new. What can't be read is reported by the process that works the queue.
    pub fn look(&mut self, engine: &Engine, private: &Path, stage: &dyn Stage, ids: &[LandingId]) {
        let read = engine.look(|tx| -> Result<_, StoreError> {
            let own = ids.iter().map(|id| tx.landing(*id));
            let own: Vec<_> = own.collect::<Result<_, _>>()?;
            Ok((tx.queue()?, tx.open_landings()?, own))
        });
        let Ok((queue, open, own)) = read else { return };
        let first = open.iter().find(|landing| landing.status.is_open());
        let own: Vec<_> = own.into_iter().flatten().collect();
        for landing in &own {
            self.show_stages(landing, first, stage);
        }
        let at_work = own.iter().find(|one| is_at_work(one, first));
        let waiting = own.iter().find(|one| one.status.is_open());
        let shown = match (at_work, waiting, first) {
            (Some(landing), ..) => landing,
            (None, Some(waiting), Some(first)) => {
                self.show_wait(&queue, waiting, first, stage);
                first
            }
            _ => return,
        };
        if shown.status == LandingStatus::Testing
            && let Some(line) = last_line(private, shown).filter(|line| *line != self.line)
        {
            stage.line(&line);
            self.line = line;
        }
    }

    /// The stages that began since the last time. One that begins again, because the target moved, is shown again.
    fn show_stages(&mut self, landing: &Landing, first: Option<&Landing>, stage: &dyn Stage) {
        let stages = stages(landing, first, &self.command);
        let shown = self.stages.insert(landing.id, stages.len()).unwrap_or(0);
        let from = match stages.len() < shown {
            true => stages.len().saturating_sub(1),
            false => shown,
        };
        for text in &stages[from..] {
            stage.begins(text);
            self.waits_for.clear();
        }
    }

    fn show_wait(&mut self, queue: &Queue, waiting: &Landing, first: &Landing, stage: &dyn Stage) {
        let what = format!("landing {} ({})", first.id, first.tree);
        let holder = queue.holder.as_ref();
        let text = match holder.filter(|holder| Some(&holder.process) != waiting.waiter.as_ref()) {
            None => format!("Waiting: {what} is first in the queue"),
            Some(holder) => {
                let of = holder.session.as_ref();
                let of = of.map_or(String::new(), |name| format!(" ({name})"));
                let does = match first.status {
                    LandingStatus::Testing => "is testing",
                    LandingStatus::Moving => "is finishing",
                    _ => "is preparing",
                };
                let pid = holder.process.pid;
                format!("Waiting: process {pid}{of} {does} {what}")
            }
        };
        if text != self.waits_for {
            stage.begins(&text);
            self.waits_for = text;
        }
    }
}

/// Whether something is done for a landing now, as opposed to one before it.
fn is_at_work(landing: &Landing, first: Option<&Landing>) -> bool {
    match landing.status {
        LandingStatus::Testing | LandingStatus::Moving => true,
        LandingStatus::Queued => first.is_some_and(|first| first.id == landing.id),
        _ => false,
    }
}

/// The stages that a landing has come to, in order. They follow from its record alone: one that is read late misses none.
fn stages(landing: &Landing, first: Option<&Landing>, command: &str) -> Vec<String> {
    use LandingStatus::{Landed, Moving, Queued, Red, Testing};
    let target = &landing.target;
    let what = match landing.reverts {
        Some(of) => format!("the revert of landing {of}"),
        None => landing.tree.to_string(),
    };
    let status = landing.status;
    if !is_at_work(landing, first) && matches!(status, Queued) {
        return Vec::new();
    }
    let mut stages = vec![format!("Merging {what} with {target}")];
    let gate = landing.gate.as_ref().filter(|gate| !gate.cached);
    if matches!(status, Testing | Red) || gate.is_some() {
        let command = gate.map_or(command, |gate| gate.command.lines().next().unwrap_or(""));
        stages.push(format!("Testing {what}: {command}"));
    }
    if matches!(status, Moving | Landed) {
        stages.push(format!("Moving {target} to {what}"));
    }
    if let (Landed, Some(tip)) = (status, &landing.new_tip) {
        let tip: String = tip.chars().take(7).collect();
        stages.push(format!("Landed {what} on {target} as {tip}"));
    }
    let cleanup = landing.cleanup.as_ref();
    if cleanup.is_some_and(|cleanup| cleanup.directory == "trashed") {
        stages.push(format!("Cleaned up {what}"));
    }
    stages
}

/// The last line that the tests of a landing printed so far.
fn last_line(private: &Path, landing: &Landing) -> Option<String> {
    let mut file = File::open(gate_log(private, landing)?).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))
        .ok()?;
    let mut end = Vec::new();
    file.take(TAIL).read_to_end(&mut end).ok()?;
    let end = String::from_utf8_lossy(&end);
    let mut lines = end.split(['\n', '\r']).map(str::trim);
    let line = lines.rfind(|line| !line.is_empty())?;
    // What stands above the output.
    let is_head = line.starts_with("$ ") || line.starts_with("began:");
    (!is_head).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use weald_core::Timestamp;
    use weald_core::id::TreeId;
    use weald_core::landing::{Cleanup, GateReceipt};
    use weald_core::tree::{Base, Tree};

    use super::*;

    #[test]
    fn u3_the_stages_follow_from_the_record_alone() {
        let base = Base {
            reference: "main".into(),
            commit: "0".repeat(40),
        };
        let now = Timestamp::UNIX_EPOCH;
        let tree = Tree::new(TreeId(1), "fix".parse().unwrap(), "/fix".into(), base, now);
        let landing = |id, status| Landing {
            status,
            target: "main".to_owned(),
            new_tip: Some("1234567890".to_owned()),
            ..Landing::new(LandingId(id), &tree, "2".repeat(40), now)
        };
        let receipt = |cached| GateReceipt {
            key: String::new(),
            tree: String::new(),
            command: "make check".to_owned(),
            at: now,
            took_ms: 1,
            attempts: 1,
            cached,
            log: None,
        };
        let landed = |cached| Landing {
            gate: Some(receipt(cached)),
            cleanup: Some(Cleanup {
                directory: "trashed".to_owned(),
                ..Cleanup::default()
            }),
            ..landing(2, LandingStatus::Landed)
        };
        let merging = "Merging fix with main";
        let testing = "Testing fix: npm test";
        let end = [
            "Moving main to fix",
            "Landed fix on main as 1234567",
            "Cleaned up fix",
        ];
        let first = landing(1, LandingStatus::Testing);
        for (landing, expected) in [
            (landing(1, LandingStatus::Queued), vec![merging]),
            (landing(2, LandingStatus::Queued), vec![]),
            (landing(2, LandingStatus::Testing), vec![merging, testing]),
            (landing(2, LandingStatus::Red), vec![merging, testing]),
            (landed(true), [&[merging], &end[..]].concat()),
            (
                landed(false),
                [&[merging, "Testing fix: make check"], &end[..]].concat(),
            ),
        ] {
            assert_eq!(stages(&landing, Some(&first), "npm test"), expected);
        }
    }
}
