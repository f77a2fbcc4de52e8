//! Tables: aligned columns without lines. On a terminal they fit its width; programs get every value whole.

use std::io::{self, Write};

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{HEADING, Out, line_width, paint};

/// The narrowest that a column gets where nothing else helps.
const NARROWEST: usize = 4;

/// Columns that are left out before others become too narrow to read, the first one first.
const SPARE: [&str; 13] = [
    "BRANCH", "AGE", "SIZE", "DISK", "USED", "IDLE", "AFTER", "OWNER", "EXIT", "FILES", "TOKENS",
    "DRIVER", "REPORT",
];

/// What stays of a value that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeps {
    /// All of it: somebody types an id, and half a number is another number.
    Whole,
    Start,
    /// The end tells a path from others.
    End,
    /// Names often differ only at their ends.
    BothEnds,
    /// As many items of a list as fit.
    Items,
}

/// What a column keeps, and the width below which it says too little. The same head means the same in every table.
fn kind(head: &str) -> (Keeps, usize) {
    match head {
        "" | "ID" | "EVENT" | "LANDING" | "AGENT" | "TASK" | "KEY" | "PRI" | "AGE" | "DAY"
        | "SEEN" | "UNUSED" | "USED" | "IDLE" | "TIME" | "SIZE" | "ALONE" | "DISK" | "DIRTY"
        | "IN" | "OUT" | "COST" | "TESTS" | "EXIT" | "FILES" | "LINES" | "TOKENS" => {
            (Keeps::Whole, 0)
        }
        "NAME" => (Keeps::BothEnds, 18),
        "WORKTREE" => (Keeps::BothEnds, 14),
        "BRANCH" | "TARGET" | "OWNER" | "SESSION" | "MODEL" => (Keeps::BothEnds, 8),
        "PATH" => (Keeps::End, 14),
        "ORIGIN" => (Keeps::End, 8),
        "AFTER" | "HOLDS" => (Keeps::Items, 8),
        "STATUS" => (Keeps::Start, 12),
        "SUBJECT" => (Keeps::Start, 20),
        "STATE" | "PHASE" | "DRIVER" | "END" | "CHECKED" => (Keeps::Start, 7),
        _ => (Keeps::Start, 12),
    }
}

/// A table in the making.
pub struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<(String, Style)>>,
    /// What stands before each line, and between columns.
    indent: usize,
    gap: usize,
    has_heads: bool,
}

impl Table {
    /// A table with these column heads.
    pub fn new(heads: &[&'static str]) -> Self {
        Self {
            heads: heads.to_vec(),
            rows: Vec::new(),
            indent: 0,
            gap: 2,
            has_heads: true,
        }
    }

    /// The lines below a title: indented, the heads say only how each column is cut.
    pub fn below_title(heads: &[&'static str]) -> Self {
        Self {
            indent: 2,
            gap: 1,
            has_heads: false,
            ..Self::new(heads)
        }
    }

    /// Adds a row: text and style of each cell.
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

    /// The columns that fit into a line, each with its width.
    fn columns(&self, whole: Option<usize>) -> Vec<(usize, usize)> {
        let widest = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].0.width());
            let head = Some(self.heads[column].width()).filter(|_| self.has_heads);
            cells.chain(head).max().unwrap_or(0)
        };
        let mut columns: Vec<_> = (0..self.heads.len()).map(|at| (at, widest(at))).collect();
        let Some(whole) = whole else {
            return columns;
        };
        let is_empty = |column: usize| self.rows.iter().all(|row| row[column].0.is_empty());
        if !self.shrink(&mut columns, whole, |_| usize::MAX) {
            columns.retain(|(at, _)| *at == 0 || !is_empty(*at));
        }
        let spare = SPARE.iter().filter_map(|spare| {
            let mut heads = self.heads.iter();
            heads.position(|head| head == spare)
        });
        let mut spare = spare.filter(|column| *column > 0);
        loop {
            let mut fitted = columns.clone();
            if self.shrink(&mut fitted, whole, |head| kind(head).1) {
                return fitted;
            }
            let Some(column) = spare.next() else { break };
            columns.retain(|(at, _)| *at != column);
        }
        self.shrink(&mut columns, whole, |_| NARROWEST);
        columns
    }

    /// Takes from the widest columns, down to what each needs at least, until a line fits. False if it does not.
    fn shrink(
        &self,
        columns: &mut [(usize, usize)],
        whole: usize,
        least: impl Fn(&str) -> usize,
    ) -> bool {
        let gaps = self.indent + self.gap * columns.len().saturating_sub(1);
        loop {
            let used = gaps + columns.iter().map(|(_, width)| width).sum::<usize>();
            if used <= whole {
                return true;
            }
            let giving = columns.iter_mut().filter(|(at, width)| {
                let head = self.heads[*at];
                kind(head).0 != Keeps::Whole && *width > least(head)
            });
            match giving.max_by_key(|(_, width)| *width) {
                Some((_, width)) => *width -= 1,
                None => return false,
            }
        }
    }

    fn lines(&self, whole: Option<usize>) -> String {
        let columns = self.columns(whole);
        let heads = self.heads.iter();
        let heads: Vec<_> = heads.map(|head| ((*head).to_owned(), HEADING)).collect();
        let heads = Some(&heads).filter(|_| self.has_heads);
        let mut lines = String::new();
        for row in heads.into_iter().chain(&self.rows) {
            // No spaces at the end of a line: they are added before the next text.
            let mut before = self.indent;
            for (column, width) in &columns {
                let (text, style) = &row[*column];
                let text = cut_as(kind(self.heads[*column]).0, text, *width);
                let taken = text.width();
                if taken > 0 {
                    lines.push_str(&format!("{:before$}{}", "", paint(*style, text)));
                    before = 0;
                }
                before += width.saturating_sub(taken) + self.gap;
            }
            lines.push('\n');
        }
        lines
    }
}

fn cut_as(keeps: Keeps, text: &str, room: usize) -> String {
    match keeps {
        Keeps::Whole => text.to_owned(),
        Keeps::Start => cut(text, room),
        Keeps::End => cut_path(text, room),
        Keeps::BothEnds => cut_middle(text, room),
        Keeps::Items => cut_items(text, room),
    }
}

/// The end of a path that fits, whole folders if it can be, with a mark if there was more.
pub(super) fn cut_path(path: &str, room: usize) -> String {
    if path.width() <= room {
        return path.to_owned();
    }
    let ends = path.match_indices('/').map(|(at, _)| &path[at..]);
    let mut ends = ends.skip(1).filter(|end| end.len() > 1);
    match ends.find(|end| end.width() < room) {
        Some(end) => format!("…{end}"),
        None => format!("…{}", end_of(path, room.saturating_sub(1))),
    }
}

/// The start and the end of a name that fit, with a mark between them if there was more.
fn cut_middle(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let end = end_of(text, room.saturating_sub(1) / 2);
    let start = cut(text, room - end.width());
    format!("{start}{end}")
}

/// The items of a list that fit, with a mark if there were more.
fn cut_items(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let ends = text.match_indices(',').map(|(at, _)| &text[..=at]);
    let mut fitting = ends.filter(|start| start.width() < room);
    format!("{}…", fitting.next_back().unwrap_or_default())
}

/// As much of the end of a text as fits.
fn end_of(text: &str, room: usize) -> &str {
    let starts = text.char_indices().map(|(at, _)| &text[at..]);
    let mut ends = starts.skip_while(|end| end.width() > room);
    ends.next().unwrap_or_default()
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

    fn shown(table: &Table, whole: Option<usize>) -> String {
        anstream::adapter::strip_str(&table.lines(whole)).to_string()
    }

    #[test]
    fn u11_a_table_fits_a_narrow_terminal_and_paths_keep_their_end() {
        let mut table = Table::new(&["NAME", "STATUS", "DIRTY", "TASK", "AGE", "BRANCH", "PATH"]);
        let name = "a-rather-long-name-of-a-worktree";
        let cells = [
            name,
            "active, running",
            "clean",
            "#12",
            "3h",
            "wt/a-rather-long-name",
            "/home/alice/code/app.weald/a-rather-long-name-of-a-worktree",
        ];
        let row = cells.map(|cell| (cell.to_owned(), Style::new()));
        table.row(row.to_vec());
        for whole in [60, 80, 100] {
            let shown = shown(&table, Some(whole));
            for line in shown.lines() {
                assert!(line.width() <= whole, "{whole}: {line}");
            }
            assert!(shown.trim_end().ends_with("worktree"), "{shown}");
            assert!(!shown.contains("/home"), "{shown}");
            assert!(shown.contains(" #12 "), "{shown}");
        }
        for whole in [None, Some(200)] {
            let shown = shown(&table, whole);
            assert!(cells.iter().all(|cell| shown.contains(cell)), "{shown}");
        }
    }

    #[test]
    fn u11_a_column_without_values_makes_room_first() {
        let mut table = Table::new(&["ID", "STATUS", "PRI", "OWNER", "WORKTREE", "SUBJECT"]);
        let subject = "Rotate the signing keys of the release";
        let row = ["7", "pending", "P1", "", "", subject];
        table.row(row.map(|cell| (cell.to_owned(), Style::new())).to_vec());
        let (narrow, wide) = (shown(&table, Some(60)), shown(&table, Some(100)));
        assert!(narrow.contains(subject), "{narrow}");
        assert!(!narrow.contains("OWNER") && wide.contains("OWNER  WORKTREE"));
        assert!(!wide.contains(" \n"), "no spaces at the end of a line");
    }

    #[test]
    fn cutting_counts_columns_not_bytes() {
        assert_eq!(cut("short", 10), "short");
        assert_eq!(cut("a long subject", 7), "a long…");
        assert_eq!(cut("日本語のタスク", 7), "日本語…");
        assert_eq!(cut_path("/a/app.weald/fix", 16), "/a/app.weald/fix");
        assert_eq!(cut_path("/a/app.weald/fix", 15), "…/app.weald/fix");
        assert_eq!(cut_path("/a/app.weald/fix", 9), "…/fix");
        assert_eq!(cut_path("/app.weald/日本語", 6), "…本語");
        assert_eq!(cut_middle("fix-the-login-a", 9), "fix-…in-a");
        assert_eq!(cut_items("12,13,14", 6), "12,…");
    }
}
