//! What the supervisor notes of an agent's terminal, and what it does when the agent suspended itself.

use std::time::Duration;

use weald_core::store::Clock;
use weald_sandbox::{Order, Running};

use super::supervising::Watch;
use weald_control::machine::SystemClock;

/// How long viewers stay attached at least: an agent that suspends itself in a loop is only continued.
const DETACH_PAUSE: Duration = Duration::from_secs(60);

impl Watch<'_, '_> {
    /// Notes what it wrote on its terminal, and continues it when it stopped itself: there is no shell that could.
    pub(super) fn mind_terminal(&mut self, running: &mut Running) {
        let Some(terminal) = &self.terminal else {
            return;
        };
        let written = terminal.written();
        if written != self.written {
            self.written = written;
            self.output.wrote(SystemClock.now());
        }
        if self.paused_at.is_some() {
            return;
        }
        let stopped = running.take_stop();
        if self.tolerate(stopped) == Some(true) {
            let why = format!(
                "{id} suspended itself and was continued; attach again: weald attach {id}",
                id = self.agent.id
            );
            terminal.detach_all_once_per(DETACH_PAUSE, &why);
            let continued = running.order(Order::Continue);
            self.tolerate(continued);
        }
    }
}
