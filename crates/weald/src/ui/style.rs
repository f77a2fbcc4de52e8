//! Colours. Everything is understandable without them.

use std::fmt;

use anstyle::{AnsiColor, Style};
use weald_core::task::TaskStatus;

/// Column heads and titles.
pub const HEADING: Style = Style::new().bold();
/// What matters most in a line.
pub const ACCENT: Style = AnsiColor::Cyan.on_default();
pub const DIM: Style = Style::new().dimmed();
/// `error:`
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
/// `warning:`
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Text in a style.
pub fn paint(style: Style, text: impl fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// The style of a status.
pub fn status_style(status: TaskStatus) -> Style {
    match status {
        TaskStatus::Pending => Style::new(),
        TaskStatus::InProgress => AnsiColor::Cyan.on_default(),
        TaskStatus::Completed => AnsiColor::Green.on_default(),
        TaskStatus::Failed | TaskStatus::NeedsMerge => AnsiColor::Red.on_default(),
        TaskStatus::Blocked => AnsiColor::Yellow.on_default(),
        TaskStatus::Cancelled => DIM,
    }
}
