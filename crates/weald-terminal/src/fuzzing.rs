//! What must hold for any bytes that a program writes to its terminal, and for any that arrive over the socket of one. The
//! targets in `fuzz/` call these functions, and a test replays their corpus.

use crate::screen::{Screen, Size};
use crate::wire::{Incoming, LONGEST_FROM_VIEWER, Message};

/// A small terminal, so that everything meets its edges.
const SIZE: Size = Size {
    columns: 12,
    rows: 4,
};

/// What a program writes: a viewer sees its screen, and gets nothing that it wrote itself.
pub fn terminal_output(data: &[u8]) {
    let mut screen = Screen::new(SIZE);
    let (first, second) = data.split_at(data.len() / 2);
    let replies = [screen.read(first), screen.read(second)].concat();
    assert!(
        replies.len() <= 64 * data.len() + 1024,
        "answers grow with questions alone"
    );
    screen.end_held_back();
    let picture = screen.picture();
    assert_eq!(picture.text().len(), usize::from(SIZE.rows));
    let lines: Vec<Vec<u8>> = screen.scrolled_since(0).map(<[u8]>::to_vec).collect();
    let drawn = picture.drawn(None, lines.iter().map(Vec::as_slice), SIZE);
    let mut signs = drawn.chars();
    while let Some(sign) = signs.next() {
        match sign {
            // What weald itself writes: sequences that begin with a bracket, and the two modes of the keypad.
            '\x1b' => assert!(matches!(signs.next(), Some('[' | '=' | '>')), "{drawn:?}"),
            '\r' | '\n' => {}
            sign => assert!(!sign.is_control(), "{sign:?} in {drawn:?}"),
        }
    }
    let mut viewer = Screen::new(SIZE);
    viewer.read(drawn.as_bytes());
    assert_eq!(viewer.text(), picture.text(), "{drawn:?}");
}

/// What arrives over the socket: the same messages in whatever pieces, and each as it was sent.
pub fn terminal_wire(data: &[u8]) {
    let whole = messages(data, usize::MAX);
    assert_eq!(messages(data, 3), whole);
    let (messages, _) = whole;
    let sent: Vec<u8> = messages.iter().flat_map(Message::encoded).collect();
    assert_eq!(self::messages(&sent, usize::MAX), (messages, true));
}

/// The messages up to the first nonsense, and whether there was none.
fn messages(data: &[u8], piece: usize) -> (Vec<Message>, bool) {
    let (mut incoming, mut found) = (Incoming::default(), Vec::new());
    for part in data.chunks(piece.min(16 * 1024)) {
        incoming.read(part).expect("a slice can be read");
        loop {
            match incoming.next(LONGEST_FROM_VIEWER) {
                Ok(Some(message)) => found.push(message),
                Ok(None) => break,
                Err(_) => return (found, false),
            }
        }
    }
    (found, true)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn what_was_found_by_fuzzing_stays_fixed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        let replay = |target: &str, check: fn(&[u8])| {
            for file in fs::read_dir(folder.join(target)).unwrap() {
                check(&fs::read(file.unwrap().path()).unwrap());
            }
        };
        replay("terminal_output", terminal_output);
        replay("terminal_wire", terminal_wire);
    }
}
