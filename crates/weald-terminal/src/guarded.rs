//! Bounds on the memory that a program can make the model of its terminal use: the process that holds the model is
//! outside the program's limits.

use alacritty_terminal::Term;
use alacritty_terminal::event::EventListener;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{
    Attr, CharsetIndex, ClearMode, CursorShape, CursorStyle, Handler, KeyboardModes,
    KeyboardModesApplyBehavior, LineClearMode, Mode, PrivateMode, Rgb, StandardCharset,
    TabulationClearMode,
};

/// The longest operating system command (`ESC ] …`) that reaches the parser, which keeps all of it until its end.
const LONGEST_STRING: usize = 4 * 1024;

/// How many combining marks a cell has at most.
pub const MOST_MARKS: usize = 8;

/// How many keyboard modes a program may push. The model panics at 4096.
const MOST_KEYBOARD_MODES: usize = 64;

/// Where in the program's output the parser is, as far as that decides what the parser keeps.
#[derive(Default)]
enum Place {
    /// Text, or a sequence of which the parser keeps only a fixed amount: device control and the other strings, too.
    #[default]
    Elsewhere,
    /// Right after `ESC`.
    Escape,
    /// In an operating system command, after so many bytes of it.
    Command(usize),
}

/// Cuts operating system commands short before they reach the parser.
///
/// It follows the parser: only `ESC ]` begins one, since 8-bit controls are continuation bytes of UTF-8 there, and only
/// `BEL`, `CAN`, `SUB` and `ESC` end one.
#[derive(Default)]
pub struct Strings {
    place: Place,
}

impl Strings {
    /// What of the next bytes the parser gets. A sequence may be spread over several calls.
    pub fn shortened(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut passed = Vec::with_capacity(bytes.len());
        for byte in bytes {
            let mut is_passed = true;
            self.place = match (&self.place, byte) {
                (_, 0x1b) => Place::Escape,
                (_, 0x18 | 0x1a) => Place::Elsewhere,
                (Place::Elsewhere, _) => Place::Elsewhere,
                (Place::Escape, b']') => Place::Command(0),
                (Place::Escape, 0x20..=0x7e) => Place::Elsewhere,
                // The parser obeys or ignores it, and still waits for what the escape is.
                (Place::Escape, _) => Place::Escape,
                (Place::Command(_), 0x07) => Place::Elsewhere,
                (Place::Command(length), _) => {
                    is_passed = *length < LONGEST_STRING;
                    Place::Command(length.saturating_add(1))
                }
            };
            if is_passed {
                passed.push(*byte);
            }
        }
        passed
    }
}

/// A model that a program cannot grow without bound.
///
/// Not forwarded, because nobody sees it: titles, links (each cell could have a long one of its own), the clipboard and
/// the shape of the mouse pointer.
pub struct Guarded<T: EventListener> {
    pub term: Term<T>,
    /// How many keyboard modes the program pushed, on the primary and on the alternate screen.
    keyboard_modes: [usize; 2],
}

impl<T: EventListener> Guarded<T> {
    pub fn new(term: Term<T>) -> Self {
        Self {
            term,
            keyboard_modes: [0; 2],
        }
    }

    /// How many keyboard modes it pushed on this screen.
    fn pushed(&mut self) -> &mut usize {
        let is_alternate = self.term.mode().contains(TermMode::ALT_SCREEN);
        &mut self.keyboard_modes[usize::from(is_alternate)]
    }

    /// The cell that a combining mark would go to now.
    fn marked(&self) -> (Line, Column) {
        let (grid, mut column) = (self.term.grid(), self.term.grid().cursor.point.column);
        if !grid.cursor.input_needs_wrap {
            column.0 = column.saturating_sub(1);
        }
        let line = grid.cursor.point.line;
        if grid[line][column].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column.0 = column.saturating_sub(1);
        }
        (line, column)
    }
}

fn marks(cell: &Cell) -> usize {
    cell.zerowidth().map_or(0, <[char]>::len)
}

/// Passes calls on to the model as they are.
macro_rules! forwarded {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $name(&mut self, $($argument: $type),*) {
            Handler::$name(&mut self.term, $($argument),*);
        })*
    };
}

impl<T: EventListener> Handler for Guarded<T> {
    /// Also called for each repetition that a program asks for: what counts marks has to be behind the parser.
    fn input(&mut self, c: char) {
        if c.is_ascii() {
            return self.term.input(c);
        }
        let (line, column) = self.marked();
        let before = &self.term.grid()[line][column];
        let full = (marks(before) >= MOST_MARKS).then(|| before.clone());
        self.term.input(c);
        // Only another mark makes it more than full.
        if let Some(full) = full
            && marks(&self.term.grid()[line][column]) > MOST_MARKS
        {
            self.term.grid_mut()[line][column] = full;
        }
    }

    fn push_keyboard_mode(&mut self, mode: KeyboardModes) {
        if *self.pushed() >= MOST_KEYBOARD_MODES {
            return;
        }
        *self.pushed() += 1;
        self.term.push_keyboard_mode(mode);
    }

    fn pop_keyboard_modes(&mut self, count: u16) {
        let pushed = self.pushed();
        *pushed = pushed.saturating_sub(count.into());
        self.term.pop_keyboard_modes(count);
    }

    fn reset_state(&mut self) {
        self.keyboard_modes = [0; 2];
        self.term.reset_state();
    }

    forwarded! {
        set_cursor_style(style: Option<CursorStyle>);
        set_cursor_shape(shape: CursorShape);
        goto(line: i32, column: usize);
        goto_line(line: i32);
        goto_col(column: usize);
        insert_blank(count: usize);
        move_up(count: usize);
        move_down(count: usize);
        identify_terminal(intermediate: Option<char>);
        device_status(what: usize);
        move_forward(count: usize);
        move_backward(count: usize);
        move_down_and_cr(count: usize);
        move_up_and_cr(count: usize);
        put_tab(count: u16);
        backspace();
        carriage_return();
        linefeed();
        bell();
        substitute();
        newline();
        set_horizontal_tabstop();
        scroll_up(count: usize);
        scroll_down(count: usize);
        insert_blank_lines(count: usize);
        delete_lines(count: usize);
        erase_chars(count: usize);
        delete_chars(count: usize);
        move_backward_tabs(count: u16);
        move_forward_tabs(count: u16);
        save_cursor_position();
        restore_cursor_position();
        clear_line(mode: LineClearMode);
        clear_screen(mode: ClearMode);
        clear_tabs(mode: TabulationClearMode);
        set_tabs(interval: u16);
        reverse_index();
        terminal_attribute(attribute: Attr);
        set_mode(mode: Mode);
        unset_mode(mode: Mode);
        report_mode(mode: Mode);
        set_private_mode(mode: PrivateMode);
        unset_private_mode(mode: PrivateMode);
        report_private_mode(mode: PrivateMode);
        set_scrolling_region(top: usize, bottom: Option<usize>);
        set_keypad_application_mode();
        unset_keypad_application_mode();
        set_active_charset(index: CharsetIndex);
        configure_charset(index: CharsetIndex, charset: StandardCharset);
        set_color(index: usize, colour: Rgb);
        dynamic_color_sequence(prefix: String, index: usize, terminator: &str);
        reset_color(index: usize);
        decaln();
        text_area_size_pixels();
        text_area_size_chars();
        report_keyboard_mode();
        set_keyboard_mode(mode: KeyboardModes, behaviour: KeyboardModesApplyBehavior);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What passes of bytes that come in pieces of a size.
    fn passed(bytes: &[u8], piece: usize) -> Vec<u8> {
        let mut strings = Strings::default();
        let pieces = bytes.chunks(piece);
        pieces.flat_map(|piece| strings.shortened(piece)).collect()
    }

    #[test]
    fn a3_an_endless_command_to_the_terminal_is_cut_short() {
        let mut endless = b"before\x1b]0;".to_vec();
        endless.resize(4 * 1024 * 1024, b'A');
        for piece in [1, 4096, 65536] {
            let passed = passed(&endless, piece);
            assert_eq!(passed.len(), b"before\x1b]".len() + LONGEST_STRING);
        }
        // Also one that begins in a way that only the parser sees as one.
        for begin in [
            &b"\x1b\x1b]"[..],
            b"\x1b\n]",
            b"\x1b\x7f]",
            b"\x1b\xc3]",
            b"\x1bP\x1b]",
        ] {
            let bytes = [begin, &[0x9c; 100_000]].concat();
            assert_eq!(passed(&bytes, 999).len(), begin.len() + LONGEST_STRING);
        }
    }

    #[test]
    fn a3_what_follows_a_command_that_was_cut_short_is_unharmed() {
        for end in [&b"\x07"[..], b"\x1b\\", b"\x18", b"\x1a"] {
            let after = [end, "after é \u{1f600} \x1b[31mred".as_bytes()].concat();
            let bytes = [&b"\x1b]0;"[..], &[b'x'; 10_000], &after].concat();
            assert!(passed(&bytes, 7).ends_with(&[b"xxx", &after[..]].concat()));
        }
        let plain = [
            "ÀÝ\u{9d}] ]0; \x1b[5] \x1b(] \x1bPq]".as_bytes(),
            &[b'x'; 10_000],
        ];
        let plain = plain.concat();
        assert_eq!(passed(&plain, 3), plain);
    }
}
