//! Tasks for people who work on weald.
//!
//! `bench` measures, always against something in the same run; `tidy` reads the sources and says what breaks a house
//! rule. `dist` builds packages. The tidy test (`tests/tidy.rs`) fails on any finding. `measure` counts what the sources consist of. `faces`
//! prints who can set which field of an operation, `demo_svg` draws the demo. `storm` kills
//! processes of weald and looks for what was lost.

pub mod bench;
pub mod demo_svg;
pub mod dist;
pub mod faces;
pub mod measure;
pub mod promises;
pub mod storm;
pub mod tidy;
