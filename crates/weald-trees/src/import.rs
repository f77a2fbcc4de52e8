//! Import: everything an inner repository holds goes into the vault, and main's branch follows.
//!
//! What comes in is a pack that git has checked (`--strict`), and names that are checked here. A tip that would be
//! lost by amend or rebase stays as `old/<n>`. If main's branch was moved by somebody else, both are kept.
//!
//! A pack over a pipe takes two processes fewer than a fetch, and nothing of the worktree's refs or configuration is
//! parsed. The name of the branch inside does not matter: main's branch follows HEAD.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::time::Duration;

use weald_core::store::Durability;
use weald_core::tree::{Tree, TreeKind, TreeStatus};
use weald_core::tree_rules::TreeInput;
use weald_git::{
    Commit, Expected, GitError, MainRef, RefChange, is_ancestor, list_tips, receive_checked,
    transfer, update_refs,
};

use super::inside::{
    CommitChanges, CommitEnd, CommitReply, Inspect, InspectReply, Job, Look, LookWish, PackWish,
    SnapshotReply, SnapshotWish, TakeSnapshot, Tips,
};
use super::site::Site;
use super::untrusted::{is_ref_name, is_simple_name};
use super::visit::Visit;
use super::{TreeError, Trees};
use weald_control::steps::step;

/// How often an import begins again when another one came in between.
const IMPORT_ATTEMPTS: usize = 5;

/// The header of a pack that holds nothing: signature, version and a count of zero.
const PACK_HEADER: usize = 12;

/// What need not come out of a tree.
struct Stock {
    /// What the vault holds of the tree, by the names inside it.
    known: BTreeMap<String, String>,
    mains: Vec<MainRef>,
    /// What the vault has.
    haves: Vec<String>,
}

impl Trees<'_> {
    /// Looks into a tree and takes everything out of it that the vault lacks; main's branch is left alone. `since` is a
    /// commit: every file that differs from it is listed.
    pub(crate) fn import(
        &self,
        tree: &Tree,
        site: &Site,
        since: Option<&str>,
    ) -> Result<InspectReply, TreeError> {
        let job = |haves| Inspect {
            pack: self.pack_wish(tree, haves),
            since: since.map(str::to_owned),
        };
        if tree.kind == TreeKind::Linked {
            return self.receive(tree, site, job(None));
        }
        let stock = self.stock(tree)?;
        if let Some(mut reply) = self.glance(tree, site, &stock.mains) {
            let head = reply.look.head.as_ref();
            // Only what the vault has need not be sent.
            let is_here = head.is_some_and(|head| stock.haves.contains(head));
            if is_here && since.is_none_or(|since| head.is_some_and(|head| head == since)) {
                reply.changed = since.map(|_| Vec::new());
                self.keep_found(tree, stock, &reply.look, &reply.tips)?;
                return Ok(reply);
            }
        }
        let reply = self.receive(tree, site, job(Some(stock.haves.clone())))?;
        self.keep_received(tree, site, stock, &reply)?;
        Ok(reply)
    }

    /// Takes in what a look sent.
    fn keep_received(
        &self,
        tree: &Tree,
        site: &Site,
        stock: Stock,
        reply: &InspectReply,
    ) -> Result<(), TreeError> {
        let held = reply.tips.commits(&reply.look);
        self.take_large_files_of(tree, site, held, &stock.mains)?;
        self.keep_found(tree, stock, &reply.look, &reply.tips)
    }

    /// Commits what is in a tree, and takes in what came of that, in one visit. What goes wrong after a commit that was made
    /// is left to the next look, which says so.
    pub fn commit(
        &self,
        tree: &Tree,
        job: CommitChanges,
        limit: Duration,
        announcement: String,
    ) -> Result<(CommitEnd, Option<(Tree, Look)>), TreeError> {
        let look_limit = self.config.tree_look_limit.unsigned_abs();
        let stock = match tree.kind {
            TreeKind::Sealed => self.stock(tree).map(Some),
            TreeKind::Linked => Ok(None),
        };
        let then = stock.as_ref().ok().map(|stock| LookWish {
            pack: self.pack_wish(tree, stock.as_ref().map(|stock| stock.haves.clone())),
            limit: look_limit,
        });
        let job = CommitChanges { then, ..job };
        let limit = limit.saturating_add(look_limit);
        let visit = self.begin_visit_as_a_run(tree, job, limit, announcement)?;
        let (
            Ok(CommitReply {
                end,
                found: Some(found),
            }),
            Ok(stock),
        ) = (visit.answer.clone(), stock)
        else {
            return Ok((visit.finish(tree.name.as_str())?.end, None));
        };
        let received = self.received(self.vault().path(), tree, visit);
        let kept = received.and_then(|_| match stock {
            Some(stock) => self.keep_received(tree, &self.site(tree)?, stock, &found),
            None => Ok(()),
        });
        let led = kept.and_then(|()| self.lead_branch(tree, found));
        Ok((end, led.ok().map(|(tree, reply)| (tree, reply.look))))
    }

    /// Imports what is in a tree, and a snapshot of it.
    pub(super) fn import_snapshot(
        &self,
        tree: &Tree,
        site: &Site,
        wish: SnapshotWish,
    ) -> Result<SnapshotReply, TreeError> {
        if tree.kind == TreeKind::Linked {
            let pack = self.pack_wish(tree, None);
            return self.receive(tree, site, TakeSnapshot { pack, wish });
        }
        let stock = self.stock(tree)?;
        let pack = self.pack_wish(tree, Some(stock.haves.clone()));
        let reply = self.receive(tree, site, TakeSnapshot { pack, wish })?;
        let held = reply.tips.commits(&reply.look).chain(&reply.snapshot);
        self.take_large_files_of(tree, site, held, &stock.mains)?;
        self.keep_found(tree, stock, &reply.look, &reply.tips)?;
        Ok(reply)
    }

    fn stock(&self, tree: &Tree) -> Result<Stock, TreeError> {
        let (known, mains) = (self.known_refs(tree)?, self.main_refs()?);
        let haves = self.haves(tree, &known, &mains)?;
        Ok(Stock {
            known,
            mains,
            haves,
        })
    }

    /// What of a tree is sent; with `haves` all that they do not lead to.
    pub fn pack_wish(&self, tree: &Tree, haves: Option<Vec<String>>) -> PackWish {
        let vault = self.vault();
        // One level off, a relative way to the vault leads nowhere.
        let is_off = tree.kind == TreeKind::Sealed && tree.status == TreeStatus::Trashed;
        PackWish {
            haves,
            partial: vault.main_is_partial().then(|| vault.path().to_owned()),
            lent: is_off.then(|| vault.objects()),
        }
    }

    /// Lets the vault hold what a tree holds, now that it is in there.
    fn keep_found(
        &self,
        tree: &Tree,
        stock: Stock,
        look: &Look,
        tips: &Tips,
    ) -> Result<(), TreeError> {
        step("import.received");
        let Stock {
            mut known,
            mains,
            haves,
        } = stock;
        // What came from main and is still the same is nobody's work.
        let from_main: BTreeSet<(&str, &str)> = mains
            .iter()
            .map(|known| (known.name.as_str(), known.commit.as_str()))
            .collect();
        let mut tips = tips.clone();
        tips.refs
            .retain(|(name, id)| !from_main.contains(&(name.as_str(), id.as_str())));
        if let Some(why) = tips.excess() {
            let name = tree.name.to_string();
            return Err(TreeError::Unreadable { name, why });
        }
        for _ in 0..IMPORT_ATTEMPTS {
            if self.keep_tips(tree, &known, &haves, (look, &tips))? {
                return Ok(());
            }
            known = self.known_refs(tree)?;
        }
        Err(TreeError::Unreadable {
            name: tree.name.to_string(),
            why: "other processes keep importing it, or a lock file was left in the vault"
                .to_owned(),
        })
    }

    /// What a tree need not send, because the vault has it.
    pub fn haves(
        &self,
        tree: &Tree,
        known: &BTreeMap<String, String>,
        mains: &[MainRef],
    ) -> Result<Vec<String>, TreeError> {
        let vault = self.vault();
        let mut haves: BTreeSet<String> = known.values().cloned().collect();
        haves.insert(tree.base.commit.clone());
        haves.extend(mains.iter().map(|known| known.commit.clone()));
        // What main has by now need not come out of the tree.
        vault.require(mains, &[])?;
        match vault.has(mains, &[&tree.base.commit]) {
            // What refs of the vault lead to is in it.
            true => Ok(haves.into_iter().collect()),
            false => self.present(haves),
        }
    }

    /// Takes what a job sends into the vault, and waits for its end.
    fn receive<J: Job>(&self, tree: &Tree, site: &Site, job: J) -> Result<J::Reply, TreeError> {
        self.receive_into(self.vault().path(), tree, site, job)
    }

    /// The same for another repository.
    pub fn receive_into<J: Job>(
        &self,
        repository: &Path,
        tree: &Tree,
        site: &Site,
        job: J,
    ) -> Result<J::Reply, TreeError> {
        let visit = self.begin_visit(tree.name.as_str(), site, job)?;
        self.received(repository, tree, visit)
    }

    fn received<J: Job>(
        &self,
        repository: &Path,
        tree: &Tree,
        mut visit: Visit<J>,
    ) -> Result<J::Reply, TreeError> {
        let mut refused = None;
        if visit.answer.is_ok()
            && let Some(mut pack) = visit.pack()
        {
            let limit = self.config.tree_import_limit.unwrap_or(u64::MAX);
            match is_empty_pack(&mut pack) {
                // Its end has to be read all the same: its writer would fail otherwise.
                true => drop(io::copy(&mut pack, &mut io::sink())),
                false => {
                    refused = receive_checked(repository, pack.take(limit), limit).err();
                }
            }
        }
        let finished = visit.finish(tree.name.as_str());
        let Some(error) = refused else {
            return finished;
        };
        // A sender that failed itself knows more.
        let why = match finished {
            Err(TreeError::Unreadable { why, .. }) if !why.is_empty() => format!("{error} ({why})"),
            _ => error.to_string(),
        };
        Err(TreeError::Unreadable {
            name: tree.name.to_string(),
            why: format!("its work can't be imported: {why}"),
        })
    }

    /// Imports, and lets main's branch follow. Answers the newest record.
    pub fn import_and_follow(&self, tree: &Tree, site: &Site) -> Result<(Tree, Look), TreeError> {
        let (tree, reply) = self.imported(tree, site, None)?;
        Ok((tree, reply.look))
    }

    /// Imports, lets main's branch follow, and answers all that the look said.
    pub(crate) fn imported(
        &self,
        tree: &Tree,
        site: &Site,
        since: Option<&str>,
    ) -> Result<(Tree, InspectReply), TreeError> {
        let reply = self.import(tree, site, since)?;
        self.lead_branch(tree, reply)
    }

    /// Lets main's branch follow what was imported.
    fn lead_branch(
        &self,
        tree: &Tree,
        reply: InspectReply,
    ) -> Result<(Tree, InspectReply), TreeError> {
        let look = &reply.look;
        self.renew_seen(tree, look);
        step("import.kept");
        let Some(head) = look.head.clone() else {
            return Ok((tree.clone(), reply));
        };
        // In the middle of a rebase or a bisect HEAD is not where the work is.
        if look.operation.is_some() && look.branch.is_none() {
            return Ok((tree.clone(), reply));
        }
        let diverged = match tree.kind {
            TreeKind::Sealed => !self.follow(tree, &head)?,
            TreeKind::Linked => false,
        };
        if tree.head.as_deref() == Some(&head) && tree.diverged == diverged {
            return Ok((tree.clone(), reply));
        }
        step("import.followed");
        let input = TreeInput::Imported { head, diverged };
        Ok((self.decide(tree, Durability::Process, input)?, reply))
    }

    pub fn no_answer(&self, tree: &Tree) -> TreeError {
        TreeError::Unreadable {
            name: tree.name.to_string(),
            why: "it gave no answer".to_owned(),
        }
    }

    /// What the vault holds of a tree, by the names inside it.
    pub fn known_refs(&self, tree: &Tree) -> Result<BTreeMap<String, String>, TreeError> {
        let prefix = format!("refs/tree/{}/", tree.id);
        let listed = list_tips(self.vault().path(), &[&prefix])?;
        let short = |name: &str| name.strip_prefix(&prefix).map(str::to_owned);
        let known = listed
            .into_iter()
            .filter_map(|known| Some((short(&known.name)?, known.commit)));
        Ok(known.collect())
    }

    /// Those that the vault has: a base may be older than the vault.
    pub(super) fn present(&self, ids: BTreeSet<String>) -> Result<Vec<String>, TreeError> {
        let list: Vec<_> = ids.into_iter().collect();
        let answer = self
            .vault()
            .git("cat-file")
            .args(["--batch-check=%(objectname)"])
            .input(list.join("\n") + "\n")
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let there = text.lines().filter(|line| Commit::parse(line).is_some());
        Ok(there.map(str::to_owned).collect())
    }

    /// Moves the vault's refs of a tree to what it holds now; false if another import came in between.
    fn keep_tips(
        &self,
        tree: &Tree,
        known: &BTreeMap<String, String>,
        haves: &[String],
        (look, tips): (&Look, &Tips),
    ) -> Result<bool, TreeError> {
        let now = wanted_refs(look, tips);
        let gone =
            |(name, _): &(&String, &String)| !now.contains_key(*name) && !name.starts_with("old/");
        let lost = self.lost(known, &now, tips)?;
        let prefix = format!("refs/tree/{}/", tree.id);
        let change = |name: &str, new: Option<&String>, expected: Expected| RefChange {
            name: format!("{prefix}{name}"),
            new: new.cloned(),
            expected,
        };
        let mut first: Vec<_> = lost
            .iter()
            .zip(next_old(known)..)
            .map(|(id, number)| change(&format!("old/{number}"), Some(id), Expected::Absent))
            .collect();
        let deleted = known.iter().filter(gone);
        first.extend(deleted.map(|(name, old)| change(name, None, Expected::Holds(old.clone()))));
        let moved = now
            .iter()
            .filter(|(name, id)| known.get(*name) != Some(*id));
        let mut second: Vec<_> = moved
            .map(|(name, id)| match known.get(name) {
                Some(old) => change(name, Some(id), Expected::Holds(old.clone())),
                None => change(name, Some(id), Expected::Absent),
            })
            .collect();
        // What goes, goes first: a branch `a` may have made room for `a/b`. The lost tips are held before that.
        if !self.vault_refs(tree, &first)? {
            return Ok(false);
        }
        step("import.old_kept");
        // The first look into most trees brings nothing but new names for what the vault has.
        let is_made = |change: &RefChange| match (&change.new, &change.expected) {
            (Some(id), Expected::Absent) => {
                haves.contains(id)
                    && is_simple_name(&change.name)
                    && self.vault().makes_ref(&change.name, id, &self.workshop())
            }
            _ => false,
        };
        second.retain(|change| !is_made(change));
        self.vault_refs(tree, &second)
    }

    fn vault_refs(&self, tree: &Tree, changes: &[RefChange]) -> Result<bool, TreeError> {
        match update_refs(self.vault().path(), changes, "weald: import") {
            Ok(()) => Ok(true),
            Err(GitError::Failed { stderr, .. }) if is_outrun(&stderr) => Ok(false),
            Err(error) => Err(TreeError::Unreadable {
                name: tree.name.to_string(),
                why: format!("its refs can't be imported: {error}"),
            }),
        }
    }

    /// Commits that were held before and are reachable from nothing that is held now.
    fn lost(
        &self,
        known: &BTreeMap<String, String>,
        now: &BTreeMap<String, String>,
        tips: &Tips,
    ) -> Result<Vec<String>, TreeError> {
        let dropped = known.iter().filter(|(name, id)| {
            now.get(*name) != Some(*id) && !name.starts_with("old/") && *name != "staged"
        });
        let dropped: Vec<_> = dropped.collect();
        // A tag or another ref may hold what is no commit, so no walk would find it: it is kept as it is.
        let named = |name: &str| name.starts_with("tags/") || name.starts_with("other/");
        let mut kept: Vec<String> = dropped
            .iter()
            .filter(|(name, _)| named(name))
            .map(|(_, id)| (*id).clone())
            .collect();
        let commits = dropped.iter().filter(|(name, _)| !named(name));
        let held = now.iter().filter(|(name, _)| *name != "staged");
        let old = known.iter().filter(|(name, _)| name.starts_with("old/"));
        let held: BTreeSet<&String> = held.chain(old).map(|(_, id)| id).collect();
        let candidates: BTreeSet<&String> = commits
            .map(|(_, id)| *id)
            .chain(&tips.reflog)
            .filter(|id| !held.contains(id))
            .collect();
        if candidates.is_empty() {
            return Ok(kept);
        }
        let mut input = String::new();
        for id in &candidates {
            input.push_str(&format!("{id}\n"));
        }
        for id in held {
            input.push_str(&format!("^{id}\n"));
        }
        let answer = self
            .vault()
            .git("rev-list")
            .args(["--ignore-missing", "--stdin"])
            .input(input)
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let unreachable: BTreeSet<_> = text.lines().collect();
        let lost = candidates
            .into_iter()
            .filter(|id| unreachable.contains(id.as_str()));
        kept.extend(lost.cloned());
        Ok(kept)
    }

    /// Moves main's branch to `head`; false if somebody else moved it.
    fn follow(&self, tree: &Tree, head: &str) -> Result<bool, TreeError> {
        let repository = self.place.repository();
        let full = format!("refs/heads/{}", tree.branch);
        let held = repository
            .resolve(&full)?
            .map(|held| held.as_str().to_owned());
        if held.as_deref() == Some(head) {
            return Ok(true);
        }
        let ours = tree.head.as_deref().unwrap_or(&tree.base.commit);
        if let Some(held) = &held
            && held != ours
            && !self.contains(head, held)?
        {
            return Ok(false);
        }
        let mut haves: BTreeSet<String> = held.iter().cloned().collect();
        haves.extend(self.target.as_ref().map(|(_, tip)| tip.clone()));
        let mains = self.main_refs()?;
        haves.extend(mains.iter().map(|known| known.commit.clone()));
        let ids: Vec<_> = haves.iter().map(String::as_str).collect();
        let haves = match self.vault().has(&mains, &ids) {
            true => haves.into_iter().collect(),
            false => self.present(haves)?,
        };
        let haves: Vec<_> = haves.iter().map(String::as_str).collect();
        let main = repository.common_dir();
        let kept = transfer(self.vault().path(), main, &[head], &haves)?;
        step("import.transferred");
        let change = RefChange {
            name: full,
            new: Some(head.to_owned()),
            expected: match held {
                Some(held) => Expected::Holds(held),
                None => Expected::Absent,
            },
        };
        let moved = self.update_main(&[change], &format!("weald: import {}", tree.name));
        step("import.moved");
        drop(kept);
        match moved {
            Ok(()) => Ok(true),
            // Somebody was faster; the next look tells.
            Err(GitError::Failed { stderr, .. }) if is_outrun(&stderr) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether `tip` contains `commit`, as the vault knows them.
    pub fn contains(&self, tip: &str, commit: &str) -> Result<bool, TreeError> {
        if tip == commit {
            return Ok(true);
        }
        Ok(is_ancestor(self.vault().path(), commit, tip)?)
    }
}

/// The number of the next `old/<n>`, of what a tree held and holds no more.
pub(super) fn next_old(known: &BTreeMap<String, String>) -> u64 {
    let numbers = known
        .keys()
        .filter_map(|name| name.strip_prefix("old/")?.parse().ok());
    numbers.max().map_or(1, |newest: u64| newest + 1)
}

/// What the vault should hold of a tree: short name and object.
fn wanted_refs(look: &Look, tips: &Tips) -> BTreeMap<String, String> {
    let mut wanted = BTreeMap::new();
    let is_id = |id: &str| Commit::parse(id).is_some();
    for (name, id) in &tips.refs {
        let short = name.strip_prefix("refs/").filter(|short| {
            !short.starts_with("remotes/") && *short != "stash" && is_ref_name(short)
        });
        if let Some(short) = short.filter(|_| is_id(id)) {
            // Only these have a place of their own beside what weald itself keeps (`old`, `stash`, `HEAD` …).
            let known = short.starts_with("heads/") || short.starts_with("tags/");
            let prefix = if known { "" } else { "other/" };
            wanted.insert(format!("{prefix}{short}"), id.clone());
        }
    }
    for (number, id) in tips.stash.iter().enumerate().filter(|(_, id)| is_id(id)) {
        wanted.insert(format!("stash/{number}"), id.clone());
    }
    let inner = tips.worktrees.iter().enumerate();
    for (number, id) in inner.filter(|(_, id)| is_id(id)) {
        wanted.insert(format!("worktrees/{number}"), id.clone());
    }
    if let Some(id) = tips.staged.as_ref().filter(|id| is_id(id)) {
        wanted.insert("staged".to_owned(), id.clone());
    }
    if let Some(id) = look.head.as_ref().filter(|id| is_id(id)) {
        wanted.insert("HEAD".to_owned(), id.clone());
    }
    wanted
}

/// Whether git says that a ref is not what it was expected to be.
pub(super) fn is_outrun(stderr: &str) -> bool {
    [
        "but expected",
        "already exists",
        "unable to resolve reference",
        "Unable to create",
        "cannot lock references",
    ]
    .iter()
    .any(|word| stderr.contains(word))
}

fn is_empty_pack(pack: &mut impl BufRead) -> bool {
    match pack.fill_buf() {
        Ok(start) if start.len() >= PACK_HEADER => start[8..PACK_HEADER] == [0; 4],
        Ok(start) => start.is_empty(),
        Err(_) => true,
    }
}
