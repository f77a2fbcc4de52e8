//! How a run reaches weald while it works. What answers it is the broker, which is built on top of this crate: whoever
//! starts a supervisor hands it in.

use std::io;
use std::path::Path;

use super::Call;
use crate::authority::Authority;
pub use crate::environment::{BROKER_PATH, BROKER_SECRET};
use crate::{Failure, Ground, LandWish, RunRequest, Trees};

/// Opens a window for a run.
pub trait Windows: Sync {
    /// One that is the run's alone.
    fn open(&self, trees: &Trees<'_>) -> Result<Box<dyn Window>, Failure>;
}

/// Open until it is dropped.
pub trait Window {
    /// The run's folder: what lies in it the run can read.
    fn folder(&self) -> &Path;

    /// Lets a run reach it, and find `weald` to do so.
    fn grant(&self, request: &mut RunRequest);

    /// Answers the run while `work` goes on. The mandate ends with it: what the run asked to land and is not being moved
    /// yet does not land. The answer is the newest wish of a run that may only wish.
    fn serve_while(
        &self,
        call: &Call<'_>,
        ground: &Ground,
        trees: &Trees<'_>,
        authority: Authority,
        work: &mut dyn FnMut(),
    ) -> io::Result<Option<LandWish>>;
}
