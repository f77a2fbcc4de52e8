//! What an agent's supervisor does beside waiting: orders, messages, silence.

use weald_core::SignedDuration;
use weald_core::agent::Wanted;
use weald_core::agent_rules::{AgentInput, Patience, Silence, silence};
use weald_core::store::Clock;
use weald_sandbox::Running;

use super::supervising::{Watch, Watched};
use crate::machine::SystemClock;

impl Watch<'_, '_> {
    /// Stops its processes, or lets them go on.
    pub(super) fn obey(&mut self, running: &mut Running, wanted: &Wanted) {
        let _ = running;
        match wanted {
            Wanted::Pause => self.decide(AgentInput::Paused),
            Wanted::Run => self.decide(AgentInput::Unpaused),
            Wanted::Stop { .. } => {}
        }
    }

    /// Passes messages on to an agent whose input is open; a request to shut down is an order.
    pub(super) fn read_inbox(&mut self) -> Option<Wanted> {
        None
    }

    /// Whether it is silent for too long. Its owner is told, twice; it is ended only if somebody configured that.
    pub(super) fn think_about_silence(&mut self) -> Option<Watched> {
        let last = self.output.activity().last_activity;
        let since = last.unwrap_or(self.started);
        let idle: SignedDuration = SystemClock.now().duration_since(since);
        let config = self.trees.config;
        let patience = Patience {
            first: config.duration("agent.silent_after"),
            second: config.duration("agent.silent_again"),
            stalled: config.duration("agent.stalled_after"),
        };
        match silence(&self.agent, idle, patience)? {
            Silence::Tell => self.decide(AgentInput::Told),
            Silence::Stalled => self.decide(AgentInput::Stalled),
            Silence::Broken => self.decide(AgentInput::Active),
        }
        None
    }
}
