//! Holding an agent's claim.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use weald_core::agent::Agent;
use weald_git::between_steps;

use crate::Ground;

/// Holds an agent's claim while what follows takes its time: a gate may run for longer than a lease.
pub(super) fn holding<T>(ground: &Ground, agent: &Agent, work: impl FnOnce() -> T) -> T {
    let (engine, config) = (&ground.engine, ground.config());
    let every = config.lease_ttl.unsigned_abs() / 3;
    let (over, rest) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while rest.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                // Who lost it, or has completed it, is told by what follows.
                let session = Some(&agent.session);
                let renew = || engine.renew(session, &agent.task, Some(agent.token), None);
                let _ = between_steps(renew);
            }
        });
        let done = work();
        drop(over);
        done
    })
}
