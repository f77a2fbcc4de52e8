//! Which files of main come into a tree: what `.worktreeinclude` names, and shared folders. Only what git ignores there.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use weald_core::config::ShareBy;
use weald_core::setup::is_shareable;
use weald_core::tree::{Tree, TreeKind};
use weald_git::Git;

use super::copying::{Copied, Copier, Kind};
use super::{Setup, cargo};
use crate::inside::MatchTimes;
use crate::site::Site;
use crate::{TreeError, Trees, at};
use weald_control::files;

/// Which files of main come along, in gitignore's own syntax.
pub(super) const INCLUDE_FILE: &str = ".worktreeinclude";

/// The largest one that is compared.
const INCLUDE_LIMIT: u64 = 1 << 20;

/// How a folder is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    Copy,
    Link,
}

impl Trees<'_> {
    /// Brings files of main into a tree that is there.
    pub(super) fn share(&self, tree: &Tree, setup: &mut Setup) -> Result<(), TreeError> {
        let site = self.site(tree)?;
        self.share_into(tree, &site, None, setup)
    }

    /// The same for a tree at `site`, perhaps one in the making, whose index is `fresh`.
    pub(super) fn share_into(
        &self,
        tree: &Tree,
        site: &Site,
        fresh: Option<&Path>,
        setup: &mut Setup,
    ) -> Result<(), TreeError> {
        self.bring(tree, &site.path, fresh, setup)?;
        // Only now: what main changes after this look is newer than what was copied.
        match setup.report.copied > 0 || !setup.report.shared.is_empty() {
            true => self.match_times(tree, site, fresh),
            false => Ok(()),
        }
    }

    fn bring(
        &self,
        tree: &Tree,
        place: &Path,
        fresh: Option<&Path>,
        setup: &mut Setup,
    ) -> Result<(), TreeError> {
        let main = self.place.root();
        if !main.join(".git").exists() {
            return Ok(());
        }
        let include = self.include_patterns(&main, setup)?;
        let folders = self.shared_folders(setup)?;
        if include.is_none() && folders.is_empty() {
            return Ok(());
        }
        let include = include.as_deref();
        if fresh.is_some() {
            // Nobody else knows of it yet.
            return self.share_alone(tree, place, include, folders, setup);
        }
        let turn = self.workshop().join(format!("setup-{}", tree.id));
        // One at a time; whoever comes second finds everything there.
        files::edit_alone(&turn, || {
            self.share_alone(tree, place, include, folders, setup)
        })
        .map_err(at(&turn))?
    }

    fn share_alone(
        &self,
        tree: &Tree,
        place: &Path,
        include: Option<&str>,
        folders: Vec<(PathBuf, Share)>,
        setup: &mut Setup,
    ) -> Result<(), TreeError> {
        let main = self.place.root();
        let (hidden, cancel) = (self.hidden_from_runs(), &self.host.cancel);
        let copier = Copier::open(&main, place, &tree.path, hidden, cancel).map_err(at(place))?;
        if let Some(include) = include {
            setup.begins();
            self.include(&main, include, &copier, setup)?;
        }
        let here = folders.into_iter().filter_map(|(path, how)| {
            let kind = copier.kind(&path).ok()?;
            let comes = kind != Kind::Other && !copier.is_excluded(&path);
            comes.then_some((path, how, kind))
        });
        let here: Vec<_> = here.collect();
        if here.is_empty() {
            return Ok(());
        }
        setup.begins();
        let paths: Vec<_> = here.iter().map(|(path, ..)| path.clone()).collect();
        let ignored = self.ignored(&main, &paths)?;
        for (path, how, kind) in here {
            if !ignored.contains(&path) {
                let note = format!(
                    "{} is not ignored by git, so it is not shared",
                    path.display()
                );
                setup.notes.push(note);
                continue;
            }
            let shared =
                match (how, kind) {
                    (Share::Link, _) => copier.link(&path),
                    (Share::Copy, Kind::Folder) => {
                        copier.copy_folder(&path, &cargo::bound_to_main(&main, &path))
                    }
                    (Share::Copy, _) => copier.copy_files(std::slice::from_ref(&path)).map(
                        |(made, refused)| match (made, refused.is_empty()) {
                            (_, false) => Copied::Refused,
                            (0, _) => Copied::Left,
                            _ => Copied::Made,
                        },
                    ),
                };
            let shared = shared.map_err(at(&tree.path.join(&path)))?;
            told(tree, setup, &copier, (path, how), shared);
        }
        Ok(())
    }

    /// File times that fit what was copied: build tools go by them.
    fn match_times(&self, tree: &Tree, site: &Site, fresh: Option<&Path>) -> Result<(), TreeError> {
        let job = MatchTimes {
            main: self.place.root(),
            index: self.common_dir().join("index"),
            fresh: fresh.map(Path::to_owned),
        };
        self.visit(tree.name.as_str(), site, job)
    }

    /// The folders that the configuration names, and Claude Code's settings in its profile.
    fn shared_folders(&self, setup: &mut Setup) -> Result<Vec<(PathBuf, Share)>, TreeError> {
        let how = match self.config.tree_share {
            ShareBy::Copy => Some(Share::Copy),
            ShareBy::Symlink => Some(Share::Link),
            ShareBy::None => None,
        };
        let mut named: Vec<(String, Share)> = Vec::new();
        if let Some(how) = how {
            let paths = self.config.tree_share_paths.iter();
            named.extend(paths.map(|path| (path.clone(), how)));
        }
        if self.config.profile == "claude-code" {
            let linked = self.claude_directories(&mut setup.notes)?;
            named.extend(linked.into_iter().map(|path| (path, Share::Link)));
        }
        let wished = self.wishes.links.iter().cloned();
        named.extend(wished.map(|path| (path, Share::Link)));
        let mut folders: Vec<(PathBuf, Share)> = Vec::new();
        for (text, how) in named {
            let path = PathBuf::from(text.trim_end_matches('/'));
            if !is_shareable(&path) {
                let note =
                    format!("`{text}` can't be shared: it is not a path inside the repository");
                setup.notes.push(note);
            } else if folders.iter().all(|(known, _)| *known != path) {
                folders.push((path, how));
            }
        }
        Ok(folders)
    }

    /// The patterns of `.worktreeinclude` at the target's tip. What a checkout has there was perhaps approved by nobody.
    fn include_patterns(
        &self,
        main: &Path,
        setup: &mut Setup,
    ) -> Result<Option<String>, TreeError> {
        let at_tip = self.settings_at_tip()?.remove(INCLUDE_FILE);
        let here = files::read_small(&main.join(INCLUDE_FILE), INCLUDE_LIMIT);
        if here
            .ok()
            .flatten()
            .is_some_and(|here| Some(&here) != at_tip.as_ref())
        {
            let target = self
                .target
                .as_ref()
                .map_or("the target", |(branch, _)| branch);
            let note = format!(
                "{INCLUDE_FILE} here differs from the one on {target}; weald uses the one on {target}"
            );
            setup.notes.push(note);
        }
        Ok(at_tip)
    }

    /// Copies what `.worktreeinclude` names and git ignores.
    fn include(
        &self,
        main: &Path,
        text: &str,
        copier: &Copier<'_>,
        setup: &mut Setup,
    ) -> Result<(), TreeError> {
        let scratch = self.workshop_directory()?;
        let file = scratch.path().join("include");
        std::fs::write(&file, text).map_err(at(&file))?;
        let mut patterns = std::ffi::OsString::from("--exclude-from=");
        patterns.push(&file);
        let listed = self
            .git_in_main("ls-files", main)
            .args(["-z", "--others", "--ignored"])
            .args([patterns])
            .run()?;
        let (folders, files): (Vec<_>, Vec<_>) = paths(&listed)
            .filter(|path| !copier.is_excluded(path))
            .partition(|path| path.as_os_str().as_bytes().ends_with(b"/"));
        for folder in folders {
            let note = format!(
                "{} is a nested repository, so it is not copied",
                folder.display()
            );
            setup.notes.push(note);
        }
        if files.is_empty() {
            return Ok(());
        }
        let ignored = self.ignored(main, &files)?;
        let (made, refused) = copier.copy_files(&ignored).map_err(at(main))?;
        setup.report.copied += made;
        for path in refused {
            setup.notes.push(refusal(&path));
        }
        Ok(())
    }

    /// Those of `asked` that git ignores in main, with the user's own rules, too.
    pub fn ignored(&self, main: &Path, asked: &[PathBuf]) -> Result<Vec<PathBuf>, TreeError> {
        let mut input = Vec::new();
        for path in asked {
            input.extend_from_slice(path.as_os_str().as_bytes());
            input.push(0);
        }
        let asked = self
            .git_in_main("check-ignore", main)
            .args(["-z", "--stdin"])
            .input(input)
            .output()?;
        match asked.status.code() {
            Some(0) => Ok(paths(&asked.stdout).collect()),
            // None of them.
            Some(1) => Ok(Vec::new()),
            code => Err(weald_git::GitError::Failed {
                command: "check-ignore".to_owned(),
                code,
                stderr: asked.stderr,
            }
            .into()),
        }
    }

    fn git_in_main(&self, name: &str, main: &Path) -> Git {
        Git::new(self.common_dir(), name)
            .with_user_config(self.host.home.as_deref())
            .work_tree(main)
    }
}

fn told(
    tree: &Tree,
    setup: &mut Setup,
    copier: &Copier<'_>,
    (path, how): (PathBuf, Share),
    shared: Copied,
) {
    match (shared, how) {
        (Copied::Left, _) => {}
        (Copied::Refused, _) => setup.notes.push(refusal(&path)),
        (Copied::Made, Share::Copy) => setup.report.shared.push(path.display().to_string()),
        (Copied::Made, Share::Link) => {
            setup.notes.push(format!(
                "{} is a link to main's own: runs can read it, not write it",
                path.display()
            ));
            if tree.kind == TreeKind::Sealed {
                // Without it the tree looks changed; nothing else depends on it.
                let _ = copier.exclude(&path);
            }
            setup.report.shared.push(path.display().to_string());
        }
    }
}

fn refusal(path: &Path) -> String {
    format!(
        "{} is not copied: its path in the worktree leads through a link or a file",
        path.display()
    )
}

fn paths(listed: &[u8]) -> impl Iterator<Item = PathBuf> {
    listed
        .split(|byte| *byte == 0)
        .filter(|path| !path.is_empty())
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
}
