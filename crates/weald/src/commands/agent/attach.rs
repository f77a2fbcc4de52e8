//! `weald agent attach`

use clap::Args;
use weald_app::Failure;
use weald_app::operations::Operation;
use weald_app::operations::orders::AttachAgent;

use super::Which;
use crate::cli::SessionArg;
use crate::commands::work_told;
use crate::context::Context;

/// Follow an agent's output and send it messages
///
/// Shows the last lines of its output, then new output until the agent ends. Each line you type goes to its inbox; an
/// agent whose input is open reads it at once. Ctrl-C detaches and leaves the agent running; a second Ctrl-C exits at once.
#[derive(Args)]
pub struct Attach {
    #[command(flatten)]
    which: Which,
    /// Start with the last N lines of output
    #[arg(long, value_name = "N", default_value_t = 20)]
    tail: usize,
    /// Start with all of its output
    #[arg(long, conflicts_with = "tail")]
    all: bool,
    #[command(flatten)]
    session: SessionArg,
}

impl Attach {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = AttachAgent {
            agent: self.which.id,
            tail: (!self.all).then_some(self.tail),
        };
        let attached = context.perform_as(&self.session.caller(), request)?;
        if let Some(worked) = &attached.ended {
            context
                .ui
                .show(worked, |out| work_told::tell(out, worked))?;
        }
        Ok(AttachAgent::exit(&attached))
    }
}
