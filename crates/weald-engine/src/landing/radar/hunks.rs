//! The lines that conflict, from the merged files with their markers.

use std::collections::BTreeMap;
use std::path::Path;

use weald_git::{Git, GitError};

use super::{Hunk, PathConflict};

/// How many files of a pair are read.
const FILES: usize = 20;

/// The largest file that is read.
const FILE_LIMIT: u64 = 1 << 20;

/// How many hunks of a file are told.
const HUNKS: usize = 5;

/// How many lines of a side are told, and how much of a line.
const LINES: usize = 12;
const LINE: usize = 200;

/// Adds hunks to conflicts of one pair. `tree` is the merge with markers, which name both sides.
pub(super) fn add_hunks(
    repository: &Path,
    tree: &str,
    sides: (&str, &str),
    conflicts: &mut [PathConflict],
    raw: &[Vec<u8>],
) -> Result<(), GitError> {
    let wanted: Vec<&Vec<u8>> = raw.iter().take(FILES).collect();
    let names = |paths: &[&Vec<u8>]| {
        let mut input = Vec::new();
        for path in paths {
            input.extend_from_slice(tree.as_bytes());
            input.push(b':');
            input.extend_from_slice(path);
            input.push(0);
        }
        input
    };
    let checked = Git::new(repository, "cat-file")
        .args(["-z", "--batch-check=%(objecttype) %(objectsize)"])
        .input(names(&wanted))
        .run()?;
    let checked = String::from_utf8_lossy(&checked);
    let is_small = |line: &str| {
        let size = line
            .strip_prefix("blob ")
            .and_then(|size| size.parse().ok());
        size.is_some_and(|size: u64| size <= FILE_LIMIT)
    };
    let small: Vec<_> = wanted
        .into_iter()
        .zip(checked.lines())
        .filter(|(_, line)| is_small(line))
        .map(|(path, _)| path)
        .collect();
    if small.is_empty() {
        return Ok(());
    }
    let answer = Git::new(repository, "cat-file")
        .args(["-z", "--batch=%(objectsize)"])
        .input(names(&small))
        .run()?;
    let mut texts = BTreeMap::new();
    let mut rest = answer.as_slice();
    for path in small {
        let Some((content, after)) = next_content(rest) else {
            break;
        };
        texts.insert(String::from_utf8_lossy(path).into_owned(), content);
        rest = after;
    }
    for conflict in conflicts {
        if let Some(content) = texts.get(&conflict.path) {
            conflict.hunks = hunks(&String::from_utf8_lossy(content), sides);
        }
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
