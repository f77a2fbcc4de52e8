//! The supervisor's watch: from the start of an agent's command to its end.
//!
//! One thread decides, and everything comes to it: the end of the command, orders in the record, the agent's stream,
//! time. Trouble with the store or a disk never ends the agent; what can't be done now is tried again.

use std::io::Write;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use weald_core::Timestamp;
use weald_core::agent::{Agent, Barrier, Usage, Wanted};
use weald_core::agent_rules::AgentInput;
use weald_core::cost::Meter;
use weald_core::id::Seq;
use weald_core::store::Clock;
use weald_core::task_rules::TaskRefusal;
use weald_core::tree::Tree;
use weald_sandbox::{Ended, Invocation, Refusals, Running, launch, launch_unconfined};

use super::Agents;
use super::briefing::Prepared;
use super::drivers::{Driver, Input};
use super::error::at;
use super::homes::AgentHome;
use super::login::KnownLogin;
use super::output::{Log, News, Output};
use super::silence::Quiet;
use super::terminals;
use super::{Activity, AgentError, LOG_FILE, agent_folder};
use weald_control::agents::{Event, TRANSCRIPT_FILE};
use weald_control::machine::SystemClock;
use weald_control::steps::step;
use weald_control::tasks::TaskError;
use weald_terminal::{Handle, Host};
use weald_trees::{RunEnd, RunRequest, Trees};

/// How often orders and messages are looked for.
const TICK: Duration = Duration::from_millis(500);

/// How long an agent that is stopped has to put its things in order.
const FAREWELL: Duration = Duration::from_secs(1);

/// How often the activity is written down, and silence thought about.
const NOTE: Duration = Duration::from_secs(2);

/// How often what it used is written down: each time is an event.
const SPENT: Duration = Duration::from_secs(10);

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
    /// It could not do its work, whatever it says itself.
    Unfit { why: String },
    /// It ran out of time.
    TimedOut,
    Stopped {
        why: String,
        /// The task is given back.
        release: bool,
    },
    /// Somebody else holds the task.
    Superseded,
    /// It used more than its budget, or that of the day.
    OverBudget { why: String },
    /// Its provider did not serve it.
    Barred {
        barrier: Barrier,
        /// What the agent said of it.
        words: String,
    },
}

impl Agents<'_> {
    /// Runs an agent's command and watches over it until it ends. What it committed is taken in then, and what it left is
    /// listed, if it was in a worktree. `time_left` is how long it may still work, over all its runs: what it worked and
    /// was not paused is taken off.
    pub fn watch_agent(
        &self,
        agent: &Agent,
        prepared: Prepared,
        time_left: &mut Option<Duration>,
    ) -> Result<(Watched, Option<RunEnd>), AgentError> {
        let folder = agent_folder(self.trees.place, agent.id);
        let limit = self.trees.config.agent_log_limit.unwrap_or(u64::MAX);
        // The transcript comes first: whoever finds a log without one takes it for an earlier version's.
        let open = |name| Log::open(&folder, name, limit).map_err(at(&folder));
        let has_stream = prepared.driver.has_stream() && !agent.interactive;
        let transcript = has_stream.then(|| open(TRANSCRIPT_FILE)).transpose()?;
        let log = open(LOG_FILE)?;
        let program = prepared.start.command.first().cloned().unwrap_or_default();
        let tree = self.run_begins(agent, &prepared.request, &program.to_string_lossy())?;
        let Prepared {
            request,
            start,
            driver,
            home,
            prompt,
            terminal,
        } = prepared;
        let kept = (log, transcript, Event::Prompt { text: prompt });
        let streams = match (&start.input, terminal) {
            (_, Some(_)) => [Stdio::null(), Stdio::null(), Stdio::null()],
            (Input::Nothing, None) => [Stdio::null(), Stdio::piped(), Stdio::piped()],
            _ => [Stdio::piped(), Stdio::piped(), Stdio::piped()],
        };
        let invocation = Invocation {
            helper: self.trees.host.helper.clone(),
            command: start.command,
            directory: request.directory,
            environment: request.environment,
            streams,
        };
        let policy = request.policy.as_ref();
        let launched = match (terminal, policy) {
            (Some(size), _) => terminals::launch(policy, invocation, size, &folder),
            (None, Some(policy)) => launch(policy, invocation)
                .map(|running| (running, None))
                .map_err(AgentError::from),
            (None, None) => launch_unconfined(invocation)
                .map(|running| (running, None))
                .map_err(AgentError::from),
        };
        let launched = match launched {
            Ok(launched) => launched,
            Err(error) => {
                self.forget_secrets(driver.as_ref(), home);
                self.run_ends(agent, &tree, None)?;
                return Err(error);
            }
        };
        let login = KnownLogin::of(self, driver.as_ref(), home.path());
        let (watched, failed) = self.kept_while(agent, &tree, || {
            let input = (start.input, time_left);
            self.watch(agent, launched, driver.as_ref(), input, kept, login)
        });
        if let Some(failed) = failed {
            self.trees.engine.notice(failed);
        }
        self.find_conversation(agent, driver.as_ref(), &home);
        self.forget_secrets(driver.as_ref(), home);
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

    /// An agent whose output does not say which conversation it was left a transcript.
    fn find_conversation(&self, agent: &Agent, driver: &dyn Driver, home: &AgentHome) {
        let engine = self.trees.engine;
        // A person may have begun another one in an interface.
        let is_known = engine
            .agent(agent.id)
            .map(|agent| agent.conversation.is_some() && !agent.interactive);
        if is_known.unwrap_or(true) {
            return;
        }
        let Some(id) = driver.conversation_in(home.path()) else {
            return;
        };
        let input = AgentInput::Observed {
            conversation: Some(id),
            usage: None,
        };
        if let Err(error) = engine.decide_agent(agent.id, input) {
            engine.notice(format!("{}: {error}", agent.id));
        }
    }

    /// Nothing that a user logs in with stays behind in a repository.
    fn forget_secrets(&self, driver: &dyn Driver, home: AgentHome) {
        for failed in home.leave(driver) {
            self.trees.engine.notice(failed);
        }
    }

    fn watch(
        &self,
        agent: &Agent,
        (mut running, host): (Running, Option<Host>),
        driver: &dyn Driver,
        (input, time_left): (Input, &mut Option<Duration>),
        (log, transcript, prompt): (Log, Option<Log>, Event),
        login: KnownLogin<'_>,
    ) -> Result<Watched, AgentError> {
        if let Some(process) = self.trees.engine.processes.identify(running.keeper()) {
            self.trees
                .engine
                .decide_agent(agent.id, AgentInput::Began(process))?;
        }
        step("agent.started");
        let (news_in, news) = mpsc::channel();
        let now = || SystemClock.now();
        let output = Output::new(log, transcript, driver, news_in, &now);
        output.note(prompt);
        let (stdin, stdout, stderr) = running.streams();
        thread::scope(|scope| {
            let output = &output;
            let line = stdin.map(|stdin| speak(stdin, input));
            let out = stdout.map(|stream| scope.spawn(move || output.drain(stream, true)));
            let err = stderr.map(|stream| scope.spawn(move || output.drain(stream, false)));
            let terminal = host.as_ref().map(Host::handle);
            let shown = host.map(|host| {
                scope.spawn(move || host.run(&mut |line| output.keep(&[line, b"\n"].concat())))
            });
            let mut watch = Watch::new(
                self.trees,
                agent,
                driver,
                output,
                news,
                line.flatten(),
                login,
            );
            watch.terminal = terminal;
            watch.deadline = time_left.map(|left| Instant::now() + left);
            watch.begin_counting();
            watch.refusals = running.refusals();
            let ended = watch.run(&mut running);
            *time_left = left_of(watch.deadline, watch.paused_at.unwrap_or_else(Instant::now));
            // Everything in the run is gone now, and with it whoever could hold the streams open.
            drop(running);
            if let Some(terminal) = &watch.terminal {
                terminal.end(&format!("{} ended", agent.id));
            }
            if let Some(Err(error)) = shown.and_then(|shown| shown.join().ok()) {
                watch.tolerate(Err::<(), _>(error));
            }
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

    /// Does something while the tree is kept every now and then and the target inside follows main; the user's own checkout is theirs to keep.
    pub(super) fn kept_while<T>(
        &self,
        agent: &Agent,
        tree: &Tree,
        work: impl FnOnce() -> T,
    ) -> (T, Option<String>) {
        match agent.in_main {
            true => (work(), None),
            false => self
                .trees
                .with_fresh_target(tree, || self.trees.with_snapshots(tree, work)),
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
    /// The terminal that it runs in, if it has one.
    pub(super) terminal: Option<Handle>,
    /// How much it had written there when that was looked at last.
    pub(super) written: u64,
    finished: Option<(bool, String)>,
    pub(super) meter: Meter,
    spent_is_due: Every,
    /// What kept it from its model last.
    barred: Option<Barrier>,
    login: KnownLogin<'w>,
    /// Why it is no success, and whether that was so from its start.
    unfit: Option<(String, bool)>,
    noted: Activity,
    refusals: Refusals,
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
        login: KnownLogin<'w>,
    ) -> Self {
        let settings = trees.engine.settings;
        Self {
            trees,
            agent: agent.clone(),
            driver,
            output,
            news,
            line,
            terminal: None,
            written: 0,
            finished: None,
            barred: None,
            meter: Meter::default(),
            spent_is_due: Every::new(SPENT),
            login,
            unfit: None,
            noted: Activity::default(),
            refusals: Refusals::default(),
            seen: Seq(0),
            renew: Every::new(settings.lease_ttl.unsigned_abs() / 3),
            heartbeat: Every::new(settings.stale_after.unsigned_abs() / 4),
            note: Every::new(NOTE),
            deadline: None,
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
        if let Some((why, true)) = self.unfit.clone() {
            return Some(Watched::Unfit { why });
        }
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
        if self.barred == Some(Barrier::Login) {
            // It may try for minutes, with a login that will not get better.
            return Some(self.barred_by(Barrier::Login));
        }
        self.mind_terminal(running);
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
            if self.spent_is_due.is_due() {
                self.write_spent();
            }
            if let Some(end) = self.over_budget() {
                return Some(end);
            }
            let renewed = self.login.renew_if_newer();
            self.tolerate(renewed);
            if !self.agent.interactive
                && let Some(end) = self.think_about_silence()
            {
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
        let heard: Vec<News> = self.news.try_iter().collect();
        for news in heard {
            match news {
                News::Conversation(id) => conversation = Some(id),
                News::Usage(used) => usage = Some(used),
                News::Message { id, model, usage } => self.count_message(&id, &model, usage),
                News::Model { model, usage } => self.count_total(&model, usage),
                News::Barred(barrier) => self.barred = Some(barrier),
                News::Unfit(why) => {
                    let is_from_start = self.finished.is_none();
                    if !matches!(self.unfit, Some((_, true))) {
                        self.unfit = Some((why, is_from_start));
                    }
                }
                News::Finished { ok, text } => {
                    if ok {
                        self.barred = None;
                    }
                    self.finished = Some((ok, text));
                    // What was denied before counts for the turn before.
                    self.unfit = self
                        .unfit
                        .take()
                        .filter(|(_, is_from_start)| *is_from_start);
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
        let mut activity = self.output.activity();
        activity.refused = self.refusals.list();
        activity.refusals = self.refusals.count();
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

    fn barred_by(&mut self, barrier: Barrier) -> Watched {
        let words = self.finished.take().map(|(_, words)| words);
        Watched::Barred {
            barrier,
            words: words.unwrap_or_default(),
        }
    }

    fn close(&mut self, ended: Result<Watched, AgentError>) -> Result<Watched, AgentError> {
        self.hear();
        self.write_down();
        self.write_spent();
        let is_done = self.finished.as_ref().is_some_and(|(ok, _)| *ok);
        Ok(match (ended?, self.barred, self.unfit.take()) {
            (Watched::Code { signal: None, .. }, Some(barrier), _) if !is_done => {
                self.barred_by(barrier)
            }
            (Watched::Code { .. }, _, Some((why, _))) => Watched::Unfit { why },
            (ended, ..) => self.closed(ended),
        })
    }

    fn closed(&mut self, ended: Watched) -> Watched {
        match ended {
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
        }
    }
}

/// What is left until a deadline, for one that last worked at `worked`.
fn left_of(deadline: Option<Instant>, worked: Instant) -> Option<Duration> {
    deadline.map(|deadline| deadline.saturating_duration_since(worked))
}

#[derive(PartialEq, Eq)]
enum Renewed {
    Held,
    Lost,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a8_the_time_that_an_agent_worked_counts_over_all_its_runs() {
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        let mut left = Some(second * 60);
        for worked in [20, 30] {
            left = left_of(left.map(|left| begun + left), begun + second * worked);
        }
        assert_eq!(left, Some(second * 10));
        left = left_of(left.map(|left| begun + left), begun + second * 11);
        assert_eq!(left, Some(Duration::ZERO));
        assert_eq!(left_of(None, begun), None);
    }
}
