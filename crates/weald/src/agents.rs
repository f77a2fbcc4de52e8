//! Agents as the commands share them: starting one with its supervisor, following it, and the supervisor's own life.

pub mod empty;
pub mod following;
pub mod launching;
pub mod life;
pub mod reporting;
