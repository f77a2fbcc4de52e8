//! The keys of agents, workers and phases.

use super::kinds::{Key, Kind, key};

/// What works on tasks, and how.
pub(super) const AGENTS: &[Key] = &[
    key(
        "work.land",
        Kind::Switch,
        "true",
        "finished work lands by itself",
    ),
    key(
        "work.commit",
        Kind::Choice(&["all", "tracked", "refuse"]),
        "all",
        "what an agent leaves uncommitted is committed for it: all, known files, or nothing lands",
    ),
    key(
        "commit.timeout",
        Kind::Duration,
        "10m",
        "how long the hooks of a commit that weald makes in a worktree may take",
    ),
    key(
        "work.on_empty",
        Kind::Choice(&["park", "complete"]),
        "park",
        "the task of an agent that changed nothing and reported nothing waits for you, or is completed",
    ),
    key(
        "agent.timeout",
        Kind::Interval,
        "none",
        "how long an agent may work; none: as long as it likes",
    ),
    key(
        "agent.silent_after",
        Kind::Duration,
        "4m",
        "its owner is told that an agent does nothing",
    ),
    key("agent.silent_again", Kind::Duration, "8m", "and told again"),
    key(
        "agent.stalled_after",
        Kind::Duration,
        "20m",
        "from when on it counts as stalled",
    ),
    key(
        "agent.on_stall",
        Kind::Choice(&["tell", "stop"]),
        "tell",
        "what happens to a stalled agent",
    ),
    key(
        "agent.log_limit",
        Kind::Size,
        "64M",
        "how much of an agent's output is kept",
    ),
    key(
        "worker.poll",
        Kind::Duration,
        "5s",
        "how often an idle worker looks for work",
    ),
    key(
        "worker.idle_timeout",
        Kind::Duration,
        "60s",
        "a worker without work ends after this",
    ),
    key(
        "agent.driver",
        Kind::OwnText,
        "claude",
        "what works on tasks: claude, codex, command, or a name of agent.drivers",
    ),
    key(
        "agent.command",
        Kind::OwnText,
        "",
        "the command line of driver `command`, as a shell would split it",
    ),
    key(
        "agent.drivers",
        Kind::OwnList,
        "",
        "further drivers, each as `name: command line`",
    ),
    key(
        "agent.prompt",
        Kind::OwnChoice(&["argument", "file", "stdin"]),
        "argument",
        "how a command line without {prompt} or {prompt_file} gets the prompt",
    ),
    key(
        "agent.model",
        Kind::OwnText,
        "",
        "which model agents use; empty: their own choice",
    ),
    key(
        "agent.mcp",
        Kind::Switch,
        "true",
        "agents get weald's tools as an MCP server",
    ),
    key(
        "phase.list",
        Kind::List,
        "plan, build, review, qa",
        "the phases of a task, in their order",
    ),
    key(
        "phase.commands",
        Kind::OwnList,
        "",
        "what does a phase, each as `phase: shell command`",
    ),
    key(
        "phase.drivers",
        Kind::OwnList,
        "",
        "which driver does a phase, each as `phase: driver`",
    ),
    key(
        "phase.prompts",
        Kind::OwnList,
        "",
        "what a phase is about, each as `phase: text`",
    ),
    key(
        "hook.on_error",
        Kind::Guarded(&["allow", "block"]),
        "allow",
        "what becomes of an edit that the hook of an agent can't judge",
    ),
    key(
        "hook.allow",
        Kind::OwnList,
        "",
        "further folders that an agent in a tree may edit, as its hook judges; ~/ is your home",
    ),
    key(
        "hook.background",
        Kind::Switch,
        "true",
        "keep an agent's work in the background when it stops, so that it does not wait",
    ),
];
