//! Commits of submodules that a landing names: main has them, or gets them, or nothing lands.
//!
//! They come from the tree, which made them, or from the remote that main's own `modules/<name>` knows; an address that only
//! the candidate names is never asked. A ref of weald's holds them there. Submodules of submodules are not looked at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weald_core::config::Fetch;
use weald_core::landing::Landing;
use weald_core::tree::Tree;
use weald_git::{
    Commit, Expected, Git, GitError, RefChange, Transfer, Vault, list_refs, transfer, update_refs,
};

use super::LandError;
use crate::Landings;
use crate::refusal::{Gitlink, Refusal};
use weald_trees::submodules::LANDED;

/// The largest `.gitmodules` that is read.
const SMALL: usize = 1 << 20;

impl Landings<'_> {
    /// Brings the submodule commits that `candidate` names and `old_tip` does not into main's `modules/`; says whether there
    /// are any.
    pub(crate) fn require_gitlinks(
        &self,
        tree: &Tree,
        old_tip: &str,
        candidate: &str,
    ) -> Result<bool, LandError> {
        let links = self.new_gitlinks(old_tip, candidate)?;
        if links.is_empty() {
            return Ok(false);
        }
        let names = self.submodule_names(candidate)?;
        let mut wanted = Vec::new();
        for link in links {
            match names.get(&link.path) {
                Some(name) => wanted.push((name.clone(), link)),
                None => return Err(Refusal::SubmoduleUnnamed(link).into()),
            }
        }
        if wanted
            .iter()
            .any(|(name, link)| !self.trees.main_has(name, &link.commit))
        {
            // What can't be imported may be had elsewhere; if not, the refusal below says what is missing.
            let _ = self
                .trees
                .site(tree)
                .and_then(|site| self.trees.import_submodules(tree, &site));
        }
        for (name, link) in &wanted {
            self.require_gitlink(name, link)?;
        }
        Ok(true)
    }

    /// Says which submodules of the main checkout are behind what landed: git moves their files only when it is told to.
    pub(super) fn tell_gitlinks(&self, landing: &Landing) {
        let root = self.trees.place.root();
        let branch = self.trees.place.repository().main_branch().ok().flatten();
        if branch.as_ref() != Some(&landing.target) || !root.join(".gitmodules").is_file() {
            return;
        }
        let (Some(old), Some(new)) = (&landing.old_tip, &landing.new_tip) else {
            return;
        };
        // What can't be read here is shown by `git status`.
        let links = self.new_gitlinks(old, new).unwrap_or_default();
        let links = links
            .iter()
            .filter(|link| root.join(&link.path).join(".git").exists());
        for link in links {
            self.trees.engine.notice(format!(
                "{0} now names another commit of {1}; to check that out: git submodule update -- {1}",
                landing.target, link.path
            ));
        }
    }

    /// Entries that name a commit, and did not name that one before.
    fn new_gitlinks(&self, old_tip: &str, candidate: &str) -> Result<Vec<Gitlink>, LandError> {
        let raw = self.difference(self.trees.vault().path(), old_tip, candidate)?;
        let text = String::from_utf8_lossy(&raw);
        let mut fields = text.split('\0');
        let mut links = Vec::new();
        while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
            let mut words = about.trim_start_matches(':').split(' ');
            let (_, mode, _, id) = (words.next(), words.next(), words.next(), words.next());
            if mode != Some("160000") {
                continue;
            }
            let commit = id
                .and_then(Commit::parse)
                .ok_or_else(|| GitError::Unexpected {
                    command: "diff-tree".to_owned(),
                    answer: about.to_owned(),
                })?;
            links.push(Gitlink {
                path: path.to_owned(),
                commit: commit.as_str().to_owned(),
            });
        }
        Ok(links)
    }

    /// The names of submodules by path, as the candidate's `.gitmodules` has them.
    fn submodule_names(&self, candidate: &str) -> Result<BTreeMap<String, String>, LandError> {
        let text = self
            .trees
            .vault()
            .git("cat-file")
            .args(["blob", &format!("{candidate}:.gitmodules")])
            .output()?;
        match text.status.success() && text.stdout.len() <= SMALL {
            true => Ok(self.trees.names_by_path(text.stdout)?),
            false => Ok(BTreeMap::new()),
        }
    }

    fn require_gitlink(&self, name: &str, link: &Gitlink) -> Result<(), LandError> {
        let module = self.module(name);
        let commit = link.commit.as_str();
        if self.trees.main_has(name, commit) {
            return hold(&module, commit);
        }
        if !module.join("objects").is_dir() {
            return Err(Refusal::SubmoduleNotCloned(link.clone(), module).into());
        }
        let vault = self.trees.vault_of_submodule(name);
        if vault.path().join("HEAD").is_file() && vault.has_object(commit)? {
            let kept = bring(&vault, &module, commit)?;
            hold(&module, commit)?;
            drop(kept);
            return Ok(());
        }
        self.fetch_gitlink(&module, link)
    }

    /// Asks the remote of main's own repository of the submodule for exactly that commit.
    fn fetch_gitlink(&self, module: &Path, link: &Gitlink) -> Result<(), LandError> {
        let commit = link.commit.as_str();
        if self.trees.config.landing_fetch == Fetch::Never {
            return Err(Refusal::SubmoduleNotHere(link.clone(), module.to_owned()).into());
        }
        let limit = self.trees.config.tree_fetch_limit.unsigned_abs();
        let asked = self
            .trees
            .as_user(Git::new(module, "fetch"))
            .args(["--quiet", "--no-tags", "--no-write-fetch-head"])
            .args(["--no-auto-maintenance", "--no-recurse-submodules"])
            .args(["--no-prune", "--refmap=", "origin"])
            .args([format!("{commit}:{}", holder(commit))])
            .limit(limit)
            .run();
        match asked {
            Ok(_) => Ok(()),
            Err(error) => {
                Err(
                    Refusal::SubmoduleNowhere(link.clone(), module.to_owned(), error.to_string())
                        .into(),
                )
            }
        }
    }

    fn module(&self, name: &str) -> PathBuf {
        let common_dir = self.trees.place.repository().common_dir();
        common_dir.join("modules").join(name)
    }
}

/// Brings a commit with all it needs from a submodule's vault into main's repository of it.
fn bring(vault: &Vault, module: &Path, commit: &str) -> Result<Transfer, LandError> {
    let mains = list_refs(module, &["refs/heads/", "refs/remotes/", "refs/tags/"])?;
    vault.require(&mains, &[])?;
    let haves: Vec<_> = mains.iter().map(|known| known.commit.as_str()).collect();
    Ok(transfer(vault.path(), module, &[commit], &haves)?)
}

/// Holds a commit in main's repository of a submodule, unless something of the user's does.
fn hold(module: &Path, commit: &str) -> Result<(), LandError> {
    let held = Git::new(module, "for-each-ref")
        .args(["--count=1", "--format=%(refname)", "--contains", commit])
        .run()?;
    if !held.is_empty() {
        return Ok(());
    }
    let change = RefChange {
        name: holder(commit),
        new: Some(commit.to_owned()),
        expected: Expected::Any,
    };
    Ok(update_refs(module, &[change], "weald: landed")?)
}

fn holder(commit: &str) -> String {
    format!("{LANDED}{commit}")
}
