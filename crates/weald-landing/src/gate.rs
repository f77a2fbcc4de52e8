//! The gate: the target's own tests, run on exactly what would become its tip.
//!
//! A run has a tree of its own (`trees/gate_tree.rs`), the configured sandbox, a stable environment and a log. Only green
//! is remembered, by everything that decided it. `landing.check` runs the same way, and nothing of it is remembered.

mod environment;
mod log;
mod receipts;
mod running;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weald_core::config::Gate;
use weald_core::id::LandingId;
use weald_core::landing::{GateReceipt, Landing};

use super::LandError;
use crate::Landings;
use crate::refusal::Refusal;
use log::Log;
use running::{Attempt, Ended};

/// Where logs are, in the private folder.
const LOGS: &str = "landings";

/// How much of a command stands in a sentence, in characters.
const LONGEST_QUOTE: usize = 60;

pub(crate) struct GateRequest<'g> {
    pub landing: LandingId,
    /// The commit, in the vault.
    pub candidate: &'g str,
    pub command: &'g str,
}

/// The log of a landing's newest test, also of one that still runs, by the private folder.
pub fn gate_log(private: &Path, landing: &Landing) -> Option<PathBuf> {
    if landing.status.is_open() {
        return log::newest(&private.join(LOGS), landing.id);
    }
    let kept = || landing.gate.as_ref()?.log.clone();
    landing.log.clone().or_else(kept)
}

/// What a gate said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Green(GateReceipt),
    Red {
        why: String,
        log: PathBuf,
    },
    /// Somebody did not want to know any more.
    Cancelled,
}

/// Which command of the configuration it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Before the target moves.
    Gate,
    Check,
}

impl Purpose {
    /// In names of files.
    fn word(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Check => "check",
        }
    }
}

impl Landings<'_> {
    /// The command that must pass, if there is one. Refused while nobody has approved it, or the one that checks
    /// afterwards: then it would be too late to say no.
    pub(crate) fn gate_command(&self) -> Result<Option<String>, LandError> {
        self.approved_command("landing.check")?;
        match self.trees.config.policy_gate {
            Gate::None => Ok(None),
            _ => self.approved_command("gate.command"),
        }
    }

    /// The command of a key; refused while it needs somebody's approval.
    pub(super) fn approved_command(&self, key: &str) -> Result<Option<String>, LandError> {
        match self.trees.command_of(key)? {
            None => Ok(None),
            Some(command) if command.may_run => Ok(Some(command.text)),
            Some(command) => Err(Refusal::NotTrusted(key.to_owned(), command.text).into()),
        }
    }

    /// Runs the gate, or takes the word of an earlier run on the same tree, command and environment. Red is tried again
    /// as often as the configuration says.
    pub(crate) fn run_gate(
        &self,
        request: &GateRequest<'_>,
        cancel: &AtomicBool,
    ) -> Result<Verdict, LandError> {
        let tree = self.tree_of(request.candidate)?;
        let key = self.gate_key(&tree, request)?;
        if let Some(known) = self.load_receipt(&key, &tree, request.command) {
            return Ok(Verdict::Green(known));
        }
        let verdict = self.test(Purpose::Gate, request, (&tree, &key), cancel)?;
        if let Verdict::Green(receipt) = &verdict {
            self.keep_receipt(receipt);
        }
        Ok(verdict)
    }

    /// Runs the command until it is green, or red often enough; each time in a tree of its own.
    pub(super) fn test(
        &self,
        purpose: Purpose,
        request: &GateRequest<'_>,
        (tree, key): (&str, &str),
        cancel: &AtomicBool,
    ) -> Result<Verdict, LandError> {
        let most = 1 + self.trees.config.gate_retries;
        let (mut reds, mut last) = (Vec::new(), PathBuf::new());
        for attempts in 1..=most {
            if cancel.load(Ordering::Relaxed) {
                return Ok(Verdict::Cancelled);
            }
            let log = self.begin_log(purpose, request, tree)?;
            let attempt = Attempt {
                purpose,
                request,
                cancel,
            };
            let (ended, log) = self.attempt(&attempt, log)?;
            match ended {
                Ended::Cancelled => return Ok(Verdict::Cancelled),
                Ended::Green { took } => {
                    return Ok(Verdict::Green(GateReceipt {
                        key: key.to_owned(),
                        tree: tree.to_owned(),
                        command: request.command.to_owned(),
                        at: self.trees.now()?,
                        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                        attempts,
                        cached: false,
                        log: Some(log),
                    }));
                }
                Ended::Red(red) => {
                    reds.push(red);
                    last = log;
                }
            }
        }
        Ok(Verdict::Red {
            why: in_short(&reds),
            log: last,
        })
    }

    fn begin_log(
        &self,
        purpose: Purpose,
        request: &GateRequest<'_>,
        tree: &str,
    ) -> Result<Log, LandError> {
        let folder = self.trees.place.private().join(LOGS);
        let name = match purpose {
            Purpose::Gate => request.landing.to_string(),
            Purpose::Check => format!("{}-{}", request.landing, purpose.word()),
        };
        let head = format!(
            "{} of landing {}\ncommand:   {}\ncandidate: {}\ntree:      {tree}\nbegan:     {}\n",
            purpose.word(),
            request.landing,
            request.command,
            request.candidate,
            self.trees.now()?
        );
        Ok(Log::begin(&folder, &name, &head).map_err(weald_trees::at(&folder))?)
    }

    /// The git tree of a commit in the vault.
    pub(super) fn tree_of(&self, commit: &str) -> Result<String, LandError> {
        let spelled = format!("{commit}^{{tree}}");
        let asked = self.trees.vault().git("rev-parse");
        let answer = asked
            .args(["--verify", "--end-of-options", &spelled])
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        // The word that ends options is echoed.
        Ok(text.lines().last().unwrap_or_default().trim().to_owned())
    }
}

/// One run that was red.
struct Red {
    what: String,
    /// How long it took, where that is news.
    took: Option<Duration>,
}

impl Red {
    fn told(&self) -> String {
        match self.took {
            Some(took) => format!("{} after {}", self.what, in_words(took)),
            None => self.what.clone(),
        }
    }
}

/// All of them in one line.
fn in_short(reds: &[Red]) -> String {
    match reds {
        [] => String::new(),
        [one] => one.told(),
        [first, .., last] if reds.iter().all(|red| red.what == first.what) => {
            let often = match reds.len() {
                2 => "twice".to_owned(),
                count => format!("{count} times"),
            };
            format!("{} (ran {often})", last.told())
        }
        all => all
            .iter()
            .map(Red::told)
            .collect::<Vec<_>>()
            .join(", then "),
    }
}

/// How long something took.
fn in_words(took: Duration) -> String {
    match took.as_secs() {
        0 => format!("{} ms", took.as_millis()),
        seconds @ 1..60 => format!("{seconds} s"),
        seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// A command in a sentence: its first line, and no more than a line has room for.
fn quoted(command: &str) -> String {
    let mut lines = command.trim().lines();
    let first = lines.next().unwrap_or_default().trim_end();
    let kept: String = first.chars().take(LONGEST_QUOTE).collect();
    let is_cut = kept.len() < first.len() || lines.next().is_some();
    format!("`{kept}{}`", if is_cut { " …" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_red_is_told_in_one_line() {
        let red = |what: &str, seconds| Red {
            what: what.to_owned(),
            took: Some(Duration::from_secs(seconds)),
        };
        let late = || Red {
            what: "`t` did not end within 30 min".to_owned(),
            took: None,
        };
        for (reds, expected) in [
            (vec![red("`t` exited 1", 12)], "`t` exited 1 after 12 s"),
            (
                vec![red("`t` exited 1", 9), red("`t` exited 1", 12)],
                "`t` exited 1 after 12 s (ran twice)",
            ),
            (
                vec![
                    red("`t` exited 1", 1),
                    red("`t` exited 1", 1),
                    red("`t` exited 1", 61),
                ],
                "`t` exited 1 after 1 min 1 s (ran 3 times)",
            ),
            (
                vec![red("`t` exited 1", 1), red("`t` exited 2", 0)],
                "`t` exited 1 after 1 s, then `t` exited 2 after 0 ms",
            ),
            (
                vec![late(), late()],
                "`t` did not end within 30 min (ran twice)",
            ),
        ] {
            assert_eq!(in_short(&reds), expected);
        }
    }
}
