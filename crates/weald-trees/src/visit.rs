//! The host half of a visit: starts the inside half in a tree's sandbox and reads its answer as untrusted.
//!
//! A visit has no network, a time limit, and writes the tree only when its job must. Its level is the strongest that this
//! machine gives, decided by a probe before the tree is touched: nothing that a tree holds or does leads to a weaker one.
//! Only a job that runs hooks (`begin_visit_as_a_run`) has what a run has: network, environment, caches, and level full.

use std::ffi::OsString;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use weald_core::config::LargeFilesPolicy;
use weald_core::tree::{DirectoryIdentity, Tree, TreeKind};
use weald_sandbox::{
    Ended, Invocation, Level, Network, Policy, Revealed, SandboxError, launch, strongest_level,
};

use super::half_made::wait_or_interrupt;
use super::inside::{Job, LargeFiles, Request, Workplace};
use super::overhearing::overheard;
use super::untrusted::first_line;
use super::{TreeError, Trees};
use weald_control::machine::INSIDE_ARGUMENT;
use weald_control::marker;

/// How much memory a process may write in a visit that reads: enough for a few million files.
pub(crate) const READING: u64 = 2 << 30;

/// How much of what went wrong is kept.
pub(super) const ERROR_LIMIT: u64 = 4096;

/// Whether a visit may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    /// It writes the tree.
    Write,
}

/// A tree's directory and repository, as the host's own record has them.
#[derive(Debug, Clone)]
pub struct Site {
    pub path: PathBuf,
    /// The repository in it, or its registration in main.
    pub git_dir: PathBuf,
    pub kind: TreeKind,
}

/// What a visit is held by, and what it sees.
struct Room {
    policy: Policy,
    environment: Vec<(OsString, OsString)>,
    limit: Duration,
    /// What is said when it takes its time; what it writes to standard error follows.
    announcement: Option<String>,
}

/// An answer, and what comes after its first line.
pub struct Visit<J: Job> {
    /// The reply, or why there is none.
    pub(crate) answer: Result<J::Reply, String>,
    rest: Option<BufReader<ChildStdout>>,
    watcher: JoinHandle<io::Result<Ended>>,
    errors: Option<JoinHandle<String>>,
}

impl<J: Job> Visit<J> {
    /// The pack behind the first line, to be read by somebody else.
    pub(crate) fn pack(&mut self) -> Option<BufReader<ChildStdout>> {
        self.rest.take()
    }

    /// Waits for the end; anything but a good one is an error.
    pub(crate) fn finish(mut self, name: &str) -> Result<J::Reply, TreeError> {
        if let Some(mut rest) = self.rest.take() {
            // Nobody wants it, but its writer has to be able to end.
            let _ = io::copy(&mut rest, &mut io::sink());
        }
        let unreadable = |why: String| TreeError::Unreadable {
            name: name.to_owned(),
            why,
        };
        let ended = self
            .watcher
            .join()
            .map_err(|_| unreadable("the visit was lost".to_owned()))?
            .map_err(|error| unreadable(error.to_string()))?;
        match (ended, self.answer) {
            (Ended::TimedOut, _) => Err(unreadable("inspecting it took too long".to_owned())),
            (_, Err(error)) => Err(unreadable(error)),
            (Ended::Code(0), Ok(reply)) => Ok(reply),
            (Ended::Code(_) | Ended::Signal(_), Ok(_)) => {
                let said = self.errors.and_then(|errors| errors.join().ok());
                Err(unreadable(said.unwrap_or_default()))
            }
        }
    }
}

impl Trees<'_> {
    /// Refuses a tree that belongs to another repository.
    pub fn require_ours(&self, tree: &Tree) -> Result<(), TreeError> {
        let of_another = |repository: PathBuf| TreeError::OfAnother {
            name: tree.name.clone(),
            path: tree.path.clone(),
            repository,
        };
        if let Some(copy) = &self.engine.copy_of {
            let unknown = || PathBuf::from("an unknown place");
            return Err(of_another(copy.original.clone().unwrap_or_else(unknown)));
        }
        let here = self.place.repository().common_dir();
        match marker::other_owner(&tree.path, self.host.state.as_deref(), here) {
            Some(other) => Err(of_another(other)),
            None => Ok(()),
        }
    }

    /// Does a job and waits for its end.
    pub fn visit<J: Job>(&self, name: &str, site: &Site, job: J) -> Result<J::Reply, TreeError> {
        self.begin_visit(name, site, job)?.finish(name)
    }

    /// Starts a job and reads the first line of its answer.
    pub(crate) fn begin_visit<J: Job>(
        &self,
        name: &str,
        site: &Site,
        job: J,
    ) -> Result<Visit<J>, TreeError> {
        let limit = self.config.tree_look_limit.unsigned_abs();
        self.begin_visit_for(name, site, job, limit)
    }

    /// The same with another time limit.
    pub(crate) fn begin_visit_for<J: Job>(
        &self,
        name: &str,
        site: &Site,
        job: J,
        limit: Duration,
    ) -> Result<Visit<J>, TreeError> {
        let access = J::ACCESS;
        let at = self.workplace(site, access)?;
        // A look that hung once is not waited for again; what writes has its time.
        let limit = match access {
            Access::Read => self.patience_with(site, limit),
            Access::Write => limit,
        };
        let level = strongest_level(Network::Off, &self.host.helper)?;
        let room = Room {
            policy: Policy {
                level,
                ..self.visit_policy(site, access)
            },
            environment: self.visit_environment(),
            limit,
            announcement: None,
        };
        self.visit_in(room, name, site, at, job)
    }

    /// Starts a job that runs hooks, for as long as `limit`: they have what every command in the tree has (`weald run`), at
    /// level full or not at all. Once it takes longer than a moment, `announcement` and its output are shown.
    pub(crate) fn begin_visit_as_a_run<J: Job>(
        &self,
        tree: &Tree,
        job: J,
        limit: Duration,
        announcement: String,
    ) -> Result<Visit<J>, TreeError> {
        let (name, site) = (tree.name.as_str(), self.site(tree)?);
        let at = self.workplace(&site, J::ACCESS)?;
        let room = Room {
            policy: Policy {
                level: Level::Full,
                ..self.run_policy(tree)
            },
            environment: self.run_environment(tree),
            limit,
            announcement: Some(announcement),
        };
        self.visit_in(room, name, &site, at, job)
    }

    fn workplace(&self, site: &Site, access: Access) -> Result<Workplace, TreeError> {
        let main = self.place.repository().common_dir();
        let smudges = self.config.tree_lfs == LargeFilesPolicy::Smudge;
        let large = LargeFiles {
            smudges,
            // Only who writes files needs what they hold.
            main: match smudges && access == Access::Write {
                true => Some(self.large_files_of(main)?.root().to_owned()),
                false => None,
            },
            scratch: None,
        };
        let home = self.host.home.clone();
        Ok(Workplace::new(site, main, home, large))
    }

    /// Whether git-lfs was ever at work in a tree: then it gets room on disk in visits, too.
    fn has_large_files(&self, site: &Site) -> bool {
        let common = self.place.repository().common_dir();
        [&site.git_dir, common]
            .iter()
            .any(|git_dir| git_dir.join("lfs").is_dir())
    }

    fn visit_in<J: Job>(
        &self,
        room: Room,
        name: &str,
        site: &Site,
        mut at: Workplace,
        job: J,
    ) -> Result<Visit<J>, TreeError> {
        let (mut policy, limit) = (room.policy, room.limit);
        let unreadable = |why: String| TreeError::Unreadable {
            name: name.to_owned(),
            why,
        };
        let tmp = self.private_room(site, &mut policy, &mut at)?;
        let invocation = Invocation {
            helper: self.host.helper.clone(),
            command: vec!["/proc/self/exe".into(), INSIDE_ARGUMENT.into()],
            directory: site.path.clone(),
            environment: room.environment,
            streams: [Stdio::piped(), Stdio::piped(), Stdio::piped()],
            passed: None,
        };
        let mut running = launch(&policy, invocation).map_err(|error| match error {
            SandboxError::Unavailable { .. } => error.into(),
            other => unreadable(other.to_string()),
        })?;
        let (stdin, stdout, stderr) = running.streams();
        let job = job.into();
        let text = serde_json::to_vec(&Request { at, job });
        let text = text.map_err(|error| unreadable(error.to_string()))?;
        if let Some(mut stdin) = stdin {
            // One that ends early says why in its answer.
            thread::spawn(move || stdin.write_all(&text));
        }
        let narration = self.host.narration;
        let errors = stderr.map(|stderr| {
            thread::spawn(move || match room.announcement {
                Some(told) => overheard(stderr, &told, narration),
                None => capped_text(stderr),
            })
        });
        let cancel = J::ENDS_ON_INTERRUPT.then(|| self.host.cancel.clone());
        let watcher = thread::spawn(move || {
            let ended = match cancel {
                Some(cancel) => wait_or_interrupt(running, limit, &cancel),
                None => running.wait(Some(limit)),
            };
            drop(tmp);
            ended
        });
        let mut rest = BufReader::new(stdout.expect("piped"));
        match first_line::<J>(&mut rest) {
            Some(answer) => Ok(Visit {
                answer,
                rest: Some(rest),
                watcher,
                errors,
            }),
            None => {
                drop(rest);
                let ended = watcher.join();
                let said = errors
                    .and_then(|errors| errors.join().ok())
                    .unwrap_or_default();
                let why = match ended {
                    Ok(Ok(Ended::TimedOut)) => self.note_hanging(site, limit),
                    _ => format!("it gave no answer: {said}"),
                };
                Err(unreadable(why))
            }
        }
    }

    /// A folder that the visit alone writes, where its private /tmp will not do, and where git-lfs finds it.
    fn private_room(
        &self,
        site: &Site,
        policy: &mut Policy,
        at: &mut Workplace,
    ) -> Result<Option<tempfile::TempDir>, TreeError> {
        let reads = policy.read_only;
        let tmp = match policy.level {
            // A private /tmp is memory, which a large file need not fit into.
            Level::Full if !(reads && self.has_large_files(site)) => None,
            _ => Some(self.workshop_directory()?),
        };
        let path = tmp.as_ref().map(|tmp| tmp.path().to_owned());
        at.large.scratch = reads.then(|| match &path {
            Some(path) => path.join("lfs"),
            None => PathBuf::from("/tmp/lfs"),
        });
        match policy.level {
            Level::Full => policy.reveal.extend(path.map(|path| Revealed {
                path,
                writable: true,
            })),
            Level::Landlock => policy.tmp = path,
        }
        Ok(tmp)
    }

    fn visit_policy(&self, site: &Site, access: Access) -> Policy {
        let mut policy = Policy::new(&site.path);
        // A linked tree's index, HEAD and refs are main's.
        if site.kind == TreeKind::Linked && access == Access::Write {
            policy
                .write
                .push(self.place.repository().common_dir().to_owned());
        }
        policy.read_only = access == Access::Read;
        policy.network = Network::Off;
        policy.home = self.host.home.clone();
        let unseen = self.unseen(&site.path);
        (policy.mask, policy.hidden) = (unseen.mask, unseen.hidden);
        policy.show = self.shown(&site.path);
        policy.limits.memory = Some(16 << 30);
        if access == Access::Read {
            // An index or a commit of few objects can name billions of files, and git wants to hold all of them.
            policy.limits.data = Some(READING);
        }
        policy
    }

    /// What git inside needs to know, and nothing else of the caller's.
    pub fn visit_environment(&self) -> Vec<(OsString, OsString)> {
        let wanted = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "XDG_CONFIG_HOME"];
        let all = self.host.environment.iter();
        let passed = all.filter(|(name, _)| wanted.iter().any(|wanted| name == wanted));
        passed.cloned().collect()
    }

    /// The tree's directory, if it is still the one that was made; a replaced or vanished one is refused.
    pub fn site(&self, tree: &Tree) -> Result<Site, TreeError> {
        self.opened(tree).map(|(site, _)| site)
    }

    /// Whether a directory is the one on record. Where the file system has no birth times and only the device number
    /// differs, the tree also has to borrow from this vault, or lead to its registration here.
    fn is_known(&self, tree: &Tree, identity: DirectoryIdentity, found: &weald_git::Door) -> bool {
        let (device, inode, born) = found.identity();
        let here = DirectoryIdentity {
            device,
            inode,
            born,
        };
        let is_timeless = identity.born.is_none() && born.is_none() && identity.inode == inode;
        here == identity || (is_timeless && self.leads_here(tree, &tree.path, found))
    }

    /// Whether what is at `path`, seen through `door`, says itself that it is this tree: it borrows from this vault, or
    /// its `.git` leads to its registration. An agent can forge that, so it proves nothing alone.
    pub fn leads_here(&self, tree: &Tree, path: &Path, door: &weald_git::Door) -> bool {
        match tree.kind {
            TreeKind::Sealed => {
                door.has_directory(".git/objects") && self.is_borrower(path, &tree.path)
            }
            TreeKind::Linked => {
                let name = tree.registration.as_deref().unwrap_or(tree.name.as_str());
                let pointer = door.read(".git", 64 * 1024).unwrap_or_default();
                leads_to(path, &pointer, &self.registrations().directory(name))
            }
        }
    }

    /// The same, with the door that it was seen through.
    pub fn opened(&self, tree: &Tree) -> Result<(Site, weald_git::Door), TreeError> {
        self.require_ours(tree)?;
        let found = match weald_git::Door::open(&tree.path) {
            Ok(door) => door,
            Err(_) if tree.path.symlink_metadata().is_err() => {
                return Err(TreeError::Missing {
                    name: tree.name.clone(),
                    path: tree.path.clone(),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let path = tree.path.display();
                return Err(TreeError::Unreadable {
                    name: tree.name.to_string(),
                    why: format!("{path} can't be opened ({error}); chmod u+rwx {path}"),
                });
            }
            Err(error) => {
                return Err(TreeError::Replaced {
                    name: tree.name.clone(),
                    path: tree.path.clone(),
                    why: format!("it is not a directory ({error})"),
                });
            }
        };
        let replaced = |why: &str| TreeError::Replaced {
            name: tree.name.clone(),
            path: tree.path.clone(),
            why: why.to_owned(),
        };
        let damaged = || TreeError::Damaged {
            name: tree.name.clone(),
            path: tree.path.clone(),
            why: "its .git is missing or replaced".to_owned(),
        };
        if let Some(identity) = tree.identity
            && !self.is_known(tree, identity, &found)
        {
            return Err(replaced("another directory took its place"));
        }
        match tree.kind {
            TreeKind::Sealed => {
                if !found.has_directory(".git/objects") {
                    return Err(damaged());
                }
                let site = Site {
                    path: tree.path.clone(),
                    git_dir: tree.path.join(".git"),
                    kind: tree.kind,
                };
                Ok((site, found))
            }
            TreeKind::Linked => {
                let registration = tree.registration.as_deref().unwrap_or(tree.name.as_str());
                let git_dir = self.registrations().directory(registration);
                let pointer = found.read(".git", 64 * 1024).unwrap_or_default();
                if !leads_to(&tree.path, &pointer, &git_dir) {
                    return Err(damaged());
                }
                let site = Site {
                    path: tree.path.clone(),
                    git_dir,
                    kind: tree.kind,
                };
                Ok((site, found))
            }
        }
    }
}

/// What the `.git` of a linked tree says.
pub(crate) fn pointer_text(git_dir: &Path) -> String {
    format!("gitdir: {}\n", git_dir.display())
}

/// Whether the `.git` of the linked tree at `path` says `git_dir`, perhaps relative to itself or by another way there.
pub fn leads_to(path: &Path, pointer: &[u8], git_dir: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let pointer = pointer.trim_ascii_end();
    if pointer == pointer_text(git_dir).trim_ascii_end().as_bytes() {
        return true;
    }
    let Some(said) = pointer.strip_prefix(b"gitdir: ") else {
        return false;
    };
    let said = path.join(std::ffi::OsStr::from_bytes(said));
    matches!((said.canonicalize(), git_dir.canonicalize()), (Ok(said), Ok(real)) if said == real)
}

fn capped_text(from: impl Read) -> String {
    let mut bytes = Vec::new();
    let mut from = from;
    let _ = (&mut from).take(ERROR_LIMIT).read_to_end(&mut bytes);
    let _ = io::copy(&mut from, &mut io::sink());
    String::from_utf8_lossy(&bytes).trim().to_owned()
}
