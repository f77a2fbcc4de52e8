//! The machine: its clock and its process table.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, test_kill_process};
use weald_core::Timestamp;
use weald_core::session::{ProcessIdentity, ProcessState, ProcessTable};
use weald_core::store::Clock;

/// The first argument of this binary where it is the inner half of a visit.
pub const INSIDE_ARGUMENT: &str = "__weald-inside";

pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where time is read"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// The system's processes, from `/proc`.
pub struct SystemProcesses;

impl ProcessTable for SystemProcesses {
    fn state(&self, process: &ProcessIdentity) -> ProcessState {
        let (Some(host), Some(boot_id)) = (host(), boot_id()) else {
            return ProcessState::Unknown;
        };
        if process.host != host {
            return ProcessState::Unknown;
        }
        if process.boot_id != boot_id {
            return ProcessState::Gone;
        }
        if Some(&process.pid_namespace) != pid_namespace().as_ref() {
            return ProcessState::Unknown;
        }
        match stat(process.pid) {
            Ok(stat) if stat.start_time == process.start_time && !stat.is_zombie => {
                ProcessState::Running
            }
            Ok(_) => ProcessState::Gone,
            Err(error) if error.kind() == io::ErrorKind::NotFound => absent(process.pid),
            Err(_) => ProcessState::Unknown,
        }
    }

    fn identify(&self, pid: u32) -> Option<ProcessIdentity> {
        Some(ProcessIdentity {
            host: host()?,
            boot_id: boot_id()?,
            pid_namespace: pid_namespace()?,
            pid,
            start_time: stat(pid).ok()?.start_time,
        })
    }

    fn ancestors(&self) -> Vec<u32> {
        let parent = |pid: &u32| {
            stat(*pid)
                .ok()
                .map(|stat| stat.parent)
                .filter(|parent| *parent > 0)
        };
        std::iter::successors(parent(&std::process::id()), parent)
            .take(64)
            .collect()
    }

    fn names(&self, pid: u32) -> Vec<String> {
        let name = read_line(&format!("/proc/{pid}/comm"));
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        name.into_iter().chain(programs(&words)).collect()
    }
}

/// Programs that run a script, whose name says more than theirs.
const INTERPRETERS: [&str; 7] = ["node", "bun", "deno", "python3", "python", "sh", "bash"];

/// The program of a command line, and the script that it runs if it is one that runs scripts; without folders and endings.
fn programs(words: &[u8]) -> Vec<String> {
    let mut names = words.split(|byte| *byte == 0).map(|word| {
        let text = String::from_utf8_lossy(word).into_owned();
        let name = text.rsplit('/').next().unwrap_or_default();
        let endings = [".js", ".mjs", ".cjs", ".py"];
        let ending = endings.iter().find(|ending| name.ends_with(**ending));
        name[..name.len() - ending.map_or(0, |ending| ending.len())].to_owned()
    });
    let mut found: Vec<_> = names.next().into_iter().collect();
    if INTERPRETERS.iter().any(|known| found[0] == *known) {
        found.extend(names.find(|name| !name.starts_with('-')));
    }
    found
}

/// `/proc` may hide the processes of others; only the kernel's "no such process" is proof.
fn absent(pid: u32) -> ProcessState {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return ProcessState::Gone;
    };
    match test_kill_process(pid) {
        Err(Errno::SRCH) => ProcessState::Gone,
        _ => ProcessState::Unknown,
    }
}

/// Everything that came from a process and runs, each with its parent; orphans only where that process gets them.
pub fn descendants(pid: u32) -> Vec<(u32, u32)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let mut found = Vec::new();
    for thread in threads.into_iter().flatten().flatten() {
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in text.split_ascii_whitespace().flat_map(str::parse) {
            found.extend(descendants(child));
            if stat(child).is_ok_and(|stat| !stat.is_zombie) {
                found.push((child, pid));
            }
        }
    }
    found
}

/// Whether the kernel ends a whole namespace with this process.
pub fn is_first_of_namespace(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let inside = numbers.unwrap_or_default().split_ascii_whitespace().skip(1);
    inside.last() == Some("1")
}

/// The parent of a process that is there.
pub fn parent_of(pid: u32) -> Option<u32> {
    stat(pid).ok().map(|stat| stat.parent)
}

/// A process that stands in a directory or below, as far as this user may see.
pub fn standing_in(directory: &Path) -> Option<u32> {
    Places::now().within(directory)
}

/// Where processes stand, as far as this user may see: read once for many directories.
#[derive(Debug, Default)]
pub struct Places(Vec<(u32, PathBuf)>);

impl Places {
    /// Where all stand now but this process, which knows its own place.
    pub fn now() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let others = processes.filter(|pid: &u32| *pid != std::process::id());
        let place = |pid| Some((pid, place_of(pid)?));
        Self(others.filter_map(place).collect())
    }

    /// One that stands in a directory or below. A look of weald's into a tree is nobody.
    pub fn within(&self, directory: &Path) -> Option<u32> {
        let bytes = directory.as_os_str().as_bytes();
        let is_in = |place: &Path| {
            // Bytes first: a thousand directories are asked for.
            place.as_os_str().as_bytes().starts_with(bytes) && place.starts_with(directory)
        };
        let mut here = self.0.iter().filter(|(_, place)| is_in(place));
        // Asked last: of one that ended since, nothing shows any more that it was a look.
        here.find(|(pid, _)| !is_look(*pid) && place_of(*pid).is_some_and(|place| is_in(&place)))
            .map(|(pid, _)| *pid)
    }
}

fn place_of(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Whether a process belongs to a look of weald's: those end by themselves, and change nothing. One that this process just
/// began still has its words, and one that ends has none.
fn is_look(pid: u32) -> bool {
    let words_of = |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let me = std::process::id();
    let looks = |words: &[u8]| {
        let mut words = words.split(|byte| *byte == 0);
        words.any(|word| word == INSIDE_ARGUMENT.as_bytes())
    };
    let above = std::iter::successors(Some(pid), |pid| parent_of(*pid));
    let above: Vec<_> = above.take(8).collect();
    let words = words_of(pid);
    let is_own = above.contains(&me) && (words.is_empty() || words == words_of(me));
    is_own || above.iter().any(|pid| looks(&words_of(*pid)))
}

/// How long ago a process began that is stopped; `None` for one that is not.
pub fn stopped_for(pid: u32) -> Option<Duration> {
    let found = stat(pid).ok().filter(|stat| stat.is_stopped)?;
    let uptime = read_line("/proc/uptime")?;
    let seconds: f64 = uptime.split(' ').next()?.parse().ok()?;
    // The kernel counts times of processes in hundredths.
    let age = (seconds as u64).saturating_sub(found.start_time / 100);
    Some(Duration::from_secs(age))
}

struct Stat {
    parent: u32,
    start_time: u64,
    is_zombie: bool,
    is_stopped: bool,
}

fn stat(pid: u32) -> io::Result<Stat> {
    let bytes = fs::read(format!("/proc/{pid}/stat"))?;
    let text = String::from_utf8_lossy(&bytes);
    parse_stat(&text).ok_or_else(|| io::Error::other("an odd /proc/<pid>/stat"))
}

/// The name in brackets may hold anything, brackets and spaces too; the fields begin after the last one.
fn parse_stat(text: &str) -> Option<Stat> {
    let fields: Vec<_> = text[text.rfind(')')? + 1..]
        .split_ascii_whitespace()
        .collect();
    Some(Stat {
        is_zombie: matches!(*fields.first()?, "Z" | "X" | "x"),
        is_stopped: *fields.first()? == "T",
        parent: fields.get(1)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

fn host() -> Option<String> {
    read_line("/proc/sys/kernel/hostname")
}

fn boot_id() -> Option<String> {
    read_line("/proc/sys/kernel/random/boot_id")
}

fn pid_namespace() -> Option<String> {
    fs::read_link("/proc/self/ns/pid")
        .ok()
        .map(|link| link.display().to_string())
}

fn read_line(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

/// Ends a process; true when it is proven gone.
pub fn end_process(processes: &dyn ProcessTable, process: &ProcessIdentity) -> bool {
    let gone = || processes.state(process) == ProcessState::Gone;
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else {
        return gone();
    };
    // The handle is opened before the identity is checked, so the signal can't reach another process.
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
        return gone();
    };
    if processes.state(process) != ProcessState::Running {
        return gone();
    }
    let _ = pidfd_send_signal(&handle, Signal::KILL);
    for _ in 0..500 {
        if gone() {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    gone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a process to stand somewhere")]
    fn l13_one_that_stood_there_and_ended_is_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let mut sleep = std::process::Command::new("sleep");
        let mut child = sleep.arg("60").current_dir(&folder).spawn().unwrap();
        // Until the kernel has its words it may be a look of this process.
        let words = format!("/proc/{}/cmdline", child.id());
        while fs::read(&words).unwrap().is_empty() {
            thread::yield_now();
        }
        let places = Places::now();
        assert_eq!(places.within(&folder), Some(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(places.within(&folder), None);
    }

    #[test]
    fn this_process_runs_and_a_forged_one_does_not() {
        let me = SystemProcesses.identify(std::process::id()).unwrap();
        assert_eq!(SystemProcesses.state(&me), ProcessState::Running);
        let forged = [
            (
                ProcessIdentity {
                    start_time: me.start_time + 1,
                    ..me.clone()
                },
                ProcessState::Gone,
            ),
            (
                ProcessIdentity {
                    boot_id: "another".into(),
                    ..me.clone()
                },
                ProcessState::Gone,
            ),
            (
                ProcessIdentity {
                    host: "elsewhere".into(),
                    ..me.clone()
                },
                ProcessState::Unknown,
            ),
            (
                ProcessIdentity {
                    pid_namespace: "pid:[1]".into(),
                    ..me.clone()
                },
                ProcessState::Unknown,
            ),
            (
                ProcessIdentity {
                    pid: 4_000_000,
                    ..me.clone()
                },
                ProcessState::Gone,
            ),
        ];
        for (process, expected) in forged {
            assert_eq!(SystemProcesses.state(&process), expected, "{process:?}");
        }
    }

    #[test]
    fn m18_a_script_is_known_by_its_own_name() {
        for (words, expected) in [
            ("/usr/bin/claude\0--resume\0", &["claude"][..]),
            (
                "node\0--no-warnings\0/opt/bin/codex.js\0exec\0",
                &["node", "codex"],
            ),
            ("vim\0claude\0", &["vim"]),
            ("-bash\0", &["-bash"]),
            ("", &[""]),
        ] {
            assert_eq!(programs(words.as_bytes()), expected, "{words:?}");
        }
    }

    #[test]
    fn odd_names_do_not_confuse_the_table() {
        let stat =
            parse_stat("42 (a) b) c) S 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1234 0").unwrap();
        assert_eq!(
            (stat.parent, stat.start_time, stat.is_zombie),
            (7, 1234, false)
        );
        assert!(parse_stat("garbage").is_none());
        assert!(!SystemProcesses.ancestors().is_empty());
    }
}
