//! The lines that conflict, from the merged files with their markers.

use std::path::Path;

use weald_git::{Git, GitError};

use super::{Hunk, PathConflict};

/// How many files of a pair are read.
const FILES: usize = 20;

/// The largest file that is read, and how much is read in all.
const FILE_LIMIT: u64 = 1 << 20;
const ALL: u64 = 64 << 20;

/// How many hunks of a file are told.
const HUNKS: usize = 5;

/// How many lines of a side are told, and how much of a line.
const LINES: usize = 12;
const LINE: usize = 200;

/// A pair that does not merge.
pub(super) struct Unmerged {
    /// The merge with markers.
    pub tree: String,
    /// What the markers name.
    pub sides: (String, String),
    /// The paths as git has them.
    pub raw: Vec<Vec<u8>>,
    /// The same for people.
    pub conflicts: Vec<PathConflict>,
}

/// Adds hunks to all of them, with two processes.
pub(super) fn add_hunks(repository: &Path, pairs: &mut [Unmerged]) -> Result<(), GitError> {
    // Which file of which pair, and how git is asked for it.
    let mut wanted: Vec<(usize, usize, Vec<u8>)> = Vec::new();
    for (place, pair) in pairs.iter().enumerate() {
        for (number, path) in pair.raw.iter().take(FILES).enumerate() {
            let name = [pair.tree.as_bytes(), b":", path, b"\0"].concat();
            wanted.push((place, number, name));
        }
    }
    let ask = |wanted: &[(usize, usize, Vec<u8>)], format: &str| {
        let names: Vec<&[u8]> = wanted.iter().map(|(_, _, name)| name.as_slice()).collect();
        Git::new(repository, "cat-file")
            .args(["-z", format])
            .input(names.concat())
            .run()
    };
    let checked = ask(&wanted, "--batch-check=%(objecttype) %(objectsize)")?;
    let checked = String::from_utf8_lossy(&checked);
    let mut lines = checked.lines();
    let mut room = ALL;
    wanted.retain(|_| {
        let size = lines.next().and_then(|line| line.strip_prefix("blob "));
        let size: Option<u64> = size.and_then(|size| size.parse().ok());
        let fits = size.filter(|size| *size <= FILE_LIMIT.min(room));
        room -= fits.unwrap_or(0);
        fits.is_some()
    });
    if wanted.is_empty() {
        return Ok(());
    }
    let answer = ask(&wanted, "--batch=%(objectsize)")?;
    let mut rest = answer.as_slice();
    for (place, number, _) in wanted {
        let Some((content, after)) = next_content(rest) else {
            break;
        };
        rest = after;
        let pair = &mut pairs[place];
        let (ours, theirs) = (&pair.sides.0, &pair.sides.1);
        pair.conflicts[number].hunks = hunks(&String::from_utf8_lossy(content), (ours, theirs));
    }
    Ok(())
}

/// One file of `cat-file --batch`: its size and the end of the line, that many bytes, the end of the line.
fn next_content(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let size: usize = String::from_utf8_lossy(&bytes[..end]).parse().ok()?;
    let rest = &bytes[end + 1..];
    Some((rest.get(..size)?, rest.get(size + 1..)?))
}

/// Where a line belongs.
enum Part {
    Both,
    Ours,
    Base,
    Theirs,
}

/// The hunks in a merged file. Only markers that name the sides count: a file may be about markers.
fn hunks(text: &str, (ours, theirs): (&str, &str)) -> Vec<Hunk> {
    let is_marker = |line: &str, sign: char, name: &str| {
        let rest = line.trim_start_matches(sign);
        line.starts_with(sign)
            && rest
                .strip_prefix(' ')
                .is_some_and(|rest| rest.starts_with(name))
    };
    let is_middle = |line: &str| line.len() >= 7 && line.chars().all(|c| c == '=');
    let mut found: Vec<Hunk> = Vec::new();
    let (mut part, mut number) = (Part::Both, 1_u64);
    for line in text.lines() {
        match part {
            Part::Both if is_marker(line, '<', ours) => {
                if found.len() == HUNKS {
                    break;
                }
                found.push(Hunk {
                    line: number,
                    ..Hunk::default()
                });
                part = Part::Ours;
            }
            Part::Both => number += 1,
            Part::Ours if line.starts_with("|||||||") => part = Part::Base,
            Part::Ours | Part::Base if is_middle(line) => part = Part::Theirs,
            Part::Theirs if is_marker(line, '>', theirs) => part = Part::Both,
            Part::Base => {}
            Part::Ours | Part::Theirs => {
                let is_ours = matches!(part, Part::Ours);
                number += u64::from(is_ours);
                if let Some(hunk) = found.last_mut() {
                    hunk.take(line, is_ours);
                }
            }
        }
    }
    found
}

impl Hunk {
    fn take(&mut self, line: &str, is_ours: bool) {
        let side = if is_ours { &mut self.a } else { &mut self.b };
        if side.len() == LINES {
            self.truncated = true;
            return;
        }
        let short: String = line.chars().take(LINE).collect();
        self.truncated |= short.len() < line.len();
        side.push(short);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_have_the_lines_of_both_sides() {
        let text = "one\n<<<<<<< not a marker of ours\n<<<<<<< aaa\nours\n=======\ntheirs 1\ntheirs 2\n>>>>>>> bbb:old/name\n\
                    between\n<<<<<<< aaa\n=======\nadded\n>>>>>>> bbb\nlast\n";
        let hunk = |line, a: &[&str], b: &[&str]| Hunk {
            line,
            a: a.iter().map(|line| (*line).to_owned()).collect(),
            b: b.iter().map(|line| (*line).to_owned()).collect(),
            truncated: false,
        };
        assert_eq!(
            hunks(text, ("aaa", "bbb")),
            [
                hunk(3, &["ours"], &["theirs 1", "theirs 2"]),
                hunk(5, &[], &["added"])
            ]
        );
        let long = format!("<<<<<<< a\n{}=======\n>>>>>>> b\n", "x\n".repeat(100)).repeat(20);
        let found = hunks(&long, ("a", "b"));
        assert_eq!((found.len(), found[0].a.len()), (HUNKS, LINES));
        assert!(found[0].truncated);
    }
}
