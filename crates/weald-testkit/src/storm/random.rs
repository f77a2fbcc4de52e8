//! Random kills: several processes at once do random things to trees of their own, and are killed at random moments.
//!
//! The seed decides what is done and how long after its start it is killed; the machine decides what that meets.

use std::collections::BTreeMap;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::World;

/// How many things each process does between two looks at the world.
const TURNS: usize = 4;

/// Trees of one process.
const SLOTS: u64 = 3;

/// How many kills, from which seed.
#[derive(Debug, Clone, Copy)]
pub struct RandomKills {
    /// So many, at least.
    pub kills: usize,
    /// Decides what is done when.
    pub seed: u64,
    /// How many processes at once.
    pub workers: u64,
    pub deadline: Option<Instant>,
}

/// What was done, and how often it was killed.
pub type Tally = BTreeMap<&'static str, (usize, usize)>;

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// One of the processes that things are done by.
struct Worker {
    number: u64,
    dice: Dice,
    /// How often the tree of a slot was made anew.
    generations: BTreeMap<u64, u64>,
    /// How long things took that nobody killed.
    durations: BTreeMap<&'static str, Duration>,
    /// Tasks that somebody has to finish in the end.
    tasks: Vec<String>,
}

impl RandomKills {
    /// Runs the storm; tells the number of kills after each round.
    pub fn run(&self, world: &World, told: &mut dyn FnMut(usize)) -> Tally {
        let tally = Mutex::new(Tally::new());
        let killed = || {
            let tally = tally.lock().expect("the tally");
            tally.values().map(|(_, killed)| killed).sum::<usize>()
        };
        let mut workers: Vec<_> = (0..self.workers)
            .map(|number| Worker {
                number,
                dice: Dice(self.seed.wrapping_add(number * 7_919)),
                generations: BTreeMap::new(),
                durations: BTreeMap::new(),
                tasks: Vec::new(),
            })
            .collect();
        let mut round = 0;
        while killed() < self.kills && self.deadline.is_none_or(|end| Instant::now() < end) {
            thread::scope(|scope| {
                for worker in &mut workers {
                    scope.spawn(|| worker.work(world, &tally));
                }
            });
            round += 1;
            world.heal(&format!("round {round}, seed {}", self.seed));
            told(killed());
        }
        for worker in &workers {
            worker.finish_tasks(world);
        }
        world.heal("the end");
        tally.into_inner().expect("the tally")
    }
}

impl Worker {
    /// Some turns; a tree that a kill touched is left alone until the world was looked at.
    fn work(&mut self, world: &World, tally: &Mutex<Tally>) {
        let mut left_alone = Vec::new();
        for _ in 0..TURNS {
            let slot = self.dice.below(SLOTS + 1);
            if left_alone.contains(&slot) {
                continue;
            }
            let (what, args) = match slot {
                SLOTS => self.task(world),
                slot => self.choose(world, slot),
            };
            let is_killed = self.perform(world, what, &args);
            let mut tally = tally.lock().expect("the tally");
            let entry = tally.entry(what).or_default();
            entry.0 += 1;
            entry.1 += usize::from(is_killed);
            if is_killed {
                left_alone.push(slot);
            }
        }
    }

    fn name(&self, slot: u64) -> String {
        let generation = self.generations.get(&slot).copied().unwrap_or_default();
        format!("w{}s{slot}g{generation}", self.number)
    }

    /// What is done to a tree: it depends on where it is. Sealed ones and linked ones, with dirt and ready to land.
    fn choose(&mut self, world: &World, slot: u64) -> (&'static str, Vec<String>) {
        let mut name = self.name(slot);
        let is_known = world
            .ledger
            .lock()
            .expect("the ledger")
            .works
            .contains_key(&name);
        let place = world.place(&name);
        if is_known && !place.exists() && self.dice.below(2) == 0 {
            return ("restore", words(&["trash", "restore", &name]));
        }
        if is_known && !place.exists() {
            *self.generations.entry(slot).or_default() += 1;
            name = self.name(slot);
        }
        let place = world.place(&name);
        let kind = if (self.number + slot) % 3 == 2 {
            "linked"
        } else {
            "sealed"
        };
        if !place.exists() {
            return ("create", words(&["new", &name, "--kind", kind]));
        }
        let is_tidy = slot == 1;
        if !world
            .ledger
            .lock()
            .expect("the ledger")
            .works
            .contains_key(&name)
        {
            let dirt = match (is_tidy, kind) {
                (true, _) => "commit",
                (false, "sealed") => "commit stash staged changed loose",
                (false, _) => "commit staged changed loose",
            };
            world.fill(&name, &place, dirt);
        }
        let turn = self.dice.below(8);
        if turn < 4 {
            let script = "git commit -q --allow-empty --only -m \"$1\"";
            world.shell(&place, script, &[&format!("more of {name}")]);
            world.note_commits(&name, &place);
        }
        match turn {
            0 | 1 => ("import", words(&["status", &name])),
            2 | 3 if is_tidy => ("land and keep", words(&["land", &name, "--keep"])),
            2 | 3 => ("snapshot", words(&["snapshot", "create", &name])),
            4 if is_tidy => ("land", words(&["land", &name])),
            5 if is_tidy => ("sync", words(&["sync", &name])),
            6 => ("list", words(&["list", "--fresh"])),
            _ => ("remove", words(&["rm", &name, "--discard"])),
        }
    }

    /// A task for an agent, which writes one file.
    fn task(&mut self, world: &World) -> (&'static str, Vec<String>) {
        let subject = format!("task {} of {}", self.tasks.len(), self.number);
        let added = world.env().ok(&["task", "add", &subject]);
        let id = added["task"]["id"].to_string().replace('"', "");
        self.tasks.push(id.clone());
        ("work", work(world, "work", &id))
    }

    /// What every agent was asked for is on the target, once somebody went on with it.
    fn finish_tasks(&self, world: &World) {
        for id in &self.tasks {
            let shown = world.env().ok(&["task", "show", id]);
            if shown["task"]["status"] != "completed" {
                let args = work(world, "resume", id);
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                let answer = world.env().weald(&args);
                if answer.code != 0 {
                    world.fail(&format!("task {id} can't be resumed: {answer:#?}"));
                }
            }
            let held = world.env().git(&["show", &format!("main:agent-{id}")]);
            if held != "once\n" {
                world.fail(&format!("task {id} was done as {held:?}"));
            }
        }
    }

    /// Starts a command and kills it: alone, with everything that it started, or the supervisor behind it.
    fn perform(&mut self, world: &World, what: &'static str, args: &[String]) -> bool {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let usual = self.durations.get(what).copied();
        let usual = usual.unwrap_or(Duration::from_millis(60));
        let within = u64::try_from(usual.as_micros()).unwrap_or(u64::MAX);
        // One in four ends by itself: that tells how long it takes, and there is something to go on with.
        let delay = match self.dice.below(4) {
            0 => Duration::from_secs(600),
            _ => Duration::from_micros(self.dice.below(within.max(1))),
        };
        let how = self.dice.below(3);
        let started = Instant::now();
        let mut command = world.env().weald_command(&args);
        command.process_group(0);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("weald starts");
        while started.elapsed() < delay {
            if child.try_wait().expect("it can be waited for").is_some() {
                break;
            }
            thread::sleep(Duration::from_micros(200));
        }
        let supervisor = (what == "work" && how == 1).then(|| supervisor(world, args[1]));
        match supervisor.flatten() {
            Some(pid) => {
                let _ = kill_process(pid, Signal::KILL);
                let _ = child.wait();
                return true;
            }
            None => end(&mut child, how),
        }
        let status = child.wait().expect("it ends");
        let is_killed = status.signal() == Some(9);
        let took = match is_killed {
            true => usual * 9 / 8,
            false => started.elapsed(),
        };
        self.durations.insert(what, took);
        is_killed
    }
}

fn words(args: &[&str]) -> Vec<String> {
    args.iter().map(ToString::to_string).collect()
}

/// The words that have an agent write its file, whoever did part of it before.
fn work(world: &World, command: &str, id: &str) -> Vec<String> {
    let step = format!("[ -s agent-{id} ] || write agent-{id} once");
    let agent = world
        .env()
        .agent(&["rm -f .git/index.lock", &step, "commit done"]);
    [words(&[command, id, "--"]), agent].concat()
}

fn end(child: &mut Child, how: u64) {
    if child.try_wait().is_ok_and(|ended| ended.is_some()) {
        return;
    }
    let pid = Pid::from_child(child);
    let _ = match how {
        0 => kill_process_group(pid, Signal::KILL),
        _ => kill_process(pid, Signal::KILL),
    };
}

/// The supervisor of the agent that works on a task just now.
fn supervisor(world: &World, task: &str) -> Option<Pid> {
    let listed = world.env().weald(&["agent", "list", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&listed.stdout).ok()?;
    let agents = answer["agents"].as_array()?.clone();
    let agent = agents.iter().find(|agent| {
        agent["task"].to_string().replace('"', "") == task && agent["state"] == "running"
    })?;
    let pid = agent["supervisor"]["pid"].as_i64()?;
    Pid::from_raw(i32::try_from(pid).ok()?)
}
