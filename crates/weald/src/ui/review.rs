//! What a person is shown before a landing is approved.

use std::io::{self, Write};

use weald_app::Review;

use super::{ACCENT, DIM, clean_line, paint};

/// How many commits and files are shown to people.
const SHOWN: usize = 30;

/// The start of a commit's id, for people.
pub fn short(commit: &str) -> &str {
    commit.get(..9).unwrap_or(commit)
}

/// Shows the commits and files that would be approved.
pub fn print_review(out: &mut dyn Write, review: &Review) -> io::Result<()> {
    for commit in review.commits.iter().take(SHOWN) {
        let id = paint(DIM, short(&commit.commit));
        writeln!(out, "  {id} {}", clean_line(&commit.subject))?;
    }
    more(out, review.commits.len(), "commits")?;
    // Those that need somebody's eyes come first.
    let (protected, others): (Vec<_>, Vec<_>) =
        review.files.iter().partition(|file| file.protected);
    for file in protected.iter().chain(&others).take(SHOWN) {
        let path = clean_line(&file.path);
        match file.protected {
            true => writeln!(out, "  {path}  {}", paint(ACCENT, "(protected)"))?,
            false => writeln!(out, "  {path}")?,
        }
    }
    more(out, review.files.len(), "files")
}

fn more(out: &mut dyn Write, count: usize, what: &str) -> io::Result<()> {
    match count > SHOWN {
        true => writeln!(out, "  and {} more {what}", count - SHOWN),
        false => Ok(()),
    }
}
