//! A diff in the user's colours, in which no content can forge any.
//!
//! git passes on whatever is in a file. So it colours with random colours that stand for the user's; only those become
//! colours here, and everything else is content.

use std::fs::File;
use std::io::{self, Read};

use weald_core::git_diff::COLORS;

use super::clean_patch;

/// git ends each of its colours with this.
const RESET: &str = "\x1b[m";

/// Random colours, each for one of git's.
pub struct Palette {
    random: [u8; 5],
    /// The sequence for each of [`COLORS`].
    colors: Vec<String>,
}

impl Palette {
    /// Stands for these sequences, one for each of [`COLORS`].
    pub fn new(colors: Vec<String>) -> io::Result<Self> {
        let mut random = [0; 5];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        Ok(Self { random, colors })
    }

    /// What git has to be set to.
    pub fn settings(&self) -> impl Iterator<Item = (String, String)> {
        let [a, b, c, d, e] = self.random;
        let one = move |(place, (name, _)): (usize, &(&str, &str))| {
            let key = format!("color.diff.{name}");
            let value = format!("#{a:02x}{b:02x}{c:02x} #{d:02x}{e:02x}{place:02x}");
            (key, value)
        };
        COLORS.iter().enumerate().map(one)
    }

    /// The text of a git with those settings as it may be shown. git gives words that stay the same no colour if there is
    /// none to give.
    pub fn paint(&self, text: &str, compares_words: bool) -> String {
        let [a, b, c, d, e] = self.random;
        let mark = format!("\x1b[38;2;{a};{b};{c};48;2;{d};{e};");
        let mut painted = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            self.paint_line(line, &mark, compares_words, &mut painted);
        }
        painted
    }

    fn paint_line(&self, line: &str, mark: &str, compares_words: bool, painted: &mut String) {
        let (first, pieces) = line.split_once(mark).unwrap_or((line, ""));
        painted.push_str(&clean_patch(first));
        if pieces.is_empty() {
            return;
        }
        let pieces: Vec<_> = pieces.split(mark).collect();
        // A line that stays the same as a whole is no matter of words.
        let is_of_words = compares_words && pieces.len() > 1;
        let is_head = line.starts_with(mark) && line[mark.len()..].starts_with("2m");
        for piece in pieces {
            let color = piece.split_once('m').and_then(|(place, rest)| {
                let color = self.colors.get(place.parse::<usize>().ok()?)?;
                Some((color, rest))
            });
            let Some((color, rest)) = color else {
                painted.push_str(&clean_patch(piece));
                continue;
            };
            // It ends with the last one: any before that is content.
            let (content, after) = rest.rsplit_once(RESET).unwrap_or((rest, ""));
            // Together with what ends the line, a carriage return would be taken for a part of that.
            let content = content.replace('\r', "^M");
            let content = clean_patch(&content);
            match is_of_words && color.is_empty() && !is_head {
                true => painted.push_str(&content),
                false => painted.extend([color.as_str(), &content, RESET]),
            }
            painted.push_str(&clean_patch(after));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn palette() -> Palette {
        let colors = COLORS.iter().map(|(_, code)| (*code).to_owned());
        let random = [1, 2, 3, 4, 5];
        let colors = colors.collect();
        Palette { random, colors }
    }

    #[test]
    fn u8_only_git_itself_colours_a_patch() {
        let (new, context) = ("\x1b[38;2;1;2;3;48;2;4;5;4m", "\x1b[38;2;1;2;3;48;2;4;5;0m");
        for (told, shown) in [
            (
                format!("{new}+{RESET}{new}added{RESET}\n"),
                "\x1b[32m+\x1b[m\x1b[32madded\x1b[m\n",
            ),
            (format!("{context} same{RESET}\n"), " same\x1b[m\n"),
            // Colours, their end and other sequences of the content.
            (
                format!("{new}+{RESET}{new}a\x1b[mb\x1b[31mc\x1b[0md\x1b]0;t\x07{RESET}\n"),
                "\x1b[32m+\x1b[m\x1b[32mabcd\u{fffd}]0;t\u{fffd}\x1b[m\n",
            ),
            // What looks like a colour of another palette.
            (
                format!("{new}+\x1b[38;2;9;9;9;48;2;9;9;4mx{RESET}\n"),
                "\x1b[32m+x\x1b[m\n",
            ),
            // A carriage return begins no line.
            (
                format!("{new}+x\r-y\r{RESET}\n"),
                "\x1b[32m+x^M-y^M\x1b[m\n",
            ),
            // Cut in the middle: the colour ends with the line.
            (format!("{new}+cut"), "\x1b[32m+cut\x1b[m"),
            (
                "\x1b[38;2;1;2;3;48;2;4;5;99mno such colour".to_owned(),
                "99mno such colour",
            ),
        ] {
            assert_eq!(palette().paint(&told, false), shown, "{told:?}");
        }
        let words = format!("{context}same {RESET}{new}{{+new+}}{RESET}\n");
        assert_eq!(
            palette().paint(&words, true),
            "same \x1b[32m{+new+}\x1b[m\n"
        );
    }
}
