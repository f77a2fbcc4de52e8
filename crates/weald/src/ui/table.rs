//! Tables: aligned columns, the last one cut to the width, no lines.

use std::io::{self, Write};

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{HEADING, Out, line_width, paint};

/// The widest column but the last.
const WIDEST: usize = 36;

/// The narrowest that a column gets, so that something of it can be read.
const NARROWEST: usize = 7;

/// What the last column gets before others give way.
const LAST: usize = 20;

/// A table in the making.
pub struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<(String, Style)>>,
}

impl Table {
    /// A table with these column heads.
    pub fn new(heads: &[&'static str]) -> Self {
        Self {
            heads: heads.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row: text and style a cell.
    pub fn row(&mut self, cells: Vec<(String, Style)>) {
        debug_assert_eq!(cells.len(), self.heads.len());
        let clean =
            |(text, style): (String, Style)| (text.replace(|c: char| c.is_control(), " "), style);
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    pub fn print(&self, out: &mut Out) -> io::Result<()> {
        // At once: a thousand lines are a thousand system calls otherwise.
        out.write_all(self.lines(line_width()).as_bytes())
    }

    /// The widths of all columns but the last, and the room for that one. Where a line does not fit, the widest give way.
    fn widths(&self, whole: Option<usize>) -> (Vec<usize>, usize) {
        let last = self.heads.len() - 1;
        let limit = whole.map_or(usize::MAX, |_| WIDEST);
        let widest = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].0.width());
            cells.chain([self.heads[column].width()]).max().unwrap_or(0)
        };
        let mut widths: Vec<_> = (0..last).map(|column| widest(column).min(limit)).collect();
        let used = |widths: &[usize]| widths.iter().map(|width| width + 2).sum::<usize>();
        let Some(whole) = whole else {
            return (widths, usize::MAX);
        };
        let wanted = widest(last).min(LAST);
        while used(&widths) + wanted > whole {
            match widths.iter_mut().max() {
                Some(width) if *width > NARROWEST => *width -= 1,
                _ => break,
            }
        }
        let room = whole.saturating_sub(used(&widths)).max(NARROWEST);
        (widths, room)
    }

    fn lines(&self, whole: Option<usize>) -> String {
        let (widths, room) = self.widths(whole);
        let heads = self.heads.iter();
        let heads = heads.map(|head| ((*head).to_owned(), HEADING)).collect();
        let mut lines = String::new();
        for row in std::iter::once(&heads).chain(&self.rows) {
            for (column, (text, style)) in row.iter().enumerate() {
                let width = widths.get(column).copied();
                let room = width.unwrap_or(room);
                let text = match self.heads[column] {
                    // The end of a path tells it from others.
                    "PATH" => cut_start(text, room),
                    _ => cut(text, room),
                };
                let pad = width.map_or(0, |width| width + 2 - text.width());
                lines.push_str(&format!("{}{:pad$}", paint(*style, text), ""));
            }
            lines.push('\n');
        }
        lines
    }
}

/// The end of a text that fits, with a mark if there was more.
fn cut_start(text: &str, room: usize) -> String {
    let backwards = |text: &str| text.chars().rev().collect::<String>();
    backwards(&cut(&backwards(text), room))
}

/// The start of a text that fits, with a mark if there was more.
pub(super) fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > room {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_a_narrow_terminal_and_paths_keep_their_end() {
        let mut table = Table::new(&["NAME", "STATUS", "DIRTY", "TASK", "AGE", "BRANCH", "PATH"]);
        let name = "a-rather-long-name-of-a-worktree";
        let cells = [
            name,
            "active, running",
            "clean",
            "#12",
            "3h",
            "wt/a-rather-long-name",
            "/home/somebody/code/app.weald/a-rather-long-name-of-a-worktree",
        ];
        let row = cells.map(|cell| (cell.to_owned(), Style::new()));
        table.row(row.to_vec());
        for whole in [60, 80, 100] {
            let shown = anstream::adapter::strip_str(&table.lines(Some(whole))).to_string();
            for line in shown.lines() {
                assert!(line.width() <= whole, "{whole}: {line}");
            }
            assert!(shown.trim_end().ends_with("worktree"), "{shown}");
            assert!(!shown.contains("/home"), "{shown}");
        }
        let whole = anstream::adapter::strip_str(&table.lines(None)).to_string();
        assert!(cells.iter().all(|cell| whole.contains(cell)), "{whole}");
    }

    #[test]
    fn cutting_counts_columns_not_bytes() {
        assert_eq!(cut("short", 10), "short");
        assert_eq!(cut("a long subject", 7), "a long…");
        assert_eq!(cut("日本語のタスク", 7), "日本語…");
    }
}
