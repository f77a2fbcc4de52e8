//! Many workers on many tasks, while agents, supervisors and whole groups are killed: each task is done once, nothing that
//! an agent said it wrote is lost, and nothing is left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weald_core::agent::{Agent, AgentStatus};
use weald_core::landing::LandingStatus;
use weald_core::store::Store;
use weald_core::tree::TreeStatus;
use weald_testkit::{Answer, TestEnv, assert_log_explains_state, full_scale};

use crate::agents_dying::{agents, keeper, log, resumed, signal, store, supervisor, until, work};
use crate::trees_remove::repository;

/// What each agent does: a file of its own, committed, and its line of a shared one, left for weald to commit. Each step may
/// have been done by an agent before.
const STEPS: [&str; 6] = [
    "rm -f .git/index.lock",
    "[ -s f-$WEALD_TASK ] || write f-$WEALD_TASK \"work of $WEALD_TASK\"",
    "sleep 0.2",
    "commit \"$WEALD_TASK\"",
    "sed -i \"s/^open $WEALD_TASK$/done $WEALD_TASK/\" shared && wrote shared",
    "sleep 0.2",
];

struct Storm {
    env: TestEnv,
    workers: usize,
    tasks: usize,
    kills: usize,
    /// The workers by number.
    running: Mutex<BTreeMap<usize, Child>>,
    killed: AtomicUsize,
    over: AtomicBool,
}

impl Storm {
    fn new(workers: usize, tasks: usize, kills: usize) -> Self {
        let env = repository();
        // Lines far enough from each other that changes of neighbours merge.
        let line = |task: usize| format!("open {task}\n-\n-\n-\n-\n");
        let shared: String = (1..=tasks).map(line).collect();
        fs::write(env.repo().join("shared"), shared).unwrap();
        env.git(&["add", "-A"]);
        env.git(&["commit", "-q", "-m", "shared"]);
        // Diamonds, every other one behind the one before it.
        for task in 1..=tasks {
            let after = match task % 4 {
                1 if task > 4 && task % 8 == 1 => vec![task - 1],
                2 | 3 => vec![task - task % 4 + 1],
                0 => vec![task - 2, task - 1],
                _ => vec![],
            };
            let subject = format!("task {task}");
            let after: Vec<String> = after.iter().map(ToString::to_string).collect();
            let after = after.iter().flat_map(|id| ["--after", id]);
            let args: Vec<&str> = ["task", "add", &subject].into_iter().chain(after).collect();
            env.ok(&args);
        }
        Self {
            env,
            workers,
            tasks,
            kills,
            running: Mutex::default(),
            killed: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        }
    }

    fn worker(&self, name: &str, idle: &str) -> Command {
        let args = ["worker", "--name", name, "--idle-timeout", idle];
        let settings = ["--set", "worker.poll=200ms", "--set", "landing.lease=2s"];
        work(&self.env, &[&args[..], &settings].concat(), &STEPS)
    }

    fn start(&self, number: usize) {
        let mut command = self.worker(&format!("w{number}"), "2s");
        let errors = self.env.root().join(format!("w{number}.log"));
        let errors = fs::File::options().create(true).append(true).open(errors);
        command.stdout(Stdio::null()).stderr(errors.unwrap());
        let child = command.spawn().unwrap();
        self.running.lock().unwrap().insert(number, child);
    }

    /// Kills until it is enough, whoever it hits; workers come back under their names.
    fn disturb(&self) {
        let mut seed = 11_u64;
        let mut draw = |below: usize| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) as usize % below.max(1)
        };
        while self.killed.load(Ordering::Relaxed) < self.kills && !self.over.load(Ordering::Relaxed)
        {
            thread::sleep(Duration::from_millis(20 + draw(150) as u64));
            let open: Vec<Agent> = agents(&self.env)
                .into_iter()
                .filter(|agent| !agent.status.is_over() && agent.supervised)
                .collect();
            let landing: Vec<&Agent> = open
                .iter()
                .filter(|agent| agent.status == AgentStatus::Finishing)
                .collect();
            let kind = draw(4);
            let chosen = match kind {
                0 if !landing.is_empty() => landing.get(draw(landing.len())).copied(),
                _ => open.get(draw(open.len())),
            };
            let Some(agent) = chosen else { continue };
            self.hit(kind, agent);
            self.killed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn hit(&self, kind: usize, agent: &Agent) {
        match kind {
            1 if agent.process.is_some() => signal(keeper(agent), Signal::KILL),
            2 => {
                let number: Option<usize> = agent
                    .session
                    .as_str()
                    .strip_prefix('w')
                    .and_then(|number| number.parse().ok());
                let child = number.and_then(|number| self.running.lock().unwrap().remove(&number));
                if let (Some(mut child), Some(number)) = (child, number) {
                    let _ = child.kill();
                    signal(supervisor(agent), Signal::KILL);
                    if agent.process.is_some() {
                        signal(keeper(agent), Signal::KILL);
                    }
                    child.wait().unwrap();
                    self.start(number);
                }
            }
            _ => signal(supervisor(agent), Signal::KILL),
        }
    }

    fn run(&self) {
        let started = Instant::now();
        (0..self.workers).for_each(|number| self.start(number));
        let in_time = thread::scope(|scope| {
            scope.spawn(|| self.disturb());
            // Until every worker went home, also those that came back.
            let deadline =
                Instant::now() + Duration::from_secs(if full_scale() { 900 } else { 180 });
            let in_time = loop {
                let mut running = self.running.lock().unwrap();
                running.retain(|_, child| child.try_wait().unwrap().is_none());
                let is_empty = running.is_empty();
                drop(running);
                let enough = self.killed.load(Ordering::Relaxed) >= self.kills;
                if is_empty && (enough || self.open_tasks().is_empty()) {
                    break true;
                }
                if Instant::now() > deadline {
                    break false;
                }
                if is_empty {
                    // Kills may have stopped every task that others wait for: then no agent is left to kill.
                    self.wake();
                    self.start(0);
                }
                thread::sleep(Duration::from_millis(50));
            };
            self.over.store(true, Ordering::Relaxed);
            in_time
        });
        assert!(in_time, "{:?}", self.open_tasks());
        let (killed, stormed) = (self.killed.load(Ordering::Relaxed), started.elapsed());
        self.finish();
        let (agents, took) = (agents(&self.env).len(), started.elapsed());
        let told = format!(
            "{killed} kills in {stormed:?}, {agents} agents for {} tasks in {took:?}",
            self.tasks
        );
        // For whoever runs it at full size.
        let _ = writeln!(std::io::stderr(), "{told}");
        self.check();
    }

    fn open_tasks(&self) -> Vec<(String, String)> {
        let listed = self.env.ok(&["task", "list", "--limit", "1000"]);
        let all = listed["tasks"].as_array().unwrap().iter();
        all.map(|task| {
            (
                task["id"].to_string(),
                task["status"].as_str().unwrap().to_owned(),
            )
        })
        .filter(|(_, status)| status != "completed")
        .collect()
    }

    /// Resumes what waits for a person, and returns what could not go on.
    fn wake(&self) -> Vec<Answer> {
        let waiting = self.open_tasks().into_iter();
        let waiting = waiting.filter(|(_, status)| status != "pending");
        let answers = waiting.map(|(id, _)| resumed(&self.env, &id, &STEPS));
        answers.filter(|answer| answer.code != 0).collect()
    }

    /// What waits for a person is resumed, the rest is worked off.
    fn finish(&self) {
        let mut stuck = Vec::new();
        for _ in 0..20 {
            if self.open_tasks().is_empty() {
                return;
            }
            stuck = self.wake();
            let output = self.worker("last", "300ms").output().unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        panic!("never done: {:?} {stuck:#?}", self.open_tasks());
    }

    fn check(&self) {
        let env = &self.env;
        until("every process is gone", || env.processes().is_empty());
        let shared = env.git(&["show", "main:shared"]);
        for task in 1..=self.tasks {
            assert_eq!(
                env.git(&["show", &format!("main:f-{task}")]),
                format!("work of {task}\n")
            );
            let done = shared
                .lines()
                .filter(|line| **line == format!("done {task}"))
                .count();
            assert_eq!(done, 1, "task {task} in the shared file");
            let commits = env.git(&["log", "--format=%h", "main", "--", &format!("f-{task}")]);
            assert_eq!(commits.lines().count(), 1, "task {task}: {commits}");
        }
        // Everything that an agent said it wrote into its own file is what landed.
        for agent in agents(env) {
            let told = log(env, &agent);
            for line in told
                .lines()
                .filter_map(|line| line.strip_prefix("wrote f-"))
            {
                let (file, hash) = line.split_once(' ').unwrap();
                let landed = env.git(&["rev-parse", &format!("main:f-{file}")]);
                assert_eq!(landed.trim(), hash, "{}: f-{file}", agent.id);
            }
        }
        assert_eq!(env.git(&["status", "--porcelain"]), "");
        self.check_records();
        env.git(&["fsck", "--strict", "--no-dangling"]);
    }

    fn check_records(&self) {
        let env = &self.env;
        env.weald(&["doctor", "--fix"]);
        let healthy = env.weald(&["doctor", "--json"]).json();
        let findings = healthy["findings"].as_array().unwrap().iter();
        let left: Vec<_> = findings
            .filter(|it| it["code"] != "sandbox_level")
            .collect();
        assert!(left.is_empty(), "{left:#?}");
        let store = store(env);
        let read = store.read().unwrap();
        assert_log_explains_state(read.as_ref());
        let mut landed = BTreeMap::<String, usize>::new();
        for landing in read.landings().unwrap() {
            let task = landing.task.as_ref().unwrap().to_string();
            *landed.entry(task).or_default() +=
                usize::from(landing.status == LandingStatus::Landed);
        }
        assert!(landed.values().all(|count| *count == 1), "{landed:?}");
        assert_eq!(landed.len(), self.tasks);
        // Trees: what git knows is what is live, and the rest waits in the trash.
        let trees = read.trees().unwrap();
        let live: BTreeSet<PathBuf> = trees
            .iter()
            .filter(|tree| tree.is_live())
            .map(|tree| tree.path.clone())
            .collect();
        let listed = env.git(&["worktree", "list", "--porcelain"]);
        let paths = listed
            .lines()
            .filter_map(|line| line.strip_prefix("worktree "));
        let known: BTreeSet<PathBuf> = paths.skip(1).map(PathBuf::from).collect();
        assert_eq!(known, live);
        for tree in trees.iter().filter(|tree| !tree.is_live()) {
            assert!(
                matches!(tree.status, TreeStatus::Trashed | TreeStatus::Removed),
                "{tree:?}"
            );
        }
    }
}

#[test]
fn s15_p3_t14_a_storm_of_kills_loses_nothing_and_does_nothing_twice() {
    let storm = match full_scale() {
        true => Storm::new(50, 200, 120),
        false => Storm::new(6, 24, 12),
    };
    storm.run();
}
