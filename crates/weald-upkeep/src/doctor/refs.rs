//! HEAD and refs of main, read as files. Only the branch of a tree is weald's (`whole` mends it); the rest is told, with
//! what the log of the ref says.

use std::collections::HashSet;

use weald_git::{BrokenRef, RefSurvey, head_fault, last_logged, packed_refs_fault};

use super::Code;
use super::finding::{Finding, Ledger};
use weald_control::place::Place;

/// Refs that name nothing, but for branches in `ours`.
pub(super) fn check_refs(
    ledger: &mut Ledger,
    place: &Place,
    survey: &RefSurvey,
    ours: &HashSet<String>,
) {
    let common = place.repository().common_dir();
    if let Some(fault) = head_fault(common) {
        let path = common.join("HEAD");
        let what = format!("{}: {fault}", path.display());
        let logged = last_logged(&common.join("logs/HEAD"));
        let said = logged.map_or_else(String::new, |id| {
            format!(" (its log ends at {})", id.as_str())
        });
        let would = format!(
            "write “ref: refs/heads/BRANCH” into it, with the branch that the checkout was on{said}"
        );
        ledger.note(Finding::new(Code::HeadBroken, what, would).at(&path));
    }
    if place.repository().has_reftable() {
        check_reftable(ledger, place);
        return;
    }
    if let Some((line, what)) = packed_refs_fault(common) {
        let path = common.join("packed-refs");
        let where_in = match line {
            0 => String::new(),
            line => format!(", line {line}"),
        };
        let what = format!("{}{where_in}: {what}", path.display());
        let would = "make a copy, then delete that line; the reflogs have the old values";
        ledger.note(Finding::new(Code::PackedRefsBroken, what, would).at(&path));
    }
    for broken in survey.broken.iter().filter(|one| !ours.contains(&one.name)) {
        tell_broken(ledger, broken);
    }
}

fn tell_broken(ledger: &mut Ledger, broken: &BrokenRef) {
    let state = match broken.is_blank {
        true => "is empty, as after a power cut",
        false => "does not hold a commit id",
    };
    let what = format!("{} {state}", broken.name);
    let path = broken.path.display();
    let would = match &broken.logged {
        Some(id) => format!(
            "its log ends at {id}: rm {path} && git update-ref {} {id}",
            broken.name,
            id = id.as_str()
        ),
        None => {
            format!("it has no log; find its commits with git fsck --lost-found, then rm {path}")
        }
    };
    ledger.note(Finding::new(Code::RefBroken, what, would).at(&broken.path));
}

fn check_reftable(ledger: &mut Ledger, place: &Place) {
    let folder = place.repository().common_dir().join("reftable");
    let list = folder.join("tables.list");
    let text = weald_control::files::read_small(&list, 1 << 20)
        .ok()
        .flatten();
    let lost = match &text {
        None => Some(list.clone()),
        Some(text) => {
            let tables = text.lines().map(|name| folder.join(name));
            tables.into_iter().find(|table| !table.is_file())
        }
    };
    if let Some(path) = lost {
        let what = format!("{} can't be read", path.display());
        let would = "restore it from a copy of the repository; for details: git fsck";
        ledger.note(Finding::new(Code::ReftableBroken, what, would).at(&path));
    }
}
