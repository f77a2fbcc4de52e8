//! Whether the user's key signed what landed.

use serde::{Deserialize, Serialize};

/// What became of the signature that the user's configuration asks for. A landing without one needed none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Signature {
    /// What weald committed is signed.
    Signed {
        /// `openpgp`, `x509` or `ssh`.
        format: String,
    },
    /// It landed without one.
    Unsigned { why: String },
}

impl Signature {
    /// In words, for people.
    pub fn text(&self) -> String {
        match self {
            Self::Signed { format } => format!("signed ({format})"),
            Self::Unsigned { why } => format!("not signed: {why}"),
        }
    }
}
