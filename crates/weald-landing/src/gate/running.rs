//! One run of a gate: a tree of its own, its set-up, the command; held by the sandbox at the configured level, and by nothing less.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weald_core::tree::Tree;
use weald_sandbox::{Invocation, launch};

use super::log::Log;
use super::{GateRequest, LandError, Purpose, Red, in_words, quoted};
use crate::Landings;
use crate::refusal::Refusal;
use weald_control::steps::step;
use weald_trees::{GateTree, TreeError, Trees, at};

/// How soon a run notices that nobody wants it any more.
const PATIENCE: Duration = Duration::from_millis(100);

/// What is run, and who may call it off.
pub(super) struct Attempt<'r> {
    pub purpose: Purpose,
    pub request: &'r GateRequest<'r>,
    pub cancel: &'r AtomicBool,
}

/// How one run ended.
pub(super) enum Ended {
    Green { took: Duration },
    Red(Red),
    Cancelled,
}

/// How one process ended.
enum Outcome {
    Code(i32),
    TooLong(Duration),
    Cancelled,
}

impl Outcome {
    /// What the command did wrong, as a sentence about it.
    fn wrong(&self, command: &str) -> Option<String> {
        let command = quoted(command);
        match self {
            Self::Code(0) | Self::Cancelled => None,
            Self::Code(code) => Some(format!("{command} exited {code}")),
            Self::TooLong(limit) => {
                Some(format!("{command} did not end within {}", in_words(*limit)))
            }
        }
    }
}

/// A process to run.
struct Call {
    words: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    limit: Duration,
}

impl Landings<'_> {
    /// Runs the command once; answers how that ended, and where its log is.
    pub(super) fn attempt(
        &self,
        attempt: &Attempt<'_>,
        mut log: Log,
    ) -> Result<(Ended, PathBuf), LandError> {
        let path = log.path().to_owned();
        let began = Instant::now();
        let tested = self.test_in_tree(attempt, &mut log);
        let line = match &tested {
            Ok(Ended::Green { took }) => {
                format!("ended:     exited 0 after {}", in_words(*took))
            }
            Ok(Ended::Red(red)) => format!("ended:     {}", red.told()),
            Ok(Ended::Cancelled) => "ended:     called off".to_owned(),
            Err(error) => format!("ended:     not run: {error}"),
        };
        let line = format!("{line} (in all {})", in_words(began.elapsed()));
        log.end(&line).map_err(at(&path))?;
        Ok((tested?, path))
    }

    fn test_in_tree(&self, attempt: &Attempt<'_>, log: &mut Log) -> Result<Ended, LandError> {
        let request = attempt.request;
        let name = format!("{}-{}", request.landing, log.number());
        let made = self
            .trees
            .make_gate_tree(&name, request.candidate)
            .map_err(unmade)?;
        step("gate.made");
        let stable = self.with_stable_environment();
        for note in &made.notes {
            log.say(&format!("note:      {note}"))
                .map_err(at(log.path()))?;
        }
        if let Some(ended) = self.set_up_gate(attempt, &made, &stable, log)? {
            return Ok(ended);
        }
        let call = Call {
            words: ["sh", "-c", request.command].map(OsString::from).into(),
            environment: told(self.with_named(stable.run_environment(&made.tree)), attempt),
            limit: self.trees.config.gate_timeout.unsigned_abs(),
        };
        log.say(&format!("\n$ {}", request.command))
            .map_err(at(log.path()))?;
        let began = Instant::now();
        let outcome = self.run_call(attempt, &made.tree, call, log)?;
        let took = began.elapsed();
        let wrong = match &outcome {
            Outcome::Code(0) => self.changed_result(attempt, &made)?,
            other => other.wrong(request.command),
        };
        Ok(match (&outcome, wrong) {
            (Outcome::Cancelled, _) => Ended::Cancelled,
            (Outcome::TooLong(_), Some(what)) => Ended::Red(Red { what, took: None }),
            (_, Some(what)) => Ended::Red(Red {
                what,
                took: Some(took),
            }),
            (_, None) => Ended::Green { took },
        })
    }

    /// The same set-up that a new tree gets. `Some` when there is nothing to test afterwards.
    fn set_up_gate(
        &self,
        attempt: &Attempt<'_>,
        made: &GateTree<'_, '_>,
        stable: &Trees<'_>,
        log: &mut Log,
    ) -> Result<Option<Ended>, LandError> {
        let Some(steps) = self.trees.setup_steps(&made.tree)? else {
            return Err(Refusal::SetupNotTrusted.into());
        };
        for step in &steps {
            // What the next one finds is what lands.
            if let Some(red) = self.restore_result(attempt, made, log)? {
                return Ok(Some(red));
            }
            log.say(&format!("\n$ {}", step.told))
                .map_err(at(log.path()))?;
            let call = Call {
                words: step.words.clone(),
                environment: told(
                    self.with_named(stable.setup_environment(&made.tree)),
                    attempt,
                ),
                limit: self.trees.config.setup_timeout.unsigned_abs(),
            };
            let outcome = self.run_call(attempt, &made.tree, call, log)?;
            if matches!(outcome, Outcome::Cancelled) {
                return Ok(Some(Ended::Cancelled));
            }
            if let Some(wrong) = outcome.wrong(&step.told).filter(|_| !step.is_hook) {
                let what = format!("the set-up failed: {wrong}");
                return Ok(Some(Ended::Red(Red { what, took: None })));
            }
        }
        match steps.is_empty() {
            true => Ok(None),
            false => self.restore_result(attempt, made, log),
        }
    }

    /// Makes the files that git follows or does not ignore those of the candidate again. `Some` when that can't be done.
    fn restore_result(
        &self,
        attempt: &Attempt<'_>,
        made: &GateTree<'_, '_>,
        log: &mut Log,
    ) -> Result<Option<Ended>, LandError> {
        let (path, commit) = (&made.tree.path, attempt.request.candidate);
        let fresh = made.fresh.as_ref();
        let found = self.trees.changes_in_gate(path, commit, fresh);
        let count = match &found {
            Ok(changes) => changes.tracked + changes.untracked,
            Err(TreeError::Unreadable { .. }) => 1,
            Err(_) => return found.map(|_| None).map_err(unmade),
        };
        if count == 0 {
            return Ok(None);
        }
        let restored = self
            .trees
            .reset_gate(path, commit, fresh)
            .and_then(|()| self.trees.changes_in_gate(path, commit, fresh));
        match restored {
            Ok(changes) if changes.tracked + changes.untracked == 0 => {
                let note = "the set-up changed files that git does not ignore; they were restored, so that what lands is tested";
                log.say(&format!("note:      {note}"))
                    .map_err(at(log.path()))?;
                Ok(None)
            }
            Ok(_) | Err(TreeError::Unreadable { .. }) => {
                let what = "the set-up changed files that git does not ignore, and they could not be restored: what lands can't be tested".to_owned();
                Ok(Some(Ended::Red(Red { what, took: None })))
            }
            Err(other) => Err(unmade(other)),
        }
    }

    /// What a command that ended well did to the tracked files: then it may have tested something else than what lands.
    fn changed_result(
        &self,
        attempt: &Attempt<'_>,
        made: &GateTree<'_, '_>,
    ) -> Result<Option<String>, LandError> {
        let candidate = attempt.request.candidate;
        match self
            .trees
            .changes_in_gate(&made.tree.path, candidate, made.fresh.as_ref())
        {
            Ok(changes) if changes.tracked == 0 => Ok(None),
            Ok(changes) => Ok(Some(format!(
                "the command changed tracked files ({}), so it did not test what lands",
                changes.tracked
            ))),
            Err(TreeError::Unreadable { why, .. }) => Ok(Some(format!(
                "could not verify that the command tested what lands: {why}"
            ))),
            Err(other) => Err(unmade(other)),
        }
    }

    /// Runs one process to its end, or ends it with everything that it started.
    fn run_call(
        &self,
        attempt: &Attempt<'_>,
        tree: &Tree,
        call: Call,
        log: &mut Log,
    ) -> Result<Outcome, LandError> {
        let policy = self.trees.run_policy(tree);
        // One pipe for both, so that lines stay in order.
        let (output, writer) = io::pipe().map_err(at(log.path()))?;
        let again = writer.try_clone().map_err(at(log.path()))?;
        let invocation = Invocation {
            helper: self.trees.host.helper.clone(),
            command: call.words,
            directory: tree.path.clone(),
            environment: call.environment,
            streams: [Stdio::null(), writer.into(), again.into()],
        };
        let mut running = launch(&policy, invocation)?;
        let path = log.path().to_owned();
        thread::scope(|scope| {
            let reader = scope.spawn(|| log.take_all(output));
            let deadline = Instant::now() + call.limit;
            let outcome = loop {
                let left = deadline.saturating_duration_since(Instant::now());
                match running.ended_within(Some(left.min(PATIENCE))) {
                    Ok(Some(ended)) => break Ok(Outcome::Code(ended.code().unwrap_or(-1))),
                    Ok(None) if attempt.cancel.load(Ordering::Relaxed) => {
                        break running.stop().map(|()| Outcome::Cancelled);
                    }
                    Ok(None) if left.is_zero() => {
                        break running.stop().map(|()| Outcome::TooLong(call.limit));
                    }
                    Ok(None) => {}
                    Err(error) => break Err(error),
                }
            };
            // Whatever happened: nothing runs on, and the pipe has an end.
            drop(running);
            // A log that can't be written does not turn a verdict.
            let _ = reader.join();
            Ok(outcome.map_err(at(&path))?)
        })
    }
}

/// An environment with what a gate is told.
fn told(
    mut environment: Vec<(OsString, OsString)>,
    attempt: &Attempt<'_>,
) -> Vec<(OsString, OsString)> {
    let request = attempt.request;
    let what = match attempt.purpose {
        Purpose::Gate => "WEALD_GATE",
        Purpose::Check => "WEALD_CHECK",
    };
    let own = [
        (what, "1".to_owned()),
        ("WEALD_LANDING", request.landing.to_string()),
        ("WEALD_CANDIDATE", request.candidate.to_owned()),
    ];
    environment.retain(|(name, _)| own.iter().all(|(own, _)| name != own));
    environment.extend(own.map(|(name, value)| (name.into(), value.into())));
    environment
}

/// A tree that can't be made as it must be is a refusal of this landing, not an end of all.
fn unmade(error: TreeError) -> LandError {
    match error {
        TreeError::Unreadable { why, .. } => Refusal::NoGateTree(why).into(),
        other => other.into(),
    }
}
