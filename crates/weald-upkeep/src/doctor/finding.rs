//! Findings, and the list that they are noted in: with the repair, if one was asked for.

use std::path::Path;

use serde::Serialize;
use weald_core::name::TreeName;
use weald_core::tree::Tree;

use super::codes::Code;
use weald_trees::TreeError;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Info,
    /// Something does not fit, nothing is at risk.
    Warn,
    /// Something can't be used.
    Error,
}

/// One thing that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub code: Code,
    pub severity: Severity,
    pub what: String,
    /// What that means for the user.
    pub means: &'static str,
    /// What a repair does, or what a person can do.
    pub would: String,
    /// Whether `--fix` repairs such a thing; the rest is for a person.
    pub fixable: bool,
    /// Whether it was repaired.
    pub fixed: bool,
    /// The tree that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl Finding {
    /// One that nobody repaired.
    pub fn new(code: Code, severity: Severity, what: String, would: String) -> Self {
        Self {
            code,
            severity,
            what,
            means: code.means(),
            would,
            fixable: false,
            fixed: false,
            tree: None,
            path: None,
        }
    }

    /// Says which tree it is about.
    pub(super) fn of(&mut self, tree: &Tree) {
        self.tree = Some(tree.name.clone());
        self.path
            .get_or_insert_with(|| tree.path.display().to_string());
    }

    /// Says where it is.
    pub(super) fn at(&mut self, path: &Path) {
        self.path = Some(path.display().to_string());
    }
}

/// The findings of one call.
pub(super) struct Ledger {
    pub fix: bool,
    pub findings: Vec<Finding>,
}

impl Ledger {
    pub(super) fn new(fix: bool) -> Self {
        Self {
            fix,
            findings: Vec::new(),
        }
    }

    /// Notes a finding; repairs it if asked to.
    pub(super) fn found(
        &mut self,
        code: Code,
        severity: Severity,
        what: String,
        would: &str,
        repair: impl FnOnce() -> Result<(), TreeError>,
    ) -> &mut Finding {
        let repaired = match self.fix {
            true => Some(repair()),
            false => None,
        };
        let what = match &repaired {
            Some(Err(error)) => format!("{what}; the repair failed: {error}"),
            _ => what,
        };
        let finding = self.told(code, severity, what, would.to_owned());
        finding.fixable = true;
        finding.fixed = matches!(repaired, Some(Ok(())));
        finding
    }

    /// Notes what only a person can mend.
    pub(super) fn told(
        &mut self,
        code: Code,
        severity: Severity,
        what: String,
        would: String,
    ) -> &mut Finding {
        self.findings
            .push(Finding::new(code, severity, what, would));
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    /// Does one part; if that can't be done, says so and goes on with the others.
    pub(super) fn note_failure(&mut self, part: &str, done: Result<(), impl std::fmt::Display>) {
        if let Err(error) = done {
            let what = format!("{part} could not be checked: {error}");
            let would = "fix that, then run weald doctor again".to_owned();
            self.told(Code::CheckFailed, Severity::Error, what, would);
        }
    }
}
