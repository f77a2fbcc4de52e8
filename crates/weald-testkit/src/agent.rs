//! A scripted agent: what a model would do, as a list of steps. A shell script, because it has to run inside the sandbox
//! wherever the tests were built, and needs nothing there but git and a shell.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::TestEnv;

/// The steps that it knows stand at its top.
const SCRIPT: &str = include_str!("agent.sh");

impl TestEnv {
    /// The words of a command that does these steps, each a line of shell: `write FILE TEXT`, `commit MESSAGE`, `hang`, …
    pub fn agent(&self, steps: &[&str]) -> Vec<String> {
        let script = self.home().join("agent.sh");
        if fs::read_to_string(&script).ok().as_deref() != Some(SCRIPT) {
            // Renamed, so that no agent that starts meanwhile reads half of it.
            let beside = self
                .home()
                .join(format!("agent-{:?}.sh", thread::current().id()));
            fs::write(&beside, SCRIPT).expect("the home can be written");
            fs::rename(&beside, &script).expect("the home can be written");
        }
        let words = ["sh", script.to_str().expect("a plain path")];
        let all = words.iter().chain(steps);
        all.map(ToString::to_string).collect()
    }

    /// The numbers of processes that belong to this environment: its path stands in their command or in their variables.
    /// Inside a sandbox, too. The caller and what it waits for are not meant.
    pub fn processes(&self) -> Vec<u32> {
        let root = self.root().to_str().expect("a plain path").as_bytes();
        let own = std::process::id();
        let found = fs::read_dir("/proc").expect("/proc").flatten();
        let numbers = found.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        numbers
            .filter(|pid| *pid != own && belongs(*pid, root))
            .collect()
    }

    /// Whether a scripted agent was asked for.
    pub(crate) fn has_agents(&self) -> bool {
        self.home().join("agent.sh").exists()
    }

    /// Kills everything that belongs to this environment and what that starts meanwhile; answers once it is gone.
    pub fn end_processes(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut dying = Vec::new();
        while Instant::now() < deadline {
            let living = self.processes();
            for pid in &living {
                let pid = Pid::from_raw(*pid as i32).expect("a process has a number");
                let _ = kill_process(pid, Signal::KILL);
            }
            dying.extend(living);
            dying.retain(|pid| !is_over(*pid));
            if dying.is_empty() && self.processes().is_empty() {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

fn belongs(pid: u32, root: &[u8]) -> bool {
    let place = Path::new("/proc").join(pid.to_string());
    // What is dead and not buried yet has neither.
    ["cmdline", "environ"].iter().any(|file| {
        let bytes = fs::read(place.join(file)).unwrap_or_default();
        bytes.windows(root.len()).any(|part| part == root)
    })
}

/// A process that was killed gives its memory back, and with it all that `belongs` reads, before it is over.
fn is_over(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    state.is_empty() || state.starts_with(['Z', 'X'])
}
