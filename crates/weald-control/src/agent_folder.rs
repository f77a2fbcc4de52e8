//! The folder that each agent has in the private one: its output, its activity.

use std::path::PathBuf;

use weald_core::agent::AgentId;

use crate::place::Place;

/// The log's name in an agent's folder; the one before it has `.1` behind.
pub const LOG_FILE: &str = "output.log";

/// Where an agent's output and activity are.
pub fn agent_folder(place: &Place, id: AgentId) -> PathBuf {
    agents_folder(place).join(id.to_string())
}

/// The folder that those are in.
pub fn agents_folder(place: &Place) -> PathBuf {
    place.private().join("agents")
}
