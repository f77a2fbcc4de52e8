//! What of a caller's own flags and variables would guard less than the files do.
//!
//! Only asked about agents: whatever a person says counts.

use weald_core::config::{KEYS, first_loosened, names_guard, variable_of};

use crate::configuration::{ConfigFileError, Sources, load_config};
use crate::place::Place;

/// What would guard less than the files do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loosening {
    pub variables: Vec<String>,
    /// Keys given as flags.
    pub flags: Vec<String>,
}

/// Finds what would loosen, each taken alone.
pub fn loosening(place: &Place, sources: &Sources) -> Result<Loosening, ConfigFileError> {
    let keys = KEYS.iter().filter(|key| names_guard(key.name));
    let guards: Vec<String> = keys.filter_map(variable_of).collect();
    let variables = sources.variables.iter();
    let variables: Vec<_> = variables
        .filter(|(name, _)| guards.contains(name))
        .cloned()
        .collect();
    let flags = sources.flags.iter();
    let flags: Vec<_> = flags.filter(|(key, _)| names_guard(key)).cloned().collect();
    let mut found = Loosening::default();
    if variables.is_empty() && flags.is_empty() {
        return Ok(found);
    }
    let files = Sources {
        user_file: sources.user_file.clone(),
        ..Sources::default()
    };
    let before = load_config(place, &files)?.config;
    let loosens = |alone: &Sources| -> Result<bool, ConfigFileError> {
        let now = load_config(place, alone)?.config;
        Ok(first_loosened(&before, &now).is_some())
    };
    for variable in variables {
        let name = variable.0.clone();
        let alone = Sources {
            variables: vec![variable],
            ..files.clone()
        };
        if loosens(&alone)? {
            found.variables.push(name);
        }
    }
    for flag in flags {
        let key = flag.0.clone();
        let alone = Sources {
            flags: vec![flag],
            ..files.clone()
        };
        if loosens(&alone)? {
            found.flags.push(key);
        }
    }
    Ok(found)
}
