//! Agents in their own full-screen interface: the supervisor holds the terminal, and people attach to it.
//!
//! The terminal is the run's, its master is here, and nobody inside reaches the socket: that lies in the agent's folder, which
//! every sandbox hides. What people see is drawn by the model of the terminal (weald-terminal), never passed through.
//! Messages stay in the inbox: typed into the interface they would mix with what a person types.

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use weald_core::agent::AgentId;
use weald_sandbox::{Invocation, Policy, Running, TerminalSize, launch_on_terminal};
use weald_terminal::{Host, Size, connect, listen};

use super::error::at;
use super::{AgentError, agent_folder};
use weald_control::place::Place;

/// Variables by which programs find out in which terminal they are: the one of whoever started the agent is not theirs.
const OTHER_TERMINALS: [&str; 16] = [
    "COLUMNS",
    "LINES",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "WINDOW",
    "WINDOWID",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TERM_SESSION_ID",
    "LC_TERMINAL",
    "LC_TERMINAL_VERSION",
    "VTE_VERSION",
    "KITTY_WINDOW_ID",
    "WEZTERM_PANE",
    "WT_SESSION",
];

/// Says inside what the model is: a terminal like xterm, in all colours.
pub(super) fn set_variables(environment: &mut Vec<(OsString, OsString)>) {
    let own = [("TERM", "xterm-256color"), ("COLORTERM", "truecolor")];
    environment.retain(|(name, _)| {
        let is = |other: &str| name == other;
        !OTHER_TERMINALS.into_iter().any(is) && !own.into_iter().any(|(own, _)| is(own))
    });
    environment.extend(own.map(|(name, value)| (name.into(), value.into())));
}

/// Starts an agent on a terminal of its own, with the socket for viewers in its folder.
pub(super) fn launch(
    policy: Option<&Policy>,
    invocation: Invocation,
    size: Size,
    folder: &Path,
) -> Result<(Running, Option<Host>), AgentError> {
    let size = size.bounded();
    // Before the agent: whoever sees it running can attach.
    let listener = listen(folder).map_err(at(folder))?;
    let (running, master) = launch_on_terminal(
        policy,
        invocation,
        TerminalSize {
            columns: size.columns,
            rows: size.rows,
        },
    )?;
    let host = Host::new(master, listener, size).map_err(at(folder))?;
    Ok((running, Some(host)))
}

/// Connects to the terminal of an agent that runs.
pub fn attach(place: &Place, id: AgentId) -> io::Result<UnixStream> {
    connect(&agent_folder(place, id))
}
