//! What tests share: a hermetic environment around the binary, a clock and a process table that tests turn by hand,
//! and the conformance suite that every store has to pass.

mod conformance;
mod environment;
mod forged;
mod replay;

pub use conformance::{CASES, Case};
pub use environment::{Answer, TestEnv, full_scale};
pub use forged::{FakeClock, FakeProcesses};
pub use replay::assert_log_explains_state;
