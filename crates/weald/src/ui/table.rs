//! Tables: aligned columns, the last one cut to the width, no lines.

use std::io::{self, Write};

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{HEADING, Out, paint, width};

/// The widest column but the last.
const WIDEST: usize = 36;

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

    /// Prints it.
    pub fn print(&self, out: &mut Out) -> io::Result<()> {
        let last = self.heads.len() - 1;
        let whole = width();
        let limit = whole.map_or(usize::MAX, |_| WIDEST);
        let widest = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].0.width());
            cells
                .chain([self.heads[column].width()])
                .max()
                .unwrap_or(0)
                .min(limit)
        };
        let widths: Vec<_> = (0..last).map(widest).collect();
        let used: usize = widths.iter().map(|width| width + 2).sum();
        let room = whole.map_or(usize::MAX, |whole| whole.saturating_sub(used).max(10));
        let heads = self
            .heads
            .iter()
            .map(|head| ((*head).to_owned(), HEADING))
            .collect();
        let mut lines = String::new();
        for row in std::iter::once(&heads).chain(&self.rows) {
            for (column, (text, style)) in row.iter().enumerate() {
                let (text, pad) = match widths.get(column) {
                    Some(width) => {
                        let text = cut(text, *width);
                        let pad = width + 2 - text.width();
                        (text, pad)
                    }
                    None => (cut(text, room), 0),
                };
                lines.push_str(&format!("{}{:pad$}", paint(*style, text), ""));
            }
            lines.push('\n');
        }
        // At once: a thousand lines are a thousand system calls otherwise.
        out.write_all(lines.as_bytes())
    }
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
    fn cutting_counts_columns_not_bytes() {
        assert_eq!(cut("short", 10), "short");
        assert_eq!(cut("a long subject", 7), "a long…");
        assert_eq!(cut("日本語のタスク", 7), "日本語…");
    }
}
