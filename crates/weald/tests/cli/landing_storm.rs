//! Many processes land at once while a person works in a real checkout of the target; landers are killed and stopped.
//!
//! What counts is content: everything that was acknowledged is in the target's tip, and no byte of the person's changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weald_testkit::{TestEnv, full_scale};

use crate::trees_remove::{commit, git_in, grow, repository, try_git};

/// What happens to landers meanwhile.
#[derive(Clone, Copy)]
struct Chaos {
    kills: usize,
    stops: usize,
}

struct Storm {
    env: TestEnv,
    writers: usize,
    each: usize,
    /// The lander that each writer waits for.
    landers: Mutex<BTreeMap<usize, u32>>,
    acknowledged: Mutex<BTreeMap<String, String>>,
    over: AtomicBool,
}

impl Storm {
    fn new(writers: usize, each: usize) -> Self {
        let env = repository();
        fs::write(env.repo().join("diary"), "day 0\n").unwrap();
        fs::write(env.repo().join("notes"), "tracked\n").unwrap();
        env.git(&["add", "-A"]);
        env.git(&["commit", "-q", "-m", "the person's files"]);
        for number in 0..writers {
            grow(&env, &name(number), "sealed");
        }
        Self {
            env,
            writers,
            each,
            landers: Mutex::default(),
            acknowledged: Mutex::default(),
            over: AtomicBool::new(false),
        }
    }

    /// One writer: commits a file of its own and lands it, again and again.
    fn write(&self, number: usize) {
        let (env, name) = (&self.env, name(number));
        let tree = env.root().join("app.weald").join(&name);
        for round in 0..self.each {
            let file = format!("{name}-{round}");
            let text = format!("{name} wrote {round}\n");
            commit(env, &tree, &file, &text);
            // A lander that was killed acknowledged nothing; its writer asks again.
            while !self.land(number, &name) {}
            self.acknowledged.lock().unwrap().insert(file, text);
        }
    }

    /// Lands once; false when somebody killed the lander.
    fn land(&self, number: usize, name: &str) -> bool {
        let mut command = self.env.weald_command(&["land", name, "--keep", "--json"]);
        command.env("WEALD_LANDING_LEASE", "1s");
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        self.landers.lock().unwrap().insert(number, child.id());
        let output = wait(child);
        self.landers.lock().unwrap().remove(&number);
        if output.status.code().is_none() {
            return false;
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let answer: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {said}"));
        let outcome = answer["landings"][0]["outcome"].as_str();
        let fine = matches!(outcome, Some("landed" | "nothing_to_land"));
        assert!(fine, "{name}: {answer:#} {said}");
        true
    }

    /// The person: edits and commits in the main checkout with plain git; `notes` stays edited and uncommitted.
    fn work_by_hand(&self) -> Vec<String> {
        let (env, repo) = (&self.env, self.env.repo());
        fs::write(repo.join("notes"), "edited, not committed\n").unwrap();
        fs::write(repo.join("scratch"), "untracked\n").unwrap();
        let mut commits = Vec::new();
        let mut text = "day 0\n".to_owned();
        while !self.over.load(Ordering::Relaxed) {
            text.push_str(&format!("day {}\n", commits.len() + 1));
            fs::write(repo.join("diary"), &text).unwrap();
            let message = format!("day {}", commits.len() + 1);
            // git refuses while weald holds the index, as it does while another git does.
            while !try_git(env, &repo, &["commit", "-q", "-m", &message, "diary"]).0 {
                thread::sleep(Duration::from_millis(3));
            }
            commits.push(message);
            thread::sleep(Duration::from_millis(200));
        }
        commits
    }

    /// Kills and stops landers, whatever they do at the moment.
    fn disturb(&self, chaos: Chaos) {
        let (mut kills, mut stops) = (chaos.kills, chaos.stops);
        let mut seed = 7_u64;
        while kills + stops > 0 && !self.over.load(Ordering::Relaxed) {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            thread::sleep(Duration::from_millis(5 + (seed >> 33) % 60));
            let landers: Vec<u32> = self.landers.lock().unwrap().values().copied().collect();
            let Some(pid) = landers.get((seed >> 40) as usize % landers.len().max(1)) else {
                continue;
            };
            let pid = Pid::from_raw(*pid as i32).unwrap();
            if kills >= stops {
                kills -= usize::from(kill_process(pid, Signal::KILL).is_ok());
            } else if kill_process(pid, Signal::STOP).is_ok() {
                stops -= 1;
                // Longer than its lease, so that another takes over if it had the queue.
                thread::sleep(Duration::from_millis(1300));
                let _ = kill_process(pid, Signal::CONT);
            }
        }
    }

    fn run(&self, chaos: Chaos) {
        let commits = thread::scope(|scope| {
            let person = scope.spawn(|| self.work_by_hand());
            let disturber = scope.spawn(|| self.disturb(chaos));
            let writers: Vec<_> = (0..self.writers)
                .map(|number| scope.spawn(move || self.write(number)))
                .collect();
            let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            self.over.store(true, Ordering::Relaxed);
            disturber.join().unwrap();
            let commits = person.join().unwrap();
            for writer in ended {
                writer.unwrap();
            }
            commits
        });
        self.check(&commits);
    }

    fn check(&self, commits: &[String]) {
        let (env, repo) = (&self.env, self.env.repo());
        let acknowledged = self.acknowledged.lock().unwrap();
        assert_eq!(acknowledged.len(), self.writers * self.each);
        for (file, text) in acknowledged.iter() {
            assert_eq!(env.git(&["show", &format!("main:{file}")]), *text, "{file}");
            assert_eq!(
                fs::read_to_string(repo.join(file)).unwrap(),
                *text,
                "{file}"
            );
        }
        let told = env.git(&["log", "--format=%s", "main"]);
        let subjects: Vec<_> = told.lines().collect();
        for message in commits {
            assert!(subjects.contains(&message.as_str()), "{message} is lost");
        }
        assert!(!commits.is_empty());
        assert_eq!(
            env.git(&["rev-list", "--min-parents=2", "main"]),
            "",
            "linear"
        );
        let read = |file: &str| fs::read_to_string(repo.join(file)).unwrap();
        assert_eq!(read("notes"), "edited, not committed\n");
        assert_eq!(read("scratch"), "untracked\n");
        let days = read("diary").lines().count();
        assert_eq!(days, commits.len() + 1);
        env.weald(&["doctor", "--fix"]);
        let status = env.git(&["status", "--porcelain"]);
        assert_eq!(status, " M notes\n?? scratch\n");
        let healthy = env.weald(&["doctor", "--json"]);
        assert_eq!(healthy.code, 0, "{healthy:#?}");
        env.git(&["fsck", "--strict", "--no-dangling"]);
        let vault = repo.join(".git/weald/vault");
        git_in(
            env,
            &vault,
            &["fsck", "--no-dangling", "--connectivity-only"],
        );
        assert_eq!(locks(&repo.join(".git")), Vec::<PathBuf>::new());
    }
}

fn name(number: usize) -> String {
    format!("w{number}")
}

fn wait(child: Child) -> std::process::Output {
    child.wait_with_output().unwrap()
}

/// Lock files that nobody removed.
fn locks(git_dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![git_dir.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            match entry.file_type().unwrap().is_dir() {
                true if !path.ends_with("weald/private") => open.push(path),
                true => {}
                false if path.extension().is_some_and(|kind| kind == "lock") => found.push(path),
                false => {}
            }
        }
    }
    found
}

#[test]
fn z6_sixteen_processes_land_while_a_person_commits() {
    let each = if full_scale() { 300 } else { 3 };
    Storm::new(16, each).run(Chaos { kills: 0, stops: 0 });
}

#[test]
fn m20_t14_killed_and_stopped_landers_lose_nothing() {
    let (each, chaos) = match full_scale() {
        true => (
            40,
            Chaos {
                kills: 50,
                stops: 20,
            },
        ),
        false => (4, Chaos { kills: 6, stops: 2 }),
    };
    Storm::new(8, each).run(chaos);
}
