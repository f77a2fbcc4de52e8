//! The place of a stage: free before, weald's own from then on.
//!
//! A name makes nothing weald's. What a landing works with is named by its record, or by its plan, which lies where no
//! agent and no commit can write. Whatever has such a name already is somebody else's and stays.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;

use weald_git::Git;

use super::super::LandError;
use super::checkout::Checkout;
use super::stage::Stage;
use super::touched::Touched;
use crate::Landings;
use crate::refusal::Refusal;
use crate::refusal::STAGE_PREFIX;
use weald_control::excludes;
use weald_trees::at;

impl Landings<'_> {
    /// Makes the folder of a stage. One in the checkout itself is nothing that git should see.
    pub(super) fn claim_stage(&self, checkout: &Checkout, stage: &Stage) -> Result<(), LandError> {
        let is_inside = stage.path.starts_with(&checkout.path);
        if is_inside && !stage.path.starts_with(&checkout.git_dir) {
            let common = self.trees.place.repository().common_dir();
            let line = "/.weald-landing-*/";
            excludes::add(common, self.trees.place.private(), &[line]).map_err(at(common))?;
        }
        match DirBuilder::new().mode(0o700).create(&stage.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Refusal::StageInTheWay(stage.path.display().to_string()).into())
            }
            made => Ok(made.map_err(at(&stage.path))?),
        }
    }

    /// Refuses a landing that brings what looks like a stage.
    pub(super) fn refuse_reserved_in(&self, old: &str, new: &str) -> Result<(), LandError> {
        let added = Git::new(self.trees.vault().path(), "diff-tree")
            .args(["-z", "--name-only", "--no-renames", "--diff-filter=d"])
            .args([old, new])
            .run()?;
        refused(added.split(|byte| *byte == 0))
    }
}

/// The same by what is known to differ.
pub(super) fn refuse_reserved(touched: &[Touched]) -> Result<(), LandError> {
    let comes = touched.iter().filter(|one| one.new.is_some());
    refused(comes.map(|one| one.path.as_slice()))
}

fn refused<'p>(paths: impl Iterator<Item = &'p [u8]>) -> Result<(), LandError> {
    let found: Vec<_> = paths.filter(|path| is_reserved(path)).collect();
    if found.is_empty() {
        return Ok(());
    }
    let text = |path: &&[u8]| String::from_utf8_lossy(path).into_owned();
    Err(Refusal::PathReserved(found.iter().map(text).collect()).into())
}

/// Whether a path of a repository is at a place where stages can be.
fn is_reserved(path: &[u8]) -> bool {
    let first = path.split(|byte| *byte == b'/').next().unwrap_or_default();
    let name = first.strip_prefix(b".").unwrap_or_default();
    name.get(..STAGE_PREFIX.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(STAGE_PREFIX.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_root_has_reserved_names() {
        let cases = [
            (".weald-landing-1", true),
            (".weald-landing-99/plan", true),
            (".Weald-Landing-x/plan", true),
            ("weald-landing-1/plan", false),
            ("docs/.weald-landing-1/plan", false),
            (".weald-land", false),
            (".weald.toml", false),
        ];
        for (path, expected) in cases {
            assert_eq!(is_reserved(path.as_bytes()), expected, "{path}");
        }
    }
}
