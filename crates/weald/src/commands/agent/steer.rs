//! `weald agent steer`

use clap::Args;
use weald_app::agents::drivers::driver_for;
use weald_app::{AgentError, Failure, Ground};
use weald_core::agent::Agent;
use weald_core::agent_rules::AgentRefusal;
use weald_core::message::{Draft, Message, MessageType, Urgency};

use super::Which;
use crate::cli::SessionArg;
use crate::commands::msg::print_messages;
use crate::context::Context;

/// Tell an agent something
///
/// The words go into its inbox, before what is not urgent. One whose input is open reads them at once; any other when it
/// looks into its inbox.
#[derive(Args)]
pub struct Steer {
    #[command(flatten)]
    which: Which,
    /// The words
    text: String,
    /// Before everything else
    #[arg(long)]
    urgent: bool,
    #[command(flatten)]
    session: SessionArg,
}

impl Steer {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let agent = self.which.find(&ground)?;
        let from = context.session(&ground.engine, self.session.session.as_ref())?;
        let priority = match self.urgent {
            true => Urgency::Urgent,
            false => Urgency::Steer,
        };
        let message = send(&ground, &agent, from, priority, self.text)?;
        context.tell(&ground.engine);
        if !is_listening(&ground, &agent) {
            let note = format!(
                "{} ({}) reads no input while it works: it finds this only by `weald msg inbox`",
                agent.id, agent.driver
            );
            context.note(&note);
        }
        print_messages(context, &[message], "")
    }
}

/// Whether an agent's input stays open, so that words reach it while it works.
fn is_listening(ground: &Ground, agent: &Agent) -> bool {
    let driver = driver_for(ground.config(), Some(&agent.driver), &[]);
    driver.is_ok_and(|driver| driver.say("").is_some())
}

/// Puts words into an agent's inbox; one that is over reads nothing.
pub fn send(
    ground: &Ground,
    agent: &Agent,
    from: weald_core::name::SessionName,
    priority: Urgency,
    text: String,
) -> Result<Message, Failure> {
    if agent.status.is_over() {
        return Err(AgentError::from(AgentRefusal::Over {
            agent: agent.id,
            status: agent.status,
        })
        .into());
    }
    Ok(ground.engine.send(Draft {
        from,
        to: agent.session.clone(),
        kind: MessageType::Message,
        priority,
        text,
        task: Some(agent.task.clone()),
    })?)
}
