//! A snapshot: one commit that holds everything, byte for byte, without any filter.
//!
//! Its tree: `files/` the work tree (known to git or not, marked as unchanged or not, but not ignored), `index` the index
//! file as it is, `staged/` the blobs that only the index knows, `head` what HEAD says, `state` what `git status` says. Its parent is HEAD; its
//! message says why it was taken and what was too large for it. It is made in a repository of its own in the private
//! /tmp, so nothing in the tree is written.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_git::Git;

use super::changes::Changes;
use super::look::{Look, PackWish, Tips};
use super::stream::{Stream, quoted};
use super::{Access, InsideError, Job, TIME_LIMIT, Unless, Workplace, read_capped, scratch};
use crate::untrusted::{MANY, Reply, SOME, is_id, keep_paths};

/// The largest index that is kept.
const INDEX_LIMIT: u64 = 256 << 20;

/// Where it is made, in the private /tmp.
const REPOSITORY: &str = "snapshot.git";

/// How deep repositories in repositories are walked.
const DEPTH: usize = 16;

/// So many files that were left out are named in the message.
const NAMED: usize = 1000;

/// What a snapshot is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SnapshotForm {
    /// To be put back, byte for byte: a commit of files, index and HEAD.
    #[default]
    Everything,
    /// To be merged: the git tree of what a commit of everything would hold.
    Work,
}

/// A snapshot to be made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SnapshotWish {
    pub form: SnapshotForm,
    /// How much it may hold.
    pub limits: SnapshotLimits,
    /// The time it carries, in seconds.
    pub taken_at: i64,
    /// Why it is taken.
    pub reason: String,
    pub vault: PathBuf,
    /// Further commits that the vault has.
    pub haves: Vec<String>,
    /// How objects are named.
    pub is_sha256: bool,
    /// Only if something changed.
    pub unless: Option<Unless>,
}

/// How much a snapshot may hold.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct SnapshotLimits {
    /// Bytes of one file; larger ones are left out and named.
    pub file: u64,
    pub all: u64,
}

/// Takes a snapshot, and sends what the vault lacks of it and of what it stands on.
#[derive(Serialize, Deserialize)]
pub struct TakeSnapshot {
    pub pack: PackWish,
    pub wish: SnapshotWish,
}

/// What a snapshot found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SnapshotReply {
    pub look: Look,
    pub tips: Tips,
    /// The commit of a snapshot, or the tree of what could be committed; `None` if nothing is new.
    pub snapshot: Option<String>,
    /// Files that were left out of it.
    pub left_out: Vec<String>,
    /// What the times and sizes of all files come to.
    pub fingerprint: Option<u64>,
    /// What git ignores.
    pub ignored: Vec<String>,
}

/// A snapshot that was made.
pub(super) struct Made {
    pub commit: String,
    /// Files that were too large for it.
    pub left_out: Vec<String>,
}

impl Job for TakeSnapshot {
    type Reply = SnapshotReply;
    const ACCESS: Access = Access::Read;

    fn work(&self, at: &Workplace) -> Result<SnapshotReply, InsideError> {
        let (at, wish) = (&self.pack.lent_to(at), &self.wish);
        // Before anything is read: what changes later shows in the next walk.
        let walk = wish.unless.as_ref();
        let walk = walk.map(|unless| (at.walk(unless), unless));
        let changes = at.changes()?;
        let tips = match wish.form {
            SnapshotForm::Everything => at.tips(&changes)?,
            // Nothing but HEAD is merged.
            SnapshotForm::Work => Tips::default(),
        };
        let look = at.complete(&changes, &tips)?;
        let made = match wish.form {
            SnapshotForm::Everything => at.make_snapshot(&changes, wish)?,
            SnapshotForm::Work => at.make_work(&changes, wish)?,
        };
        let (snapshot, left_out) = made.map(|made| (made.commit, made.left_out)).unzip();
        let utf8 = |path: &Vec<u8>| String::from_utf8(path.clone()).ok();
        Ok(SnapshotReply {
            look,
            tips,
            snapshot,
            left_out: left_out.unwrap_or_default(),
            ignored: match walk {
                Some(_) => changes.ignored.iter().filter_map(utf8).collect(),
                None => Vec::new(),
            },
            fingerprint: walk.and_then(|(walk, unless)| walk.fingerprint(&changes.ignored, unless)),
        })
    }

    fn send(&self, at: &Workplace, reply: &SnapshotReply) -> Result<(), InsideError> {
        let known = self.wish.unless.as_ref();
        let known = known.and_then(|unless| unless.like.as_ref());
        let news = reply.snapshot.as_deref();
        let news = news.filter(|made| known.is_none_or(|known| known != made));
        self.pack
            .send(at, (&reply.look, &reply.tips), news, &self.wish.haves)
    }
}

impl Reply for SnapshotReply {
    fn checked(mut self) -> Option<Self> {
        self.look = self.look.checked()?;
        self.tips = self.tips.checked()?;
        keep_paths(&mut self.left_out, MANY);
        keep_paths(&mut self.ignored, SOME);
        let is_odd = |id: &String| !is_id(id);
        (!self.snapshot.as_ref().is_some_and(is_odd)).then_some(self)
    }
}

impl Workplace {
    /// Makes a snapshot; `None` if the wish is for a new one only, and it would be like the last.
    pub(super) fn make_snapshot(
        &self,
        changes: &Changes,
        wish: &SnapshotWish,
    ) -> Result<Option<Made>, InsideError> {
        let changed = changes.all_paths();
        let last = match &wish.unless {
            // Without one, what was committed is all there is to keep, and that is imported.
            Some(unless) if unless.like.is_none() && changed.is_empty() => return Ok(None),
            Some(unless) => unless.like.as_deref(),
            None => None,
        };
        let mut stream = Stream::new(wish.limits);
        for path in changed {
            self.take(&mut stream, path, DEPTH)?;
        }
        for (mode, id) in &changes.staged {
            writeln!(stream.text, "M {mode} {id} \"staged/{id}-{mode}\"")?;
        }
        let small = |file: &str| read_capped(&self.git_dir.join(file), INDEX_LIMIT);
        stream.inline("100644", b"index", &small("index").unwrap_or_default())?;
        stream.inline("100644", b"head", &self.head_text()?)?;
        stream.inline("100644", b"state", &changes.state())?;
        stream.text.extend_from_slice(b"done\n");
        let repository = self.own_repository(wish)?;
        let mut text = self.beginning(changes, wish, &stream)?;
        text.extend_from_slice(&stream.text);
        Git::new(&repository, "fast-import")
            .args(["--quiet", "--done"])
            .config("fastimport.unpackLimit", "0")
            .limit(TIME_LIMIT)
            .input(text)
            .run()?;
        let commit = fs::read_to_string(repository.join("refs/heads/snapshot"))?;
        let commit = commit.trim_end().to_owned();
        match last {
            Some(last) if is_like(&repository, last, &commit)? => Ok(None),
            _ => Ok(Some(Made {
                commit,
                left_out: stream.left_out,
            })),
        }
    }

    /// The head of the commit: when, why, without what, on what.
    fn beginning(
        &self,
        changes: &Changes,
        wish: &SnapshotWish,
        stream: &Stream,
    ) -> Result<Vec<u8>, InsideError> {
        let mut message = format!("snapshot\n\nreason: {}\n", wish.reason);
        for path in stream.left_out.iter().take(NAMED) {
            message.push_str(&format!("left-out: {}\n", serde_json::to_string(path)?));
        }
        let mut text = format!(
            "commit refs/heads/snapshot\ncommitter {COMMITTER} {} +0000\ndata {}\n{message}\n",
            wish.taken_at,
            message.len()
        );
        if let Some(head) = &changes.head {
            let tree = self
                .git("rev-parse")
                .args([format!("{head}^{{tree}}")])
                .run()?;
            let tree = String::from_utf8_lossy(&tree).trim_end().to_owned();
            // Not the parent's own paths, only its tree in `files/`.
            text.push_str(&format!(
                "from {head}\ndeleteall\nM 040000 {tree} \"files\"\n"
            ));
        }
        Ok(text.into_bytes())
    }

    /// Takes a path that differs from HEAD; of a repository in the tree its files, not its `.git`.
    fn take(&self, stream: &mut Stream, path: &[u8], depth: usize) -> Result<(), InsideError> {
        let full = self.work_tree.join(OsStr::from_bytes(path));
        let is_directory = full.symlink_metadata().is_ok_and(|found| found.is_dir());
        if !is_directory || depth == 0 {
            return Ok(stream.take(&self.work_tree, path)?);
        }
        let path = path.strip_suffix(b"/").unwrap_or(path);
        for name in nested_files(&full)? {
            self.take(stream, &[path, b"/", &name].concat(), depth - 1)?;
        }
        Ok(())
    }

    /// A repository in /tmp that borrows from the tree's and from the vault.
    pub(super) fn own_repository(&self, wish: &SnapshotWish) -> Result<PathBuf, InsideError> {
        let path = scratch()?.join(REPOSITORY);
        for directory in ["objects/info", "objects/pack", "refs/heads"] {
            fs::create_dir_all(path.join(directory))?;
        }
        let format = match wish.is_sha256 {
            true => "\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n",
            false => "\trepositoryformatversion = 0\n",
        };
        fs::write(
            path.join("config"),
            format!("[core]\n\tbare = true\n{format}"),
        )?;
        fs::write(path.join("HEAD"), "ref: refs/heads/none\n")?;
        let mut lines = Vec::new();
        for objects in [self.objects(), wish.vault.clone()] {
            quoted(&mut lines, &objects.into_os_string().into_vec());
            lines.push(b'\n');
        }
        fs::write(path.join("objects/info/alternates"), lines)?;
        Ok(path)
    }
}

pub(crate) const COMMITTER: &str = "weald <weald@localhost>";

/// The objects of a snapshot that was made.
pub(super) fn made_objects() -> io::Result<PathBuf> {
    Ok(scratch()?.join(REPOSITORY).join("objects"))
}

/// The names in a repository inside the tree: what it knows, and what it does not ignore. Without git's help, everything.
fn nested_files(directory: &Path) -> Result<Vec<Vec<u8>>, InsideError> {
    let own = directory.join(".git");
    if own.is_dir() {
        let listed = Git::new(&own, "ls-files")
            .work_tree(directory)
            .args(["--cached", "--others", "--exclude-standard", "-z"])
            .limit(TIME_LIMIT)
            .output()?;
        if listed.status.success() {
            let names = listed.stdout.split(|byte| *byte == 0);
            let names = names.filter(|name| !name.is_empty());
            return Ok(names.map(<[u8]>::to_vec).collect());
        }
    }
    let entries = fs::read_dir(directory)?.flatten();
    let names = entries.map(|entry| entry.file_name());
    let names = names.filter(|name| name != OsStr::new(".git"));
    Ok(names.map(OsString::into_vec).collect())
}

/// Whether two snapshots hold the same. The index file itself does not count: `state` says what is in it.
fn is_like(repository: &Path, last: &str, made: &str) -> Result<bool, InsideError> {
    let parts = ["files", "head", "state"];
    let named = [last, made].map(|commit| parts.map(|part| format!("{commit}:{part}\n")).concat());
    let answer = Git::new(repository, "cat-file")
        .args(["--batch-check=%(objectname)"])
        .input(named.concat())
        .run()?;
    let text = String::from_utf8_lossy(&answer);
    let ids: Vec<_> = text
        .lines()
        .map(|line| if line.ends_with(" missing") { "" } else { line })
        .collect();
    let (last, made) = ids.split_at(ids.len() / 2);
    // One without a state is of an older weald, or is gone.
    Ok(ids.len() == 2 * parts.len() && last == made && !last[2].is_empty())
}
