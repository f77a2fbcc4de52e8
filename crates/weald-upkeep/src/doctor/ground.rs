//! What can be looked at without records: git, the disk, weald's private folder, main's refs and locks, the vault, and
//! who holds what. With records it is known whose a branch is; without them every entry in `worktrees/` is only told.

use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use weald_core::tree::{Tree, TreeKind};
use weald_git::{GitError, RefSurvey, Registrations, require_version_for, survey_refs};

use super::disk::check_room;
use super::entries::tell_unowned;
use super::finding::{Finding, Ledger};
use super::holders::check_lock_holders;
use super::locks::check_locks;
use super::refs::check_refs;
use super::vault::check_vault;
use super::{Checkup, Code};
use weald_control::marker::TreeNote;
use weald_control::place::Place;
use weald_trees::at;

impl Checkup<'_> {
    /// Looks at everything that needs no records.
    pub(super) fn check_ground(&self) -> Vec<Finding> {
        let mut ledger = Ledger::new(self.fix);
        let known = self.trees.and_then(|trees| trees.records().ok());
        check_git(&mut ledger, self.place);
        let mut paths = vec![self.place.repository().common_dir().to_owned()];
        let live = known.iter().flatten().filter(|tree| tree.is_live());
        paths.extend(
            live.clone()
                .filter_map(|tree| Some(tree.path.parent()?.to_owned())),
        );
        check_room(&mut ledger, &paths, self.min_free);
        self.check_private(&mut ledger);
        let refs = self.refs();
        let ours: HashSet<String> = live
            .map(|tree| format!("refs/heads/{}", tree.branch))
            .collect();
        check_refs(&mut ledger, self.place, &refs, &ours);
        if known.is_none() && !self.is_copy {
            self.tell_entries(&mut ledger);
        }
        let is_needed = self.needs_vault(known.as_deref());
        let done = check_vault(&mut ledger, self.place, is_needed);
        ledger.note_failure("the vault", done);
        check_lock_holders(&mut ledger, self.place);
        ledger.findings
    }

    /// Locks of git that nobody needs: looked at last, because a repair may have taken some away.
    pub(super) fn check_locks(&self) -> Vec<Finding> {
        let mut ledger = Ledger::new(self.fix);
        check_locks(&mut ledger, self.place, &self.refs());
        ledger.findings
    }

    fn refs(&self) -> RefSurvey {
        match self.place.repository().has_reftable() {
            true => RefSurvey::default(),
            false => survey_refs(self.place.repository().common_dir()),
        }
    }

    fn check_private(&self, ledger: &mut Ledger) {
        let private = self.place.private();
        let Ok(found) = private.symlink_metadata() else {
            return;
        };
        if found.is_symlink() {
            return;
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            let what = format!("{} belongs to another user", private.display());
            let would = "chown -R it to the user of this repository";
            ledger.note(Finding::new(Code::PrivateForeign, what, would).at(private));
        } else if found.mode() & 0o077 != 0 {
            let what = format!(
                "{} is open to others (mode {:o})",
                private.display(),
                found.mode() & 0o777
            );
            let close = || {
                let closed = fs::set_permissions(private, Permissions::from_mode(0o700));
                closed.map_err(at(private))
            };
            let finding = Finding::new(Code::PrivateOpen, what, "make it private");
            ledger.note(finding.at(private).repair(close));
        }
    }

    /// Without records an entry is weald's by its note alone, which is enough to tell and too little to mend.
    fn tell_entries(&self, ledger: &mut Ledger) {
        let registrations = registrations_of(self.place);
        for name in registrations.names().unwrap_or_default() {
            let faults = registrations.faults(&name);
            tell_unowned(ledger, &registrations, &name, &faults);
        }
    }

    fn needs_vault(&self, known: Option<&[Tree]>) -> bool {
        match known {
            Some(known) => known
                .iter()
                .any(|tree| tree.is_live() && tree.kind == TreeKind::Sealed),
            None => has_notes(self.place),
        }
    }
}

fn check_git(ledger: &mut Ledger, place: &Place) {
    let Err(error) = require_version_for(place.repository()) else {
        return;
    };
    let code = match error {
        GitError::TooOld { .. } => Code::GitOld,
        _ => Code::GitMissing,
    };
    let would = "install git, or put the right one first in PATH";
    ledger.note(Finding::new(code, error.to_string(), would));
}

fn registrations_of(place: &Place) -> Registrations {
    let workshop: PathBuf = place.private().join("workshop");
    Registrations::new(place.repository().common_dir(), &workshop)
}

fn has_notes(place: &Place) -> bool {
    let entries = registrations_of(place).list().unwrap_or_default();
    entries.iter().any(|entry| TreeNote::of(entry).is_some())
}
