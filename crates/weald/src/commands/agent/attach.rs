//! `weald agent attach`

use std::io;
use std::sync::mpsc::{self, Receiver};

use clap::Args;
use weald_app::operations::orders::send;
use weald_app::operations::works::Worked;
use weald_app::{Failure, exit};
use weald_core::message::Urgency;

use super::{POLL, Which};
use crate::cli::SessionArg;
use crate::commands::work_told;
use crate::context::Context;
use crate::following::Log;

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
        context.cancel.catch();
        let ground = context.ground()?;
        let id = self.which.find(&ground)?.id;
        let typed = typed_lines();
        let mut tail = Log::new(context.ui, &ground, id)?;
        tail.begin_with((!self.all).then_some(self.tail))?;
        loop {
            ground.engine.reap_agents()?;
            let agent = ground.engine.agent(id)?;
            tail.show()?;
            if agent.status.is_over() {
                let worked = Worked::of(context, &ground, agent)?;
                context
                    .ui
                    .show(&worked, |out| work_told::tell(out, &worked))?;
                return Ok(worked.exit_code());
            }
            if context.cancel.asked().is_some() {
                context.note(&format!(
                    "{id} keeps running; reattach with: weald agent attach {id}, stop it with: weald agent stop {id}"
                ));
                return Ok(exit::DONE);
            }
            for line in typed.try_iter().filter(|line| !line.trim().is_empty()) {
                let from = context.by(&self.session.caller()).session(&ground.engine)?;
                let sent = send(&ground, &agent, from, Urgency::Steer, line)?;
                context.note(&format!("message {} for {id}", sent.id));
            }
            std::thread::sleep(POLL);
        }
    }
}

/// What is typed, line by line; nothing comes where nothing can be read.
fn typed_lines() -> Receiver<String> {
    let (lines, typed) = mpsc::channel();
    std::thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    typed
}
