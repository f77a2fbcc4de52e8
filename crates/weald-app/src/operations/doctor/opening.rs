//! Opening what may be broken. Whatever can't be opened is a finding, and the command goes on without it.

use std::sync::Arc;
use std::time::Duration;

use weald_core::store::StoreError;
use weald_git::DiscoverError;
use weald_store::{DATABASE_FILE, SqliteStore};

use crate::{
    Call, Code, ConfigFileError, Failure, Finding, Ground, LoadedConfig, Place, PlaceError,
    Standing, SystemClock, load_config,
};

/// How long a stopped process may keep doctor waiting.
const PATIENCE: Duration = Duration::from_secs(5);

/// What hint a lost database gets.
const REBUILD: &str =
    "to rebuild the records from their log, git and the worktrees: weald doctor --rebuild --fix";

/// A repository with whatever of it could be opened.
pub(super) struct Patient {
    pub place: Place,
    /// With its records, if they can be read.
    pub ground: Option<Ground>,
    /// What could not be opened.
    pub findings: Vec<Finding>,
    /// True when weald's own folders are where they should be: nothing is repaired otherwise.
    pub is_safe: bool,
    /// True when records and configuration are whole: what goes by them is not repaired otherwise.
    pub is_understood: bool,
    pub min_free: u64,
}

impl Patient {
    pub(super) fn find(call: &Call<'_>) -> Result<Self, Failure> {
        let (place, mut findings) = place(call)?;
        let is_safe = place.has_own_folders();
        let loaded = match load_config(&place, &call.sources()) {
            Ok(loaded) => {
                findings.extend(loaded.unreadable.as_ref().map(|why| {
                    let would = "fix it, then land the fix";
                    Finding::new(Code::ConfigSharedBroken, why, would)
                }));
                Some(loaded)
            }
            Err(error) => {
                findings.push(config_finding(&error));
                None
            }
        };
        let mut is_understood = loaded.is_some();
        let loaded = loaded.unwrap_or_else(LoadedConfig::defaults);
        let min_free = loaded.config.doctor_min_free.unwrap_or(0);
        let copy = is_safe.then(|| copy(call, &place)).flatten();
        // What the records of a copy name is another repository's: nothing of it is looked at or repaired.
        let is_safe = is_safe && copy.is_none();
        findings.extend(copy);
        let store = match is_safe {
            true => open(&place, &mut findings),
            false => None,
        };
        let before = findings.len();
        findings.extend(store.as_ref().and_then(damage));
        is_understood &= before == findings.len();
        let opened = store.map(|store| Ground::of_store(place.clone(), loaded, store));
        let ground = match opened {
            Some(Err(error)) => {
                let code = match error {
                    StoreError::Behind { .. } => Code::DatabaseBehind,
                    _ => Code::DatabaseBroken,
                };
                let what = error.to_string();
                findings.push(Finding::new(code, what, REBUILD));
                None
            }
            opened => opened.and_then(Result::ok),
        };
        Ok(Self {
            place,
            ground,
            findings,
            is_safe,
            is_understood,
            min_free,
        })
    }
}

/// Whether the repository is a copy of another one.
fn copy(call: &Call<'_>, place: &Place) -> Option<Finding> {
    let is_used = place.private().join(DATABASE_FILE).exists();
    let standing = is_used.then(|| place.standing(call.environment.state().as_deref()));
    let Some(Standing::Copy(copy)) = standing else {
        return None;
    };
    let would = "to make it a repository of its own: weald doctor --adopt";
    Some(Finding::new(Code::RepositoryCopy, copy.to_string(), would))
}

/// The repository, even if git would not take it for one.
fn place(call: &Call<'_>) -> Result<(Place, Vec<Finding>), Failure> {
    if call.is_confined() {
        return Ok((call.place()?, Vec::new()));
    }
    let (home, state) = (call.environment.home(), call.environment.state());
    let error = match Place::find(call.directory(), home.as_deref(), state.as_deref()) {
        Ok(place) => return Ok((place, Vec::new())),
        Err(error) => error,
    };
    let broken = match &error {
        PlaceError::Discover(
            DiscoverError::ForeignOwner { .. } | DiscoverError::Embedded { .. },
        )
        | PlaceError::ForeignState { .. }
        | PlaceError::LostTree { .. } => None,
        _ => Place::find_broken(call.directory()),
    };
    match (broken, &error) {
        (Some(place), PlaceError::LinkedState { .. }) => {
            let would = "check where it points; replace it with a real folder";
            let finding = Finding::new(Code::StateLinked, error.to_string(), would);
            Ok((place, vec![finding]))
        }
        (Some(place), _) => Ok((place, Vec::new())),
        (None, _) => Err(error.into()),
    }
}

fn config_finding(error: &ConfigFileError) -> Finding {
    let code = match error {
        ConfigFileError::Git(_) => Code::CheckFailed,
        _ => Code::ConfigBroken,
    };
    let what = format!("the configuration can't be read: {error}");
    let would = "fix that; until then worktrees are checked but not repaired";
    Finding::new(code, what, would)
}

/// The records. A database that is not there is only made where weald was never used.
fn open(place: &Place, findings: &mut Vec<Finding>) -> Option<SqliteStore> {
    let file = place.private().join(DATABASE_FILE);
    let mut note = |code, what: String, would: &str| {
        findings.push(Finding::new(code, what, would).at(&file));
    };
    if let Err(error) = place.require_registry(DATABASE_FILE) {
        note(Code::DatabaseMissing, error.to_string(), REBUILD);
        return None;
    }
    let clock = Arc::new(SystemClock);
    match SqliteStore::open_with_patience(place.private(), clock, PATIENCE) {
        Ok(store) => Some(store),
        Err(error) => {
            let what = error.to_string();
            match error {
                StoreError::NewerSchema { .. } => {
                    note(Code::DatabaseNewer, what, "update weald");
                }
                StoreError::Busy { .. } => {
                    let would = "look for a stopped weald: pgrep -a weald";
                    note(Code::DatabaseBusy, what, would);
                }
                StoreError::NetworkFileSystem { .. } => {
                    let would = "clone the repository to a local disk and work there";
                    note(Code::DatabaseBroken, what, would);
                }
                _ => {
                    let would = format!("keep a copy of it; {REBUILD}");
                    note(Code::DatabaseBroken, what, &would);
                }
            }
            None
        }
    }
}

/// Pages that can't be read.
fn damage(store: &SqliteStore) -> Option<Finding> {
    let problem = match store.problems() {
        Ok(problems) => problems.into_iter().next()?,
        Err(error) => error.to_string(),
    };
    let what = format!("the database is damaged: {}", problem.replace('\n', " "));
    let would = format!("keep a copy of it; {REBUILD}");
    Some(Finding::new(Code::DatabaseBroken, what, would))
}
