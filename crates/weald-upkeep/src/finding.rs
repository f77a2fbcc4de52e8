//! Findings: what does not fit or is left over, each with the repair that it has. The ledger does repairs, as they are noted.

use std::borrow::Cow;
use std::path::Path;

use serde::{Deserialize, Serialize};
use weald_core::name::TreeName;
use weald_core::tree::Tree;

use crate::repair::Repair;
use crate::survey::Survey;
use crate::{Code, Severity};
use weald_control::place::Place;
use weald_control::steps::step;
use weald_trees::{TreeError, Trees};

/// What a check found, or why it could not look.
pub(crate) type Found = Result<Vec<Finding>, TreeError>;

/// A check of what is on record.
pub(crate) type Check = fn(&Survey<'_>) -> Found;

/// One thing that does not fit.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    #[serde(skip)]
    pub(crate) repair: Option<Repair>,
}

impl Finding {
    /// One that only a person can repair.
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
            repair: None,
        }
    }

    /// Something to delete.
    pub(crate) fn leftover(what: String, repair: Repair) -> Self {
        Self::new(Code::Leftover, what, "delete it").repair(repair)
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
    pub(crate) fn of(mut self, tree: &Tree) -> Self {
        self.tree = Some(tree.name.clone());
        self.path
            .get_or_insert_with(|| tree.path.display().to_string());
        self
    }

    /// Says what repairs it.
    pub(crate) fn repair(self, repair: Repair) -> Self {
        Self {
            fixable: true,
            repair: Some(repair),
            ..self
        }
    }
}

/// The findings of one call.
pub(crate) struct Ledger<'a> {
    place: &'a Place,
    trees: Option<&'a Trees<'a>>,
    pub(crate) fix: bool,
    pub(crate) findings: Vec<Finding>,
    /// How the last repair ended.
    last: Result<(), String>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(place: &'a Place, trees: Option<&'a Trees<'a>>, fix: bool) -> Self {
        Self {
            place,
            trees,
            fix,
            findings: Vec::new(),
            last: Ok(()),
        }
    }

    /// Adds what a part found; that it could not look is a finding, too.
    pub(crate) fn note(&mut self, part: &str, found: Found) -> bool {
        self.add(found.unwrap_or_else(|error| {
            let what = format!("{part} could not be checked: {error}");
            let would = "fix that, then run weald doctor again";
            vec![Finding::new(Code::CheckFailed, what, would)]
        }))
    }

    /// Adds findings, and repairs them if asked to. Answers whether a repair was tried: what was read may be old then.
    pub(crate) fn add(&mut self, found: Vec<Finding>) -> bool {
        let mut tried = false;
        for mut finding in found {
            if let Some(repair) = finding.repair.take().filter(|_| self.fix) {
                tried = true;
                if !matches!(repair, Repair::WithLast) {
                    step("repair.found");
                    let done = repair.perform(self.place, self.trees);
                    self.last = done.map_err(|error| error.to_string());
                }
                match &self.last {
                    Ok(()) => finding.fixed = true,
                    Err(error) => {
                        finding.what = format!("{}; the repair failed: {error}", finding.what);
                    }
                }
            }
            self.findings.push(finding);
        }
        tried
    }

    /// Trees of which such a thing was repaired, among the findings from that one on.
    pub(crate) fn repaired(&self, code: Code, from: usize) -> Vec<TreeName> {
        let new = self.findings[from..].iter();
        let fixed = new.filter(|finding| finding.fixed && finding.code == code);
        fixed.filter_map(|finding| finding.tree.clone()).collect()
    }
}
