//! Committing what a tree holds, as its own git would: with its hooks, and with everything or nothing of it done.
//!
//! The work is done on a copy of the index, which is also the index's lock; only a commit that was made renames it into
//! place. Whatever fails before leaves index and HEAD as they were.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use weald_core::approval::Protection;
use weald_git::{Git, GitError, keep_index_time};

use super::{Access, InsideError, Inspect, InspectReply, Job, PackWish, READING, Workplace};
use crate::untrusted::{MANY, Reply, keep_paths};

/// Where git writes down which hook it starts: in the private /tmp.
const TRACE: &str = "/tmp/weald-commit-trace";

/// Commits what is there, with the tree's own hooks.
#[derive(Serialize, Deserialize)]
pub struct CommitChanges {
    /// Whether files that git does not know come along; ignored ones never do.
    pub untracked: bool,
    /// Patterns of what is left alone unless HEAD has it.
    pub protected: Vec<String>,
    pub message: String,
    /// Who commits if the tree does not know: name and mail.
    pub identity: (String, String),
    /// How long git and its hooks may take.
    pub limit: Duration,
    /// What is looked at and sent once a commit was made.
    pub then: Option<LookWish>,
}

/// A look after a commit.
#[derive(Clone, Serialize, Deserialize)]
pub struct LookWish {
    pub pack: PackWish,
    /// How long it may take.
    pub limit: Duration,
}

/// How a commit ended, and what is there after it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommitReply {
    pub end: CommitEnd,
    /// `None` also where a look failed or took too long: another one says why.
    pub found: Option<InspectReply>,
}

/// How a commit ended. Files that are protected and new were left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommitEnd {
    /// It was made. A hook after it may have hung, or git itself, which has no name.
    Committed {
        left_out: Vec<String>,
        hung: Option<String>,
    },
    /// There was nothing to commit.
    Nothing {
        left_out: Vec<String>,
    },
    HookFailed {
        hook: String,
        said: String,
    },
    /// Nothing was committed in time.
    TimedOut {
        hook: String,
    },
    Refused(String),
}

impl Reply for CommitReply {
    fn checked(mut self) -> Option<Self> {
        use CommitEnd::{Committed, Nothing};
        if let Committed { left_out, .. } | Nothing { left_out } = &mut self.end {
            keep_paths(left_out, MANY);
        }
        if let Some(found) = self.found {
            self.found = Some(found.checked()?);
        }
        Some(self)
    }
}

/// A copy of the index that keeps other gits away; gone when it is dropped, unless it took the index's place.
struct CopiedIndex {
    copy: PathBuf,
    index: PathBuf,
}

impl CopiedIndex {
    /// `None` if another git is at work.
    fn new(git_dir: &Path) -> io::Result<Option<Self>> {
        let index = git_dir.join("index");
        let copy = git_dir.join("index.lock");
        let made = OpenOptions::new().write(true).create_new(true).open(&copy);
        let mut file = match made {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => return Err(error),
        };
        let copied = Self { copy, index };
        let mut from = fs::File::open(&copied.index)?;
        io::copy(&mut from, &mut file)?;
        let index = from.metadata()?;
        file.set_permissions(index.permissions())?;
        keep_index_time(&index, &file)?;
        Ok(Some(copied))
    }

    fn take_place(self) -> io::Result<()> {
        fs::rename(&self.copy, &self.index)?;
        // From here on a lock of this name is somebody else's.
        std::mem::forget(self);
        Ok(())
    }
}

impl Drop for CopiedIndex {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.copy);
    }
}

impl Job for CommitChanges {
    type Reply = CommitReply;
    const ACCESS: Access = Access::Write;

    fn work(&self, at: &Workplace) -> Result<CommitReply, InsideError> {
        let end = self.commit(at)?;
        let then = self.then.as_ref();
        let then = then.filter(|_| matches!(end, CommitEnd::Committed { .. }));
        let found = then.and_then(|then| then.look(at));
        Ok(CommitReply { end, found })
    }

    fn send(&self, at: &Workplace, reply: &CommitReply) -> Result<(), InsideError> {
        match (&self.then, &reply.found) {
            (Some(then), Some(found)) => {
                let found = (&found.look, &found.tips);
                then.pack.send(at, found, None, &[])
            }
            _ => Ok(()),
        }
    }
}

impl LookWish {
    /// What is there, unless that can't be said in time, or in the memory that any look has. One that hangs ends with this
    /// process.
    fn look(&self, at: &Workplace) -> Option<InspectReply> {
        let most = Some(
            getrlimit(Resource::Data)
                .maximum
                .map_or(READING, |most| most.min(READING)),
        );
        let limits = Rlimit {
            current: most,
            maximum: most,
        };
        setrlimit(Resource::Data, limits).ok()?;
        let (told, telling) = mpsc::channel();
        let (at, pack) = (at.clone(), self.pack.clone());
        thread::spawn(move || drop(told.send(Inspect { pack, since: None }.work(&at))));
        telling.recv_timeout(self.limit).ok()?.ok()
    }
}

impl CommitChanges {
    fn commit(&self, at: &Workplace) -> Result<CommitEnd, InsideError> {
        let refused = |why: String| Ok(CommitEnd::Refused(why));
        if let Some(operation) = at.operation() {
            return refused(format!("a {operation} is in progress"));
        }
        let Some(index) = CopiedIndex::new(&at.git_dir)? else {
            return refused("another git process is using its index (index.lock)".to_owned());
        };
        match at.commit_from(index, self) {
            Err(InsideError::Git(GitError::TimedOut { .. })) => Ok(CommitEnd::TimedOut {
                hook: String::new(),
            }),
            done => done,
        }
    }
}

impl Workplace {
    fn commit_from(
        &self,
        index: CopiedIndex,
        wish: &CommitChanges,
    ) -> Result<CommitEnd, InsideError> {
        let unmerged = self
            .as_its_own("ls-files", &index, wish)
            .args(["-u"])
            .run()?;
        if !unmerged.is_empty() {
            let why = "files are in conflict".to_owned();
            return Ok(CommitEnd::Refused(why));
        }
        let left_out = match self.add(&index, wish)? {
            Ok(left_out) => left_out,
            Err(why) => return Ok(CommitEnd::Refused(why)),
        };
        let staged = self
            .as_its_own("diff", &index, wish)
            .args(["--cached", "--quiet", "--no-ext-diff"])
            .output()?;
        if staged.status.success() {
            return Ok(CommitEnd::Nothing { left_out });
        }
        let before = self.head()?;
        let committed = self
            .identified(self.as_its_own("commit", &index, wish), wish)?
            .args(["-q", "-F", "-"])
            .input(wish.message.clone())
            .env("GIT_TRACE2_EVENT", TRACE)
            .aloud()
            .output();
        let hung = match committed {
            Ok(committed) if !committed.status.success() => {
                let said = committed.stderr;
                return Ok(match stopped_in() {
                    Some(hook) => CommitEnd::HookFailed { hook, said },
                    None => CommitEnd::Refused(said),
                });
            }
            Ok(_) => None,
            Err(GitError::TimedOut { .. }) => {
                let hook = stopped_in().unwrap_or_default();
                if self.head()? == before {
                    return Ok(CommitEnd::TimedOut { hook });
                }
                // The commit was made, and a hook after it hung.
                Some(hook)
            }
            Err(error) => return Err(error.into()),
        };
        index.take_place()?;
        Ok(CommitEnd::Committed { left_out, hung })
    }

    fn head(&self) -> Result<Vec<u8>, InsideError> {
        let asked = self.git("rev-parse").args(["-q", "--verify", "HEAD"]);
        Ok(asked.output()?.stdout)
    }

    /// Stages what is to be committed. Answers what is protected and new, so left alone; or what git said against it.
    fn add(
        &self,
        index: &CopiedIndex,
        wish: &CommitChanges,
    ) -> Result<Result<Vec<String>, String>, InsideError> {
        let git = |name: &str| self.as_its_own(name, index, wish);
        let known = git("add").args(["-u"]).output()?;
        if !known.status.success() {
            return Ok(Err(known.stderr));
        }
        // Also what was only announced (`git add -N`) is staged by now.
        let new = ["--cached", "--name-only", "--diff-filter=A", "--no-renames"];
        let staged = git("diff")
            .args(new)
            .args(["-z", "--no-ext-diff", "HEAD"])
            .run()?;
        let (mut left_out, staged) = protected(wish, &staged);
        if !staged.is_empty() {
            git("update-index")
                .args(["-z", "--force-remove", "--stdin"])
                .input(staged)
                .run()?;
        }
        if !wish.untracked {
            return Ok(Ok(in_words(&left_out)));
        }
        let unknown = git("ls-files")
            .args(["-z", "--others", "--exclude-standard"])
            .run()?;
        left_out.extend(protected(wish, &unknown).0);
        let mut places = b":/\0".to_vec();
        for path in &left_out {
            places.extend([b":(top,exclude,literal)", &path[..], b"\0"].concat());
        }
        let added = git("add")
            .args(["-A", "--pathspec-from-file=-", "--pathspec-file-nul"])
            .input(places)
            .output()?;
        Ok(match added.status.success() {
            true => Ok(in_words(&left_out)),
            false => Err(added.stderr),
        })
    }

    /// git as somebody in the tree would start it, so that hooks see what they are used to; it looks no further up.
    fn as_its_own(&self, name: &str, index: &CopiedIndex, wish: &CommitChanges) -> Git {
        let above = self.work_tree.parent().unwrap_or(&self.work_tree);
        Git::outside(&self.work_tree, name)
            .with_own_environment()
            .with_user_config(self.home.as_deref())
            .env("GIT_CONFIG_NOSYSTEM", "0")
            .env("GIT_CEILING_DIRECTORIES", above)
            .env("GIT_EDITOR", "true")
            .config("commit.gpgsign", "false")
            .config("gc.auto", "0")
            .config("maintenance.auto", "false")
            .index_file(&index.copy)
            .limit(wish.limit)
    }

    fn identified(&self, git: Git, wish: &CommitChanges) -> Result<Git, InsideError> {
        let known = self.git("var").args(["GIT_COMMITTER_IDENT"]).output()?;
        if known.status.success() {
            return Ok(git);
        }
        let (name, mail) = &wish.identity;
        Ok(["AUTHOR", "COMMITTER"].iter().fold(git, |git, who| {
            git.env(format!("GIT_{who}_NAME"), name)
                .env(format!("GIT_{who}_EMAIL"), mail)
        }))
    }
}

/// What is protected of a list: outermost, and every path of it, ended by NUL. Names need be no UTF-8.
fn protected(wish: &CommitChanges, listed: &[u8]) -> (BTreeSet<Vec<u8>>, Vec<u8>) {
    let protection = Protection::new(wish.protected.iter().map(String::as_str));
    let (mut outermost, mut paths) = (BTreeSet::new(), Vec::new());
    let listed = listed.split(|byte| *byte == 0);
    for path in listed.filter(|path| !path.is_empty()) {
        let text = String::from_utf8_lossy(path);
        if let Some(found) = protection.outermost(&text) {
            let depth = found.trim_end_matches('/').split('/').count();
            let parts: Vec<_> = path.split(|byte| *byte == b'/').take(depth).collect();
            outermost.insert(parts.join(&b'/'));
            paths.extend_from_slice(path);
            paths.push(0);
        }
    }
    (outermost, paths)
}

/// The hook that the commit ended in.
fn stopped_in() -> Option<String> {
    stopping_hook(&fs::read_to_string(TRACE).unwrap_or_default())
}

/// The last hook that git itself, not a git in a hook, started, if that failed or has not ended.
fn stopping_hook(trace: &str) -> Option<String> {
    let mut last: Option<(u64, String)> = None;
    for line in trace.lines() {
        let Ok(event) = serde_json::from_str::<serde_json::Value>(line) else {
            continue;
        };
        let field = |name: &str| event[name].as_str().unwrap_or_default();
        // A git that another git started has both in its id.
        if field("sid").contains('/') {
            continue;
        }
        let child = event["child_id"].as_u64().unwrap_or_default();
        match field("event") {
            "child_start" if field("child_class") == "hook" => {
                last = Some((child, field("hook_name").to_owned()));
            }
            "child_exit" if event["code"] == 0 => last = last.filter(|(known, _)| *known != child),
            _ => {}
        }
    }
    last.map(|(_, name)| name)
}

fn in_words(paths: &BTreeSet<Vec<u8>>) -> Vec<String> {
    let paths = paths.iter();
    paths
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::stopping_hook;

    #[test]
    fn the_hook_that_failed_or_hangs_is_known_from_the_trace() {
        let event = |kind: &str, sid: &str, more: &str| {
            format!("{{\"event\":\"{kind}\",\"sid\":\"{sid}\",{more}}}\n")
        };
        let starts = |sid: &str, id: u32, hook: &str| {
            let more =
                format!("\"child_id\":{id},\"child_class\":\"hook\",\"hook_name\":\"{hook}\"");
            event("child_start", sid, &more)
        };
        let ends = |sid: &str, id: u32, code: i32| {
            let more = format!("\"child_id\":{id},\"code\":{code}");
            event("child_exit", sid, &more)
        };
        let (a, b) = (starts("1", 0, "pre-commit"), starts("1", 1, "commit-msg"));
        let nested = starts("1/2", 0, "post-index-change") + &ends("1/2", 0, 0);
        for (trace, expected) in [
            (String::new(), None),
            (format!("{a}{nested}"), Some("pre-commit")),
            (
                format!("{a}{}{b}no json\n", ends("1", 0, 0)),
                Some("commit-msg"),
            ),
            (format!("{a}{}", ends("1", 0, 0)), None),
            (format!("{a}{}", ends("1", 0, 1)), Some("pre-commit")),
        ] {
            assert_eq!(stopping_hook(&trace).as_deref(), expected, "{trace}");
        }
    }
}
