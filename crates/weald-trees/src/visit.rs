//! The host half of a visit: starts the inside half in a tree's sandbox and reads its answer as untrusted.
//!
//! A visit has no network, a time limit, and writes the tree only when its job must. Its level is the strongest that this
//! machine gives, decided by a probe before the tree is touched: nothing that a tree holds or does leads to a weaker one.
//! Only a job that runs hooks (`begin_visit_as_a_run`) has what a run has: network, environment, caches, and the configured level.

use std::ffi::OsString;
use std::io::{self, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdout, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use weald_core::config::LargeFilesPolicy;
use weald_core::tree::{Tree, TreeKind};
use weald_sandbox::{
    Ended, Invocation, Level, Network, Policy, Revealed, SandboxError, launch, strongest_level,
};

use super::inside::{Access, Job, LargeFiles, READING, Request, Workplace};
use super::interruption::wait_or_interrupt;
use super::overhearing::{capped_text, overheard};
use super::site::Site;
use super::untrusted::first_line;
use super::{TreeError, Trees};
use weald_control::machine::INSIDE_ARGUMENT;
use weald_control::steps::step;

/// What a visit is held by, and what it sees.
struct Room {
    policy: Policy,
    environment: Vec<(OsString, OsString)>,
    limit: Duration,
    /// What is said when it takes its time; what it writes to standard error follows.
    announcement: Option<String>,
}

/// A visit that is at work.
struct Begun {
    rest: BufReader<ChildStdout>,
    watcher: JoinHandle<io::Result<Ended>>,
    errors: Option<JoinHandle<String>>,
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
        let (room, at) = self.room_to_look(site, J::ACCESS, limit)?;
        self.visit_in(room, name, site, at, job)
    }

    fn room_to_look(
        &self,
        site: &Site,
        access: Access,
        limit: Duration,
    ) -> Result<(Room, Workplace), TreeError> {
        let at = self.workplace(site, access)?;
        // A look that hung once is not waited for again; what writes has its time.
        let limit = match access {
            Access::Read => self.patience_with(site, limit),
            Access::Write => limit,
        };
        let level = strongest_level(Network::Off, &self.host.helper)?;
        let mut policy = self.visit_policy(site, access);
        policy.level = level;
        if level == Level::Landlock {
            // It keeps nothing from a directory that is written; here it is weald itself that writes.
            policy.mask.clear();
        }
        let room = Room {
            policy,
            environment: self.visit_environment(),
            limit,
            announcement: None,
        };
        Ok((room, at))
    }

    /// Starts a job that runs hooks, for as long as `limit`: they have what every command in the tree has (`weald run`), at
    /// the configured level. Once it takes longer than a moment, `announcement` and its output are shown.
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
            policy: self.run_policy(tree),
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
        Ok(Workplace::new(
            (&site.git_dir, &site.path),
            main,
            home,
            large,
        ))
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
        at: Workplace,
        job: J,
    ) -> Result<Visit<J>, TreeError> {
        let limit = room.limit;
        let request = Request {
            at,
            job: job.into(),
        };
        let mut begun = self.begin_in(room, name, site, request, J::ENDS_ON_INTERRUPT)?;
        match first_line(J::NAME, &mut begun.rest) {
            Some(answer) => Ok(Visit {
                answer,
                rest: Some(begun.rest),
                watcher: begun.watcher,
                errors: begun.errors,
            }),
            None => Err(self.why_silent(begun, name, site, limit)),
        }
    }

    /// What begins any job: kept apart from what differs between jobs, so that the program has it once.
    fn begin_in(
        &self,
        room: Room,
        name: &str,
        site: &Site,
        mut request: Request,
        ends_on_interrupt: bool,
    ) -> Result<Begun, TreeError> {
        let (mut policy, limit) = (room.policy, room.limit);
        let unreadable = |why: String| TreeError::Unreadable {
            name: name.to_owned(),
            why,
        };
        let tmp = self.private_room(site, &mut policy, &mut request.at)?;
        step("visit.begun");
        let invocation = Invocation {
            helper: self.host.helper.clone(),
            command: vec!["/proc/self/exe".into(), INSIDE_ARGUMENT.into()],
            directory: site.path.clone(),
            environment: room.environment,
            streams: [Stdio::piped(), Stdio::piped(), Stdio::piped()],
        };
        let mut running = launch(&policy, invocation).map_err(|error| match error {
            SandboxError::Unavailable { .. } => error.into(),
            other => unreadable(other.to_string()),
        })?;
        let (stdin, stdout, stderr) = running.streams();
        let text = serde_json::to_vec(&request);
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
        let cancel = ends_on_interrupt.then(|| self.host.cancel.clone());
        let watcher = thread::spawn(move || {
            let ended = match cancel {
                Some(cancel) => wait_or_interrupt(running, limit, &cancel),
                None => running.wait(Some(limit)),
            };
            drop(tmp);
            ended
        });
        Ok(Begun {
            rest: BufReader::new(stdout.expect("piped")),
            watcher,
            errors,
        })
    }

    /// Why a visit gave no first line.
    fn why_silent(&self, begun: Begun, name: &str, site: &Site, limit: Duration) -> TreeError {
        drop(begun.rest);
        let ended = begun.watcher.join();
        let said = begun.errors.and_then(|errors| errors.join().ok());
        let why = match ended {
            Ok(Ok(Ended::TimedOut)) => self.note_hanging(site, limit),
            _ => format!("it gave no answer: {}", said.unwrap_or_default()),
        };
        TreeError::Unreadable {
            name: name.to_owned(),
            why,
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
}
