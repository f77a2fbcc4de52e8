//! Characters that are not seen, or that turn the direction of reading: with them a line says something else than it shows.

/// Whether a character makes a line read as another one. Joiners and marks that scripts and emoji need are none of them.
pub fn misleads(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Text of others as nothing but text: without control sequences, control characters and what makes a line read as another
/// one. Where a terminal would write over a line, the newest of it is kept.
pub fn plain(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => match rest.next() {
                // Numbers and marks, up to the letter that ends it.
                Some('[') => drop(rest.by_ref().find(|c| ('@'..='~').contains(c))),
                // Words, up to a bell or the next escape.
                Some(']' | 'P' | '^' | '_' | 'X') => {
                    while let Some(c) = rest.next() {
                        if c == '\u{7}'
                            || c == '\n'
                            || (c == '\u{1b}' && rest.next_if_eq(&'\\').is_some())
                        {
                            break;
                        }
                    }
                }
                _ => {}
            },
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => kept.truncate(kept.rfind('\n').map_or(0, |end| end + 1)),
            '\n' | '\t' => kept.push(c),
            c if c.is_control() || misleads(c) => {}
            c => kept.push(c),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a5_text_of_others_is_nothing_but_text() {
        for (text, expected) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("a\u{1b}]0;title\u{7}b\u{1b}]8;;x\u{1b}\\c", "abc"),
            ("\u{1b}]never ended\nnext", "next"),
            ("10%\r20%\r100%\r\nnext", "100%\nnext"),
            ("a\u{8}\u{202e}b\u{200b}c\u{e0041}\u{0}", "abc"),
            ("end\u{1b}", "end"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }

    #[test]
    fn p12_what_is_not_seen_is_told_from_what_scripts_need() {
        for odd in ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{e0041}'] {
            assert!(misleads(odd), "{odd:?}");
        }
        for plain in [
            'a', ' ', 'ש', '漢', '\u{200d}', '\u{200c}', '\u{200f}', '🏴',
        ] {
            assert!(!misleads(plain), "{plain:?}");
        }
    }
}
