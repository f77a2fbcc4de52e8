//! What the radar remembers between two looks: a derived file. A broken one counts as empty, and only exact keys count.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use weald_core::id::TreeId;

use super::PathConflict;
use weald_control::files;

/// The largest file that is read again.
const LIMIT: u64 = 32 << 20;

/// How many pairs are remembered besides those of the last look.
const PAIRS: usize = 5_000;

/// How many conflicts are known to have been told.
const TOLD: usize = 5_000;

/// What was found out before.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Memory {
    /// Which repository the states are in.
    #[serde(default)]
    pub stamp: String,
    /// How often somebody looked.
    #[serde(default)]
    pub round: u64,
    #[serde(default)]
    pub states: BTreeMap<TreeId, State>,
    /// What merging came to.
    #[serde(default)]
    pub pairs: BTreeMap<String, Known>,
    /// Conflicts that somebody was told of.
    #[serde(default)]
    pub told: Vec<String>,
}

/// What a tree held: its HEAD, and what it would commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub head: String,
    /// The git tree of HEAD with everything that is not committed; `None` if there is nothing.
    #[serde(default)]
    pub work: Option<String>,
    /// The commit that stands for it all; HEAD itself if there is nothing else.
    pub commit: String,
    /// Files that were too large to be looked at.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// What times and sizes came to; `None` if that was not certain.
    #[serde(default)]
    pub fingerprint: Option<u64>,
    #[serde(default)]
    pub ignored: Vec<String>,
}

/// What merging a pair came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    /// In which round it was last asked for.
    #[serde(default)]
    pub round: u64,
    /// What conflicts; nothing if it merges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<PathConflict>,
    /// Whether uncommitted work takes part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncommitted: bool,
}

impl Memory {
    pub fn load(path: &Path) -> Self {
        let text = files::read_small(path, LIMIT).ok().flatten();
        text.and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    /// Replaces the file. One that can't be written costs time, nothing else.
    pub fn save(&mut self, path: &Path) {
        let round = self.round;
        let older = |known: &Known| known.round < round;
        let mut rounds: Vec<u64> = self
            .pairs
            .values()
            .filter(|known| older(known))
            .map(|known| known.round)
            .collect();
        if rounds.len() > PAIRS {
            rounds.sort_unstable();
            let oldest = rounds[rounds.len() - PAIRS];
            self.pairs.retain(|_, known| known.round > oldest);
        }
        let many = self.told.len().saturating_sub(TOLD);
        self.told.drain(..many);
        let _ = files::replace(path, &serde_json::to_string(self).unwrap_or_default());
    }
}
