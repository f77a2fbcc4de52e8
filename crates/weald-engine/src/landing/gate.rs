//! The gate: the target's own tests, run on exactly what would become its tip.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use weald_core::id::LandingId;
use weald_core::landing::GateReceipt;

use super::LandError;
use crate::trees::Trees;

/// What to test.
pub(crate) struct GateRequest<'g> {
    /// For which landing.
    pub landing: LandingId,
    /// The commit, in the vault.
    pub candidate: &'g str,
    /// The command.
    pub command: &'g str,
}

/// What a gate said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It passed.
    Green(GateReceipt),
    /// It did not.
    Red {
        /// In short.
        why: String,
        /// Its output.
        log: PathBuf,
    },
    /// Somebody did not want to know any more.
    Cancelled,
}

impl Trees<'_> {
    /// The command that must pass, if there is one; refused while nobody has approved it.
    pub(crate) fn gate_command(&self) -> Result<Option<String>, LandError> {
        Ok(None)
    }

    /// Runs the gate, or takes the word of an earlier run on the same tree, command and environment. Red is tried again
    /// as often as the configuration says.
    pub(crate) fn run_gate(
        &self,
        _request: &GateRequest<'_>,
        _cancel: &AtomicBool,
    ) -> Result<Verdict, LandError> {
        todo!()
    }

    /// The same without a cache, for what has landed.
    pub(crate) fn run_check(
        &self,
        _landing: LandingId,
        _commit: &str,
        _command: &str,
    ) -> Result<Verdict, LandError> {
        todo!()
    }
}
