//! The Model Context Protocol on stdin and stdout: weald's commands as tools for agents.
//!
//! A tool is a thin call of an operation, or of a command: [`tool`] says what it is, `tools/` has one file a tool, [`weald`]
//! has it done in this process ([`host`]) or in another one ([`child`]; [`words`] makes its command line), [`caller`] says whose task and tree are meant, [`server`]
//! speaks the protocol in [`lines`]. The server keeps nothing between two calls but who it acts for; claims and default
//! trees are in the store, where every other process finds them.

mod answers;
mod arguments;
mod bounds;
mod caller;
mod child;
mod classroom;
mod hints;
mod host;
mod kept;
mod lines;
mod names;
mod prompts;
mod resources;
mod server;
mod tool;
mod tools;
mod weald;
mod words;

pub use host::Host;
#[cfg(any(test, fuzzing))]
pub use lines::fuzzing;
pub use server::serve;
pub use tool::Audience;
pub use weald::Weald;
