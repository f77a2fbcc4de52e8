//! Old files that can't go back to their place are kept in weald's own folder, and the landing's record names them.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use weald_core::id::LandingId;
use weald_core::kept_change::KeptChange;

use super::plan::Plan;
use super::stage::Stage;
use super::swap::{Left, Side, Swap};
use crate::Landings;

impl Landings<'_> {
    /// Keeps and tells what is left over.
    pub(super) fn rescue(
        &self,
        landing: LandingId,
        checkout: &Path,
        stage: &Stage,
        left: Vec<Left>,
    ) -> io::Result<()> {
        for (number, one) in left.into_iter().enumerate() {
            let path = String::from_utf8_lossy(&one.path).into_owned();
            let Some((side, name)) = one.kept else {
                self.trees.engine.notice(format!(
                    "{path} came with landing {landing} and was changed since, so it stays"
                ));
                continue;
            };
            let from = match side {
                Side::Files => stage.files().join(path_of(&name)),
                Side::Old => stage.old().join(path_of(&name)),
                Side::Originals => stage.originals().join(path_of(&name)),
            };
            let folder = self
                .trees
                .place
                .private()
                .join(format!("rescued/landing-{landing}"));
            fs::create_dir_all(&folder)?;
            let last = path.rsplit('/').next().unwrap_or("file").to_owned();
            let to = free_name(folder.join(format!("{number}-{last}")));
            if fs::rename(&from, &to).is_err() {
                match from.is_symlink() {
                    true => symlink(fs::read_link(&from)?, &to)?,
                    false => fs::copy(&from, &to).map(drop)?,
                }
            }
            let to = to.display().to_string();
            let kept = KeptChange::rescued(checkout.to_owned(), &path, &to);
            self.keep_change(landing, kept);
        }
        Ok(())
    }

    /// The same for old files that somebody wrote after they were swapped out.
    pub(super) fn rescue_late(&self, stage: &Stage, swap: &Swap, plan: &Plan) {
        let rescued = swap
            .written_late(plan)
            .and_then(|late| self.rescue(plan.landing, &plan.checkout, stage, late));
        if let Err(error) = rescued {
            self.trees
                .engine
                .notice(format!("{}: {error}", stage.path.display()));
        }
    }
}

fn path_of(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(name))
}

fn free_name(wanted: PathBuf) -> PathBuf {
    let mut free = wanted.clone();
    let mut number = 1;
    while free.symlink_metadata().is_ok() {
        let mut name = wanted.as_os_str().to_owned();
        name.push(format!(".{number}"));
        free = PathBuf::from(name);
        number += 1;
    }
    free
}
