//! Which git there is, and numbers in what it answers.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::process::{Git, GitError};
use crate::repository::Repository;

/// The oldest git that works: 2.40 brought `merge-tree --merge-base`, and with it merging without a checkout.
pub const MINIMUM_VERSION: (u32, u32) = (2, 40);

/// The oldest git that reads refs in tables.
const TABLES_VERSION: (u32, u32) = (2, 45);

/// The number in the answer of a git that counted.
pub fn counted(command: &str, answer: &[u8]) -> Result<u64, GitError> {
    let text = String::from_utf8_lossy(answer);
    let start = || text.chars().take(100).collect::<String>();
    let count = text.trim().parse();
    count.map_err(|_| GitError::unexpected(command, start()))
}

/// Checks that the git in the search path is new enough, also for how this repository keeps its refs. Its version is
/// remembered in `known` for exactly this program, by its place, number, size and times, so that it is started for it once.
pub fn require_known_version(known: &Path, repository: &Repository) -> Result<(), GitError> {
    let program = program().map(|(path, found)| {
        let times = (
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec(),
        );
        format!(
            "{} {} {} {times:?}\n",
            path.display(),
            found.ino(),
            found.len()
        )
    });
    let memory = std::fs::read_to_string(known).unwrap_or_default();
    let remembered = program.as_ref().and_then(|one| memory.strip_prefix(one));
    let needs_tables = repository.has_reftable();
    if let Some(version) = remembered.filter(|version| !version.is_empty()) {
        return require(version, needs_tables);
    }
    let version = installed_version()?;
    require(&version, needs_tables)?;
    // Without a memory it is asked again.
    if let (Some(program), Some(folder)) = (program, known.parent()) {
        let building = known.with_extension(std::process::id().to_string());
        let _ = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&building, program + &version))
            .and_then(|()| std::fs::rename(&building, known));
    }
    Ok(())
}

/// Which file a git is started from.
fn program() -> Option<(PathBuf, std::fs::Metadata)> {
    #[expect(clippy::disallowed_methods, reason = "git has to be found")]
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    std::env::split_paths(&path).find_map(|folder| {
        let program = folder.join("git");
        let found = program.metadata().ok()?;
        let is_program = found.is_file() && found.mode() & 0o111 != 0;
        is_program.then_some((program, found))
    })
}

/// Checks that a git is installed and new enough; answers its version.
pub fn require_version() -> Result<String, GitError> {
    let version = installed_version()?;
    require(&version, false).map(|()| version)
}

/// The same for one repository: refs in tables need a newer git.
pub fn require_version_for(repository: &Repository) -> Result<(), GitError> {
    require(&installed_version()?, repository.has_reftable())
}

fn installed_version() -> Result<String, GitError> {
    let output = Git::outside(&PathBuf::from("/"), "--version").run()?;
    let text = String::from_utf8_lossy(&output).trim().to_owned();
    let version = text.strip_prefix("git version ");
    Ok(version.unwrap_or(&text).to_owned())
}

fn require(version: &str, needs_tables: bool) -> Result<(), GitError> {
    let mut parts = version
        .split('.')
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let (needed, who) = match needs_tables && found >= MINIMUM_VERSION {
        true => (
            TABLES_VERSION,
            "this repository stores its refs as reftable, which",
        ),
        false => (MINIMUM_VERSION, "weald"),
    };
    match found >= needed {
        true => Ok(()),
        false => Err(GitError::TooOld {
            found: version.to_owned(),
            who,
            needed: format!("{}.{}", needed.0, needed.1),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installed_git_is_new_enough() {
        assert!(
            require_version()
                .unwrap()
                .starts_with(|c: char| c.is_ascii_digit())
        );
    }

    #[test]
    fn y32_refs_in_tables_need_a_newer_git_than_weald() {
        for (version, plain, tables) in [
            ("2.39.5", false, false),
            ("2.40.0", true, false),
            ("2.44.9", true, false),
            ("2.45.0.windows.1", true, true),
            ("3.0.0", true, true),
        ] {
            assert_eq!(require(version, false).is_ok(), plain, "{version}");
            assert_eq!(require(version, true).is_ok(), tables, "{version}");
        }
        let told = |version| require(version, true).unwrap_err().to_string();
        assert!(told("2.44.1").contains("reftable, which needs 2.45 or newer"));
        assert!(told("2.39.1").contains("weald needs 2.40 or newer"));
    }
}
