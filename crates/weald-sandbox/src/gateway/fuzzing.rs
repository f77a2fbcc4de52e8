//! What must hold for any question that a run asks its resolver, and any address that it wants to be connected to. A target
//! in `fuzz/` calls this, and a test replays its corpus.

use std::net::Ipv4Addr;

use super::resolver::{Asked, reply};
use super::{address_in, bytes_of};

/// A message to the resolver, which is also read as an address.
pub fn name_question(data: &[u8]) {
    if let Some(address) = address_in(data) {
        for is_six in [false, true] {
            let again = bytes_of(address, is_six);
            assert_eq!(address_in(&again), Some(address));
        }
    }
    let Some(read) = Asked::read(data) else {
        return;
    };
    let (section, code) = match &read {
        Ok(asked) => (asked.section, 0),
        Err(code) => (&[][..], *code),
    };
    if let Ok(Asked {
        name: Some(name), ..
    }) = &read
    {
        let is_plain = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '_' | '.');
        assert!(name.chars().all(is_plain) && (1..=255).contains(&name.len()));
        assert!(name.split('.').all(|label| (1..=63).contains(&label.len())));
    }
    let answer = reply(data, section, code, Some(Ipv4Addr::LOCALHOST));
    assert_eq!(answer[..2], data[..2], "the asker knows it by its number");
    assert!(answer.len() <= data.len() + 16, "it makes nothing larger");
    assert!(Asked::read(&answer).is_none(), "an answer is no question");
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn what_was_found_by_fuzzing_stays_fixed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/name_question");
        for file in fs::read_dir(folder).unwrap() {
            name_question(&fs::read(file.unwrap().path()).unwrap());
        }
    }
}
