//! Exit codes: the whole table.
//!
//! `weald run` exits with 126 without a sandbox and not with 6, because 6 could be the command's own code.

use weald_sandbox::Ended;

/// It did what was asked.
pub const DONE: u8 = 0;
/// Refused, or failed as designed.
pub const REFUSED: u8 = 1;
/// The command line makes no sense.
pub const USAGE: u8 = 2;
/// Two changes don't go together.
pub const CONFLICT: u8 = 3;
/// What was asked for is not there.
pub const NOT_FOUND: u8 = 4;
/// Somebody else holds it.
pub const BUSY: u8 = 5;
/// The sandbox can't be had as asked.
pub const NO_SANDBOX: u8 = 6;
/// A run took too long.
pub const TIMED_OUT: u8 = 124;
/// weald itself failed to run something.
pub const NOT_RUN: u8 = 125;
/// A command can't be executed, or its sandbox can't be had.
pub const NOT_EXECUTABLE: u8 = 126;
/// A command is not there.
pub const NO_COMMAND: u8 = 127;
/// Somebody interrupted it; 128 and the number of the signal.
pub const INTERRUPTED: u8 = 130;
/// A bug of weald's.
pub const BUG: u8 = 70;

/// The exit code of a command that ran: its own, or 128 and the signal that ended it.
pub fn of(ended: Ended) -> u8 {
    ended.code().map_or(TIMED_OUT, |code| code as u8)
}
