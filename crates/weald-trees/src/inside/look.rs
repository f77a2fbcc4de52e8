//! Looking, and sending what the vault lacks.
//!
//! HEAD's reflog is sent, too, so a commit that was amended between two looks is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_git::{Commit, Git, Reference, list_plain_tips};

use super::changes::Changes;
use super::snapshot::made_objects;
use super::{Access, InsideError, Job, Workplace, read_capped, scratch};
use crate::untrusted::{COUNT, MANY, REFS, Reply, SOME, is_id, is_ref_name, keep_paths, readable};

/// How much of a reflog is read, from its end.
const REFLOG_LIMIT: u64 = 4 << 20;

/// The longest HEAD that is read without git.
const HEAD_LIMIT: u64 = 4096;

/// How many worktrees in a tree are looked at.
const WORKTREES: usize = 500;

/// How many entries of HEAD's reflog are sent.
const REFLOG_ENTRIES: usize = 500;

/// What is in a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// What HEAD holds; `None` before the first commit.
    #[serde(rename = "inner_head")]
    pub head: Option<String>,
    /// The branch HEAD is on.
    #[serde(rename = "inner_branch")]
    pub branch: Option<String>,
    /// Changes that are staged.
    pub staged: u64,
    /// Changes that are not staged.
    pub unstaged: u64,
    /// Files that git does not know.
    pub untracked: u64,
    /// Changed files that git was told not to look at.
    #[serde(default, skip_serializing_if = "is_none")]
    pub hidden: u64,
    pub conflicted: u64,
    /// Files and folders that git ignores.
    pub ignored: u64,
    /// What is going on: `merge`, `rebase`, `cherry-pick`, `revert` or `bisect`.
    pub operation: Option<String>,
    /// How many stash entries there are.
    pub stashed: u64,
}

impl Look {
    /// Whether anything is not committed, or not over.
    pub fn is_changed(&self) -> bool {
        let seen = self.staged + self.unstaged + self.untracked + self.conflicted;
        seen + self.hidden > 0 || self.operation.is_some()
    }
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Everything that holds commits in an inner repository.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Tips {
    /// Refs: name and object.
    pub refs: Vec<(String, String)>,
    /// Stash entries, newest first.
    pub stash: Vec<String>,
    /// What HEAD held before.
    pub reflog: Vec<String>,
    /// What the HEADs of further worktrees hold that were made inside.
    pub worktrees: Vec<String>,
    /// A tree of the staged blobs.
    pub staged: Option<String>,
}

/// Says what is there, and sends what the vault lacks of it.
#[derive(Default, Serialize, Deserialize)]
pub struct Inspect {
    pub pack: PackWish,
    /// A commit. Every file that differs from it is listed, committed or not.
    pub since: Option<String>,
}

/// Which commits are sent.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct PackWish {
    /// All but what these lead to; `None` for none at all.
    pub haves: Option<Vec<String>>,
    /// The vault of a partial clone, which may lack files of older history.
    pub partial: Option<PathBuf>,
    /// The vault's objects, where the tree's own way to them leads nowhere: from the trash.
    pub lent: Option<PathBuf>,
}

/// What is in a tree, by name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InspectReply {
    pub look: Look,
    pub tips: Tips,
    /// Files that changed.
    pub paths: Vec<String>,
    /// Whether not all of them are named.
    pub truncated: bool,
    /// When somebody was last at it, in seconds.
    pub touched_at: Option<i64>,
    /// What differs from the commit that was asked for. git may be unable to compare them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<String>>,
}

impl Job for Inspect {
    type Reply = InspectReply;
    const ACCESS: Access = Access::Read;

    fn work(&self, at: &Workplace) -> Result<InspectReply, InsideError> {
        let at = &self.pack.lent_to(at);
        // Before git looks: it must not be taken for somebody.
        let touched_at = at.touched_at();
        let changes = at.changes()?;
        let tips = at.tips(&changes)?;
        Ok(InspectReply {
            changed: self.since.as_ref().and_then(|it| at.changed(it, &changes)),
            ..at.inspected(&changes, tips, touched_at)?
        })
    }

    fn send(&self, at: &Workplace, reply: &InspectReply) -> Result<(), InsideError> {
        self.pack.send(at, (&reply.look, &reply.tips), None, &[])
    }
}

impl Reply for InspectReply {
    fn checked(mut self) -> Option<Self> {
        self.look = self.look.checked()?;
        self.tips = self.tips.checked()?;
        keep_paths(&mut self.paths, MANY);
        if let Some(changed) = &mut self.changed {
            keep_paths(changed, SOME);
        }
        Some(self)
    }
}

impl Reply for Look {
    fn checked(self) -> Option<Self> {
        if self.head.as_deref().is_some_and(|id| !is_id(id)) {
            return None;
        }
        let known = ["rebase", "merge", "cherry-pick", "revert", "bisect"];
        Some(Self {
            staged: self.staged.min(COUNT),
            unstaged: self.unstaged.min(COUNT),
            untracked: self.untracked.min(COUNT),
            hidden: self.hidden.min(COUNT),
            conflicted: self.conflicted.min(COUNT),
            ignored: self.ignored.min(COUNT),
            stashed: self.stashed.min(COUNT),
            branch: self.branch.map(|name| match is_ref_name(&name) {
                true => name,
                // git takes names that would change how others read. Nothing follows the name of a branch.
                false => readable(&name),
            }),
            operation: self.operation.map(|name| {
                let known = known.iter().find(|known| **known == name);
                known.map_or("something unknown", |known| known).to_owned()
            }),
            ..self
        })
    }
}

impl Tips {
    /// Everything that holds commits, HEAD's first.
    pub(crate) fn commits<'t>(&'t self, look: &'t Look) -> impl Iterator<Item = &'t String> {
        let refs = self.refs.iter().map(|(_, id)| id);
        let before = self.stash.iter().chain(&self.reflog);
        let before = before.chain(&self.worktrees);
        look.head
            .iter()
            .chain(refs)
            .chain(before)
            .chain(&self.staged)
    }

    /// Why not all of them can be kept: nothing of a tree is taken for imported that was only left out.
    pub(crate) fn excess(&self) -> Option<String> {
        let of = |count: usize, most: usize, what: &str| {
            let excess = format!("it has {count} {what}, and weald can keep {most}; delete some");
            (count > most).then_some(excess)
        };
        of(self.refs.len(), REFS, "refs of its own")
            .or_else(|| of(self.stash.len(), SOME, "stash entries"))
            .or_else(|| of(self.worktrees.len(), SOME, "worktrees inside"))
    }
}

impl Reply for Tips {
    fn checked(mut self) -> Option<Self> {
        let refs = self.refs.iter().map(|(_, id)| id);
        let mut ids = refs.chain(&self.stash).chain(&self.worktrees);
        if !ids.all(|id| is_id(id)) {
            return None;
        }
        // What a ref holds counts, whatever its name is: git takes names that weald can't use.
        let mut refs = BTreeMap::new();
        for (name, id) in self.refs {
            let (name, is_odd) = match is_ref_name(&name) && !name.contains('\u{fffd}') {
                true => (name, false),
                false => (format!("refs/odd/{id}"), true),
            };
            let before = refs.insert(name, id.clone());
            // No repository has two refs of one name.
            if before.is_some_and(|before| !is_odd || before != id) {
                return None;
            }
        }
        self.refs = refs.into_iter().collect();
        self.reflog.retain(|id| is_id(id));
        self.reflog.truncate(SOME);
        self.staged = self.staged.filter(|id| is_id(id));
        Some(self)
    }
}

impl PackWish {
    /// A workplace with the objects that are lent for this.
    pub(super) fn lent_to(&self, at: &Workplace) -> Workplace {
        Workplace {
            lent: self.lent.clone(),
            ..at.clone()
        }
    }

    /// Sends what was found and the vault lacks, and perhaps a snapshot of it.
    pub(super) fn send(
        &self,
        at: &Workplace,
        (look, tips): (&Look, &Tips),
        snapshot: Option<&str>,
        more: &[String],
    ) -> Result<(), InsideError> {
        let at = &self.lent_to(at);
        let mut wanted: Vec<&str> = match self.haves {
            Some(_) => held(look, tips),
            None => Vec::new(),
        };
        wanted.extend(snapshot);
        wanted.sort_unstable();
        wanted.dedup();
        let haves: Vec<_> = self.haves.iter().flatten().chain(more).collect();
        // Nothing new: the answer ends here.
        if wanted.iter().all(|id| haves.iter().any(|have| have == id)) {
            return Ok(());
        }
        let fetched = match (&self.partial, &look.head) {
            (Some(vault), Some(head)) => at.fetched_here(head, vault)?,
            _ => Vec::new(),
        };
        let made = snapshot.map(|_| made_objects()).transpose()?;
        at.send(&wanted, &haves, &fetched, made.as_deref())
    }
}

impl Workplace {
    /// A directory that can't be listed would look empty to git.
    pub(super) fn require_open(&self) -> Result<(), InsideError> {
        match std::fs::read_dir(&self.work_tree) {
            Ok(_) => Ok(()),
            Err(error) => {
                let path = self.work_tree.display();
                Err(InsideError::Damaged(format!(
                    "{path} can't be opened ({error}); chmod u+rwx {path}"
                )))
            }
        }
    }

    /// Files of HEAD that a partial clone's vault lacks, because they were only fetched in here.
    fn fetched_here(&self, head: &str, vault: &Path) -> Result<Vec<String>, InsideError> {
        let listed = self
            .git("ls-tree")
            .args(["-r", "--format=%(objectname)", head])
            .run()?;
        let there = |git: Git, ids: Vec<u8>| -> Result<Vec<u8>, InsideError> {
            Ok(git.args(["--batch-check=%(objectname)"]).input(ids).run()?)
        };
        let answer = there(Git::new(vault, "cat-file"), listed)?;
        let text = String::from_utf8_lossy(&answer);
        let lacking: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_suffix(" missing"))
            .collect();
        if lacking.is_empty() {
            return Ok(Vec::new());
        }
        let answer = there(
            self.git("cat-file"),
            (lacking.join("\n") + "\n").into_bytes(),
        )?;
        let text = String::from_utf8_lossy(&answer);
        let here = text.lines().filter(|line| Commit::parse(line).is_some());
        Ok(here.map(str::to_owned).collect())
    }

    /// Sends what `wanted` lead to and `haves` lack, and a few objects besides, as a pack. `made` are objects of a snapshot.
    pub(super) fn send(
        &self,
        wanted: &[&str],
        haves: &[&String],
        besides: &[String],
        made: Option<&Path>,
    ) -> Result<(), InsideError> {
        let mut input = wanted.join("\n");
        for have in haves {
            input.push_str(&format!("\n^{have}"));
        }
        input.push('\n');
        let objects = self.objects();
        let stores: Vec<&Path> = made.into_iter().chain([objects.as_path()]).collect();
        let stores = self.stores(&stores);
        let own = scratch()?.join("objects");
        let git = |name: &str| {
            self.git(name)
                .env("GIT_OBJECT_DIRECTORY", &own)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &stores)
        };
        let mut pack = git("pack-objects").args(["--stdout", "-q", "--delta-base-offset"]);
        if besides.is_empty() {
            pack = pack.args(["--revs"]);
        } else {
            // A walk leaves out whatever `haves` lead to; so it is done before, and the rest is added.
            let walked = git("rev-list")
                .args(["--objects", "--no-object-names", "--stdin"])
                .input(input)
                .run()?;
            input = String::from_utf8_lossy(&walked).into_owned() + &besides.join("\n") + "\n";
        }
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        let sent = pack.input(input).output_to(stdout)?;
        match sent.status.success() {
            true => Ok(()),
            false => Err(InsideError::Damaged(sent.stderr)),
        }
    }

    pub(super) fn complete(&self, changes: &Changes, tips: &Tips) -> Result<Look, InsideError> {
        let branch = self.branch()?;
        // Without a commit, HEAD must at least be on a branch that does not exist yet.
        if changes.head.is_none()
            && branch
                .as_ref()
                .is_none_or(|branch| tips.refs.iter().any(|(name, _)| name == branch))
        {
            return Err(InsideError::Damaged("HEAD has no commit".to_owned()));
        }
        Ok(Look {
            head: changes.head.clone(),
            branch: branch.map(|name| match name.strip_prefix("refs/heads/") {
                Some(short) => short.to_owned(),
                None => name,
            }),
            operation: self.operation(),
            stashed: tips.stash.len() as u64,
            ..changes.look.clone()
        })
    }

    /// Whether HEAD and the logs are in tables, which git alone reads.
    fn has_tables(&self) -> bool {
        self.git_dir.join("reftable").exists()
    }

    /// What HEAD says, as its file would.
    pub(super) fn head_text(&self) -> Result<Vec<u8>, InsideError> {
        if !self.has_tables() {
            return Ok(read_capped(&self.git_dir.join("HEAD"), HEAD_LIMIT).unwrap_or_default());
        }
        Ok(match self.branch()? {
            Some(name) => format!("ref: {name}\n").into_bytes(),
            None => {
                self.git("rev-parse")
                    .args(["-q", "--verify", "HEAD"])
                    .output()?
                    .stdout
            }
        })
    }

    /// The ref that HEAD stands for; `None` if it holds a commit itself.
    fn branch(&self) -> Result<Option<String>, InsideError> {
        let text = read_capped(&self.git_dir.join("HEAD"), HEAD_LIMIT).unwrap_or_default();
        let has_tables = self.has_tables();
        match Reference::parse(String::from_utf8_lossy(&text).trim_end()).filter(|_| !has_tables) {
            Some(Reference::Symbolic(name)) => Ok(Some(name)),
            Some(Reference::Direct(_)) => Ok(None),
            None => {
                let asked = self.git("symbolic-ref").args(["-q", "HEAD"]).output()?;
                let name = String::from_utf8_lossy(&asked.stdout).trim_end().to_owned();
                Ok(Some(name).filter(|name| !name.is_empty()))
            }
        }
    }

    /// The first files that differ from a commit, by name.
    fn changed(&self, since: &str, changes: &Changes) -> Option<Vec<String>> {
        let head = changes.head.as_deref()?;
        let committed = match head == since {
            true => Vec::new(),
            false => {
                let git = self.git("diff").args(["--name-only", "-z", "--no-renames"]);
                git.args(["--no-ext-diff", since, head, "--"]).run().ok()?
            }
        };
        let committed = committed.split(|byte| *byte == 0);
        let all = committed.chain(changes.paths.iter().map(Vec::as_slice));
        let named = all
            .filter(|path| !path.is_empty())
            .map(String::from_utf8_lossy);
        let named: BTreeSet<_> = named.collect();
        Some(named.into_iter().take(SOME).map(Into::into).collect())
    }

    /// What is going on.
    pub(super) fn operation(&self) -> Option<String> {
        let there = |name: &str| self.git_dir.join(name).exists();
        let found = [
            ("rebase-merge", "rebase"),
            ("rebase-apply", "rebase"),
            ("MERGE_HEAD", "merge"),
            ("CHERRY_PICK_HEAD", "cherry-pick"),
            ("REVERT_HEAD", "revert"),
            ("BISECT_LOG", "bisect"),
        ];
        let operation = found.iter().find(|(file, _)| there(file))?.1;
        Some(operation.to_owned())
    }

    /// Everything that holds commits.
    pub(super) fn tips(&self, changes: &Changes) -> Result<Tips, InsideError> {
        let head = changes.head.as_deref();
        let mut before = self.logged("", "HEAD")?;
        before.truncate(REFLOG_ENTRIES);
        for name in self.worktrees()? {
            let mut own = self.logged(&format!("worktrees/{name}/"), "HEAD")?;
            own.truncate(REFLOG_ENTRIES / 10);
            before.extend(own);
        }
        let is_plain = before.iter().all(|id| Some(id.as_str()) == head);
        Ok(Tips {
            refs: self.refs(head)?,
            stash: self.stash()?,
            worktrees: self.worktree_heads()?,
            reflog: match is_plain {
                // The look itself read that commit.
                true => head.into_iter().map(str::to_owned).collect(),
                false => self.existing(before)?,
            },
            staged: self.staged(changes)?,
        })
    }

    /// Every ref that leads to an object: name and object. Where all of them are at `head`, which was read, git need not tell.
    pub(super) fn refs(&self, head: Option<&str>) -> Result<Vec<(String, String)>, InsideError> {
        let is_linked = self.git_dir.join("commondir").exists();
        let plain = list_plain_tips(&self.git_dir)
            .filter(|refs| !is_linked && refs.iter().all(|known| Some(&*known.commit) == head));
        if let Some(refs) = plain {
            let refs = refs.into_iter().map(|known| (known.name, known.commit));
            return Ok(refs.collect());
        }
        let answer = self
            .git("for-each-ref")
            .args(["--format=%(objectname) %(refname)"])
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let refs = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(id, name)| (name.to_owned(), id.to_owned()));
        Ok(refs.collect())
    }

    /// Stash entries that are there, newest first.
    pub(super) fn stash(&self) -> Result<Vec<String>, InsideError> {
        self.existing(self.logged("", "refs/stash")?)
    }

    /// The commits in the log of a ref, newest first; `of` names a worktree that has its own.
    fn logged(&self, of: &str, name: &str) -> Result<Vec<String>, InsideError> {
        if !self.has_tables() {
            return Ok(reflog(&self.git_dir.join(format!("{of}logs/{name}"))));
        }
        let told = self
            .git("reflog")
            .args(["show", "--format=%H", &format!("{of}{name}"), "--"])
            .output()?;
        let text = String::from_utf8_lossy(&told.stdout);
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// The names of worktrees that were made inside.
    fn worktrees(&self) -> Result<Vec<String>, InsideError> {
        let entries = std::fs::read_dir(self.git_dir.join("worktrees"));
        let names = entries.into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<_> = names.filter(|name| !name.contains('\n')).collect();
        names.sort_unstable();
        match names.len() > WORKTREES {
            true => Err(InsideError::Damaged("too many worktrees inside".to_owned())),
            false => Ok(names),
        }
    }

    /// What their HEADs hold; no ref may lead there.
    pub(super) fn worktree_heads(&self) -> Result<Vec<String>, InsideError> {
        let names = self.worktrees()?;
        let heads = names.iter().map(|name| format!("worktrees/{name}/HEAD"));
        self.existing(heads.collect())
    }

    /// Those that are there: a gc inside may have taken what only a reflog knew.
    fn existing(&self, mut ids: Vec<String>) -> Result<Vec<String>, InsideError> {
        let mut seen = BTreeSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        if ids.is_empty() {
            return Ok(ids);
        }
        let answer = self
            .git("cat-file")
            .args(["--batch-check=%(objectname) %(objecttype)"])
            .input(ids.join("\n") + "\n")
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let commits = text.lines().filter_map(|line| line.strip_suffix(" commit"));
        Ok(commits.map(str::to_owned).collect())
    }

    /// A flat tree of what is staged, so that it travels.
    fn staged(&self, changes: &Changes) -> Result<Option<String>, InsideError> {
        if changes.staged.is_empty() {
            return Ok(None);
        }
        let objects = scratch()?.join("objects");
        let list: String = changes
            .staged
            .iter()
            .map(|(mode, id)| format!("{mode} blob {id}\t{id}-{mode}\n"))
            .collect();
        let tree = self
            .git("mktree")
            .env("GIT_OBJECT_DIRECTORY", &objects)
            .env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                self.stores(&[&self.objects()]),
            )
            .input(list)
            .run()?;
        Ok(Some(String::from_utf8_lossy(&tree).trim_end().to_owned()))
    }
}

/// The commits in a reflog, newest first: what was held before comes along.
fn reflog(path: &Path) -> Vec<String> {
    let Some(bytes) = read_capped(path, REFLOG_LIMIT) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut ids = Vec::new();
    for line in text.lines().rev() {
        let mut fields = line.split(' ');
        let (old, new) = (fields.next(), fields.next());
        for id in [new, old].into_iter().flatten() {
            let is_id = matches!(id.len(), 40 | 64) && id.bytes().all(|c| c.is_ascii_hexdigit());
            if is_id && id.bytes().any(|c| c != b'0') {
                ids.push(id.to_owned());
            }
        }
    }
    ids
}

/// Everything that an inner repository holds on to. What it knows about remotes is theirs, and of a partial clone not
/// even here.
fn held<'a>(look: &'a Look, tips: &'a Tips) -> Vec<&'a str> {
    let own = tips
        .refs
        .iter()
        .filter(|(name, _)| !name.starts_with("refs/remotes/"));
    let refs = own.map(|(_, id)| id.as_str());
    let before = tips.stash.iter().chain(&tips.reflog);
    let before = before.chain(&tips.worktrees).map(String::as_str);
    refs.chain(before)
        .chain(tips.staged.as_deref())
        .chain(look.head.as_deref())
        .collect()
}
