//! A crash storm: processes of weald are killed at every labelled step and at random moments, and nothing may be lost.
//!
//! A [`World`] is a repository with work in it of every kind, and a ledger of all of that. After kills one repair must
//! mend everything, a second must find nothing, and every commit and file of the ledger must be somewhere: at its
//! place, in the trash, on the target or in the vault. Whatever is not so panics, and the world stays on disk.

mod labels;
mod ledger;
mod random;
mod world;

pub use labels::{kill_at, kinds_of};
pub use random::{RandomKills, Tally};
pub use world::World;
