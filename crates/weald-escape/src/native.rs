//! Attempts that need more than a shell: tables of small functions, run by the helper binary.

use super::native_calls::CALLS;
use super::native_files::FILES;
use super::native_modes::MODES;
use super::native_network::NETWORK;
use super::native_shared::SHARED;
use super::native_tracing::TRACING;

/// The first argument that makes the binary try something.
pub const ATTEMPT_ARGUMENT: &str = "__sandbox-attempt";

/// Tries what the arguments say and ends with 0 if it worked; returns only if they say nothing of the kind.
pub fn run_if_attempt() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments
        .next()
        .is_none_or(|first| first != ATTEMPT_ARGUMENT)
    {
        return;
    }
    let name = arguments.next().unwrap_or_default();
    let found = FILES
        .iter()
        .chain(CALLS)
        .chain(MODES)
        .chain(TRACING)
        .chain(SHARED)
        .chain(NETWORK)
        .find(|(known, _)| name == **known);
    let worked = found.is_some_and(|(_, attempt)| attempt().is_ok());
    std::process::exit(if worked { 0 } else { 1 })
}
