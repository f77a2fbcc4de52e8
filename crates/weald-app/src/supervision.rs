//! The life of an agent: started with its supervisor, watched, followed, and what comes of its work.

mod empty;
mod following;
mod guest;
mod launching;
mod life;
mod reporting;
mod tail;

pub use following::follow;
pub use guest::Guest;
pub use launching::{SUPERVISOR_LOG, await_begin, enter, launch, put_back, start_in_main};
pub use life::live;
pub use tail::Tail;
