//! Submodules of a new tree: checked out from what main has of them, without the network.
//!
//! Main keeps the repository of a submodule in `modules/<name>`. The tree gets one of its own in the same place, which
//! borrows from a vault of the submodule. What main does not have stays empty, as git leaves it. Submodules of
//! submodules stay empty, too.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use weald_core::tree::{Tree, TreeKind};
use weald_git::{
    CheckoutIndex, Door, EntryKind, Expected, Git, RefChange, list_refs, list_tips, update_refs,
};

use super::inner::{packed_line, packed_text, quoted};
use super::inside::{ListModules, PopulateSubmodules, SendModule};
use super::large_files::Source;
use super::site::Site;
use super::{TreeError, Trees, at};

/// The largest `.gitmodules` and the largest index that are read.
const SMALL: u64 = 1 << 20;
const LARGE: u64 = 1 << 30;

/// Below it, in main's repository of a submodule, is what landed there.
pub const LANDED: &str = "refs/weald/landed/";

/// A submodule that can be checked out.
pub(crate) struct Module {
    pub name: String,
    pub path: String,
    pub commit: String,
}

impl Trees<'_> {
    /// Fills the submodules of a tree in the making.
    pub(crate) fn fill_submodules(&self, tree: &Path) -> Result<(), TreeError> {
        let common_dir = self.common_dir();
        // Without either there is nothing to do, at the price of a look.
        if !common_dir.join("modules").is_dir() {
            return Ok(());
        }
        let door = Door::open(tree).map_err(at(tree))?;
        let Ok(named) = door.read(".gitmodules", SMALL) else {
            return Ok(());
        };
        let mut jobs = Vec::new();
        for module in self.modules(&door, named)? {
            if let Some(git_dir) = self.write_module(tree, &door, &module)? {
                jobs.push((git_dir, tree.join(&module.path), module.commit));
            }
        }
        if jobs.is_empty() {
            return Ok(());
        }
        let site = Site {
            path: tree.to_owned(),
            git_dir: tree.join(".git"),
            kind: TreeKind::Sealed,
        };
        self.visit("a submodule", &site, PopulateSubmodules(jobs))
    }

    /// Submodules of a new tree that were filled.
    pub(crate) fn filled_modules(&self, door: &Door) -> Result<Vec<Module>, TreeError> {
        let Ok(named) = door.read(".gitmodules", SMALL) else {
            return Ok(Vec::new());
        };
        let mut modules = self.modules(door, named)?;
        modules.retain(|module| door.has_directory(&format!(".git/modules/{}", module.name)));
        Ok(modules)
    }

    /// Submodules of the checkout whose repository and commit main has.
    fn modules(&self, door: &Door, named: Vec<u8>) -> Result<Vec<Module>, TreeError> {
        let sha256 = self.repository().git("rev-parse");
        let sha256 = sha256.args(["--show-object-format"]).run()?.trim_ascii() == b"sha256";
        let index = door.read(".git/index", LARGE).ok();
        let Some(index) = index.and_then(|bytes| CheckoutIndex::parse(bytes, sha256)) else {
            return Ok(Vec::new());
        };
        let names = self.names_by_path(named)?;
        let mut found = Vec::new();
        for entry in index.entries() {
            let path = std::str::from_utf8(entry.path).unwrap_or_default();
            if entry.kind != EntryKind::Submodule || entry.is_absent {
                continue;
            }
            let commit = hex::encode(entry.id);
            if let Some(name) = names.get(path)
                && self.main_has(name, &commit)
            {
                found.push(Module {
                    name: name.clone(),
                    path: path.to_owned(),
                    commit,
                });
            }
        }
        Ok(found)
    }

    /// The names of submodules, from the text of `.gitmodules`.
    pub fn names_by_path(&self, text: Vec<u8>) -> Result<BTreeMap<String, String>, TreeError> {
        let listed = Git::new(self.common_dir(), "config")
            .args(["--no-includes", "--file", "-", "-z"])
            .args(["--get-regexp", r"^submodule\..*\.path$"])
            .input(text)
            .output()?;
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let named = text.split('\0').filter_map(|line| {
            let (key, path) = line.split_once('\n')?;
            let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
            is_plain(name).then(|| (path.to_owned(), name.to_owned()))
        });
        Ok(named.collect())
    }

    /// Whether main's repository of a submodule has a commit.
    pub fn main_has(&self, name: &str, commit: &str) -> bool {
        let module = self.common_dir().join("modules").join(name);
        let asked = Git::new(&module, "cat-file").args(["-e", &format!("{commit}^{{commit}}")]);
        module.join("objects").is_dir()
            && asked.output().is_ok_and(|answer| answer.status.success())
    }

    /// The repository of a submodule in the tree; `None` where main's can't be used.
    fn write_module(
        &self,
        tree: &Path,
        door: &Door,
        module: &Module,
    ) -> Result<Option<PathBuf>, TreeError> {
        let common_dir = self.common_dir();
        let theirs = common_dir.join("modules").join(&module.name);
        let vault = self.vault_of_submodule(&module.name);
        let refs = list_refs(&theirs, &["refs/remotes/", "refs/tags/"])?;
        if vault.require(&refs, &[&module.commit]).is_err() {
            return Ok(None);
        }
        let url = Git::new(&theirs, "config").args(["--get", "remote.origin.url"]);
        let url = String::from_utf8_lossy(&url.output()?.stdout)
            .trim_end()
            .to_owned();
        let git_dir = tree.join(".git/modules").join(&module.name);
        let depth = module.name.split('/').count() + 2;
        let up = "../".repeat(depth);
        let version = if module.commit.len() == 64 { 1 } else { 0 };
        let mut config = format!(
            "[core]\n\trepositoryformatversion = {version}\n\tbare = false\n\tlogallrefupdates = true\n\
             \tworktree = {}\n[gc]\n\tauto = 0\n",
            quoted(&format!("{up}{}", module.path))
        );
        if version == 1 {
            config.push_str("[extensions]\n\tobjectformat = sha256\n");
        }
        if !url.is_empty() {
            config.push_str(&format!(
                "[remote \"origin\"]\n\turl = {}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
                quoted(&url)
            ));
        }
        let down = "../".repeat(module.path.split('/').count());
        let pointer = format!("gitdir: {down}.git/modules/{}\n", module.name);
        let lines = refs.iter().filter_map(packed_line).collect();
        let written = || -> io::Result<()> {
            let below = |name: &str| format!(".git/modules/{}/{name}", module.name);
            for folder in ["objects/info", "objects/pack", "refs/heads", "info"] {
                door.make_folder(&below(folder))?;
            }
            let objects = format!("{}\n", vault.objects().display());
            door.write(&below("objects/info/alternates"), objects.as_bytes())?;
            door.write(&below("HEAD"), format!("{}\n", module.commit).as_bytes())?;
            door.write(&below("packed-refs"), packed_text(lines).as_bytes())?;
            door.write(&below("config"), config.as_bytes())?;
            door.write(&format!("{}/.git", module.path), pointer.as_bytes())
        };
        written().map_err(at(&git_dir))?;
        Ok(Some(git_dir))
    }
}

impl Trees<'_> {
    /// Takes what the submodules of a tree hold into their vaults; answers how many commits of theirs main lacks.
    pub fn import_submodules(&self, tree: &Tree, site: &Site) -> Result<u64, TreeError> {
        let door = match self.opened(tree) {
            Ok((_, door)) => door,
            // Another removal was faster; that one looked.
            Err(TreeError::Missing { .. }) => return Ok(0),
            Err(error) => return Err(error),
        };
        if tree.kind != TreeKind::Sealed || !door.has_directory(".git/modules") {
            return Ok(0);
        }
        let name = tree.name.as_str();
        let listed = self.visit(name, site, ListModules)?;
        let mut commits = 0;
        for module in listed.names {
            commits += self.import_submodule(tree, site, &module)?;
        }
        Ok(commits)
    }

    fn import_submodule(&self, tree: &Tree, site: &Site, name: &str) -> Result<u64, TreeError> {
        let common_dir = self.common_dir();
        let theirs = common_dir.join("modules").join(name);
        if !is_plain(name) || !theirs.join("objects").is_dir() {
            return Err(TreeError::unreadable(
                &tree.name,
                format!("main has no submodule {name}, so its commits exist only here"),
            ));
        }
        let vault = self.vault_of_submodule(name);
        // What landed is held by a ref of weald's, until somebody pushes it.
        let held = ["refs/heads/", "refs/remotes/", "refs/tags/", LANDED];
        let mains = list_refs(&theirs, &held)?;
        vault.require(&mains, &[])?;
        let known: Vec<_> = mains.iter().map(|known| known.commit.clone()).collect();
        let own = list_tips(vault.path(), &["refs/main/", "refs/tree/"])?;
        let mut haves: Vec<_> = own.iter().map(|own| own.commit.clone()).collect();
        haves.extend(known.iter().cloned());
        let pinned = own.iter().filter(|own| own.name.starts_with("refs/main/"));
        let known: Vec<_> = known
            .into_iter()
            .chain(pinned.map(|own| own.commit.clone()))
            .collect();
        let job = SendModule {
            name: name.to_owned(),
            haves: haves.clone(),
        };
        let held = self.receive_into(vault.path(), tree, site, job)?.held;
        self.take_large_files(
            tree,
            site,
            &Source {
                repository: &format!("modules/{name}"),
                vault: &vault,
                main: &theirs,
            },
            held.iter()
                .cloned()
                .chain(known.iter().map(|id| format!("^{id}"))),
        )?;
        let news: Vec<_> = held.iter().filter(|id| !haves.contains(id)).collect();
        let changes: Vec<_> = news
            .iter()
            .map(|id| {
                RefChange::set(
                    format!("refs/tree/{}/{id}", tree.id),
                    (*id).clone(),
                    Expected::Any,
                )
            })
            .collect();
        update_refs(vault.path(), &changes, "weald: imported")?;
        let mut walk = held;
        walk.extend(known.iter().map(|id| format!("^{id}")));
        let counted = vault
            .git("rev-list")
            .args(["--count", "--ignore-missing", "--stdin"])
            .input(walk.join("\n") + "\n")
            .run()?;
        Ok(weald_git::counted("rev-list", &counted)?)
    }
}

/// A name that stays in its folder and is no option.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    !name.is_empty()
        && !name.starts_with('-')
        && !name.contains(char::is_control)
        && parts.all(|part| matches!(part, Component::Normal(_)))
}
