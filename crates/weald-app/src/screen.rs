//! The one way to a terminal: what weald prints goes through a [`Screen`], whoever wrote the text in it.
//!
//! A terminal obeys what it reads, and agents choose file names, commit messages and output. Here every control character
//! and every mark that turns the direction of reading is replaced; lines, tabs and plain colours stay. For programs they
//! are escaped as JSON does it, so that nothing is lost. Sequences and characters may come in pieces.

mod palette;

use std::io::{self, Write};

pub use self::palette::Palette;

/// For whom text is made harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// People: shown as signs that do nothing.
    Text,
    /// Programs: escaped. Such characters stand in strings alone.
    Json,
}

/// The longest sequence of colours that is looked at.
const LONGEST: usize = 64;

/// A stream on which nothing is written that a terminal would obey, but colours.
pub struct Screen<W: Write> {
    inner: W,
    form: Form,
    /// The beginning of a character or a sequence, until the rest comes.
    held: Vec<u8>,
    /// Whether a colour was set and not taken back.
    styled: bool,
}

impl<W: Write> Screen<W> {
    /// A screen over a stream.
    pub fn new(inner: W, form: Form) -> Self {
        Self {
            inner,
            form,
            held: Vec::new(),
            styled: false,
        }
    }

    /// Writes a sequence of weald's own, which a terminal shall obey.
    pub fn control(&mut self, sequence: &'static str) -> io::Result<()> {
        self.inner.write_all(sequence.as_bytes())
    }

    /// Takes back a colour that somebody left: what follows is not theirs.
    pub fn end_style(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.styled) {
            true => self.control("\x1b[0m"),
            false => Ok(()),
        }
    }

    fn put(&mut self, is_end: bool) -> io::Result<()> {
        let mut text = String::with_capacity(self.held.len());
        let mut at = 0;
        while let Some(piece) = next(&self.held[at..], is_end) {
            at += piece.length;
            match piece.what {
                What::Plain(plain) => text.push_str(plain),
                What::Style { sequence, resets } => {
                    self.styled = !resets;
                    text.push_str(sequence);
                }
                What::Nothing => {}
                What::Obeyed(c) => match self.form {
                    Form::Text => text.push('\u{fffd}'),
                    Form::Json => text.push_str(&format!("\\u{:04x}", u32::from(c))),
                },
            }
        }
        self.held.drain(..at);
        self.inner.write_all(text.as_bytes())
    }
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        if self.held.is_empty() && bytes.iter().all(is_plain) {
            self.inner.write_all(bytes)?;
        } else {
            self.held.extend_from_slice(bytes);
            self.put(false)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Drop for Screen<W> {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.put(true);
        let _ = self.end_style();
    }
}

/// The next piece of a text.
struct Piece<'a> {
    length: usize,
    what: What<'a>,
}

enum What<'a> {
    Plain(&'a str),
    /// A colour, or the end of all.
    Style {
        sequence: &'a str,
        resets: bool,
    },
    /// The first half of a line end.
    Nothing,
    Obeyed(char),
}

/// The piece at the beginning of some bytes; nothing where more has to come first.
fn next(bytes: &[u8], is_end: bool) -> Option<Piece<'_>> {
    let piece = |length, what| Some(Piece { length, what });
    match *bytes.first()? {
        b'\x1b' => match style(bytes) {
            Style::Is(length) => {
                let sequence = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
                let resets = matches!(sequence, "\x1b[m" | "\x1b[0m");
                piece(length, What::Style { sequence, resets })
            }
            Style::Begins if !is_end => None,
            _ => piece(1, What::Obeyed('\x1b')),
        },
        b'\r' => match bytes.get(1) {
            Some(b'\n') => piece(1, What::Nothing),
            None if !is_end => None,
            _ => piece(1, What::Obeyed('\r')),
        },
        _ => character(bytes, is_end),
    }
}

fn character(bytes: &[u8], is_end: bool) -> Option<Piece<'_>> {
    let short = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(short) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&short[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) => {
            return match error.error_len() {
                None if !is_end => None,
                broken => Some(Piece {
                    length: broken.unwrap_or(short.len()),
                    what: What::Obeyed('\u{fffd}'),
                }),
            };
        }
    };
    let first = valid.chars().next()?;
    let (plain, _) = valid.split_at(first.len_utf8());
    Some(Piece {
        length: plain.len(),
        what: match is_obeyed(first) {
            true => What::Obeyed(first),
            false => What::Plain(plain),
        },
    })
}

enum Style {
    /// A whole sequence of this length.
    Is(usize),
    /// What there is could become one.
    Begins,
    No,
}

/// Whether bytes begin with a sequence of colours. One that hides what follows is none.
fn style(bytes: &[u8]) -> Style {
    let Some(rest) = bytes.strip_prefix(b"\x1b[") else {
        return match bytes.len() {
            1 => Style::Begins,
            _ => Style::No,
        };
    };
    let is_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b';' | b':');
    let count = rest.iter().take_while(|byte| is_number(byte)).count();
    let hides = || hides(&rest[..count]);
    match rest.get(count) {
        _ if count > LONGEST => Style::No,
        Some(b'm') if !hides() => Style::Is(2 + count + 1),
        Some(_) => Style::No,
        None => Style::Begins,
    }
}

/// Text of others, for a terminal: without anything that a terminal would obey, colours included, or that turns the
/// direction of reading.
pub fn clean(text: &str) -> String {
    without_colours(text)
        .replace("\r\n", "\n")
        .replace('\r', "\n")
        .replace(is_obeyed, "\u{fffd}")
}

/// The same for a patch, in which a carriage return stays on its line: otherwise a line could begin anew behind it.
pub fn clean_patch(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "^M");
    clean(&text)
}

/// The same for a name in a list: it stays on its line.
pub fn clean_line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], "\u{fffd}")
}

/// A text without its colours; whatever else a terminal would obey stays in it.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match style(rest.as_bytes()) {
            Style::Is(length) => length,
            _ => {
                plain.push('\x1b');
                1
            }
        };
        rest = &rest[length..];
    }
    plain + rest
}

/// Whether the numbers of a sequence hide what follows (8). Those of a colour (`38;5;8`) are its own.
fn hides(numbers: &[u8]) -> bool {
    let mut all = numbers.split(|byte| *byte == b';').map(|one| {
        let text = std::str::from_utf8(one).unwrap_or_default();
        text.trim_start_matches('0').to_owned()
    });
    while let Some(number) = all.next() {
        match number.as_str() {
            "8" => return true,
            "38" | "48" | "58" => match all.next().as_deref() {
                Some("5") => drop(all.next()),
                Some("2") => drop((all.next(), all.next(), all.next())),
                _ => return true,
            },
            _ => {}
        }
    }
    false
}

/// Whether a terminal would obey a character, or read on in another direction.
pub fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && c != '\n' && c != '\t')
}

/// Words, and why, if that is known.
pub fn because(words: String, why: &str) -> String {
    match why.trim() {
        "" => words,
        // It says the same at greater length.
        why if why.starts_with(&words) => why.to_owned(),
        _ => format!("{words}: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown of pieces that come one after the other.
    fn shown(form: Form, pieces: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let mut screen = Screen::new(&mut out, form);
        for piece in pieces {
            screen.write_all(piece).unwrap();
        }
        drop(screen);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn x21_nothing_that_a_terminal_obeys_is_shown_but_colours() {
        for (text, told) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[1;31mred\u{1b}[0m", "\u{1b}[1;31mred\u{1b}[0m"),
            ("\u{1b}[38:5:196mred\u{1b}[m", "\u{1b}[38:5:196mred\u{1b}[m"),
            (
                "\u{1b}]52;c;ZXZpbA==\u{7}",
                "\u{fffd}]52;c;ZXZpbA==\u{fffd}",
            ),
            ("\u{1b}]0;title\u{1b}\\", "\u{fffd}]0;title\u{fffd}\\"),
            ("\u{1b}[2J\u{1b}[H", "\u{fffd}[2J\u{fffd}[H"),
            ("\u{1b}[?1049h", "\u{fffd}[?1049h"),
            ("\u{1b}[31", "\u{fffd}[31"),
            ("\u{1b}[8mhidden", "\u{fffd}[8mhidden"),
            ("\u{1b}[1;8;31mhidden", "\u{fffd}[1;8;31mhidden"),
            ("\u{1b}P+q544e\u{1b}\\", "\u{fffd}P+q544e\u{fffd}\\"),
            ("\u{1b}c", "\u{fffd}c"),
            ("end\u{1b}", "end\u{fffd}"),
            ("\u{9b}2J\u{9d}0;x\u{9c}", "\u{fffd}2J\u{fffd}0;x\u{fffd}"),
            ("a\u{8}\u{7f}\u{e}b", "a\u{fffd}\u{fffd}\u{fffd}b"),
            (
                "over\rwritten\r\nnext\r",
                "over\u{fffd}written\nnext\u{fffd}",
            ),
            (
                "a\u{202e}b\u{2066}c\u{200f}d",
                "a\u{fffd}b\u{fffd}c\u{fffd}d",
            ),
            ("日本語 ü", "日本語 ü"),
        ] {
            assert_eq!(shown(Form::Text, &[text.as_bytes()]), told, "{text:?}");
            // However it is cut, the same is shown.
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(shown(Form::Text, &bytes), told, "{text:?}");
        }
        assert_eq!(
            shown(Form::Text, &[b"a\xff\x9b2J\xc3"]),
            "a\u{fffd}\u{fffd}2J\u{fffd}"
        );
        let long = format!("\u{1b}[{}m", "1;".repeat(200));
        assert!(shown(Form::Text, &[long.as_bytes()]).starts_with('\u{fffd}'));
    }

    #[test]
    fn x21_programs_get_every_character_escaped() {
        let text = "a\u{7f}\u{9b}2J\u{202e}b\u{1b}[31mé";
        let told = shown(
            Form::Json,
            &[serde_json::to_string(text).unwrap().as_bytes()],
        );
        assert!(told.chars().all(|c| !is_obeyed(c)), "{told:?}");
        assert_eq!(serde_json::from_str::<String>(&told).unwrap(), text);
    }

    #[test]
    fn x21_a_colour_that_somebody_left_is_taken_back() {
        let mut out = Vec::new();
        let mut screen = Screen::new(&mut out, Form::Text);
        for text in ["\x1b[31mred", "\x1b[31mred\x1b[0m"] {
            screen.write_all(text.as_bytes()).unwrap();
            screen.end_style().unwrap();
        }
        // The end of a stream is one of what was said, too.
        screen.write_all(b"\x1b[31mred").unwrap();
        drop(screen);
        let red = "\x1b[31mred\x1b[0m".repeat(3);
        assert_eq!(String::from_utf8(out).unwrap(), red);
    }
}
