//! Findings, and the list that they are noted in: each knows its repair, which is done at once if one was asked for.

use std::borrow::Cow;
use std::path::Path;

use serde::{Deserialize, Serialize};
use weald_core::name::TreeName;
use weald_core::tree::Tree;

use super::codes::Code;
use weald_trees::TreeError;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Info,
    /// Something does not fit, nothing is at risk.
    Warn,
    /// Something can't be used.
    Error,
}

/// One thing that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub code: Code,
    pub severity: Severity,
    pub what: String,
    /// What that means for the user.
    pub means: Cow<'static, str>,
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

/// What repairs a finding.
pub(crate) type Repair<'r> = Box<dyn FnOnce() -> Result<(), TreeError> + 'r>;

/// A finding with its repair, if it has one.
pub(crate) struct Problem<'r> {
    finding: Finding,
    pub(crate) repair: Option<Repair<'r>>,
}

impl Finding {
    /// One that only a person can mend.
    pub fn new(code: Code, what: impl Into<String>, would: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            what: what.into(),
            means: code.means().into(),
            would: would.into(),
            fixable: false,
            fixed: false,
            tree: None,
            path: None,
        }
    }

    /// Whether it is worse than good to know, and still there.
    pub fn is_open(&self) -> bool {
        self.severity != Severity::Info && !self.fixed
    }

    /// For what is better or worse than its code usually is.
    pub fn rated(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// Says where it is.
    pub fn at(self, path: &Path) -> Self {
        let path = Some(path.display().to_string());
        Self { path, ..self }
    }

    /// Says which tree it is about.
    pub(super) fn of(mut self, tree: &Tree) -> Self {
        self.set_tree(tree);
        self
    }

    pub(super) fn set_tree(&mut self, tree: &Tree) {
        self.tree = Some(tree.name.clone());
        self.path
            .get_or_insert_with(|| tree.path.display().to_string());
    }

    /// The same, with what repairs it.
    pub(crate) fn repair<'r>(
        self,
        repair: impl FnOnce() -> Result<(), TreeError> + 'r,
    ) -> Problem<'r> {
        Problem {
            finding: Self {
                fixable: true,
                ..self
            },
            repair: Some(Box::new(repair)),
        }
    }
}

impl From<Finding> for Problem<'_> {
    fn from(finding: Finding) -> Self {
        Self {
            finding,
            repair: None,
        }
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

    /// Notes a finding; repairs it if asked to. Answers whether it is repaired.
    pub(super) fn note<'r>(&mut self, problem: impl Into<Problem<'r>>) -> bool {
        let Problem {
            mut finding,
            repair,
        } = problem.into();
        match repair.filter(|_| self.fix).map(|repair| repair()) {
            Some(Ok(())) => finding.fixed = true,
            Some(Err(error)) => {
                finding.what = format!("{}; the repair failed: {error}", finding.what);
            }
            None => {}
        }
        let fixed = finding.fixed;
        self.findings.push(finding);
        fixed
    }

    /// Does one part; if that can't be done, says so and goes on with the others.
    pub(super) fn note_failure(&mut self, part: &str, done: Result<(), impl std::fmt::Display>) {
        if let Err(error) = done {
            let what = format!("{part} could not be checked: {error}");
            let would = "fix that, then run weald doctor again";
            self.note(Finding::new(Code::CheckFailed, what, would));
        }
    }
}
