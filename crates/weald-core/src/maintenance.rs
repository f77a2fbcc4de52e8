//! The lease of maintenance: who keeps house, and until when nobody else does.
//!
//! As with the queue, proof of the holder's end or the end of the lease permits a takeover, and the token tells a holder
//! that wakes up late that it is not the newest any more.
//!
//! The lease is a field of the queue's record, because that is the one record of which a repository has exactly one.

use jiff::{SignedDuration, Timestamp};

use crate::event::{Change, EventKind};
use crate::id::Token;
use crate::queue::{Maintenance, Queue, QueueHolder, until};
use crate::session::ProcessState;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MaintenanceRefusal {
    #[error("process {} has been sweeping since {}", .holder.process.pid, .holder.acquired_at)]
    Held { holder: Box<QueueHolder> },
    /// Another one took over.
    #[error("another sweep took over; this one stopped where it was")]
    Lost,
}

/// Takes the lease for `taker`, whose times are set here. `state` is what is known of the holder's process.
pub fn take(
    queue: &Queue,
    taker: QueueHolder,
    state: ProcessState,
    ttl: SignedDuration,
    now: Timestamp,
) -> Result<(Queue, Change), MaintenanceRefusal> {
    if let Some(held) = &queue.maintenance.holder
        && held.excludes(&taker.process, state, now)
    {
        return Err(MaintenanceRefusal::Held {
            holder: Box::new(held.clone()),
        });
    }
    let holder = QueueHolder {
        acquired_at: now,
        expires_at: until(now, ttl),
        ..taker
    };
    let token = queue.maintenance.token.next();
    let kind = EventKind::MAINTENANCE_TAKEN;
    Ok(changed(queue, kind, token, Some(holder)))
}

pub fn renew(
    queue: &Queue,
    token: Token,
    ttl: SignedDuration,
    now: Timestamp,
) -> Result<(Queue, Change), MaintenanceRefusal> {
    let mut holder = require_holder(queue, token)?.clone();
    holder.expires_at = until(now, ttl);
    let kind = EventKind::MAINTENANCE_RENEWED;
    Ok(changed(queue, kind, token, Some(holder)))
}

pub fn release(queue: &Queue, token: Token) -> Result<(Queue, Change), MaintenanceRefusal> {
    require_holder(queue, token)?;
    let kind = EventKind::MAINTENANCE_RELEASED;
    Ok(changed(queue, kind, token, None))
}

/// Whether `token` is the newest, so its holder may go on.
pub fn require_holder(queue: &Queue, token: Token) -> Result<&QueueHolder, MaintenanceRefusal> {
    let lease = &queue.maintenance;
    let holder = lease.holder.as_ref().filter(|_| lease.token == token);
    holder.ok_or(MaintenanceRefusal::Lost)
}

fn changed(
    queue: &Queue,
    kind: EventKind,
    token: Token,
    holder: Option<QueueHolder>,
) -> (Queue, Change) {
    let mut next = queue.clone();
    next.maintenance = Maintenance { token, holder };
    (next.clone(), Change::queue(kind, next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::ProcessIdentity;

    fn taker(pid: u32) -> QueueHolder {
        QueueHolder {
            process: ProcessIdentity {
                host: "h".into(),
                boot_id: "b".into(),
                pid_namespace: "n".into(),
                pid,
                start_time: 1,
            },
            session: None,
            acquired_at: Timestamp::UNIX_EPOCH,
            expires_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn l11_maintenance_goes_over_by_expiry_or_proof_and_never_moves_the_queue() {
        let ttl = SignedDuration::from_mins(30);
        let at = |minutes| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
        let taken =
            |queue: &Queue, pid, state, minutes| take(queue, taker(pid), state, ttl, at(minutes));
        let (first, _) = taken(&Queue::default(), 1, ProcessState::Gone, 0).unwrap();
        let token = first.maintenance.token;
        for state in [ProcessState::Running, ProcessState::Unknown] {
            let held = taken(&first, 2, state, 29).unwrap_err();
            assert!(matches!(held, MaintenanceRefusal::Held { .. }));
            let (next, _) = taken(&first, 2, state, 30).unwrap();
            assert_eq!(next.maintenance.token, token.next());
            assert_eq!(
                renew(&next, token, ttl, at(31)),
                Err(MaintenanceRefusal::Lost)
            );
            assert_eq!(release(&next, token), Err(MaintenanceRefusal::Lost));
        }
        let (renewed, _) = renew(&first, token, ttl, at(20)).unwrap();
        assert!(taken(&renewed, 2, ProcessState::Running, 49).is_err());
        assert!(taken(&renewed, 2, ProcessState::Gone, 21).is_ok());
        let (free, _) = release(&renewed, token).unwrap();
        assert!(require_holder(&free, token).is_err());
        assert_eq!((free.token, free.holder), (Queue::default().token, None));
    }
}
