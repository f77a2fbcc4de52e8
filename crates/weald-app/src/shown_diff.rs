//! A diff as it is shown, and the person who reads it.

use serde::{Deserialize, Serialize};

use crate::ChangedFile;

/// Where a person reads a diff.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reader {
    /// Whether the answer goes to a terminal.
    pub is_terminal: bool,
    /// With colours, without, or as their configuration says.
    pub color: Option<bool>,
    /// The columns of the terminal.
    pub width: Option<usize>,
}

/// A list of files, or text that no terminal obeys.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShownDiff {
    /// Each with how it changed.
    pub files: Vec<ChangedFile>,
    /// Whether something was left out.
    pub truncated: bool,
    /// The patch or the numbers, if those were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether the text has colours.
    #[serde(skip)]
    pub is_colored: bool,
    /// The command that shows it page by page, if the reader wants one.
    #[serde(skip)]
    pub pager: Option<String>,
}
