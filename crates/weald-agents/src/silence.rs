//! Silence: an agent that neither says nor does anything. Its owner is told, twice; then it counts as stalled.
//!
//! Output is seen as it comes. Whether files changed is looked at only after it was quiet for a while, by a visit, and at
//! most once a minute. One that is paused or waits for an answer is not silent.

use weald_core::agent::{AgentStatus, FinalReport, Verification, Wanted};
use weald_core::agent_rules::{AgentInput, Patience, Silence, silence};
use weald_core::config::OnStall;
use weald_core::message::{Draft, MessageType, Urgency};
use weald_core::store::Clock;
use weald_core::{SignedDuration, Timestamp};

use super::supervising::{Watch, Watched};
use weald_control::machine::SystemClock;
use weald_trees::inside::Unless;
use weald_trees::{Against, DiffStyle, TreeError};

/// The shortest time between two looks for changed files.
const LOOK: SignedDuration = SignedDuration::from_mins(1);

/// How much of a list of changed files stands in a report.
const STAT_LINES: usize = 40;

/// What is known of a silence.
#[derive(Default)]
pub(super) struct Quiet {
    /// Since then it can't be called silent: it was paused, or waited for an answer.
    excused: Option<Timestamp>,
    /// When its owner was last told.
    told: Option<Timestamp>,
    /// When its tree was last looked at, and what times and sizes came to; `None` if that could not be told.
    looked: Option<(Timestamp, Option<u64>)>,
}

impl Watch<'_, '_> {
    /// Its silence begins anew.
    pub(super) fn excuse(&mut self) {
        self.quiet.excused = Some(SystemClock.now());
    }

    /// Whether it is silent for too long. It is ended only if somebody configured that.
    pub(super) fn think_about_silence(&mut self) -> Option<Watched> {
        let config = self.trees.config;
        let patience = Patience {
            first: config.agent_silent_after,
            second: config.agent_silent_again,
            stalled: config.agent_stalled_after,
        };
        let now = SystemClock.now();
        let last = self.output.activity().last_activity;
        let last = last.unwrap_or(self.started);
        let since = self.quiet.excused.map_or(last, |excused| excused.max(last));
        let idle: SignedDuration = now.duration_since(since);
        let pause = LOOK.min(patience.first / 4);
        // What it comes to when the silence begins is what later looks are compared with.
        let is_new = self.quiet.looked.is_none_or(|(at, _)| at < since);
        if is_new && idle >= pause {
            self.quiet.looked = Some((now, self.fingerprint()));
            return None;
        }
        if self.quiet.told.is_some_and(|told| since > told) {
            // However short it was: it did something.
            self.quiet.told = None;
            self.decide(AgentInput::Active);
            return None;
        }
        let found = silence(&self.agent, idle, patience);
        if self.agent.status == AgentStatus::Stalled && found.is_none() {
            self.has_an_excuse(now, LOOK)?;
            return None;
        }
        let found = found?;
        if found != Silence::Broken && self.has_an_excuse(now, pause)? {
            return None;
        }
        self.quiet.told = (found != Silence::Broken).then_some(now);
        match found {
            Silence::Remind => self.tell(idle),
            Silence::Stalled => return self.stall(idle),
            Silence::Broken => self.decide(AgentInput::Active),
        }
        None
    }

    /// Whether it waits for somebody, or its files changed; `None` if it is too early for a look.
    fn has_an_excuse(&mut self, now: Timestamp, pause: SignedDuration) -> Option<bool> {
        let (at, before) = self.quiet.looked?;
        if now.duration_since(at) < pause {
            return None;
        }
        let view = self
            .trees
            .engine
            .agent_view(self.trees.place, self.agent.id);
        if self.tolerate(view)?.question.is_some() {
            self.excuse();
            return Some(true);
        }
        let after = self.fingerprint();
        self.quiet.looked = Some((now, after));
        let has_changed = before.is_some() && after != before;
        if has_changed {
            self.output.changed(now);
            // What it comes to now is what the next look is compared with.
            self.quiet.looked = Some((SystemClock.now(), after));
        }
        Some(has_changed)
    }

    fn fingerprint(&self) -> Option<u64> {
        let look = || -> Result<Option<u64>, TreeError> {
            let tree = self.agent.tree.as_ref().map(|name| name.as_str());
            let tree = self.trees.named(tree)?;
            let site = self.trees.site(&tree)?;
            let unless = Unless {
                settled_before: i64::MAX,
                ..self.trees.unless(Vec::new())?
            };
            self.trees.fingerprint(&tree, &site, &unless)
        };
        self.tolerate(look()).flatten()
    }

    fn tell(&mut self, idle: SignedDuration) {
        self.decide(AgentInput::Reminded);
        let id = self.agent.id;
        self.write_to_owner(format!(
            "{id} (task {}) has shown no activity for {}. To check: weald agent pulse {id}; to send it a message: weald agent steer {id} \"…\"",
            self.agent.task,
            plain(idle)
        ));
    }

    fn stall(&mut self, idle: SignedDuration) -> Option<Watched> {
        let id = self.agent.id;
        let found = format!(
            "{id} (task {}) has done nothing for {} and counts as stalled.\n{}",
            self.agent.task,
            plain(idle),
            self.changed_files()
        );
        self.decide(AgentInput::Stalled {
            found: found.clone(),
        });
        let stops = self.trees.config.agent_on_stall == OnStall::Stop;
        let next = match stops {
            true => format!(
                "weald stopped it (agent.on_stall); its worktree is kept. To continue: weald resume {}",
                self.agent.task
            ),
            false => format!(
                "It is still running. To stop it: weald agent stop {id}; to restart it: weald agent restart {id} --force"
            ),
        };
        self.write_to_owner(format!("{found}\n{next}"));
        if !stops {
            return None;
        }
        self.report(found);
        let stop = Wanted::Stop {
            why: format!("it did nothing for {}", plain(idle)),
            release: false,
        };
        self.decide(AgentInput::Want(stop.clone()));
        match stop {
            Wanted::Stop { why, release } => Some(Watched::Stopped { why, release }),
            _ => None,
        }
    }

    /// What is known stands in its report, unless it wrote one itself.
    fn report(&mut self, found: String) {
        if self.agent.report.is_some() {
            return;
        }
        let report = FinalReport {
            success: false,
            report: found,
            files_changed: Vec::new(),
            verification: Verification::None,
            verified_by: String::new(),
            inferred: true,
            at: SystemClock.now(),
        };
        let (id, token) = (self.agent.id, self.agent.token);
        let reported = self.trees.engine.report_agent(id, token, report);
        self.tolerate(reported);
    }

    /// What its tree holds, as far as that can be told.
    fn changed_files(&self) -> String {
        let tree = self.agent.tree.as_ref().map(|name| name.as_str());
        let diff = self.trees.diff(tree, Against::Base, DiffStyle::Stat);
        let text = self.tolerate(diff).and_then(|diff| diff.text);
        let text = text.filter(|text| !text.trim().is_empty());
        let Some(text) = text else {
            return "Nothing has changed in its worktree.".to_owned();
        };
        let lines: Vec<_> = text.trim_end().lines().collect();
        let shown = lines[lines.len().saturating_sub(STAT_LINES)..].join("\n");
        format!("Changes in its worktree:\n{shown}")
    }

    fn write_to_owner(&self, text: String) {
        let Some(owner) = &self.agent.spawned_by else {
            return;
        };
        let sent = self.trees.engine.send(Draft {
            from: self.agent.session.clone(),
            to: owner.clone(),
            kind: MessageType::Message,
            priority: Urgency::Steer,
            text,
            task: Some(self.agent.task.clone()),
        });
        self.tolerate(sent);
    }
}

fn plain(idle: SignedDuration) -> String {
    match idle.as_mins() {
        0 => format!("{} seconds", idle.as_secs()),
        1 => "a minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    }
}
