//! Keeps a process tree in its directory, by the kernel.
//!
//! [`Policy`] says what a run may do; [`launch`] starts it. The work is done by a helper, which is the calling binary
//! itself, started again: a fresh process with one thread can enter namespaces, prepare its view of the file system and
//! confine itself before it becomes the command. Whatever can't be enforced as asked is an error before anything runs.
//!
//! Code map: `launcher` and `running` are the outside, `handover` what they give the helper; `availability` what this machine gives; `init` the helper, with `namespaces`, `view` (mounts), `landlock`, `seccomp`;
//! `interrupts` the signals for it; `orders` orders to everybody in a run; `ending` and `cgroup` its end where no namespace does it; `sockets` the connections the launcher makes for the inside, `gateway` those to hosts that are listed by name, `broker_socket` the only one at level landlock; `home` the user's home with its layer, `listing` what is hidden elsewhere, `folders` what stands in for a home at level landlock;
//! `terminal` a terminal of the command's own; `temporary` that of temporary files where there is no private /tmp; `deletion` how folders go that runs filled; `sys` the
//! system calls, and the only place with `unsafe`.

mod availability;
mod broker_socket;
mod cgroup;
mod connector;
mod deletion;
mod devices;
mod ending;
mod error;
mod folders;
mod gateway;
mod handover;
mod home;
mod init;
mod interrupts;
mod landlock;
mod launcher;
mod listing;
mod mounted;
mod namespaces;
mod orders;
mod output;
mod policy;
mod running;
mod seccomp;
mod set_id;
mod sockets;
mod sys;
mod temporary;
mod terminal;
mod view;

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use gateway::fuzzing;

pub use availability::{require_level, strongest_level};
pub use broker_socket::broker_connection;
pub use deletion::delete_folder;
pub use ending::Ended;
pub use error::SandboxError;
pub use gateway::{Refusal, Refusals};
pub use handover::INIT_ARGUMENT;
pub use home::mount_below_home;
pub use init::run_if_init;
pub use interrupts::{Cancel, InterruptsIgnored, catch_interrupts, end_with_parent, interrupted};
pub use launcher::{launch, launch_on_terminal, launch_unconfined};
pub use orders::Order;
pub use output::{Budget, pass_on};
pub use policy::{Host, Level, Limits, Network, Policy, Revealed, Simulated};
pub use running::{Invocation, Running, keep_descriptors, leave_stops_to_the_command};
pub use set_id::strip_set_id;
pub use sys::{end_with_starter, home_of_user, landlock_abi, shared_extents};
pub use terminal::TerminalSize;
