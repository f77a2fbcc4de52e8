//! Findings in words.

use std::io::{self, Write};

use weald_app::{Code, Finding, Severity};

use crate::ui::{DIM, Out, paint, wrapped};

/// Every finding, and last what to do about them.
pub fn told(out: &mut Out, findings: &[Finding], fix: bool) -> io::Result<()> {
    for finding in findings {
        told_one(out, finding)?;
    }
    ending(out, findings, fix)
}

fn told_one(out: &mut Out, finding: &Finding) -> io::Result<()> {
    let head = match (finding.fixed, finding.severity) {
        (true, _) => "repaired",
        (false, Severity::Info) => "info",
        (false, Severity::Warn) => "warn",
        (false, Severity::Error) => "error",
    };
    let what = format!("{head}: {} [{}]", finding.what, finding.code.as_str());
    writeln!(out, "{}", wrapped(&what, 0))?;
    if finding.is_open() {
        writeln!(out, "  {}", wrapped(&finding.means, 2))?;
    }
    let would = &finding.would;
    let line = match (finding.code, finding.fixed, finding.fixable) {
        // A list, which would hide the rest.
        (Code::SandboxLevel, ..) => "what that does not cover: weald sandbox explain".to_owned(),
        (_, true, _) => format!("done: {would}"),
        (_, false, true) => format!("weald doctor --fix: {would}"),
        (_, false, false) => would.clone(),
    };
    writeln!(out, "  {}", paint(DIM, wrapped(&line, 2)))
}

fn ending(out: &mut Out, findings: &[Finding], fix: bool) -> io::Result<()> {
    let open: Vec<_> = findings.iter().filter(|one| !one.fixed).collect();
    let fixable = open.iter().filter(|one| one.fixable).count();
    let by_hand: Vec<_> = open
        .iter()
        .filter(|one| !one.fixable && one.is_open())
        .map(|one| one.code.as_str())
        .collect();
    if fixable == 0 && by_hand.is_empty() {
        return match findings.iter().any(|one| one.fixed) {
            true => writeln!(out, "no other problems found"),
            false => writeln!(out, "no problems found"),
        };
    }
    if !by_hand.is_empty() {
        writeln!(out, "only you can fix: {}", by_hand.join(", "))?;
    }
    match (fixable, fix) {
        (0, _) => Ok(()),
        (count, false) => writeln!(out, "{count} can be repaired: weald doctor --fix"),
        (count, true) => writeln!(out, "{count} could not be repaired; see above"),
    }
}
