//! A terminal that a program runs in, and that any number of people attach to.
//!
//! [`Host`] owns the pseudo-terminal: it reads everything the program writes, whether or not anybody watches, and keeps
//! a full model of the screen ([`Screen`]). The model answers what programs ask their terminal (device attributes, cursor
//! position, colours, keyboard protocol), so a program never waits for a viewer. A viewer gets drawings of the model and
//! nothing that the program wrote itself: no clipboard, no title, no control string can reach the viewer's terminal.
//!
//! ```text
//!  program ──▶ pseudo-terminal ──▶ Host: Screen ──▶ Picture ──▶ socket ──▶ view ──▶ a person's terminal
//!          ◀──                 ◀── keys ◀────────────────────── socket ◀──      ◀── keys
//! ```
//!
//! `wire.rs` has the format of the socket: a browser's terminal is one more viewer.

mod device;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod guarded;
mod host;
mod lent;
mod picture;
mod screen;
mod socket;
mod viewer;
pub mod wire;

pub use device::{Pair, set_size, size_of};
pub use host::{Handle, Host};
pub use lent::Lent;
pub use picture::Picture;
pub use screen::{Screen, Size};
pub use socket::{connect, listen};
pub use viewer::{Left, view};
