//! A picture of a screen, and what a viewer's terminal is sent to turn one into the next.
//!
//! Everything that is sent is made here from cells: whatever the program wrote, a viewer's terminal gets characters,
//! colours, the position of the cursor and a fixed list of modes.

use std::fmt::Write;

use alacritty_terminal::event::EventListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::{Term, TermMode};
use alacritty_terminal::vte::ansi::{Color, CursorShape, NamedColor};

use crate::screen::Size;

/// The longest line for a terminal's history, in bytes. Lines of ordinary programs are far shorter.
pub(crate) const LONGEST_LINE: usize = 64 * 1024;

/// Attributes of characters, and what switches each on.
const ATTRIBUTES: &[(Flags, &str)] = &[
    (Flags::BOLD, "1"),
    (Flags::DIM, "2"),
    (Flags::ITALIC, "3"),
    (Flags::UNDERLINE, "4"),
    (Flags::DOUBLE_UNDERLINE, "4:2"),
    (Flags::UNDERCURL, "4:3"),
    (Flags::DOTTED_UNDERLINE, "4:4"),
    (Flags::DASHED_UNDERLINE, "4:5"),
    (Flags::INVERSE, "7"),
    (Flags::HIDDEN, "8"),
    (Flags::STRIKEOUT, "9"),
];

/// Modes that a viewer's terminal has to be in, so that it sends keys as the program expects them.
const MODES: &[(TermMode, &str, &str)] = &[
    (TermMode::APP_CURSOR, "\x1b[?1h", "\x1b[?1l"),
    (TermMode::APP_KEYPAD, "\x1b=", "\x1b>"),
    (TermMode::MOUSE_REPORT_CLICK, "\x1b[?1000h", "\x1b[?1000l"),
    (TermMode::MOUSE_DRAG, "\x1b[?1002h", "\x1b[?1002l"),
    (TermMode::MOUSE_MOTION, "\x1b[?1003h", "\x1b[?1003l"),
    (TermMode::UTF8_MOUSE, "\x1b[?1005h", "\x1b[?1005l"),
    (TermMode::SGR_MOUSE, "\x1b[?1006h", "\x1b[?1006l"),
    (TermMode::FOCUS_IN_OUT, "\x1b[?1004h", "\x1b[?1004l"),
    (TermMode::BRACKETED_PASTE, "\x1b[?2004h", "\x1b[?2004l"),
];

/// What a viewer's terminal is sent first: no line wraps, and the keyboard's mode is its own until [`RESET`].
pub const SET_UP: &str = "\x1b[?7l\x1b[>0u";

/// What brings a viewer's terminal back to how it was, whatever was drawn.
pub const RESET: &str = concat!(
    "\x1b[?2026l\x1b[=0;1u\x1b[?1049l\x1b[<u\x1b[?7h\x1b[?1l\x1b>\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l",
    "\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[0 q\x1b[0m\x1b[?25h"
);

/// What is on a screen at one moment.
#[derive(Clone, PartialEq)]
pub struct Picture {
    size: Size,
    rows: Vec<Vec<Cell>>,
    /// Row and column, from zero.
    cursor: (usize, usize),
    shape: CursorShape,
    is_blinking: bool,
    mode: TermMode,
}

impl Picture {
    pub(crate) fn of<T: EventListener>(term: &Term<T>, size: Size) -> Self {
        let grid = term.grid();
        let rows = (0..grid.screen_lines())
            .map(|row| grid[Line(i32::try_from(row).unwrap_or(i32::MAX))][..].to_vec())
            .collect();
        let point = grid.cursor.point;
        let style = term.cursor_style();
        let is_shown = term.mode().contains(TermMode::SHOW_CURSOR);
        Self {
            size,
            rows,
            cursor: (
                usize::try_from(point.line.0).unwrap_or_default(),
                point.column.0,
            ),
            shape: if is_shown {
                style.shape
            } else {
                CursorShape::Hidden
            },
            is_blinking: style.blinking,
            mode: *term.mode(),
        }
    }

    /// Its lines as plain text, without blanks at their ends.
    pub fn text(&self) -> Vec<String> {
        let line = |row: &Vec<Cell>| {
            let mut text = String::new();
            for cell in row.iter().filter(|cell| !is_spacer(cell)) {
                push_character(&mut text, cell);
            }
            text.trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }

    /// Its lines with their colours, up to the last that has something in it.
    pub fn lines_in_colour(&self) -> Vec<Vec<u8>> {
        let mut lines: Vec<_> = self.rows.iter().map(|row| line_in_colour(row)).collect();
        while lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        lines
    }

    fn is_alternate(&self) -> bool {
        self.mode.contains(TermMode::ALT_SCREEN)
    }

    /// What turns a terminal of a size, which shows the picture before (or anything), into this one; nothing if there is
    /// no difference. `scrolled` lines left the screen meanwhile: they go to the terminal's own history.
    pub fn drawn<'l>(
        &self,
        before: Option<&Self>,
        scrolled: impl IntoIterator<Item = &'l [u8]>,
        size: Size,
    ) -> String {
        let mut drawing = Drawing {
            out: String::new(),
            pen: Pen::default(),
            columns: size.columns.min(self.size.columns).into(),
            rows: size.rows.min(self.size.rows).into(),
        };
        let mut before = before.filter(|before| before.size == self.size);
        if let Some(known) = before
            && known.is_alternate() != self.is_alternate()
        {
            drawing.out.push_str(match self.is_alternate() {
                true => "\x1b[?1049h",
                false => "\x1b[=0;1u\x1b[?1049l",
            });
            before = None;
        } else if before.is_none() && self.is_alternate() {
            drawing.out.push_str("\x1b[?1049h");
        }
        let modes_before = before.map_or(TermMode::NONE, |before| before.mode);
        drawing.modes(before.map(|_| modes_before), self.mode);
        if drawing.scroll(scrolled, size) {
            before = None;
        }
        if before.is_none() {
            // Not `2J`: many terminals keep what that clears in their history.
            drawing.out.push_str("\x1b[0m\x1b[H\x1b[J");
        }
        for (number, row) in self.rows.iter().take(drawing.rows).enumerate() {
            let known = before.and_then(|before| before.rows.get(number));
            drawing.row(number, known.map(Vec::as_slice), row);
        }
        let is_same = before.is_some_and(|before| {
            (before.cursor, before.shape, before.is_blinking)
                == (self.cursor, self.shape, self.is_blinking)
        });
        if drawing.out.is_empty() && is_same {
            return String::new();
        }
        drawing.cursor(self);
        // As one: a terminal that knows this shows nothing half drawn.
        format!("\x1b[?2026h\x1b[?25l{}\x1b[?2026l", drawing.out)
    }
}

struct Drawing {
    out: String,
    pen: Pen,
    columns: usize,
    rows: usize,
}

impl Drawing {
    /// Modes that differ from those of before; all of them, if nothing is known.
    fn modes(&mut self, before: Option<TermMode>, now: TermMode) {
        for (mode, on, off) in MODES {
            if before.is_none_or(|before| before.contains(*mode) != now.contains(*mode)) {
                self.out
                    .push_str(if now.contains(*mode) { on } else { off });
            }
        }
        let keyboard = TermMode::KITTY_KEYBOARD_PROTOCOL;
        if before.is_none_or(|before| before & keyboard != now & keyboard) {
            let flags =
                (now & keyboard).bits() >> TermMode::DISAMBIGUATE_ESC_CODES.bits().trailing_zeros();
            let _ = write!(self.out, "\x1b[={flags};1u");
        }
    }

    /// Writes lines over the top of the screen and scrolls them into the terminal's history.
    fn scroll<'l>(&mut self, lines: impl IntoIterator<Item = &'l [u8]>, size: Size) -> bool {
        let lines: Vec<_> = lines.into_iter().collect();
        for screenful in lines.chunks(size.rows.into()) {
            for (row, line) in screenful.iter().enumerate() {
                let _ = write!(self.out, "\x1b[{};1H\x1b[0m\x1b[2K", row + 1);
                self.out.push_str(&String::from_utf8_lossy(line));
            }
            let _ = write!(self.out, "\x1b[0m\x1b[{};1H", size.rows);
            self.out.push_str(&"\n".repeat(screenful.len()));
        }
        !lines.is_empty()
    }

    /// Draws what differs in a row; against a blank one, if nothing is known.
    fn row(&mut self, number: usize, before: Option<&[Cell]>, row: &[Cell]) {
        let blank = Cell::default();
        let is_known = |column: usize, cell: &Cell| match before {
            Some(before) => before.get(column) == Some(cell),
            None => *cell == blank,
        };
        let differs = |column: usize| !is_known(column, &row[column]);
        let columns = self.columns.min(row.len());
        let Some(mut first) = (0..columns).find(|column| differs(*column)) else {
            return;
        };
        let last = (first..columns)
            .rfind(|column| differs(*column))
            .unwrap_or(first);
        // The second half of a wide character is drawn with the first.
        if first > 0 && row[first].flags.contains(Flags::WIDE_CHAR_SPACER) {
            first -= 1;
        }
        let _ = write!(self.out, "\x1b[{};{}H", number + 1, first + 1);
        let mut is_adrift = false;
        for (column, cell) in row.iter().enumerate().take(last + 1).skip(first) {
            if is_spacer(cell) {
                continue;
            }
            let is_wide = cell.flags.contains(Flags::WIDE_CHAR);
            if is_wide && column + 1 >= columns {
                break;
            }
            // Terminals differ in how wide they draw what is beyond ASCII.
            if is_adrift {
                let _ = write!(self.out, "\x1b[{}G", column + 1);
            }
            self.pen.set(&mut self.out, cell);
            push_character(&mut self.out, cell);
            is_adrift = !cell.c.is_ascii() || cell.zerowidth().is_some();
        }
        self.pen.reset(&mut self.out);
    }

    fn cursor(&mut self, picture: &Picture) {
        let (row, column) = picture.cursor;
        let (row, column) = (row.min(self.rows - 1), column.min(self.columns - 1));
        let _ = write!(self.out, "\x1b[{};{}H", row + 1, column + 1);
        let style = match picture.shape {
            CursorShape::Hidden => return,
            CursorShape::Underline => 4,
            CursorShape::Beam => 6,
            _ => 2,
        };
        let style = style - u8::from(picture.is_blinking);
        let _ = write!(self.out, "\x1b[{style} q\x1b[?25h");
    }
}

/// The attributes that a terminal draws with.
#[derive(Default, PartialEq)]
struct Pen(Option<(Color, Color, Flags, Option<Color>)>);

impl Pen {
    fn set(&mut self, out: &mut String, cell: &Cell) {
        let known = ATTRIBUTES
            .iter()
            .fold(Flags::empty(), |all, (flag, _)| all | *flag);
        let wanted = (cell.fg, cell.bg, cell.flags & known, cell.underline_color());
        if self.0.as_ref() == Some(&wanted) {
            return;
        }
        out.push_str("\x1b[0");
        for (flag, code) in ATTRIBUTES {
            if cell.flags.contains(*flag) {
                let _ = write!(out, ";{code}");
            }
        }
        push_colour(out, wanted.0, 30);
        push_colour(out, wanted.1, 40);
        if let Some(colour) = wanted.3 {
            push_underline(out, colour);
        }
        out.push('m');
        self.0 = Some(wanted);
    }

    fn reset(&mut self, out: &mut String) {
        let plain = Cell::default();
        let is_plain = self.0 == Some((plain.fg, plain.bg, Flags::empty(), None));
        if self.0.is_some() && !is_plain {
            out.push_str("\x1b[0m");
        }
        self.0 = None;
    }
}

/// A colour as it follows in a list of attributes: `base` is 30 for the foreground, 40 for the background.
fn push_colour(out: &mut String, colour: Color, base: u32) {
    let _ = match colour {
        Color::Spec(rgb) => write!(out, ";{};2;{};{};{}", base + 8, rgb.r, rgb.g, rgb.b),
        Color::Indexed(index) => write!(out, ";{};5;{index}", base + 8),
        Color::Named(name) => match name as u32 {
            index @ 0..8 => write!(out, ";{}", base + index),
            index @ 8..16 => write!(out, ";{}", base + 60 + index - 8),
            index @ 259..267 => write!(out, ";{}", base + index - NamedColor::DimBlack as u32),
            // Whatever the viewer's terminal has.
            _ => Ok(()),
        },
    };
}

fn push_underline(out: &mut String, colour: Color) {
    let _ = match colour {
        Color::Spec(rgb) => write!(out, ";58:2::{}:{}:{}", rgb.r, rgb.g, rgb.b),
        Color::Indexed(index) => write!(out, ";58:5:{index}"),
        Color::Named(name) if (name as u32) < 16 => write!(out, ";58:5:{}", name as u32),
        Color::Named(_) => Ok(()),
    };
}

/// The other half of a wide character.
fn is_spacer(cell: &Cell) -> bool {
    cell.flags.contains(Flags::WIDE_CHAR_SPACER)
}

/// A cell's character. What a terminal would obey is a blank.
fn push_character(out: &mut String, cell: &Cell) {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    out.push(shown(cell.c));
    out.extend(
        cell.zerowidth()
            .into_iter()
            .flatten()
            .filter(|c| !c.is_control()),
    );
}

/// A line with its colours, for a terminal's history.
pub(crate) fn line_in_colour(row: &[Cell]) -> Vec<u8> {
    let (mut out, mut pen, blank) = (String::new(), Pen::default(), Cell::default());
    let end = row
        .iter()
        .rposition(|cell| *cell != blank)
        .map_or(0, |last| last + 1);
    let is_plain =
        |cell: &Cell| (cell.fg, cell.bg) == (blank.fg, blank.bg) && cell.flags.is_empty();
    for cell in row[..end].iter().filter(|cell| !is_spacer(cell)) {
        match pen.0.is_none() && is_plain(cell) {
            true => {}
            false => pen.set(&mut out, cell),
        }
        push_character(&mut out, cell);
        // With room for one more cell and the reset.
        if out.len() > LONGEST_LINE - 256 {
            break;
        }
    }
    pen.reset(&mut out);
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Screen;

    const SIZE: Size = Size {
        columns: 12,
        rows: 3,
    };

    fn shows(bytes: &[u8]) -> Picture {
        let mut screen = Screen::new(SIZE);
        screen.read(bytes);
        screen.picture()
    }

    /// The cells, but for which lines go on in the next: a viewer's terminal wraps none.
    fn unwrapped(picture: &Picture) -> Vec<Vec<Cell>> {
        let mut rows = picture.rows.clone();
        for cell in rows.iter_mut().flatten() {
            cell.flags.remove(Flags::WRAPLINE);
        }
        rows
    }

    /// A viewer's terminal is a model, too: what is drawn on it must make it the same.
    fn drawn_on(viewer: &mut Screen, before: Option<&Picture>, now: &Picture) {
        let drawn = now.drawn(before, [], SIZE);
        viewer.read(drawn.as_bytes());
        assert!(
            unwrapped(&viewer.picture()) == unwrapped(now),
            "{:?}",
            viewer.text()
        );
        assert_eq!(viewer.picture().cursor, now.cursor);
    }

    #[test]
    fn every_picture_is_drawn_over_every_other() {
        let pictures: Vec<Picture> = [
            b"".as_slice(),
            b"hello",
            b"\x1b[1;31mhe\x1b[0mllo\r\n\x1b[38;2;1;2;3;48;5;200mx\x1b[4:3;58:5:9my",
            "日本語 wide\r\né e\u{301} ok".as_bytes(),
            b"\x1b[41m\x1b[2Jred\x1b[3;12Hx",
            b"\x1b[?1049h\x1b[2;5Halternate",
            b"\x1b[7minverse\x1b[9m struck",
        ]
        .iter()
        .map(|bytes| shows(bytes))
        .collect();
        for first in &pictures {
            for second in &pictures {
                let mut viewer = Screen::new(SIZE);
                viewer.read(SET_UP.as_bytes());
                drawn_on(&mut viewer, None, first);
                drawn_on(&mut viewer, Some(first), second);
                assert_eq!(second.drawn(Some(second), [], SIZE), "");
            }
        }
    }

    #[test]
    fn a_viewers_terminal_gets_no_sequence_that_the_program_wrote() {
        let hostile = b"\x1b]52;c;aGk=\x07\x1b]0;title\x07\x1bP1$r\x1b\\\x1b]8;;http://x\x07link\x1b]8;;\x07\xc2\x9b31mred\x07";
        let drawn = shows(hostile).drawn(None, [], SIZE);
        for forbidden in ["\x1b]", "\x1bP", "\u{9b}", "\x07", "title", "http"] {
            assert!(!drawn.contains(forbidden), "{forbidden:?} in {drawn:?}");
        }
    }

    #[test]
    fn modes_are_set_at_attach_and_only_changes_later() {
        let (plain, pasting) = (shows(b""), shows(b"\x1b[?2004h\x1b[?1006h\x1b[>1u"));
        let first = pasting.drawn(None, [], SIZE);
        assert!(
            first.contains("\x1b[?2004h") && first.contains("\x1b[?1l"),
            "{first:?}"
        );
        assert!(first.contains("\x1b[=1;1u"), "{first:?}");
        let changes = pasting.drawn(Some(&plain), [], SIZE);
        assert!(changes.contains("\x1b[?2004h") && !changes.contains("\x1b[?1l"));
        for (mode, _, off) in MODES {
            assert!(RESET.contains(off), "{mode:?}");
        }
    }

    #[test]
    fn lines_that_scroll_off_go_into_the_viewers_history() {
        let mut program = Screen::new(SIZE);
        let mut viewer = Screen::new(SIZE);
        program.read(b"1\r\n2\r\n3");
        let before = program.picture();
        viewer.read(before.drawn(None, [], SIZE).as_bytes());
        program.read(b"\r\n4\r\n5\r\n6\r\n7\r\n8");
        let now = program.picture();
        let drawn = now.drawn(Some(&before), program.scrolled_since(0), SIZE);
        viewer.read(drawn.as_bytes());
        let history: Vec<_> = viewer.scrolled_since(0).collect();
        assert_eq!(history, [b"1", b"2", b"3", b"4", b"5"]);
        assert_eq!(viewer.text(), ["6", "7", "8"]);
    }

    #[test]
    fn a_smaller_terminal_shows_the_upper_left() {
        let picture = shows("0123456789日\r\nx".as_bytes());
        let small = Size {
            columns: 11,
            rows: 2,
        };
        let mut viewer = Screen::new(small);
        viewer.read(SET_UP.as_bytes());
        viewer.read(picture.drawn(None, [], small).as_bytes());
        assert_eq!(viewer.text(), ["0123456789", "x"]);
    }
}
