//! A transcript for people: one block an entry, with the time since the agent's start before it.
//!
//! All of it is an agent's text, so each piece is made harmless for a terminal before weald's own colours join it. Long
//! results are cut to their first lines, or, where something failed, to their last.

use std::collections::HashMap;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use weald_control::agents::{Entry, Event};
use weald_core::Timestamp;

use crate::screen::clean;

/// How many lines of a result are shown.
const SHORT: usize = 5;

/// How many columns the time takes.
const MARGIN: usize = 9;

/// How many calls are remembered until their results come.
const CALLS: usize = 256;

/// The longest line of a result that is shown where no terminal says how long one may be.
const LONGEST: usize = 500;

/// How entries are shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Look {
    /// Columns of the terminal; absent for programs.
    pub width: Option<usize>,
    /// All lines of results and of what the agent was given.
    pub full: bool,
    /// With weald's own colours. They pass a [`Screen`](crate::screen::Screen) that takes them off where nobody sees any.
    pub colours: bool,
}

/// Shows the entries of one agent.
pub struct Telling {
    pub look: Look,
    started: Timestamp,
    /// Where it works: paths below are shown from there.
    tree: Option<String>,
    /// Calls without a result: what they do, and how deep their subagent is.
    calls: HashMap<String, (String, usize)>,
    /// The call that was shown last.
    last: String,
}

impl Telling {
    pub fn new(started: Timestamp, tree: Option<String>) -> Self {
        Self {
            look: Look::default(),
            started,
            tree,
            calls: HashMap::new(),
            last: String::new(),
        }
    }

    /// An entry as lines.
    pub fn told(&mut self, entry: &Entry) -> String {
        let mut block = Block {
            look: self.look,
            time: entry.at.map(|at| elapsed(self.started, at)),
            text: String::new(),
            depth: 0,
        };
        let shown = |text: &str| clean(&self.relative(text));
        match &entry.event {
            Event::Prompt { text } => {
                let text = shown(text);
                let count = text.trim().lines().count();
                match (self.look.full, count) {
                    (false, 2..) => {
                        let first = text.trim().lines().next().unwrap_or_default();
                        block.cut_line(DIM, &format!("< prompt: {first}"));
                        block.rest(&format!("… {} more lines", count - 1));
                    }
                    _ => block.lines(DIM, &format!("< prompt: {}", text.trim())),
                }
            }
            Event::Message { from, text } => {
                block.lines(BOLD, &format!("< {}: {}", shown(from), shown(text).trim()));
            }
            Event::Said { text, within } => {
                block.depth = self.depth(within.as_ref());
                block.lines("", shown(text).trim());
            }
            Event::Call {
                id,
                tool,
                detail,
                within,
            } => {
                block.depth = self.depth(within.as_ref());
                let detail = shown(detail);
                let mut lines = detail.trim().lines();
                let first = lines.next().unwrap_or_default();
                let more = if lines.next().is_some() { " …" } else { "" };
                let tool = shown(tool).replace('\n', " ");
                let what = match first {
                    "" => tool.clone(),
                    first => format!("{tool}: {first}{more}"),
                };
                match self.look.full {
                    true => block.lines(CYAN, &format!("> {tool}: {}", detail.trim())),
                    false => block.cut_line(CYAN, &format!("> {what}")),
                }
                if self.calls.len() >= CALLS {
                    self.calls.clear();
                }
                self.calls.insert(id.clone(), (what, block.depth));
                self.last.clone_from(id);
            }
            Event::Result { id, ok, code, text } => {
                let text = shown(text);
                let (what, depth) = self.calls.remove(id).unwrap_or_default();
                block.depth = depth + 1;
                if self.last != *id && !what.is_empty() {
                    block.cut_line(DIM, &format!("result of {what}"));
                } else {
                    block.time = None;
                }
                self.last.clear();
                block.result(*ok, *code, text.trim_end());
            }
            Event::Output { text } => block.lines(DIM, &format!("| {}", shown(text).trim_end())),
            Event::Ended { ok, text } => {
                let sign = if *ok { "ended" } else { "✗ ended" };
                let text = shown(text);
                let style = if *ok { "" } else { RED };
                block.lines(style, &format!("{sign}: {}", text.trim()));
            }
        }
        block.text
    }

    /// How deep in subagents an event is.
    fn depth(&self, within: Option<&String>) -> usize {
        let parent = within.map(|id| self.calls.get(id).map_or(0, |(_, depth)| *depth) + 1);
        parent.unwrap_or(0).min(4)
    }

    /// A text in which paths of the worktree begin there.
    fn relative(&self, text: &str) -> String {
        match &self.tree {
            Some(tree) => relative(text, tree),
            None => text.to_owned(),
        }
    }
}

const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const CYAN: &str = "\x1b[36m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// The lines of an entry.
struct Block {
    look: Look,
    /// Before its first line.
    time: Option<String>,
    text: String,
    depth: usize,
}

impl Block {
    /// Columns that are left of a terminal's.
    fn room(&self) -> Option<usize> {
        let used = MARGIN + 2 * self.depth;
        self.look
            .width
            .map(|width| width.saturating_sub(used).max(20))
    }

    fn put(&mut self, style: &str, line: &str) {
        let time = self.time.take().unwrap_or_default();
        let indent = "  ".repeat(self.depth);
        let head = format!("{time:>width$}  ", width = MARGIN - 2);
        let line = match self.look.colours {
            true if style.is_empty() => format!("{DIM}{head}{PLAIN}{indent}{line}"),
            true => format!("{DIM}{head}{PLAIN}{indent}{style}{line}{PLAIN}"),
            false => format!("{head}{indent}{line}"),
        };
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// One line, cut to the terminal.
    fn cut_line(&mut self, style: &str, line: &str) {
        let line = cut(line, self.room().unwrap_or(LONGEST));
        self.put(style, &line);
    }

    /// All lines, broken between words where a terminal ends.
    fn lines(&mut self, style: &str, text: &str) {
        for line in text.lines() {
            for part in broken(line, self.room()) {
                self.put(style, &part);
            }
        }
    }

    fn rest(&mut self, text: &str) {
        self.depth += 1;
        self.put(DIM, text);
        self.depth -= 1;
    }

    fn result(&mut self, ok: bool, code: Option<i64>, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        // A line that says how many are left out needs one itself.
        let fits = self.look.full || lines.len() <= SHORT + 1;
        let count = if fits { lines.len() } else { SHORT };
        let left = lines.len() - count;
        let shown = match ok {
            true => &lines[..count],
            false => &lines[left..],
        };
        if left > 0 && !ok {
            self.put(DIM, &format!("… {left} lines before"));
        }
        for line in shown {
            match self.look.full {
                true => self.lines(DIM, line),
                false => self.cut_line(DIM, line),
            }
        }
        if left > 0 && ok {
            self.put(DIM, &format!("… {left} more lines"));
        }
        match (ok, code) {
            (false, Some(code)) => self.put(RED, &format!("✗ exit {code}")),
            (false, None) => self.put(RED, "✗ failed"),
            (true, _) if lines.is_empty() => self.put(DIM, "✓"),
            (true, _) => {}
        }
    }
}

/// The time since the start: `0:07`, `12:00`, `1:02:03`.
fn elapsed(started: Timestamp, at: Timestamp) -> String {
    let seconds = at.duration_since(started).as_secs().max(0);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// As much of a line as has room.
fn cut(line: &str, room: usize) -> String {
    let line = line.replace('\t', "    ");
    if line.width() <= room {
        return line;
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= room
    };
    format!("{}…", line.chars().take_while(fits).collect::<String>())
}

/// A line in parts that have room; its own indentation stays.
fn broken(line: &str, room: Option<usize>) -> Vec<String> {
    let line = line.replace('\t', "    ");
    let Some(room) = room.filter(|room| line.width() > *room) else {
        return vec![line];
    };
    let indent: String = line
        .chars()
        .take_while(|c| *c == ' ')
        .take(room / 2)
        .collect();
    let mut parts = Vec::new();
    let mut part = indent.clone();
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let is_first = part.trim().is_empty();
        if !is_first && part.width() + 1 + word.width() > room {
            parts.push(std::mem::replace(&mut part, indent.clone()));
        } else if !is_first {
            part.push(' ');
        }
        part.push_str(word);
    }
    parts.push(part);
    parts
}

/// A text in which the paths below a folder begin there, and the folder itself is `.`.
fn relative(text: &str, folder: &str) -> String {
    let in_path = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(folder) {
        let (before, after) = (&rest[..at], &rest[at + folder.len()..]);
        let is_start = !before.chars().next_back().is_some_and(in_path);
        out.push_str(before);
        let below = after.strip_prefix('/');
        let is_end = !after.starts_with(in_path);
        rest = match below {
            Some(below) if is_start && below.starts_with(in_path) => below,
            _ if is_start && (is_end || below.is_some()) => {
                out.push('.');
                after
            }
            _ => {
                out.push_str(folder);
                after
            }
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, within: Option<&str>) -> Event {
        Event::Call {
            id: id.into(),
            tool: "Bash".into(),
            detail: "cat /w/fix/a.txt".into(),
            within: within.map(str::to_owned),
        }
    }

    fn result(id: &str, ok: bool, text: &str) -> Event {
        Event::Result {
            id: id.into(),
            ok,
            code: (!ok).then_some(3),
            text: text.into(),
        }
    }

    fn told(look: Look, events: Vec<Event>) -> String {
        let mut telling = Telling::new(Timestamp::UNIX_EPOCH, Some("/w/fix".into()));
        telling.look = look;
        let at = |number: i64| Timestamp::from_second(number * 61).ok();
        let entries = (0..).zip(events);
        let entries = entries.map(|(number, event)| Entry {
            at: at(number),
            event,
        });
        entries.map(|entry| telling.told(&entry)).collect()
    }

    #[test]
    fn a11_entries_have_times_relative_paths_and_short_results() {
        let ten: String = (1..=10).map(|line| format!("line {line}\n")).collect();
        let said = |text: &str, within: Option<&str>| Event::Said {
            text: text.into(),
            within: within.map(str::to_owned),
        };
        let events = vec![
            Event::Prompt {
                text: "Do it\nnow\nplease".into(),
            },
            said("In /w/fix and /w/fix/src, not /w/fixed.", None),
            call("1", None),
            result("1", true, &ten),
            call("2", None),
            call("3", Some("2")),
            said("deep", Some("2")),
            result("3", true, ""),
            result("2", false, &ten),
            Event::Message {
                from: "ada".into(),
                text: "two\nlines".into(),
            },
            Event::Output {
                text: "\u{1b}[31mwarning\u{1b}[0m \u{7}".into(),
            },
            Event::Ended {
                ok: false,
                text: "limit".into(),
            },
        ];
        let expected = "   0:00  < prompt: Do it
           … 2 more lines
   1:01  In . and src, not /w/fixed.
   2:02  > Bash: cat a.txt
           line 1
           line 2
           line 3
           line 4
           line 5
           … 5 more lines
   4:04  > Bash: cat a.txt
   5:05    > Bash: cat a.txt
   6:06    deep
             ✓
   8:08    result of Bash: cat a.txt
           … 5 lines before
           line 6
           line 7
           line 8
           line 9
           line 10
           ✗ exit 3
   9:09  < ada: two
         lines
  10:10  | warning \u{fffd}
  11:11  ✗ ended: limit
";
        let found = told(Look::default(), events);
        assert_eq!(found, expected, "\n{found}");
    }

    #[test]
    fn a11_narrow_terminals_cut_results_and_break_words() {
        let look = Look {
            width: Some(36),
            ..Look::default()
        };
        let said = Event::Said {
            text: "many words that do not fit into one line".into(),
            within: None,
        };
        let long = "x".repeat(90);
        let events = vec![said, call("1", None), result("1", true, &long)];
        let found = told(look, events.clone());
        let widest = found.lines().map(UnicodeWidthStr::width).max();
        assert!(widest <= Some(36), "{found}");
        assert!(
            found.contains("many words that do not fit\n         into one line"),
            "{found}"
        );
        let look = Look { full: true, ..look };
        assert!(told(look, events).contains(&long));
    }

    #[test]
    fn a_folder_in_a_text_is_left_out_as_a_whole_alone() {
        for (text, found) in [
            ("/w/fix", "."),
            ("/w/fix/", "./"),
            ("'/w/fix/a b'", "'a b'"),
            ("cd /w/fix && ls", "cd . && ls"),
            ("/x/w/fix/a", "/x/w/fix/a"),
            ("/w/fix2/a", "/w/fix2/a"),
            ("/w/fix/a:/w/fix/b", "a:b"),
        ] {
            assert_eq!(relative(text, "/w/fix"), found);
        }
    }
}
