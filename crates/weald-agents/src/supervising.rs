//! The supervisor's watch: from the start of an agent's command to its end.
//!
//! One thread decides, and everything comes to it: the end of the command, orders in the record, the agent's stream,
//! time. Trouble with the store or a disk never ends the agent; what can't be done now is tried again.

use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use weald_core::Timestamp;
use weald_core::agent::{Agent, Usage, Wanted};
use weald_core::agent_rules::AgentInput;
use weald_core::id::Seq;
use weald_core::store::Clock;
use weald_core::task_rules::TaskRefusal;
use weald_core::tree::Tree;
use weald_git::Door;
use weald_sandbox::{Ended, Invocation, Running, launch, launch_unconfined};

use super::Agents;
use super::briefing::Prepared;
use super::drivers::{Driver, Input};
use super::error::at;
use super::output::{Log, News, Output};
use super::silence::Quiet;
use super::{Activity, AgentError, agent_folder};
use weald_control::machine::SystemClock;
use weald_control::steps::step;
use weald_control::tasks::TaskError;
use weald_trees::{RunEnd, RunRequest, Trees};

/// How often orders and messages are looked for.
const TICK: Duration = Duration::from_millis(500);

/// How long an agent that is stopped has to put its things in order.
const FAREWELL: Duration = Duration::from_secs(1);

/// How often the activity is written down, and silence thought about.
const NOTE: Duration = Duration::from_secs(2);

/// How an agent's command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    /// By itself; `ok` is what its stream said, if it did.
    Code {
        /// Its exit code (128 and the signal if one ended it).
        code: i32,
        /// The signal that ended it.
        signal: Option<i32>,
        /// What its stream said of success.
        ok: Option<bool>,
        words: String,
    },
    /// It ran out of time.
    TimedOut,
    Stopped {
        why: String,
        /// The task is given back.
        release: bool,
    },
    /// Somebody else holds the task.
    Superseded,
}

impl Agents<'_> {
    /// Runs an agent's command and watches over it until it ends. What it committed is taken in then, and what it left is
    /// listed, if it was in a worktree.
    pub fn watch_agent(
        &self,
        agent: &Agent,
        prepared: Prepared,
    ) -> Result<(Watched, Option<RunEnd>), AgentError> {
        let folder = agent_folder(self.trees.place, agent.id);
        let limit = self.trees.config.agent_log_limit.unwrap_or(u64::MAX);
        let log = Log::open(&folder, limit).map_err(at(&folder))?;
        let program = prepared.start.command.first().cloned().unwrap_or_default();
        let tree = self.run_begins(agent, &prepared.request, &program.to_string_lossy())?;
        let Prepared {
            request,
            start,
            driver,
            home,
            passed,
        } = prepared;
        let input = match start.input {
            Input::Nothing => Stdio::null(),
            _ => Stdio::piped(),
        };
        let invocation = Invocation {
            helper: self.trees.host.helper.clone(),
            command: start.command,
            directory: request.directory,
            environment: request.environment,
            streams: [input, Stdio::piped(), Stdio::piped()],
            passed,
        };
        let launched = match &request.policy {
            Some(policy) => launch(policy, invocation),
            None => launch_unconfined(invocation),
        };
        let running = match launched {
            Ok(running) => running,
            Err(error) => {
                self.forget_secrets(driver.as_ref(), &home);
                self.run_ends(agent, &tree, None)?;
                return Err(error.into());
            }
        };
        let (watched, failed) = self.kept_while(agent, &tree, || {
            self.watch(agent, running, driver.as_ref(), start.input, log)
        });
        if let Some(failed) = failed {
            self.trees.engine.notice(failed);
        }
        self.forget_secrets(driver.as_ref(), &home);
        if !agent.in_main {
            self.drop_dead_locks(&tree, SystemClock.now());
        }
        let ended = match &watched {
            Ok(Watched::Code {
                signal: Some(signal),
                ..
            }) => Some(Ended::Signal(*signal)),
            Ok(Watched::Code { code, .. }) => Some(Ended::Code(*code)),
            Ok(Watched::TimedOut) => Some(Ended::TimedOut),
            _ => None,
        };
        step("agent.watched");
        let end = self.run_ends(agent, &tree, ended)?;
        Ok((watched?, end))
    }

    /// Nothing that a user logs in with stays behind in a repository. The folder was an agent's, so only a door leads in.
    fn forget_secrets(&self, driver: &dyn Driver, home: &Path) {
        for name in driver.secrets() {
            let removed = Door::open(home).and_then(|door| door.remove(name));
            if let Err(error) = removed {
                let path = home.join(name);
                self.trees
                    .engine
                    .notice(format!("{} could not be removed: {error}", path.display()));
            }
        }
    }

    fn watch(
        &self,
        agent: &Agent,
        mut running: Running,
        driver: &dyn Driver,
        input: Input,
        log: Log,
    ) -> Result<Watched, AgentError> {
        if let Some(process) = self.trees.engine.processes.identify(running.keeper()) {
            self.trees
                .engine
                .decide_agent(agent.id, AgentInput::Began(process))?;
        }
        step("agent.started");
        let (news_in, news) = mpsc::channel();
        let now = || SystemClock.now();
        let output = Output::new(log, driver, news_in, &now);
        let (stdin, stdout, stderr) = running.streams();
        thread::scope(|scope| {
            let output = &output;
            let line = stdin.map(|stdin| speak(stdin, input));
            let out = stdout.map(|stream| scope.spawn(move || output.drain(stream, true)));
            let err = stderr.map(|stream| scope.spawn(move || output.drain(stream, false)));
            let mut watch = Watch::new(self.trees, agent, driver, output, news, line.flatten());
            let ended = watch.run(&mut running);
            // Everything in the run is gone now, and with it whoever could hold the streams open.
            drop(running);
            for reader in [out, err].into_iter().flatten() {
                let _ = reader.join();
            }
            watch.close(ended)
        })
    }

    /// Records that an agent's run begins, if it is in a tree.
    pub(super) fn run_begins(
        &self,
        agent: &Agent,
        request: &RunRequest,
        program: &str,
    ) -> Result<Tree, AgentError> {
        match agent.in_main {
            true => Ok(request.tree.clone()),
            false => Ok(self.trees.begin_run(request, program)?),
        }
    }

    /// Records that it ended.
    pub(super) fn run_ends(
        &self,
        agent: &Agent,
        tree: &Tree,
        ended: Option<Ended>,
    ) -> Result<Option<RunEnd>, AgentError> {
        match agent.in_main {
            true => Ok(None),
            false => Ok(Some(self.trees.end_agent_run(tree, ended)?)),
        }
    }

    /// Does something while the tree is kept every now and then; the user's own checkout is theirs to keep.
    pub(super) fn kept_while<T>(
        &self,
        agent: &Agent,
        tree: &Tree,
        work: impl FnOnce() -> T,
    ) -> (T, Option<String>) {
        match agent.in_main {
            true => (work(), None),
            false => self.trees.with_snapshots(tree, work),
        }
    }
}

/// Writes to an agent's input in a thread of its own, so that one that does not read holds nobody up. Answers where
/// later messages go, if the input stays open.
fn speak(mut stdin: ChildStdin, input: Input) -> Option<Sender<Vec<u8>>> {
    let (first, stays) = match input {
        Input::Nothing => return None,
        Input::Text(text) => (text, false),
        Input::Open(text) => (text, true),
    };
    let (lines, spoken) = mpsc::channel::<Vec<u8>>();
    thread::spawn(move || {
        // An agent that does not listen is its own business.
        let mut said = stdin.write_all(&first);
        while said.is_ok()
            && let Ok(line) = spoken.recv()
        {
            said = stdin.write_all(&line).and_then(|()| stdin.flush());
        }
    });
    stays.then_some(lines)
}

/// A point in time that comes again and again.
struct Every {
    interval: Duration,
    next: Instant,
}

impl Every {
    fn new(interval: Duration) -> Self {
        Self {
            interval,
            next: Instant::now() + interval,
        }
    }

    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let due = now >= self.next;
        if due {
            self.next = now + self.interval;
        }
        due
    }
}

pub(super) struct Watch<'w, 't> {
    pub(super) trees: &'w Trees<'t>,
    pub(super) agent: Agent,
    pub(super) driver: &'w dyn Driver,
    pub(super) output: &'w Output<'w>,
    news: Receiver<News>,
    pub(super) line: Option<Sender<Vec<u8>>>,
    finished: Option<(bool, String)>,
    noted: Activity,
    pub(super) seen: Seq,
    renew: Every,
    heartbeat: Every,
    note: Every,
    pub(super) deadline: Option<Instant>,
    pub(super) started: Timestamp,
    pub(super) paused_at: Option<Instant>,
    pub(super) quiet: Quiet,
}

impl<'w, 't> Watch<'w, 't> {
    fn new(
        trees: &'w Trees<'t>,
        agent: &Agent,
        driver: &'w dyn Driver,
        output: &'w Output<'w>,
        news: Receiver<News>,
        line: Option<Sender<Vec<u8>>>,
    ) -> Self {
        let settings = trees.engine.settings;
        let limit = trees.config.agent_timeout;
        Self {
            trees,
            agent: agent.clone(),
            driver,
            output,
            news,
            line,
            finished: None,
            noted: Activity::default(),
            seen: Seq(0),
            renew: Every::new(settings.lease_ttl.unsigned_abs() / 3),
            heartbeat: Every::new(settings.stale_after.unsigned_abs() / 4),
            note: Every::new(NOTE),
            deadline: limit.map(|limit| Instant::now() + limit.unsigned_abs()),
            started: SystemClock.now(),
            paused_at: None,
            quiet: Quiet::default(),
        }
    }

    fn run(&mut self, running: &mut Running) -> Result<Watched, AgentError> {
        loop {
            match running.ended_within(Some(TICK)) {
                Ok(Some(ended)) => {
                    return Ok(Watched::Code {
                        code: ended.code().unwrap_or_default(),
                        signal: match ended {
                            Ended::Signal(signal) => Some(signal),
                            _ => None,
                        },
                        ok: None,
                        words: String::new(),
                    });
                }
                Ok(None) => {}
                Err(source) => return Err(AgentError::Sandbox(source.into())),
            }
            if let Some(end) = self.step(running) {
                if let Err(error) = running.end(FAREWELL) {
                    let engine = self.trees.engine;
                    engine.notice(format!("{}: {error}", self.agent.id));
                }
                return Ok(end);
            }
        }
    }

    /// What is due now; an answer ends the run.
    fn step(&mut self, running: &mut Running) -> Option<Watched> {
        self.hear();
        if let Some(signal) = self.trees.host.cancel.asked() {
            return Some(Watched::Stopped {
                why: format!("its supervisor was ended by signal {signal}"),
                release: true,
            });
        }
        if self.paused_at.is_none()
            && self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
        {
            return Some(Watched::TimedOut);
        }
        if self.renew.is_due() && self.renewed() == Renewed::Lost {
            return Some(Watched::Superseded);
        }
        if self.heartbeat.is_due() {
            let (task, tree) = (Some(self.agent.task.clone()), self.agent.tree.clone());
            let beat = self.trees.engine.heartbeat(&self.agent.session, task, tree);
            self.tolerate(beat);
        }
        if self.note.is_due() {
            if !self.trees.place.private().exists() {
                return Some(Watched::Stopped {
                    why: "its repository is gone".to_owned(),
                    release: true,
                });
            }
            self.write_down();
            if let Some(end) = self.think_about_silence() {
                return Some(end);
            }
        }
        match self.orders() {
            Some(Wanted::Stop { why, release }) => Some(Watched::Stopped { why, release }),
            Some(wanted) => {
                self.obey(running, &wanted);
                None
            }
            None => None,
        }
    }

    /// What its stream told.
    fn hear(&mut self) {
        let (mut conversation, mut usage): (Option<String>, Option<Usage>) = (None, None);
        for news in self.news.try_iter() {
            match news {
                News::Conversation(id) => conversation = Some(id),
                News::Usage(used) => usage = Some(used),
                News::Finished { ok, text } => {
                    self.finished = Some((ok, text));
                    // Without input to wait for it ends.
                    self.line = None;
                }
            }
        }
        conversation = conversation.filter(|id| self.agent.conversation.as_ref() != Some(id));
        usage = usage.filter(|used| self.agent.usage.as_ref() != Some(used));
        if conversation.is_some() || usage.is_some() {
            self.decide(AgentInput::Observed {
                conversation,
                usage,
            });
        }
    }

    /// Holds the claim for longer.
    fn renewed(&mut self) -> Renewed {
        let (agent, engine) = (&self.agent, self.trees.engine);
        let renewed = engine.renew(Some(&agent.session), &agent.task, Some(agent.token), None);
        match renewed {
            Err(TaskError::Refused(TaskRefusal::StaleToken { .. })) => Renewed::Lost,
            other => {
                self.tolerate(other);
                Renewed::Held
            }
        }
    }

    /// What somebody wants of it. Looked up only when something was written at all.
    fn orders(&mut self) -> Option<Wanted> {
        let engine = self.trees.engine;
        let newest = engine.look(|tx| tx.last_seq());
        let newest = self.tolerate(newest)?;
        if newest == self.seen {
            return None;
        }
        let current = engine.agent(self.agent.id);
        self.agent = self.tolerate(current)?;
        self.seen = newest;
        if let Some(asked) = self.read_inbox() {
            return Some(asked);
        }
        self.agent.wanted.clone()
    }

    fn write_down(&mut self) {
        let activity = self.output.activity();
        if activity != self.noted {
            // It is written again in a moment.
            let _ = activity.write(&agent_folder(self.trees.place, self.agent.id));
            self.noted = activity;
        }
    }

    pub(super) fn decide(&mut self, input: AgentInput) {
        let decided = self.trees.engine.decide_agent(self.agent.id, input);
        if let Some(agent) = self.tolerate(decided) {
            self.agent = agent;
        }
    }

    /// What goes wrong beside the run is told at its end, and does not end it.
    pub(super) fn tolerate<T, E: std::fmt::Display>(&self, result: Result<T, E>) -> Option<T> {
        result
            .map_err(|error| {
                self.trees
                    .engine
                    .notice(format!("{}: {error}", self.agent.id))
            })
            .ok()
    }

    fn close(&mut self, ended: Result<Watched, AgentError>) -> Result<Watched, AgentError> {
        self.hear();
        self.write_down();
        Ok(match ended? {
            Watched::Code { code, signal, .. } => Watched::Code {
                code,
                signal,
                ok: self.finished.as_ref().map(|(ok, _)| *ok),
                words: self
                    .finished
                    .take()
                    .map(|(_, words)| words)
                    .unwrap_or_default(),
            },
            other => other,
        })
    }
}

#[derive(PartialEq, Eq)]
enum Renewed {
    Held,
    Lost,
}
