//! What answers others.
//!
//! Code map: [`broker`] serves the run in one tree over a socket that this run alone reaches. Threads and blocking calls
//! only: whoever watches over an agent has to stay small.

pub mod broker;
