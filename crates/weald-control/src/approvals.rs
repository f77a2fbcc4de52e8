//! What a person approved of what the repository proposes. It lies in the private folder, word for word: an agent can't
//! write there, and no hash can be made to fit.

use std::io;
use std::path::PathBuf;

use weald_core::config::Config;
use weald_core::setup::{Approval, Proposal};

use crate::configuration::SHARED_FILE;
use crate::files;
use crate::place::Place;

/// Beside the private configuration.
const FILE: &str = "approved.json";

/// The largest one.
const LIMIT: u64 = 1 << 20;

/// Where it is.
pub fn approvals_file(place: &Place) -> PathBuf {
    place.private().join(FILE)
}

/// Everything that was approved.
pub fn approvals(place: &Place) -> io::Result<Vec<Approval>> {
    match files::read_small(&approvals_file(place), LIMIT)? {
        None => Ok(Vec::new()),
        Some(text) => Ok(serde_json::from_str(&text)?),
    }
}

/// The hosts that the repository wants its runs to reach, if there are any.
pub fn proposed_hosts(config: &Config) -> Option<Proposal> {
    let hosts = &config.proposed_hosts;
    (!hosts.is_empty()).then(|| Proposal {
        from: format!("{SHARED_FILE} sandbox.hosts"),
        commands: hosts.clone(),
    })
}
