//! What weald puts into other programs and takes from them: `install` writes the configuration of clients and of git,
//! `sources` speaks to the tracker that tasks come from.

mod install;
mod sources;

pub use install::{
    AppArmorProfile, ChangedConfig, Client, Direction, EditError, FileOutcome, GitLink, Homes,
    InstallError, Installation, Kept, KeptBecause,
};
pub use sources::{Source, SourceError, UpdateError, follow_for_tracker, has_failed_updates};
