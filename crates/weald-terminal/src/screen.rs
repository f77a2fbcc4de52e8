//! What is on the screen of a program's terminal, and what the terminal answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use alacritty_terminal::event::{Event, EventListener, WindowSize};
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;
use alacritty_terminal::term::{Config, Osc52, Term, TermMode};
use alacritty_terminal::vte::ansi::{NamedColor, Processor, Rgb, Timeout};

use crate::guarded::{Guarded, Strings};
use crate::picture::{Picture, line_in_colour};

/// How many lines that left the screen are kept for those who attach later.
const KEPT_LINES: usize = 2_000;

/// How long they are together at most: a viewer that attaches gets them in one message.
const KEPT_BYTES: usize = 8 * 1024 * 1024;

/// How much the terminal answers at once: what does not fit is left out.
const MOST_REPLIES: usize = 64 * 1024;

/// How much is read into the model at once: in a piece of this size no more lines can scroll by than the model keeps.
const PIECE: usize = 4_096;

/// Cells across and down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: u16,
    pub rows: u16,
}

impl Default for Size {
    fn default() -> Self {
        Self {
            columns: 80,
            rows: 24,
        }
    }
}

impl Size {
    /// A size that the model has memory for, and that programs can draw on.
    #[must_use]
    pub fn bounded(self) -> Self {
        Self {
            columns: self.columns.clamp(2, 500),
            rows: self.rows.clamp(1, 300),
        }
    }
}

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        self.rows.into()
    }

    fn columns(&self) -> usize {
        self.columns.into()
    }
}

/// What the model wants done while it reads.
#[derive(Default)]
struct Asked {
    /// Answers to the program's questions.
    replies: Vec<u8>,
    has_rung: bool,
    size: Size,
}

/// Collects it.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Asked>>);

impl Collector {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventListener for Collector {
    fn send_event(&self, event: Event) {
        let mut asked = self.asked();
        let has_room = asked.replies.len() < MOST_REPLIES;
        match event {
            Event::PtyWrite(reply) if has_room => asked.replies.extend(reply.into_bytes()),
            Event::ColorRequest(index, reply) if has_room => {
                asked.replies.extend(reply(colour(index)).into_bytes());
            }
            Event::TextAreaSizeRequest(reply) if has_room => {
                let size = WindowSize {
                    num_lines: asked.size.rows,
                    num_cols: asked.size.columns,
                    cell_width: 8,
                    cell_height: 16,
                };
                asked.replies.extend(reply(size).into_bytes());
            }
            Event::Bell => asked.has_rung = true,
            // A program may neither read nor write the clipboard of those who watch, nor name their windows.
            _ => {}
        }
    }
}

/// The model of a terminal.
pub struct Screen {
    model: Guarded<Collector>,
    strings: Strings,
    parser: Processor,
    collector: Collector,
    /// Lines that scrolled off the top, as they are drawn.
    scrolled: VecDeque<Vec<u8>>,
    scrolled_bytes: usize,
    scrolled_in_all: u64,
}

impl Screen {
    pub fn new(size: Size) -> Self {
        let size = size.bounded();
        let collector = Collector::default();
        collector.asked().size = size;
        let config = Config {
            scrolling_history: PIECE,
            kitty_keyboard: true,
            osc52: Osc52::Disabled,
            ..Config::default()
        };
        Self {
            model: Guarded::new(Term::new(config, &size, collector.clone())),
            strings: Strings::default(),
            parser: Processor::new(),
            collector,
            scrolled: VecDeque::new(),
            scrolled_bytes: 0,
            scrolled_in_all: 0,
        }
    }

    /// Takes in what the program wrote. Returns what its terminal answers.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<u8> {
        for piece in bytes.chunks(PIECE) {
            let piece = self.strings.shortened(piece);
            self.parser.advance(&mut self.model, &piece);
            self.keep_scrolled();
        }
        std::mem::take(&mut self.collector.asked().replies)
    }

    /// When a program that draws in one go has to be done with it.
    pub fn deadline(&self) -> Option<Instant> {
        self.parser.sync_timeout().sync_timeout()
    }

    /// Shows what was held back for a drawing in one go. Returns what the terminal answers.
    pub fn end_held_back(&mut self) -> Vec<u8> {
        self.parser.stop_sync(&mut self.model);
        self.read(&[])
    }

    /// Whether it is held back.
    pub fn is_held_back(&self) -> bool {
        self.parser.sync_timeout().pending_timeout()
    }

    pub fn resize(&mut self, size: Size) {
        let size = size.bounded();
        self.collector.asked().size = size;
        self.model.term.resize(size);
        self.keep_scrolled();
    }

    pub fn size(&self) -> Size {
        self.collector.asked().size
    }

    /// Whether the bell rang since the last time this was asked.
    pub fn has_rung(&self) -> bool {
        std::mem::take(&mut self.collector.asked().has_rung)
    }

    pub fn picture(&self) -> Picture {
        Picture::of(&self.model.term, self.size())
    }

    /// How many lines scrolled off the top so far.
    pub fn scrolled(&self) -> u64 {
        self.scrolled_in_all
    }

    /// Lines that scrolled off after so many had, as far as they are kept.
    pub fn scrolled_since(&self, seen: u64) -> impl Iterator<Item = &[u8]> {
        let new = usize::try_from(self.scrolled_in_all.saturating_sub(seen)).unwrap_or(usize::MAX);
        let skipped = self.scrolled.len().saturating_sub(new);
        self.scrolled.iter().skip(skipped).map(Vec::as_slice)
    }

    /// The lines on the screen as plain text.
    pub fn text(&self) -> Vec<String> {
        self.picture().text()
    }

    /// Takes lines that left the screen out of the model. The alternate screen has none.
    fn keep_scrolled(&mut self) {
        if self.model.term.mode().contains(TermMode::ALT_SCREEN) {
            return;
        }
        let grid = self.model.term.grid();
        let count = grid.history_size();
        if count == 0 {
            return;
        }
        for line in (1..=count).rev() {
            let row = &grid[Line(-i32::try_from(line).unwrap_or(i32::MAX))];
            let line = line_in_colour(&row[..]);
            self.scrolled_bytes += line.len();
            self.scrolled.push_back(line);
            while self.scrolled.len() > KEPT_LINES || self.scrolled_bytes > KEPT_BYTES {
                let dropped = self.scrolled.pop_front();
                self.scrolled_bytes -= dropped.map_or(0, |line| line.len());
            }
        }
        self.scrolled_in_all += count as u64;
        self.model.term.grid_mut().clear_history();
    }
}

/// The colours that are answered to those who ask: a dark terminal's.
fn colour(index: usize) -> Rgb {
    const BACKGROUND: usize = NamedColor::Background as usize;
    const NAMED: [u32; 16] = [
        0x00_00_00, 0xcd_31_31, 0x0d_bc_79, 0xe5_e5_10, 0x24_72_c8, 0xbc_3f_bc, 0x11_a8_cd,
        0xe5_e5_e5, 0x66_66_66, 0xf1_4c_4c, 0x23_d1_8b, 0xf5_f5_43, 0x3b_8e_ea, 0xd6_70_d6,
        0x29_b8_db, 0xff_ff_ff,
    ];
    let value = match index {
        0..16 => NAMED[index],
        16..232 => {
            let level = |step: usize| [0, 95, 135, 175, 215, 255][step % 6];
            let cube = index - 16;
            (level(cube / 36) << 16) | (level(cube / 6) << 8) | level(cube)
        }
        232..=255 => (8 + 10 * u32::try_from(index - 232).unwrap_or_default()) * 0x01_01_01,
        BACKGROUND => 0x1e_1e_1e,
        _ => 0xd4_d4_d4,
    };
    let [_, r, g, b] = value.to_be_bytes();
    Rgb { r, g, b }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(bytes: &[u8]) -> (Screen, String) {
        let mut screen = Screen::new(Size {
            columns: 20,
            rows: 4,
        });
        let replies = screen.read(bytes);
        (screen, String::from_utf8_lossy(&replies).into_owned())
    }

    #[test]
    fn questions_of_programs_are_answered_while_nobody_watches() {
        let cases: &[(&[u8], &str)] = &[
            (b"\x1b[c", "\x1b[?6c"),
            (b"\x1b[5n", "\x1b[0n"),
            (b"ab\x1b[6n", "\x1b[1;3R"),
            (b"\x1b[?u", "\x1b[?0u"),
            (b"\x1b[>5u\x1b[?u", "\x1b[?5u"),
            (b"\x1b[18t", "\x1b[8;4;20t"),
            (b"\x1b]11;?\x1b\\", "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\"),
            (b"\x1b]4;9;?\x07", "\x1b]4;9;rgb:f1f1/4c4c/4c4c\x07"),
            (b"\x1b[?2026$p", "\x1b[?2026;2$y"),
        ];
        for (question, answer) in cases {
            assert_eq!(screen(question).1, *answer, "{question:?}");
        }
        let (_, secondary) = screen(b"\x1b[>c");
        assert!(secondary.starts_with("\x1b[>0;"), "{secondary:?}");
    }

    #[test]
    fn the_clipboard_is_neither_read_nor_written() {
        for wish in [b"\x1b]52;c;aGk=\x07".as_slice(), b"\x1b]52;c;?\x07"] {
            let (screen, replies) = screen(wish);
            assert_eq!(replies, "");
            assert_eq!(screen.text(), [""; 4]);
        }
    }

    #[test]
    fn lines_that_leave_the_screen_are_kept_and_counted() {
        let (mut screen, _) = screen(b"1\r\n2\r\n3\r\n4\r\n5\r\n\x1b[31m6\x1b[0m");
        assert_eq!(screen.text(), ["3", "4", "5", "6"]);
        assert_eq!(screen.scrolled(), 2);
        assert_eq!(screen.scrolled_since(1).collect::<Vec<_>>(), [b"2"]);
        let many: String = (0..20_000).map(|n| format!("{n}\r\n")).collect();
        screen.read(many.as_bytes());
        assert_eq!(screen.scrolled(), 20_000 + 2);
        assert_eq!(screen.scrolled_since(0).count(), KEPT_LINES);
        let last = screen.scrolled_since(0).last().unwrap();
        assert_eq!(last, b"19996");
    }

    #[test]
    fn the_alternate_screen_leaves_nothing_behind() {
        let (mut screen, _) = screen(b"shell\x1b[?1049h\x1b[Heditor");
        assert_eq!(screen.text()[0], "editor");
        screen.read(&b"\r\nx".repeat(50));
        assert_eq!(screen.scrolled(), 0);
        screen.read(b"\x1b[?1049l");
        assert_eq!(screen.text()[0], "shell");
    }

    #[test]
    fn a3_endless_combining_marks_leave_a_cell_with_a_few() {
        let mark = "\u{301}";
        let endless = mark.repeat(20_000);
        let repeated = format!("{mark}\x1b[65535b");
        let held_back = format!("\x1b[?2026h{repeated}\x1b[?2026l");
        for marks in [&endless, &repeated, &held_back] {
            // In the first cell, in one in the middle, in the last, and on a wide character there.
            for before in ["", "ab", "12345678901234567890", "123456789012345678世"] {
                let (mut screen, _) = screen(format!("{before}{marks}").as_bytes());
                let kept = mark.repeat(crate::guarded::MOST_MARKS);
                assert_eq!(screen.text()[0], format!("{before:1}{kept}"));
                screen.read("\r\né世".as_bytes());
                assert_eq!(screen.text()[1], "é世");
            }
        }
    }

    #[test]
    fn a3_an_endless_string_leaves_the_terminal_usable() {
        for begin in ["\x1b]0;", "\x1bP1q", "\x1b_", "\x1b^", "\x1bX"] {
            let endless = format!("{begin}{}\x1b\\seen", "A;".repeat(1024 * 1024));
            let (screen, replies) = screen(endless.as_bytes());
            assert_eq!((screen.text()[0].as_str(), replies.as_str()), ("seen", ""));
        }
    }

    #[test]
    fn a3_replies_lines_and_stacks_do_not_grow_without_bound() {
        let mut screen = Screen::new(Size {
            columns: 500,
            rows: 4,
        });
        let replies = screen.read(&b"\x1b[18t".repeat(100_000));
        assert!(replies.len() < MOST_REPLIES + 100, "{}", replies.len());

        // Four times as many as the model has room for: it would panic.
        screen.read(&b"\x1b[>1u\x1b[22t".repeat(16_384));
        assert_eq!(screen.read(b"\x1b[?u"), b"\x1b[?1u");
        screen.read(b"\x1b[?1049h");
        screen.read(&b"\x1b[>1u".repeat(16_384));
        screen.read(b"\x1b[<65535u\x1b[?1049l\x1b[<65535u");
        assert_eq!(screen.read(b"\x1b[?u\x1b[>5u\x1b[?u"), b"\x1b[?0u\x1b[?5u");

        // Each cell in a colour of its own, with marks.
        let cell = |n: usize| format!("\x1b[38;2;{};1;2mx{}", n % 256, "\u{301}".repeat(9));
        let line: String = (0..500).map(cell).collect();
        for _ in 0..450 {
            screen.read(line.as_bytes());
        }
        let kept: Vec<usize> = screen.scrolled_since(0).map(<[u8]>::len).collect();
        assert!(kept.len() > 100 && kept.iter().sum::<usize>() <= KEPT_BYTES);
        assert!(
            kept.iter()
                .all(|length| *length <= crate::picture::LONGEST_LINE)
        );
    }

    #[test]
    fn a_drawing_in_one_go_is_shown_at_its_end_or_in_time() {
        let (mut screen, _) = screen(b"old\x1b[?2026h\x1b[Hnew");
        assert!(screen.is_held_back() && screen.deadline().is_some());
        assert_eq!(screen.text()[0], "old");
        screen.read(b"\x1b[?2026l");
        assert_eq!(screen.text()[0], "new");
        screen.read(b"\x1b[?2026h\x1b[Hthird");
        screen.end_held_back();
        assert_eq!(screen.text()[0], "third");
    }
}
