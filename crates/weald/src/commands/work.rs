//! `weald work`

use clap::Args;
use weald_app::Failure;
use weald_app::operations::works::{Ended, WorkOnTask};
use weald_app::supervision::AgentWish;
use weald_core::name::SessionName;

use super::attach::attach_new;
use super::work_told::tell_ended;
use crate::attaching::require_terminal;
use crate::completion;
use crate::context::Context;

/// Run an agent on a task in its own worktree, then land it
///
/// TASK is a task ID, or the subject of a new task (if it contains a space, or with --new). Without a command after `--`, the
/// configured driver works on it. On success, remaining changes are committed and the work lands. On failure, the worktree
/// is kept and `weald resume` continues.
///
/// Ctrl-C stops the agent; closing the terminal does not.
#[derive(Args)]
pub struct Work {
    /// Task ID, its worktree, or the subject of a new task
    #[arg(value_name = "TASK", add = completion::tasks())]
    task: String,
    /// Treat TASK as the subject of a new task
    #[arg(long)]
    new: bool,
    #[command(flatten)]
    how: How,
    /// Work in the main checkout, without worktree or landing
    #[arg(long, conflicts_with = "land")]
    no_worktree: bool,
    /// Accepted for compatibility; this is the default
    #[arg(long, hide = true, conflicts_with = "no_worktree")]
    use_worktree: bool,
    /// Open the agent's own interface on this terminal
    ///
    /// Ctrl-\ detaches and `weald attach` returns. When the agent ends, you see what changed and decide whether it lands.
    #[arg(long, short, conflicts_with_all = ["no_worktree", "detach", "land"])]
    interactive: bool,
    /// Return at once; the agent runs in the background
    #[arg(long)]
    detach: bool,
    /// Accepted for compatibility; weald never prompts
    #[arg(long, short, visible_alias = "auto-confirm")]
    yes: bool,
}

/// How an agent works.
#[derive(Args)]
pub struct How {
    /// Land the result (default: work.land)
    #[arg(long, conflicts_with = "no_land")]
    land: bool,
    /// Keep the result in its worktree
    #[arg(long)]
    no_land: bool,
    /// Model to use
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Driver: claude, codex, command, … (default: agent.driver)
    ///
    /// With a command after `--`, the default is claude or codex if the command starts that agent, else command.
    #[arg(long, value_name = "DRIVER")]
    driver: Option<String>,
    /// Session name of the agent (default: its ID)
    #[arg(long, value_name = "NAME")]
    name: Option<SessionName>,
    /// Role, such as "backend developer"; part of every prompt
    #[arg(long, value_name = "TEXT")]
    role: Option<String>,
    /// Standing instructions; part of every prompt
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Retries after conflicts or red tests (default: work.retries)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10))]
    retries: Option<u32>,
    /// Command to run, or extra arguments for the driver
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

impl How {
    pub fn wish(self) -> AgentWish {
        AgentWish {
            land: match (self.land, self.no_land) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            },
            model: self.model,
            driver: self.driver,
            name: self.name,
            role: self.role,
            prompt: self.prompt,
            feedback: None,
            retries: self.retries,
            command: self.command,
            interactive: false,
        }
    }
}

impl Work {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        // Both say what holds anyway.
        let _ = (self.yes, self.use_worktree);
        if self.interactive {
            require_terminal()?;
        }
        let mut how = self.how.wish();
        how.interactive = self.interactive;
        let answer = context.perform(WorkOnTask {
            task: self.task,
            is_subject: self.new,
            in_main: self.no_worktree,
            detach: self.detach || self.interactive,
            how,
        })?;
        attached_or_ended(context, &answer, self.interactive)
    }
}

/// Attaches to an interactive agent that has begun; prints what came of any other.
pub fn attached_or_ended(
    context: &Context<'_>,
    ended: &Ended,
    is_interactive: bool,
) -> Result<u8, Failure> {
    match ended {
        Ended::Worked(worked) if is_interactive => attach_new(context, worked.agent.id),
        _ => print_ended(context, ended),
    }
}

/// What came of work on a task.
pub fn print_ended(context: &Context<'_>, ended: &Ended) -> Result<u8, Failure> {
    context.ui.show(ended, |out| tell_ended(out, ended))?;
    Ok(ended.exit_code())
}
