//! What a run may do.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How strong the sandbox is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Namespaces, a read-only view, Landlock, seccomp.
    #[default]
    Full,
    /// Landlock and seccomp alone, with exceptions: see [`Level::not_covered`].
    Landlock,
}

impl Level {
    /// The name in JSON and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Landlock => "landlock",
        }
    }

    /// What programs may miss, with the answer that they get.
    pub fn refuses(self) -> &'static [&'static str] {
        match self {
            Self::Full => &[
                "nested namespaces, so bwrap, unshare and the sandboxes of Chromium and Bazel (EPERM): start these without their own sandbox",
                "32-bit programs (ENOSYS)",
                "io_uring, userfaultfd, perf, bpf, kernel keys, fanotify (EPERM)",
                "FUSE, KVM and other devices (ENOENT): sandbox.devices names those that runs may use",
                "raw sockets (EPERM)",
                "unix datagram sockets with a name (EACCES), unless sandbox.datagrams allows them",
                "tracing and limiting weald's own processes in the run; priorities of groups and users (EPERM)",
                "set-user-id modes (EPERM)",
            ],
            Self::Landlock => &[
                "nested namespaces, so bwrap, unshare and the sandboxes of Chromium and Bazel (EPERM): start these without their own sandbox",
                "32-bit programs (ENOSYS)",
                "io_uring, userfaultfd, perf, bpf, kernel keys, fanotify (EPERM)",
                "FUSE, KVM and other devices (EACCES): sandbox.devices names those that runs may use",
                "raw sockets (EPERM)",
                "debuggers, and priorities, processors and limits of other processes (EPERM)",
                "unix sockets other than stream pairs (EACCES); System V objects and POSIX queues (EPERM)",
                "POSIX semaphores and shared memory, new terminals, names and scores in /proc (EACCES)",
                "set-user-id modes (EPERM)",
            ],
        }
    }

    /// What this level does not keep a process from doing.
    pub fn not_covered(self) -> &'static [&'static str] {
        match self {
            Self::Full => &[
                "reading files of the same user that are not hidden",
                "seeing what the host adds next to something hidden: that waits for the next run",
                "the network, unless it is off; with sandbox.network = \"allow\" listed hosts can carry data out",
                "using processor time and memory up to the limits",
                "locks on files that it can read",
                "going on while it is paused, if its processes trace each other",
                "covert channels (timing, load)",
            ],
            Self::Landlock => &[
                "reading files of the same user that are not hidden, such as weald's state in the repository and temporary files of other runs; listing names in hidden folders",
                "filling the disk of its temporary files",
                "chmod, chown, utimes, flags and extended attributes of files outside",
                "locks on files outside that can be read",
                "seeing other processes in /proc",
                "descendants that outlive a killed reaper",
                "reads of device files, as the user may",
                "the network, unless it is off",
                "using processor time and memory up to the limits",
                "covert channels (timing, load)",
            ],
        }
    }
}

/// Whether a run reaches the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// As the host does.
    #[default]
    On,
    /// It reaches the hosts in [`Policy::hosts`] (level full).
    Allow,
    Off,
}

/// A host that a run may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// In small letters, without a dot at its end; or an address.
    pub name: String,
    /// It stands for everything below the name, and not for the name itself.
    pub below: bool,
    /// The only port; any without one.
    pub port: Option<u16>,
}

/// How much a run may use. Absent is unlimited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Processor time a process.
    pub cpu: Option<Duration>,
    /// Address space a process, in bytes.
    pub memory: Option<u64>,
    /// Memory that a process writes, in bytes: files that it maps don't count.
    pub data: Option<u64>,
    /// Processes and threads in the sandbox.
    pub processes: Option<u64>,
    /// The largest file, in bytes.
    pub file_size: Option<u64>,
    /// Bytes of the private /tmp (level full).
    pub tmp: Option<u64>,
}

/// Layers that a test takes away to see the refusal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Simulated {
    /// Behave as if the kernel had this ABI of Landlock; 0 is none.
    pub landlock_abi: Option<u32>,
}

/// A directory that is seen though it lies below a mask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revealed {
    /// Which. It must exist, hold nothing that is masked, and be no link.
    pub path: PathBuf,
    /// Whether it may be written, too.
    pub writable: bool,
}

/// What a run may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub level: Level,
    /// Directories that may be written. They must exist; symbolic links in their paths were resolved.
    pub write: Vec<PathBuf>,
    /// The same directories, seen but not written: for inspection.
    pub read_only: bool,
    /// Directories and files that stay visible though they lie below one that is private inside (/tmp, /run); read-only.
    pub show: Vec<PathBuf>,
    /// Directories and files that look empty inside (level full).
    pub mask: Vec<PathBuf>,
    /// Directories below masks that this run alone sees.
    pub reveal: Vec<Revealed>,
    /// Unix sockets of the host that may be connected to.
    pub sockets: Vec<PathBuf>,
    /// The socket of the run's broker, at level landlock: the one that a run reaches there, by [`crate::broker_connection`].
    pub broker: Option<PathBuf>,
    /// Whether it may make unix datagram sockets with a name (level full). Nobody is asked before one sends, so it reaches those
    /// of the host that lie in its view.
    pub datagrams: bool,
    /// Character devices of the host that may be used.
    pub devices: Vec<PathBuf>,
    /// Whether it reaches the network.
    pub network: Network,
    /// What it reaches where that goes by name.
    #[serde(default)]
    pub hosts: Vec<Host>,
    /// The user's home, if it is known.
    pub home: Option<PathBuf>,
    /// Directories and files that are not there inside (at level landlock: can't be read), whatever the host does with them
    /// meanwhile.
    pub hidden: Vec<PathBuf>,
    /// Where what is written to the home is kept; `None` for a home that can't be written. The folder belongs to weald alone.
    pub home_layer: Option<PathBuf>,
    /// Where temporary files go at level landlock: a private directory of the host's; `None` for one that goes with the run.
    /// Level full has its own /tmp.
    pub tmp: Option<PathBuf>,
    /// Whether its processes may trace, schedule and limit each other (level full).
    pub debugs: bool,
    /// How much it may use.
    pub limits: Limits,
    /// Layers that a test takes away.
    #[serde(default)]
    pub simulated: Simulated,
}

impl Policy {
    /// Write `directory`, nothing else, at level full with network and without debuggers.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            write: vec![directory.into()],
            ..Self::default()
        }
    }
}
