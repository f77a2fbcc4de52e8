//! Configuration: one table of keys, layers on top of each other, every value with its origin.
//!
//! The table in [`settings`] is the single definition: types, defaults, documentation, variables. [`resolve`] lays the
//! layers; later wins. What the repository says (its file, and a profile chosen there) may tighten a guarded key and
//! never loosen it. Reading files and variables is the engine's job.

mod caps;
mod choices;
mod guards;
mod kinds;
mod profiles;
mod resolve;
mod settings;
mod values;

pub use choices::*;
pub use guards::{first_loosened, is_guard, names_guard};
pub use kinds::{Key, Kind, find_key, similar_keys, similar_section, variable_of};
pub use profiles::{PROFILES, profile_text};
pub use resolve::{Config, ConfigError, Ignored, Layer, Origin, resolve, strictest_values};
pub use settings::{FromValue, KEYS, Settings};
pub use values::{Value, check_value, from_text, parse_age, parse_duration, parse_size};
