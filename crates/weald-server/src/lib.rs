//! What answers others.
//!
//! Code map: [`broker`] serves the run in one tree over a socket that this run alone reaches; [`mcp`] serves an agent on
//! stdin and stdout. The broker has threads and blocking calls only: whoever watches over an agent has to stay small.

pub mod broker;
mod failures;
pub mod mcp;

/// What the targets in `fuzz/` call.
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::broker::fuzzing::broker_lines;
    pub use crate::mcp::fuzzing::mcp_lines;
}
