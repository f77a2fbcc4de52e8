//! Exit codes: the whole table.

/// Done.
pub const DONE: u8 = 0;
/// Refused, or failed as designed.
pub const REFUSED: u8 = 1;
/// The command line makes no sense.
pub const USAGE: u8 = 2;
/// What was asked for is not there.
pub const NOT_FOUND: u8 = 4;
/// Somebody else holds it.
pub const BUSY: u8 = 5;
/// A bug of weald's.
pub const BUG: u8 = 70;
