//! The table of keys. A key that is not here does not exist.
//!
//! Each row is the line that people read, the field that code reads, its type, its name, what a value may be, and what holds
//! when nobody says anything (lists are comma separated). `gate.timeout` is [`Settings::gate_timeout`].

use jiff::SignedDuration;

use super::choices::*;
use super::kinds::Key;
use super::kinds::Kind::*;
use super::profiles::PROFILES;
use super::resolve::Values;
use super::values::{Value, parse_age, parse_size};
use crate::approval::PROTECTED;
use crate::choice::Choice;
use crate::clean::Requires;
use crate::cost::Budget;
use crate::file_view::ViewKind;
use crate::landing::Strategy;
use crate::preconditions::Requirement;
use crate::source::Tracker;

/// A checked value as code reads it.
pub trait FromValue: Sized {
    /// `None` where the type does not fit the kind of the key, which a test finds.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! settings {
    ($(#[doc = $about:literal] $field:ident: $type:ty = $name:literal, $kind:expr, $default:expr;)*) => {
        /// Every key, in the order `weald config show` prints them.
        pub const KEYS: &[Key] = &[$(Key {
            name: $name,
            kind: $kind,
            default: $default,
            about: about($about),
        }),*];

        /// What every key is set to.
        #[derive(Debug, Clone)]
        pub struct Settings {
            $(#[doc = $about] pub $field: $type,)*
        }

        impl Settings {
            pub(super) fn read(values: &Values) -> Self {
                Self {
                    $($field: <$type>::from_value(values.value($name)).expect("values were checked"),)*
                }
            }
        }
    };
}

/// A doc comment without the space before it.
const fn about(doc: &'static str) -> &'static str {
    match doc.as_bytes() {
        [b' ', ..] => doc.split_at(1).1,
        _ => doc,
    }
}

settings! {
    // What everything rests on, and worktrees.
    /// the conventions to start from
    profile: String = "profile", Choice(PROFILES), "default";
    /// the branch that work lands on; auto: origin's default, main, master, current
    target: String = "target", OwnText, "auto";
    /// how long a claim is valid before others may take over
    lease_ttl: SignedDuration = "lease.ttl", Duration, "15m";
    /// a heartbeat older than this is stale
    session_stale_after: SignedDuration = "session.stale_after", Duration, "5m";
    /// longest worktree name
    name_max: usize = "name.max", Number(1, 64), "64";
    /// whether a/b as a worktree name is refused or becomes a+b (`refuse`, `plus`)
    name_slashes: Slashes = "name.slashes", Choice(Slashes::WORDS), "refuse";
    /// path of a worktree
    tree_path: String = "tree.path", Place, "{repo_parent}/{repo_name}.weald/{name}";
    /// branch of a worktree
    tree_branch: String = "tree.branch", Template, "wt/{name}";
    /// name of a task's worktree; if another task's worktree has that name, a number is appended (`same-name-2`)
    tree_task_name: String = "tree.task_name", Template, "{slug}";
    /// what a new worktree starts from (`target`, `head`, `main`, `remote_default`, `task`)
    tree_base: BasePolicy = "tree.base", Choice(BasePolicy::WORDS), "target";
    /// fetch the branch a new worktree starts from (`try`, `require`, `never`)
    tree_fetch: Fetch = "tree.fetch", Choice(Fetch::WORDS), "try";
    /// with try: how long a response, or its absence, is reused
    tree_fetch_every: SignedDuration = "tree.fetch_every", Duration, "5m";
    /// time limit of that fetch
    tree_fetch_limit: SignedDuration = "tree.fetch_limit", Duration, "10s";
    /// what happens if main has uncommitted changes when a worktree is created (`warn`, `refuse`, `ignore`)
    tree_dirty_main: DirtyPolicy = "tree.dirty_main", Choice(DirtyPolicy::WORDS), "warn";
    /// when weald locks a worktree with git (`never`, `create`, `run`)
    tree_lock: LockWhen = "tree.lock", Choice(LockWhen::WORDS), "never";
    /// how a worktree gets shared folders (`copy`, `symlink`, `none`)
    tree_share: ShareBy = "tree.share", Choice(ShareBy::WORDS), "copy";
    /// folders of main to share, if git ignores them
    tree_share_paths: Vec<String> = "tree.share_paths", List, "";
    /// commands to run in a new worktree, in its sandbox (the repository's after `weald trust`)
    setup_commands: Vec<String> = "setup.commands", List, "";
    /// what happens to a worktree whose set-up fails (`keep`, `rollback`)
    setup_on_failure: OnFailure = "setup.on_failure", Choice(OnFailure::WORDS), "keep";
    /// time limit of each set-up command
    setup_timeout: SignedDuration = "setup.timeout", Duration, "10m";
    /// the lowest port for worktrees
    ports_first: u16 = "ports.first", Number(1024, 65535), "20000";
    /// the highest port for worktrees
    ports_last: u16 = "ports.last", Number(1024, 65535), "32000";
    /// how many ports a worktree gets; 0: none
    ports_count: u16 = "ports.count", Number(0, 1000), "10";
    /// Git LFS files in a new worktree: pointers, or the content main has (`skip`, `smudge`)
    tree_lfs: LargeFilesPolicy = "tree.lfs", Choice(LargeFilesPolicy::WORDS), "smudge";
    /// largest size of a worktree's Git LFS objects in one import
    tree_lfs_limit: Option<u64> = "tree.lfs_limit", Size, "4G";
    /// number of spare worktrees kept ready; 0: none, and no donor
    pool_size: u64 = "pool.size", Number(0, 64), "2";
    /// fill the pool in the background after a worktree was created
    pool_background: bool = "pool.background", Switch, "true";
    /// time limit of inspecting a worktree
    tree_look_limit: SignedDuration = "tree.look_limit", Duration, "60s";
    /// largest size of one import from a worktree
    tree_import_limit: Option<u64> = "tree.import_limit", Size, "4G";
    /// binding a worktree starts its task
    bind_advances: bool = "bind_advances", Switch, "false";

    // What works on tasks, and how.
    /// land finished work automatically
    work_land: bool = "work.land", Switch, "true";
    /// what weald commits of an agent's uncommitted changes: all, only tracked files, or none, and nothing lands (`all`, `tracked`, `refuse`)
    work_commit: Leftovers = "work.commit", Choice(Leftovers::WORDS), "all";
    /// time limit of the hooks of a commit that weald makes in a worktree
    commit_timeout: SignedDuration = "commit.timeout", Duration, "10m";
    /// what happens to a task whose agent changed and reported nothing (`park`, `complete`)
    work_on_empty: OnEmpty = "work.on_empty", Choice(OnEmpty::WORDS), "park";
    /// how often an agent is resumed automatically when its work conflicts or its tests fail
    work_retries: u32 = "work.retries", Number(0, 10), "2";
    /// how long an agent may work; none: no limit
    agent_timeout: Option<SignedDuration> = "agent.timeout", Interval, "none";
    /// when the owner of an inactive agent gets a message
    agent_silent_after: SignedDuration = "agent.silent_after", Duration, "4m";
    /// when the owner gets a second message
    agent_silent_again: SignedDuration = "agent.silent_again", Duration, "8m";
    /// when an inactive agent counts as stalled
    agent_stalled_after: SignedDuration = "agent.stalled_after", Duration, "20m";
    /// what happens to a stalled agent (`tell`, `stop`)
    agent_on_stall: OnStall = "agent.on_stall", Choice(OnStall::WORDS), "tell";
    /// how much of an agent's output weald keeps
    agent_log_limit: Option<u64> = "agent.log_limit", Size, "64M";
    /// how often an idle worker looks for work
    worker_poll: SignedDuration = "worker.poll", Duration, "5s";
    /// when a worker without work ends
    worker_idle_timeout: SignedDuration = "worker.idle_timeout", Duration, "60s";
    /// the driver that works on tasks: claude, codex, command, or a name from agent.drivers
    agent_driver: String = "agent.driver", OwnText, "claude";
    /// the command line of driver `command`, as a shell would split it
    agent_command: String = "agent.command", OwnText, "";
    /// more drivers, each as `name: command line`
    agent_drivers: Vec<String> = "agent.drivers", OwnList, "";
    /// how a command line without {prompt} or {prompt_file} gets the prompt (`argument`, `file`, `stdin`)
    agent_prompt: PromptBy = "agent.prompt", OwnChoice(PromptBy::WORDS), "argument";
    /// the model that agents use; empty: their own choice
    agent_model: String = "agent.model", OwnText, "";
    /// spending limit per agent ($5 or 500k tokens); at the limit the agent is stopped
    agent_budget: Option<Budget> = "agent.budget", Budget, "none";
    /// what all agents of the repository may use in a day; then they are stopped
    agent_budget_day: Option<Budget> = "agent.budget_day", Budget, "none";
    /// agents get weald's tools as an MCP server
    agent_mcp: bool = "agent.mcp", Switch, "true";
    /// command to run on this machine when something needs you (split like a shell command)
    notify_command: String = "notify.command", OwnText, "";
    /// a notification on the desktop when something needs you (by notify-send)
    notify_desktop: bool = "notify.desktop", OwnSwitch, "false";
    /// how a terminal that follows agents signals a notification (`off`, `bell`, `osc9`)
    notify_terminal: NotifyBy = "notify.terminal", OwnChoice(NotifyBy::WORDS), "bell";
    /// events that trigger a notification
    notify_on: Vec<String> = "notify.on", OwnList, "parked, red, conflict, question, limit, login, finished";
    /// run the hooks of your own agent settings in agents' sandboxes, too
    agent_user_hooks: bool = "agent.user_hooks", OwnSwitch, "false";
    /// the phases of a task, in order
    phase_list: Vec<String> = "phase.list", List, "plan, build, review, qa";
    /// commands for phases, each as `phase: shell command`
    phase_commands: Vec<String> = "phase.commands", OwnList, "";
    /// drivers for phases, each as `phase: driver`
    phase_drivers: Vec<String> = "phase.drivers", OwnList, "";
    /// instructions for phases, each as `phase: text`
    phase_prompts: Vec<String> = "phase.prompts", OwnList, "";
    /// what happens to an edit that an agent's hook can't judge (`allow`, `block`)
    hook_on_error: OnError = "hook.on_error", Guarded(OnError::WORDS), "allow";
    /// more folders that the hook of an agent in a worktree lets it edit; ~/ is your home
    hook_allow: Vec<String> = "hook.allow", OwnList, "";
    /// save an agent's work in the background when it stops, so that it does not wait
    hook_background: bool = "hook.background", Switch, "true";

    // Where tasks come from, and how the tracker learns what became of them.
    /// the tracker that weald fetches unknown tasks from and updates when tasks change (`none`, `beads`, `gh`, `command`); only you can set it
    source_from: Option<Tracker> = "source.from", OwnChoice(Tracker::NONE_OR_WORDS), "none";
    /// update the tracker after claims, failures and completions; only you can set it
    source_update: bool = "source.update", OwnSwitch, "true";
    /// time limit of a tracker command, at most 60s; only you can set it
    source_timeout: SignedDuration = "source.timeout", OwnDuration(60), "10s";
    /// command that prints an issue as JSON; {id}, {task} (without `gh-`); empty: the tracker's own, `none`: nothing
    source_fetch: String = "source.fetch", OwnText, "";
    /// command that reports a claim; the same, with {message}
    source_claim: String = "source.claim", OwnText, "";
    /// command that reports a release
    source_release: String = "source.release", OwnText, "";
    /// command that reports a failed attempt
    source_fail: String = "source.fail", OwnText, "";
    /// command that reports a completed task
    source_close: String = "source.close", OwnText, "";
    /// command that reports a reopened task
    source_reopen: String = "source.reopen", OwnText, "";

    // What lands, what holds a run, and what is kept.
    /// what a task's worktree needs to land: report: a completed task with a report and no failed verification (`nothing`, `report`)
    landing_requires: Requirement = "landing.requires", Guarded(Requirement::WORDS), "nothing";
    /// how commits reach the target (`squash`, `merge`, `rebase`, `ff`)
    landing_strategy: Strategy = "landing.strategy", Choice(Strategy::WORDS), "squash";
    /// message template of a landing; empty: from its commits and its task
    landing_message: String = "landing.message", Message, "";
    /// add lines about task, worktree and authors to the message of a landing
    landing_trailers: bool = "landing.trailers", Switch, "true";
    /// fetch the target before landing (`try`, `require`, `never`)
    landing_fetch: Fetch = "landing.fetch", Choice(Fetch::WORDS), "try";
    /// what happens to a landed worktree (`trash`, `keep`)
    landing_after: AfterLanding = "landing.after", Choice(AfterLanding::WORDS), "trash";
    /// how many gates run at once, each on top of those ahead
    landing_parallel: usize = "landing.parallel", Number(1, 16), "1";
    /// stash changes in the target's checkout that are in the way, and restore them
    landing_autostash: bool = "landing.autostash", OwnSwitch, "false";
    /// whether the repository's hooks run when the target moves (`run`, `off`)
    landing_hooks: HooksPolicy = "landing.hooks", Guarded(HooksPolicy::WORDS), "off";
    /// committer of landings, as `Name <mail>`; empty: git's user, else weald
    landing_identity: String = "landing.identity", OwnText, "";
    /// sign landed commits with your key: never; auto: if commit.gpgsign is set, unsigned if signing fails; require: or nothing lands (`never`, `auto`, `require`)
    landing_sign: Sign = "landing.sign", Guarded(Sign::WORDS), "auto";
    /// command that runs on the target after a landing; if it fails, weald reverts the landing
    landing_check: String = "landing.check", Text, "";
    /// how long the process that works the queue may be unresponsive
    landing_lease: SignedDuration = "landing.lease", Duration, "60s";
    /// how long to wait for another git that holds the target's checkout
    landing_lock_wait: SignedDuration = "landing.lock_wait", Duration, "10s";
    /// the tests that a landing must pass, as a shell command; empty: none
    gate_command: String = "gate.command", Text, "";
    /// time limit of the tests
    gate_timeout: SignedDuration = "gate.timeout", Duration, "30m";
    /// how often failed tests are retried before they count
    gate_retries: u32 = "gate.retries", Number(0, 5), "1";
    /// more variables that the tests see; their values are part of the cache key
    gate_env: Vec<String> = "gate.env", OwnList, "";
    /// what a landing requires (`none`, `tests`, `human`)
    policy_gate: Gate = "policy.gate", Guarded(Gate::WORDS), "tests";
    /// paths (patterns as in .gitignore, any case) whose change needs a person's approval; your `!PATTERN` takes one out
    policy_protected: Vec<String> = "policy.protected", JoinedList, PROTECTED;
    /// how strongly runs are confined (`landlock`, `full`)
    sandbox_level: SandboxLevel = "sandbox.level", Guarded(SandboxLevel::WORDS), "full";
    /// whether runs have network access: any, listed hosts alone, or none (`on`, `allow`, `off`)
    sandbox_network: NetworkPolicy = "sandbox.network", Guarded(NetworkPolicy::WORDS), "on";
    /// hosts that runs reach with `allow`: `example.com`, `*.example.com`, each with `:PORT` or without; the repository's after `weald trust`
    sandbox_hosts: Vec<String> = "sandbox.hosts", Hosts, "";
    /// more directories that runs may write
    sandbox_write: Vec<String> = "sandbox.write", OwnList, "";
    /// files and directories hidden from runs; every layer adds to it
    sandbox_read_deny: Vec<String> = "sandbox.read_deny", GrowingList, "";
    /// secrets that runs may see: stores (ssh, aws, registries …) or variables
    sandbox_reveal: Vec<String> = "sandbox.reveal", OwnList, "";
    /// unix sockets that runs may connect to
    sandbox_sockets: Vec<String> = "sandbox.sockets", OwnList, "";
    /// let runs use unix datagram sockets; they can then send to those of the host that they see
    sandbox_datagrams: bool = "sandbox.datagrams", OwnSwitch, "false";
    /// devices of the host that runs may use, such as /dev/kvm
    sandbox_devices: Vec<String> = "sandbox.devices", OwnList, "";
    /// address space of each process of a run
    sandbox_memory: Option<u64> = "sandbox.memory", Size, "none";
    /// processes and threads of a run; 0: no limit (root is not counted)
    sandbox_processes: u64 = "sandbox.processes", Number(0, 1_000_000), "0";
    /// processor time of each process of a run; 0: no limit
    sandbox_cpu_seconds: u64 = "sandbox.cpu_seconds", Number(0, 100_000_000), "0";
    /// the largest file a run may write
    sandbox_file_size: Option<u64> = "sandbox.file_size", Size, "none";
    /// size of a run's private /tmp (level full)
    sandbox_tmp: Option<u64> = "sandbox.tmp", Size, "none";
    /// what happens to a removed worktree's branch (`if_landed`, `always`, `keep`, `with_tree`, `if_unchanged`)
    remove_branch: BranchPolicy = "remove.branch", Choice(BranchPolicy::WORDS), "if_landed";
    /// path of the trash
    trash_path: String = "trash.path", Place, "{tree_root}/.trash";
    /// how often weald takes a snapshot of a worktree while a command runs in it; none: never
    snapshot_every: Option<SignedDuration> = "snapshot.every", Interval, "5m";
    /// snapshots omit larger files
    snapshot_file_limit: Option<u64> = "snapshot.file_limit", Size, "100M";
    /// largest size of one snapshot
    snapshot_limit: Option<u64> = "snapshot.limit", Size, "1G";
    /// which worktrees a clean may remove (`landed`, `merged`, `complete`, `unchanged`)
    clean_requires: Requires = "clean.requires", Choice(Requires::WORDS), "landed";
    /// how long a worktree must be unused before a clean removes it; 0: any
    clean_min_age: SignedDuration = "clean.min_age", Age, "24h";
    /// report worktrees untouched for longer
    clean_stale_after: SignedDuration = "clean.stale_after", Duration, "7d";
    /// report a disk with less free space
    doctor_min_free: Option<u64> = "doctor.min_free", Size, "500M";
    /// changed files that do not keep a worktree: paths, or patterns as in .gitignore
    clean_ignore_dirty: Vec<String> = "clean.ignore_dirty", OwnList, "";
    /// more variables that disable `clean`, as NAME or NAME=value
    clean_kill_switches: Vec<String> = "clean.kill_switches", JoinedList, "";
    /// the same for `sweep`
    sweep_kill_switches: Vec<String> = "sweep.kill_switches", JoinedList, "";
    /// the same for working in place in a worktree of another tool
    defer_kill_switches: Vec<String> = "defer.kill_switches", JoinedList, "";
    /// files maintained for other tools (`none`, `two-plane`, `classroom`, `jean-claude`)
    views: Option<ViewKind> = "views", Choice(ViewKind::NONE_OR_WORDS), "none";
    /// more MCP tool names (`none`, `classroom`)
    mcp_aliases: Aliases = "mcp.aliases", Choice(Aliases::WORDS), "none";

    // What goes by itself, and who may do so.
    /// a sweep counts as the next cycle only this long after the last one
    sweep_cycle: SignedDuration = "sweep.cycle", Duration, "1m";
    /// how long a sweep may be unresponsive before another one takes over
    sweep_lease: SignedDuration = "sweep.lease", Duration, "30m";
    /// how long a process that holds the vault may be unresponsive before a waiting process ends it
    vault_lease: SignedDuration = "vault.lease", OwnDuration(86_400), "30m";
    /// names of folders that a build can recreate; only ignored ones count
    usage_regenerable: Vec<String> = "usage.regenerable", OwnNames, "target, node_modules";
    /// how long a worktree must be unused before its regenerable folders may be deleted; 0: any
    usage_min_age: SignedDuration = "usage.min_age", Age, "1h";
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        Some(value.as_text()?.to_owned())
    }
}

impl<T: Choice> FromValue for T {
    fn from_value(value: &Value) -> Option<Self> {
        T::of_word(value.as_text()?)
    }
}

/// `None` is `none`.
impl<T: Choice> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        match value.as_text()? {
            "none" => Some(None),
            word => T::of_word(word).map(Some),
        }
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Switch(on) => Some(*on),
            _ => None,
        }
    }
}

impl FromValue for Vec<String> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::List(items) => Some(items.clone()),
            _ => None,
        }
    }
}

impl FromValue for SignedDuration {
    fn from_value(value: &Value) -> Option<Self> {
        parse_age(value.as_text()?).ok()
    }
}

/// `None` is no bound.
impl FromValue for Option<Budget> {
    fn from_value(value: &Value) -> Option<Self> {
        match value.as_text()? {
            "none" => Some(None),
            text => text.parse().ok().map(Some),
        }
    }
}

/// `None` is never.
impl FromValue for Option<SignedDuration> {
    fn from_value(value: &Value) -> Option<Self> {
        match value.as_text()? {
            "none" => Some(None),
            text => parse_age(text).ok().map(Some),
        }
    }
}

/// A size in bytes; `None` is no limit.
impl FromValue for Option<u64> {
    fn from_value(value: &Value) -> Option<Self> {
        match value.as_text()? {
            "none" => Some(None),
            text => parse_size(text).ok().map(Some),
        }
    }
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl FromValue for $type {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Number(number) => Self::try_from(*number).ok(),
                    _ => None,
                }
            }
        })*
    };
}

numbers!(u16, u32, u64, usize);

#[cfg(test)]
mod tests {
    use super::super::{Kind, Layer, Origin, resolve};
    use super::*;

    /// Values at the ends of what a key takes.
    fn extremes(kind: Kind) -> Vec<String> {
        match kind {
            Choice(words) | OwnChoice(words) | Guarded(words) => {
                words.iter().map(|word| (*word).to_owned()).collect()
            }
            Number(low, high) => vec![low.to_string(), high.to_string()],
            Size => vec!["none".to_owned(), "1".to_owned(), "8000000T".to_owned()],
            Interval => vec!["none".to_owned(), "0".to_owned(), "1s".to_owned()],
            Age => vec!["0".to_owned(), "3650d".to_owned()],
            Duration | OwnDuration(_) => vec!["1s".to_owned(), "60s".to_owned()],
            Switch | OwnSwitch => vec!["true".to_owned(), "false".to_owned()],
            _ => Vec::new(),
        }
    }

    #[test]
    fn p14_every_value_that_a_key_takes_fits_the_type_of_its_field() {
        for key in KEYS {
            for text in extremes(key.kind) {
                let mut values = toml::Table::new();
                let value = super::super::from_text(key, &text);
                values.insert(key.name.to_owned(), value);
                let origin = Origin::Flag("set".to_owned());
                let laid = resolve(vec![Layer { origin, values }]);
                laid.unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }
}
