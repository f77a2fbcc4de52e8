//! What tests share: a hermetic environment around the binary, a clock and a process table that tests turn by hand,
//! the conformance suite that every store has to pass, a scripted agent, real agents and a model that is none,
//! the official SDKs of MCP, programs on a terminal.

mod agent;
mod conformance;
mod environment;
mod forged;
mod mcp_sdks;
mod real_agents;
mod replay;
mod scripted_model;
mod steps;
pub mod storm;
mod terminal;

/// A Python program that tries facilities of the system: a line for each, its name, a tab, and `works` or why not.
pub const FACILITIES: &str = include_str!("facilities.py");

pub use conformance::{CASES, Case};
pub use environment::{Answer, FORMATS, TestEnv, full_scale, skipped};
pub use forged::{FakeClock, FakeProcesses};
pub use mcp_sdks::{McpSdk, python_tool};
pub use real_agents::RealAgents;
pub use replay::assert_log_explains_state;
pub use scripted_model::{Gate, Outage, Request, Scenario, ScriptedModel, Turn};
pub use steps::STEPS;
pub use terminal::{OnTerminal, Watcher};
