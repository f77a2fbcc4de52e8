//! Characters that are not seen, or that turn the direction of reading: with them a line says something else than it shows.

/// Whether a character makes a line read as another one. Joiners and marks that scripts and emoji need are none of them.
pub fn misleads(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

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
