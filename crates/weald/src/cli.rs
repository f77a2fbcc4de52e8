//! The command line as clap sees it. Each command's own arguments are in its file.

pub mod parsing;

use clap::{Args, Parser, Subcommand};
use weald_app::Failure;
use weald_app::operations::cost::ShowCost;
use weald_app::operations::landing::VerifyTarget;
use weald_app::operations::looking::{
    CheckTrees, DiffTree, FindPath, ListTrees, ShowBoard, ShowPorts, ShowTree,
};
use weald_app::operations::pool::ShowPool;
use weald_app::operations::snapshots::ListSnapshots;
use weald_app::operations::trash::ListTrash;
use weald_app::operations::vault::{ListKeptWork, ShowVault};
use weald_app::operations::{Caller, Operation};
use weald_core::SignedDuration;
use weald_core::name::SessionName;

use crate::commands::{
    adopt, agent, approve, attach, board, clean, completions, config, conflicts, cost, deinit,
    demo, diff, doctor, ensure, enter, events, habits, hook, init, inside, install, keep, land,
    list, man, mcp, msg, new, operate, path, phase, pool, ports, queue, race, rescue, restore,
    resume, revert, rm, run, sandbox, session, setup, shell, shell_init, snapshot, status,
    supervise_agent, sweep, sync, task, tell_tracker, tell_user, trash, trust, undo, usage, vault,
    verify, work, worker,
};
use crate::completion;
use crate::context::Context;
use crate::global::GlobalArgs;

/// Run many coding agents on one git repository, each in its own sandboxed worktree.
#[derive(Parser)]
#[command(
    name = "weald",
    bin_name = "weald",
    version,
    disable_help_subcommand = false
)]
pub struct Cli {
    /// Flags of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    Demo(demo::Demo),
    Init(init::Init),
    New(new::New),
    Ensure(ensure::Ensure),
    Adopt(adopt::Adopt),
    Approve(approve::Approve),
    #[command(visible_alias = "ls")]
    List(list::List),
    Status(status::Status),
    Show(status::Show),
    Path(path::Path),
    Ports(ports::Ports),
    Run(run::Run),
    Shell(shell::Shell),
    Enter(enter::Enter),
    Exit(enter::Exit),
    Diff(diff::Diff),
    Sync(sync::Sync),
    Work(work::Work),
    Phase(phase::Phase),
    Race(race::Race),
    Rescue(rescue::Rescue),
    /// Start, watch and steer agents in the background
    Agent(agent::AgentArgs),
    Attach(attach::Attach),
    Resume(resume::Resume),
    Worker(worker::Worker),
    Cost(cost::Cost),
    #[command(hide = true)]
    SuperviseAgent(supervise_agent::SuperviseAgent),
    #[command(hide = true)]
    TellTracker(tell_tracker::TellTracker),
    #[command(hide = true)]
    TellUser(tell_user::TellUser),
    #[command(hide = true)]
    Operate(operate::Operate),
    Land(land::Land),
    Queue(queue::QueueArgs),
    Revert(revert::Revert),
    Undo(undo::Undo),
    Conflicts(conflicts::Conflicts),
    Verify(verify::Verify),
    Keep(keep::Keep),
    Lock(keep::Lock),
    Unlock(keep::Unlock),
    Rm(rm::Rm),
    Restore(restore::Restore),
    Clean(clean::Clean),
    Doctor(doctor::Doctor),
    Deinit(deinit::Deinit),
    #[command(hide = true, after_help = "Now: weald clean --leftovers")]
    Sweep(sweep::Sweep),
    #[command(
        hide = true,
        after_help = "Now: weald clean --usage, weald clean --free SIZE"
    )]
    Usage(usage::Usage),
    Setup(setup::Setup),
    Trust(trust::Trust),
    ShellInit(shell_init::ShellInit),
    /// List, restore or permanently delete removed worktrees
    #[command(hide = true, after_help = "Now: weald restore, weald clean --trash")]
    Trash(Group<trash::Trash>),
    /// Save and restore the state of a worktree
    Snapshot(Group<snapshot::Snapshot>),
    /// Show, fill or empty the pool of spare worktrees
    Pool(Group<pool::Pool>),
    /// Show and maintain the shared object store
    #[command(
        hide = true,
        after_help = "Now: weald restore --purged, weald clean --vault"
    )]
    Vault(Group<vault::Vault>),
    /// Add, claim and finish tasks
    Task(Group<task::Task>),
    /// Send and read messages between sessions
    Msg(Group<msg::Msg>),
    /// Show sessions and whether they are alive
    Session(Group<session::Session>),
    Events(events::Events),
    Mcp(mcp::Mcp),
    Install(install::Install),
    /// Answer hooks of Claude Code and Codex
    #[command(subcommand, hide = true)]
    Hook(hook::Hook),
    /// Run sandboxed commands and check the sandbox
    Sandbox(Group<sandbox::Sandbox>),
    Config(config::ConfigArgs),
    Completions(completions::Completions),
    Man(man::Man),
    #[command(flatten)]
    Habit(habits::Habit),
}

impl Cli {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self.command {
            None => board::run(context),
            Some(Command::Demo(command)) => command.run(context),
            Some(Command::Init(command)) => command.run(context),
            Some(Command::New(command)) => command.run(context),
            Some(Command::Ensure(command)) => command.run(context),
            Some(Command::Adopt(command)) => command.run(context),
            Some(Command::Approve(command)) => command.run(context),
            Some(Command::List(command)) => command.run(context),
            Some(Command::Status(command)) => command.run(context),
            Some(Command::Show(command)) => command.run(context),
            Some(Command::Path(command)) => command.run(context),
            Some(Command::Ports(command)) => command.run(context),
            Some(Command::Run(command)) => command.run(context),
            Some(Command::Shell(command)) => command.run(context),
            Some(Command::Enter(command)) => command.run(context),
            Some(Command::Exit(command)) => command.run(context),
            Some(Command::Diff(command)) => command.run(context),
            Some(Command::Sync(command)) => command.run(context),
            Some(Command::Work(command)) => command.run(context),
            Some(Command::Phase(command)) => command.run(context),
            Some(Command::Race(command)) => command.run(context),
            Some(Command::Rescue(command)) => command.run(context),
            Some(Command::Agent(command)) => command.run(context),
            Some(Command::Attach(command)) => command.run(context),
            Some(Command::Resume(command)) => command.run(context),
            Some(Command::Worker(command)) => command.run(context),
            Some(Command::Cost(command)) => command.run(context),
            Some(Command::SuperviseAgent(command)) => command.run(context),
            Some(Command::TellTracker(command)) => command.run(context),
            Some(Command::TellUser(command)) => command.run(context),
            Some(Command::Operate(command)) => command.run(context),
            Some(Command::Land(command)) => command.run(context),
            Some(Command::Queue(command)) => command.run(context),
            Some(Command::Revert(command)) => command.run(context),
            Some(Command::Undo(command)) => command.run(context),
            Some(Command::Conflicts(command)) => command.run(context),
            Some(Command::Verify(command)) => command.run(context),
            Some(Command::Keep(command)) => command.run(context),
            Some(Command::Lock(command)) => command.run(context),
            Some(Command::Unlock(command)) => command.run(context),
            Some(Command::Rm(command)) => command.run(context),
            Some(Command::Restore(command)) => command.run(context),
            Some(Command::Clean(command)) => command.run(context),
            Some(Command::Doctor(command)) => command.run(context),
            Some(Command::Deinit(command)) => command.run(context),
            Some(Command::Sweep(command)) => command.run(context),
            Some(Command::Usage(command)) => command.run(context),
            Some(Command::Setup(command)) => command.run(context),
            Some(Command::Trust(command)) => command.run(context),
            Some(Command::ShellInit(command)) => command.run(context),
            Some(Command::Trash(group)) => group.chosen().run(context),
            Some(Command::Snapshot(group)) => group.chosen().run(context),
            Some(Command::Pool(group)) => group.chosen().run(context),
            Some(Command::Vault(group)) => group.chosen().run(context),
            Some(Command::Task(group)) => group.chosen().run(context),
            Some(Command::Msg(group)) => group.chosen().run(context),
            Some(Command::Session(group)) => group.chosen().run(context),
            Some(Command::Events(command)) => command.run(context),
            Some(Command::Mcp(command)) => command.run(context),
            Some(Command::Install(command)) => command.run(context),
            Some(Command::Hook(command)) => command.run(context),
            Some(Command::Sandbox(group)) => group.chosen().run(context),
            Some(Command::Config(command)) => command.run(context),
            Some(Command::Completions(command)) => command.run(context),
            Some(Command::Man(command)) => command.run(context),
            Some(Command::Habit(command)) => command.run(context),
        }
    }
}

impl Cli {
    /// The command line without commands: its name, its version and the flags of every command.
    pub fn frame() -> clap::Command {
        let frame = clap::Command::new("weald").version(env!("CARGO_PKG_VERSION"));
        GlobalArgs::augment_args(frame)
    }

    /// All commands, of which only the names are known yet.
    pub fn commands() -> clap::Command {
        Command::augment_subcommands(clap::Command::new("weald"))
    }

    /// Whether an agent calls a hook.
    pub fn is_hook(&self) -> bool {
        matches!(self.command, Some(Command::Hook(_)))
    }

    /// Whether a command changes nothing, so that it works in a copy and on a read-only file system. What is not listed
    /// here may change something.
    pub fn only_reads(&self) -> bool {
        use task::Task;
        match &self.command {
            None => ShowBoard::READS,
            Some(Command::Task(group)) => group.is(|command| {
                matches!(
                    command,
                    Task::List(_) | Task::Ready(_) | Task::Show(_) | Task::Export(_)
                )
            }),
            Some(Command::Trash(group)) => {
                group.is(|command| matches!(command, trash::Trash::List(_))) && ListTrash::READS
            }
            Some(Command::Session(group)) => group.is(session::Session::only_reads),
            Some(Command::Agent(command)) => command.only_reads(),
            Some(Command::Snapshot(group)) => {
                let lists = |command: &_| matches!(command, snapshot::Snapshot::List(_));
                group.is(lists) && ListSnapshots::READS
            }
            Some(Command::Pool(group)) => {
                group.is(|command| matches!(command, pool::Pool::Status(_))) && ShowPool::READS
            }
            Some(Command::Vault(group)) => group.is(|command| match command {
                vault::Vault::Status(_) => ShowVault::READS,
                vault::Vault::List(_) => ListKeptWork::READS,
                vault::Vault::Restore(_) | vault::Vault::Maintain(_) => false,
            }),
            Some(Command::Queue(command)) => command.only_reads(),
            Some(Command::Cost(_)) => ShowCost::READS,
            Some(Command::Events(_)) => events::Events::READS,
            Some(Command::Operate(command)) => command.only_reads(),
            Some(Command::Restore(command)) => command.only_reads(),
            Some(Command::Clean(command)) => command.only_reads(),
            Some(Command::Usage(command)) => !command.apply,
            Some(Command::Verify(_)) => VerifyTarget::READS,
            Some(Command::List(_)) => ListTrees::READS,
            Some(Command::Status(_)) => CheckTrees::READS,
            Some(Command::Show(_)) => ShowTree::READS,
            Some(Command::Path(_)) => FindPath::READS,
            Some(Command::Ports(_)) => ShowPorts::READS,
            Some(Command::Diff(_)) => DiffTree::READS,
            Some(Command::Config(command)) => command.only_reads(),
            Some(_) => false,
        }
    }

    /// Does what was asked from inside a tree's sandbox: what is not for there is refused.
    pub fn run_inside(self, inside: &inside::Inside<'_>) -> Result<u8, Failure> {
        match self.command {
            None => inside::overview(inside),
            Some(Command::Task(group)) => group.chosen().run(inside.context),
            Some(Command::Msg(group)) => group.chosen().run(inside.context),
            Some(Command::Session(group)) => group.chosen().run(inside.context),
            Some(Command::Events(command)) => command.run(inside.context),
            Some(Command::Status(command)) => command.run(inside.context),
            Some(Command::Show(command)) => command.run(inside.context),
            Some(Command::Path(command)) => command.run(inside.context),
            Some(Command::Diff(command)) => command.run(inside.context),
            Some(Command::Snapshot(group)) => group.chosen().run(inside.context),
            Some(Command::Sync(command)) => command.run(inside.context),
            Some(Command::Land(command)) => command.run(inside.context),
            Some(Command::Hook(command)) => command.inside(inside),
            // These need no repository, or ask the broker themselves.
            Some(
                Command::Mcp(_)
                | Command::Completions(_)
                | Command::Man(_)
                | Command::ShellInit(_)
                | Command::Sandbox(_)
                | Command::Operate(_),
            ) => self.run(inside.context),
            // Nothing holds a run without a sandbox, so nothing is refused to it here.
            Some(_) if !inside.context.is_confined() => self.run(inside.context),
            Some(_) => Err(Failure::not_allowed_inside()),
        }
    }
}

// A group of commands; alone it lists what there is. The group's enum says what it is for.
#[derive(Args)]
struct Group<C: Subcommand + Default> {
    #[command(subcommand)]
    command: Option<C>,
}

impl<C: Subcommand + Default> Group<C> {
    fn chosen(self) -> C {
        self.command.unwrap_or_default()
    }

    /// Whether the command is such a one.
    fn is(&self, such: impl Fn(&C) -> bool) -> bool {
        match &self.command {
            Some(command) => such(command),
            None => such(&C::default()),
        }
    }
}

#[derive(Args, Default)]
pub struct SessionArg {
    /// Session to act as (default: $WEALD_SESSION or your agent's)
    #[arg(long, value_name = "NAME", add = completion::sessions())]
    pub session: Option<SessionName>,
}

impl SessionArg {
    /// What the caller says of itself with it.
    pub fn caller(&self) -> Caller {
        Caller {
            session: self.session.clone(),
            token: None,
        }
    }
}

/// A duration above zero.
pub fn duration(text: &str) -> Result<SignedDuration, String> {
    weald_core::config::parse_duration(text)
}

/// A duration, or zero.
pub fn age(text: &str) -> Result<SignedDuration, String> {
    weald_core::config::parse_age(text)
}
