//! What an agent's own interface costs: the memory of its supervisor with the model of the terminal, and how soon a viewer
//! sees a key press and a screenful. Keys are compared with a bare pseudo-terminal in the same run.

use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weald_terminal::wire::{Incoming, LONGEST_FROM_HOST, Message};
use weald_terminal::{Pair, Screen, Size, connect};

use super::agents::{supervisors_in, values};
use super::{measure, median, ms, release_binary, say};

const SIZE: Size = Size {
    columns: 120,
    rows: 40,
};

/// How often each is measured.
const ROUNDS: usize = 200;

/// A screen full of text for every line that it reads.
const SCREENFUL: &str = "while read -r line; do i=0; while [ $i -lt 38 ]; do printf '%0110d\\n' $i; i=$((i+1)); done; echo \"end of $line\"; done";

/// How soon a key press has to be seen.
const GOAL: f64 = 20.0;

/// Runs it all and prints what came out.
pub fn run() -> io::Result<()> {
    let weald = release_binary()?;
    let lab = TempDir::with_prefix("weald-bench-")?;
    let (home, repository) = (lab.path().join("home"), lab.path().join("app"));
    fs::create_dir(&home)?;
    fs::create_dir(&repository)?;
    let command = |program: &PathBuf| {
        #[expect(
            clippy::disallowed_methods,
            reason = "a benchmark of processes starts processes"
        )]
        let mut command = Command::new(program);
        command
            .env("HOME", &home)
            .env("WEALD_POOL_SIZE", "0")
            .current_dir(&repository);
        command
    };
    for args in [
        &["init", "-q", "-b", "main"][..],
        &["config", "user.name", "Bench"],
        &["config", "user.email", "bench@example.com"],
        &["commit", "-q", "--allow-empty", "-m", "first"],
    ] {
        measure(command(&"git".into()).args(args))?;
    }
    for (subject, script) in [
        ("echo the keys", "cat > /dev/null"),
        ("fill the screen", SCREENFUL),
    ] {
        let spawn = ["agent", "spawn", subject, "-i", "--", "sh", "-c", script];
        measure(command(&weald).args(spawn))?;
    }
    let agents = repository.join(".git/weald/private/agents");
    let bare = median(keys_on_a_bare_terminal()?);
    let mut viewer = Viewer::attach(&agents.join("a1"))?;
    let mut seen = Vec::new();
    for number in 0..ROUNDS {
        let key = char::from(b'a' + (number % 26) as u8);
        let before = viewer.count_of(key);
        seen.push(viewer.time(key.to_string().as_bytes(), |viewer| {
            viewer.count_of(key) > before
        })?);
        // A line that is read has a limit.
        if number % 50 == 49 {
            viewer.send(b"\r")?;
        }
    }
    seen.sort();
    let (median_key, worst) = (ms(median(seen.clone())), ms(seen[ROUNDS * 95 / 100]));
    let verdict = if worst <= GOAL { "met" } else { "MISSED" };
    say(&format!(
        "a key press is seen after {median_key:.1} ms (median), {worst:.1} ms (95 of 100; goal {GOAL:.0}: {verdict}); on a bare terminal {:.2} ms",
        ms(bare)
    ));
    let mut viewer = Viewer::attach(&agents.join("a2"))?;
    let mut full = Vec::new();
    for number in 0..ROUNDS / 4 {
        let end = format!("end of {number}x");
        full.push(viewer.time(format!("{number}x\r").as_bytes(), |viewer| {
            viewer.screen.text().contains(&end)
        })?);
    }
    say(&format!(
        "a screenful ({} x {}), printed by a shell: {:.1} ms (median)",
        SIZE.columns,
        SIZE.rows,
        ms(median(full))
    ));
    let supervisors = supervisors_in(&repository)?;
    let private = values(&supervisors, &["Private_Clean:", "Private_Dirty:"]);
    let worst = private.iter().copied().fold(0.0, f64::max);
    say(&format!(
        "private memory (USS) of a supervisor with a terminal: worst of {} {worst:.1} MB",
        supervisors.len()
    ));
    for agent in ["a1", "a2"] {
        measure(command(&weald).args(["agent", "stop", agent]))?;
    }
    Ok(())
}

/// How long the kernel alone takes to echo a key.
fn keys_on_a_bare_terminal() -> io::Result<Vec<Duration>> {
    let pair = Pair::open(SIZE)?;
    let mut all = Vec::new();
    for _ in 0..ROUNDS {
        let since = Instant::now();
        rustix::io::write(&pair.master, b"x")?;
        rustix::io::read(&pair.master, &mut [0_u8; 64][..])?;
        all.push(since.elapsed());
    }
    Ok(all)
}

struct Viewer {
    stream: UnixStream,
    incoming: Incoming,
    screen: Screen,
}

impl Viewer {
    fn attach(folder: &std::path::Path) -> io::Result<Self> {
        let stream = connect(folder)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut viewer = Self {
            stream,
            incoming: Incoming::default(),
            screen: Screen::new(SIZE),
        };
        viewer.stream.write_all(&Message::Size(SIZE).encoded())?;
        Ok(viewer)
    }

    fn count_of(&self, key: char) -> usize {
        let text = self.screen.text();
        text.iter().map(|line| line.matches(key).count()).sum()
    }

    fn send(&mut self, keys: &[u8]) -> io::Result<()> {
        let message = Message::Keys(keys.to_vec());
        self.stream.write_all(&message.encoded())
    }

    /// From typing to what the viewer's own terminal shows.
    fn time(&mut self, keys: &[u8], is_there: impl Fn(&Self) -> bool) -> io::Result<Duration> {
        let since = Instant::now();
        self.send(keys)?;
        while !is_there(self) {
            self.incoming.read(&self.stream)?;
            while let Some(message) = self.incoming.next(LONGEST_FROM_HOST)? {
                match message {
                    Message::Draw(drawing) => drop(self.screen.read(&drawing)),
                    _ => return Err(io::Error::other("the agent ended")),
                }
            }
        }
        Ok(since.elapsed())
    }
}
