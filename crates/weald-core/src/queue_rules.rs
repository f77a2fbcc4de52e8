//! What may happen to the queue's lease: `(queue, input, now) -> (queue, change)` or a refusal.

use jiff::Timestamp;

use crate::event::{Change, EventKind};
use crate::id::Token;
use crate::queue::{Queue, QueueHolder, QueueInput, QueueRefusal, until};

/// Whether `token` is the newest, so its holder may go on.
pub fn check_token(queue: &Queue, token: Token) -> Result<(), QueueRefusal> {
    match queue.token == token && queue.holder.is_some() {
        true => Ok(()),
        false => Err(QueueRefusal::Stale {
            given: token,
            current: queue.token,
        }),
    }
}

pub fn decide(
    queue: &Queue,
    input: QueueInput,
    now: Timestamp,
) -> Result<(Queue, Change), QueueRefusal> {
    let mut next = queue.clone();
    let kind = match input {
        QueueInput::Take {
            process,
            session,
            ttl,
            holder,
        } => {
            if let Some(held) = &queue.holder
                && held.excludes(&process, holder, now)
            {
                return Err(QueueRefusal::Held {
                    holder: Box::new(held.clone()),
                });
            }
            next.token = queue.token.next();
            next.holder = Some(QueueHolder {
                process,
                session,
                acquired_at: now,
                expires_at: until(now, ttl),
            });
            EventKind::QUEUE_TAKEN
        }
        QueueInput::Renew { token, ttl } => {
            check_token(queue, token)?;
            if let Some(holder) = &mut next.holder {
                holder.expires_at = until(now, ttl);
            }
            EventKind::QUEUE_RENEWED
        }
        QueueInput::Release { token } => {
            check_token(queue, token)?;
            next.holder = None;
            EventKind::QUEUE_RELEASED
        }
        QueueInput::Pause(pause) => {
            next.paused = Some(pause);
            EventKind::QUEUE_PAUSED
        }
        QueueInput::Resume => {
            next.paused = None;
            EventKind::QUEUE_RESUMED
        }
    };
    Ok((next.clone(), Change::queue(kind, next)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::ProcessIdentity;
    use crate::session::ProcessState;
    use jiff::SignedDuration;

    fn process(pid: u32) -> ProcessIdentity {
        ProcessIdentity {
            host: "h".into(),
            boot_id: "b".into(),
            pid_namespace: "n".into(),
            pid,
            start_time: 1,
        }
    }

    fn take(pid: u32, holder: ProcessState) -> QueueInput {
        QueueInput::Take {
            process: process(pid),
            session: None,
            ttl: SignedDuration::from_secs(30),
            holder,
        }
    }

    #[test]
    fn t14_the_lease_goes_over_by_expiry_or_proof_and_an_old_token_is_refused() {
        let start = Timestamp::UNIX_EPOCH;
        let later = |secs| start + SignedDuration::from_secs(secs);
        let (first, _) = decide(&Queue::default(), take(1, ProcessState::Gone), start).unwrap();
        for state in [ProcessState::Running, ProcessState::Unknown] {
            let held = decide(&first, take(2, state), later(29));
            assert!(matches!(held, Err(QueueRefusal::Held { .. })));
            let (next, _) = decide(&first, take(2, state), later(30)).unwrap();
            assert_eq!(next.token, first.token.next());
        }
        let (second, _) = decide(&first, take(2, ProcessState::Gone), later(1)).unwrap();
        assert!(check_token(&second, first.token).is_err());
        let renew = QueueInput::Renew {
            token: first.token,
            ttl: SignedDuration::from_secs(30),
        };
        assert!(decide(&second, renew, later(2)).is_err());
        let release = QueueInput::Release {
            token: second.token,
        };
        let (free, _) = decide(&second, release, later(2)).unwrap();
        assert_eq!((free.token, free.holder.clone()), (second.token, None));
        // A token that was given back does not count either.
        assert!(check_token(&free, second.token).is_err());
    }
}
