//! The broker: weald's commands from inside a sandbox, where the control plane is hidden.
//!
//! One a run. Whoever can talk to it is that run; a secret is asked for besides. A request is one line of JSON, its answer
//! another. What a run may ask is decided in `authority` (pure), done in `desk`. Whoever asks is hostile until shown
//! otherwise: lines, answers, connections, time and writes are bounded, and nobody is waited for longer than that.
//!
//! Code map: `protocol` are the words of both ends, `authority` says what is allowed, `desk` does it, `limits` are the
//! buckets, `line` moves bytes under a deadline, `server` has the threads, `window` opens them for weald-app, `client` is the end inside.

mod authority;
mod client;
mod desk;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod limits;
mod line;
mod protocol;
mod server;
mod window;

pub use client::{Client, ClientError};
pub(crate) use limits::CONNECTIONS;
pub use protocol::{Fault, Reply, Request};
pub use window::Brokers;
