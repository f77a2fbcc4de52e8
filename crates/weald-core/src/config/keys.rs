//! The table of keys. A key that is not here does not exist.

use super::agent_keys::AGENTS;
use super::kinds::{Key, Kind, key};
use super::profiles::PROFILES;
use super::source_keys::SOURCE;
use super::upkeep_keys::UPKEEP;
use crate::approval::PROTECTED;

/// Every key, in the order `weald config show` prints them.
pub const KEYS: &[Key] =
    &joined::<{ TREES.len() + AGENTS.len() + SOURCE.len() + LANDING.len() + UPKEEP.len() }>();

const fn joined<const COUNT: usize>() -> [Key; COUNT] {
    let mut all = [TREES[0]; COUNT];
    let (parts, mut part, mut at) = ([TREES, AGENTS, SOURCE, LANDING, UPKEEP], 0, 0);
    while part < parts.len() {
        let mut next = 0;
        while next < parts[part].len() {
            all[at] = parts[part][next];
            (next, at) = (next + 1, at + 1);
        }
        part += 1;
    }
    all
}

/// What everything rests on, and trees.
const TREES: &[Key] = &[
    key(
        "profile",
        Kind::Choice(PROFILES),
        "default",
        "the conventions to start from",
    ),
    key(
        "target",
        Kind::OwnText,
        "auto",
        "branch that work lands on; auto: origin's default, main, master, current",
    ),
    key(
        "lease.ttl",
        Kind::Duration,
        "15m",
        "how long a claim holds before others may take over",
    ),
    key(
        "session.stale_after",
        Kind::Duration,
        "5m",
        "a heartbeat older than this is stale",
    ),
    key("name.max", Kind::Number(1, 64), "64", "longest tree name"),
    key(
        "name.slashes",
        Kind::Choice(&["refuse", "plus"]),
        "refuse",
        "a/b as a tree name: refused, or a+b",
    ),
    key(
        "tree.path",
        Kind::Place,
        "{repo_parent}/{repo_name}.weald/{name}",
        "where a tree lies",
    ),
    key("tree.branch", Kind::Template, "wt/{name}", "its branch"),
    key(
        "tree.task_name",
        Kind::Template,
        "{slug}",
        "the name of a task's tree",
    ),
    key(
        "tree.base",
        Kind::Choice(&["target", "head", "main", "remote_default", "task"]),
        "target",
        "what a new tree starts from",
    ),
    key(
        "tree.fetch",
        Kind::Choice(&["try", "require", "never"]),
        "try",
        "fetch the branch a new tree starts from",
    ),
    key(
        "tree.fetch_every",
        Kind::Duration,
        "5m",
        "with try: how long an answer, or none, counts",
    ),
    key(
        "tree.fetch_limit",
        Kind::Duration,
        "10s",
        "how long that fetch may take",
    ),
    key(
        "tree.dirty_main",
        Kind::Choice(&["warn", "refuse", "ignore"]),
        "warn",
        "uncommitted changes in main at create",
    ),
    key(
        "tree.lock",
        Kind::Choice(&["never", "create", "run"]),
        "never",
        "when a tree is locked at git level",
    ),
    key(
        "tree.share",
        Kind::Choice(&["copy", "symlink", "none"]),
        "copy",
        "how shared folders come into a tree",
    ),
    key(
        "tree.share_paths",
        Kind::List,
        "",
        "which folders of main that git ignores are shared",
    ),
    key(
        "setup.commands",
        Kind::List,
        "",
        "what runs in a new tree, in its sandbox (the repository's after `weald trust`)",
    ),
    key(
        "setup.on_failure",
        Kind::Choice(&["keep", "rollback"]),
        "keep",
        "what becomes of a tree whose set-up fails",
    ),
    key(
        "setup.timeout",
        Kind::Duration,
        "10m",
        "how long one command of a set-up may take",
    ),
    key(
        "ports.first",
        Kind::Number(1024, 65535),
        "20000",
        "the lowest port that trees get",
    ),
    key(
        "ports.last",
        Kind::Number(1024, 65535),
        "32000",
        "the highest port that trees get",
    ),
    key(
        "ports.count",
        Kind::Number(0, 1000),
        "10",
        "how many ports a tree gets; 0: none",
    ),
    key(
        "tree.lfs",
        Kind::Choice(&["skip", "smudge"]),
        "smudge",
        "Git LFS files in a new worktree: pointers, or the content main has",
    ),
    key(
        "tree.lfs_limit",
        Kind::Size,
        "4G",
        "the most that one import takes of a worktree's Git LFS objects",
    ),
    key(
        "pool.size",
        Kind::Number(0, 64),
        "2",
        "trees that are held ready; 0: none, and no donor",
    ),
    key(
        "pool.background",
        Kind::Switch,
        "true",
        "fill the pool in the background after a tree was made",
    ),
    key(
        "tree.look_limit",
        Kind::Duration,
        "60s",
        "how long inspecting a worktree may take",
    ),
    key(
        "tree.import_limit",
        Kind::Size,
        "4G",
        "the most that one import takes from a tree",
    ),
    key(
        "bind_advances",
        Kind::Switch,
        "false",
        "binding a tree starts its task",
    ),
];

/// What lands, what holds a run, and what is kept.
const LANDING: &[Key] = &[
    key(
        "landing.requires",
        Kind::Guarded(&["nothing", "report"]),
        "nothing",
        "what a task's tree needs to land: report: a task that is done, with a report, and no failed verification",
    ),
    key(
        "landing.strategy",
        Kind::Choice(&["squash", "merge", "rebase", "ff"]),
        "squash",
        "how commits reach the target",
    ),
    key(
        "landing.message",
        Kind::Message,
        "",
        "message template of a landing; empty: from the task",
    ),
    key(
        "landing.fetch",
        Kind::Choice(&["try", "require", "never"]),
        "try",
        "fetch the target before landing",
    ),
    key(
        "landing.after",
        Kind::Choice(&["trash", "keep"]),
        "trash",
        "what becomes of a landed tree",
    ),
    key(
        "landing.parallel",
        Kind::Number(1, 16),
        "1",
        "how many gates run at once, each on top of those ahead",
    ),
    key(
        "landing.autostash",
        Kind::OwnSwitch,
        "false",
        "stash changes of the target's checkout that are in the way, and put them back",
    ),
    key(
        "landing.hooks",
        Kind::Guarded(&["run", "off"]),
        "off",
        "whether the repository's hooks run when the target moves",
    ),
    key(
        "landing.identity",
        Kind::OwnText,
        "",
        "who commits landings, as `Name <mail>`; empty: git's user, else weald",
    ),
    key(
        "landing.sign",
        Kind::Guarded(&["never", "auto", "require"]),
        "auto",
        "sign what lands with your key: never; auto: if commit.gpgsign says so, unsigned if it fails; require: or nothing lands",
    ),
    key(
        "landing.check",
        Kind::Text,
        "",
        "command that runs on the target after a landing; red: the landing is taken back",
    ),
    key(
        "landing.lease",
        Kind::Duration,
        "60s",
        "how long the process that works the queue may be silent",
    ),
    key(
        "landing.lock_wait",
        Kind::Duration,
        "10s",
        "how long to wait for a git that holds the target's checkout",
    ),
    key(
        "gate.command",
        Kind::Text,
        "",
        "the tests that a landing must pass, as a shell command; empty: none",
    ),
    key(
        "gate.timeout",
        Kind::Duration,
        "30m",
        "how long they may take",
    ),
    key(
        "gate.retries",
        Kind::Number(0, 5),
        "1",
        "how often red tests are run again before they count",
    ),
    key(
        "gate.env",
        Kind::OwnList,
        "",
        "further variables that the tests see; their values are part of what is cached",
    ),
    key(
        "policy.gate",
        Kind::Guarded(&["none", "tests", "human"]),
        "tests",
        "what must agree before a landing",
    ),
    key(
        "policy.protected",
        Kind::JoinedList,
        PROTECTED,
        "paths (patterns as in .gitignore, any case) whose change needs a person's approval; your `!PATTERN` takes one out",
    ),
    key(
        "sandbox.level",
        Kind::Guarded(&["landlock", "full"]),
        "full",
        "how strongly runs are held in place",
    ),
    key(
        "sandbox.network",
        Kind::Guarded(&["on", "off"]),
        "on",
        "whether runs reach the network",
    ),
    key(
        "sandbox.write",
        Kind::OwnList,
        "",
        "further directories that runs may write",
    ),
    key(
        "sandbox.read_deny",
        Kind::GrowingList,
        "",
        "files and directories that runs don't see; every layer adds to it",
    ),
    key(
        "sandbox.reveal",
        Kind::OwnList,
        "",
        "secrets that runs may see: stores (ssh, aws, registries …) or variables",
    ),
    key(
        "sandbox.sockets",
        Kind::OwnList,
        "",
        "unix sockets that runs may connect to",
    ),
    key(
        "sandbox.datagrams",
        Kind::OwnSwitch,
        "false",
        "let runs use unix datagram sockets; they can then send to those of the host that they see",
    ),
    key(
        "sandbox.devices",
        Kind::OwnList,
        "",
        "devices of the host that runs may use, such as /dev/kvm",
    ),
    key(
        "sandbox.memory",
        Kind::Size,
        "none",
        "address space a process of a run may have",
    ),
    key(
        "sandbox.processes",
        Kind::Number(0, 1_000_000),
        "0",
        "processes and threads of a run; 0: no limit (root is not counted)",
    ),
    key(
        "sandbox.cpu_seconds",
        Kind::Number(0, 100_000_000),
        "0",
        "processor time of a process of a run; 0: no limit",
    ),
    key(
        "sandbox.file_size",
        Kind::Size,
        "none",
        "the largest file a run may write",
    ),
    key(
        "sandbox.tmp",
        Kind::Size,
        "none",
        "room in a run's private /tmp",
    ),
    key(
        "remove.branch",
        Kind::Choice(&["if_landed", "always", "keep", "with_tree", "if_unchanged"]),
        "if_landed",
        "what becomes of a removed tree's branch",
    ),
    key(
        "trash.path",
        Kind::Place,
        "{tree_root}/.trash",
        "where removed trees wait",
    ),
    key(
        "snapshot.every",
        Kind::Interval,
        "5m",
        "how often a tree is kept while a command runs in it; none: never",
    ),
    key(
        "snapshot.file_limit",
        Kind::Size,
        "100M",
        "larger files are left out of snapshots",
    ),
    key(
        "snapshot.limit",
        Kind::Size,
        "1G",
        "the most that one snapshot holds",
    ),
    key(
        "clean.requires",
        Kind::Choice(&["landed", "merged", "complete", "unchanged"]),
        "landed",
        "what a clean may take",
    ),
    key(
        "clean.min_age",
        Kind::Age,
        "24h",
        "and for how long it must be unused; 0: any",
    ),
    key(
        "clean.stale_after",
        Kind::Duration,
        "7d",
        "trees untouched for longer are reported",
    ),
    key(
        "doctor.min_free",
        Kind::Size,
        "500M",
        "a disk with less room than this is reported",
    ),
    key(
        "clean.ignore_dirty",
        Kind::OwnList,
        "",
        "changed files that keep no tree: paths, or patterns as in .gitignore",
    ),
    key(
        "clean.kill_switches",
        Kind::JoinedList,
        "",
        "further variables that switch `clean` off, as NAME or NAME=value",
    ),
    key(
        "sweep.kill_switches",
        Kind::JoinedList,
        "",
        "the same for `sweep`",
    ),
    key(
        "defer.kill_switches",
        Kind::JoinedList,
        "",
        "the same for working in place in a worktree of another tool",
    ),
    key(
        "views",
        Kind::Choice(&["none", "two-plane", "classroom", "jean-claude"]),
        "none",
        "files kept for other tools",
    ),
    key(
        "mcp.aliases",
        Kind::Choice(&["none", "classroom"]),
        "none",
        "further MCP tool names",
    ),
];

/// Looks a key up.
pub fn find_key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Variables that tell a command in a tree where it is; they set no key.
const TOLD: [&str; 10] = [
    "WEALD_TREE",
    "WEALD_TREE_PATH",
    "WEALD_TASK",
    "WEALD_TASK_SUBJECT",
    "WEALD_PROMPT_FILE",
    "WEALD_TOKEN",
    "WEALD_SESSION",
    "WEALD_MAIN",
    "WEALD_PORT",
    "WEALD_PORTS",
];

/// The variable that sets a key: `landing.strategy` is `WEALD_LANDING_STRATEGY`. `tree.path` has none: its name tells a
/// command where its tree is.
pub fn variable_of(key: &Key) -> Option<String> {
    let name = format!("WEALD_{}", key.name.replace('.', "_").to_ascii_uppercase());
    (!TOLD.contains(&name.as_str())).then_some(name)
}
