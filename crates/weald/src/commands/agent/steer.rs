//! `weald agent steer`

use clap::Args;
use weald_app::agents::drivers::driver_for;
use weald_app::operations::messages::Messages;
use weald_app::{AgentError, Failure, Ground};
use weald_core::agent::Agent;
use weald_core::agent_rules::AgentRefusal;
use weald_core::message::{Draft, Message, MessageType, Urgency};

use super::Which;
use crate::cli::SessionArg;
use crate::commands::msg::print_messages;
use crate::context::Context;

/// Send instructions to an agent
///
/// The text goes to its inbox, ahead of less urgent messages. An agent whose input is open reads it at once; any other
/// reads it when it next checks its inbox.
#[derive(Args)]
pub struct Steer {
    #[command(flatten)]
    which: Which,
    /// Text of the message
    text: String,
    /// Deliver it before all other messages
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
                "{} ({}) does not read input while it works: it sees this only with `weald msg inbox`",
                agent.id, agent.driver
            );
            context.note(&note);
        }
        let messages = Messages {
            messages: vec![message],
            notices: Vec::new(),
        };
        print_messages(context, &messages, "")
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
