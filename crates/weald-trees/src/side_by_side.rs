//! Work on many items at once: a few at a time, each by itself.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many items are worked on at the same time, at most; fewer where there are fewer processors.
const AT_ONCE: usize = 8;

/// Works on items with a thread for each processor, each of which takes `portion` of them at a time. The answers keep their
/// order.
pub fn side_by_side<T: Sync, R: Send>(
    items: &[T],
    portion: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    in_threads(processors(), items, portion, work)
}

/// The same with twice as many threads, for work that waits for the disk as long as it computes.
pub fn waiting_side_by_side<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    in_threads(2 * processors(), items, 1, work)
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

fn in_threads<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    portion: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let portions: Vec<_> = items.chunks(portion).collect();
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(portion) = portions.get(place) else {
                return done;
            };
            done.push((place, portion.iter().map(&work).collect::<Vec<_>>()));
        }
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(AT_ONCE).min(portions.len()))
            .map(|_| scope.spawn(some))
            .collect();
        let mut done = some();
        for other in others {
            done.extend(
                other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        done
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().flat_map(|(_, answers)| answers).collect()
}
