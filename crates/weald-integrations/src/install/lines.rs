//! Two texts, line by line: what changed, for people, and line endings that stay as they were.

use std::ops::Range;

use similar::algorithms::{Capture, Replace, diff_slices};
use similar::{Algorithm, DiffOp, DiffTag, group_diff_ops};

/// The most pairs of lines for which the shortest change is looked for; beyond that a short one will do.
const PAIRS: usize = 4_000_000;

/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;

/// The change as `diff -u` shows it; empty if there is none. A text that is not there has no name.
pub(super) fn unified(old: (&str, &str), new: (&str, &str)) -> String {
    let (before, after) = (lines(old.1), lines(new.1));
    let mut text = String::new();
    for hunk in group_diff_ops(compare(&before, &after), CONTEXT) {
        if text.is_empty() {
            text = format!("--- {}\n+++ {}\n", old.0, new.0);
        }
        let (first, last) = (&hunk[0], &hunk[hunk.len() - 1]);
        let old = range(first.old_range().start..last.old_range().end);
        let new = range(first.new_range().start..last.new_range().end);
        text.push_str(&format!("@@ -{old} +{new} @@\n"));
        for change in hunk.iter().flat_map(|op| op.iter_changes(&before, &after)) {
            text.push_str(&format!("{}{}", change.tag(), change.value()));
            if !text.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    text
}

fn range(lines: Range<usize>) -> String {
    let start = lines.start + usize::from(!lines.is_empty());
    format!("{start},{}", lines.len())
}

/// The new text with the line endings of the old one: unchanged lines keep theirs, others get the one that is usual there.
pub(super) fn with_endings_of(old: &str, new: &str) -> String {
    if !old.contains('\r') {
        return new.to_owned();
    }
    let usual = usual_ending(old);
    let (before, after) = (lines(old), lines(new));
    let bodies =
        [&before, &after].map(|lines| lines.iter().map(|line| body(line)).collect::<Vec<_>>());
    let mut text = String::new();
    for op in compare(&bodies[0], &bodies[1]) {
        let is_kept = op.tag() == DiffTag::Equal;
        let lines = match is_kept {
            true => &before[op.old_range()],
            false => &after[op.new_range()],
        };
        for line in lines {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push_str(usual);
            }
            match (is_kept, line.ends_with('\n')) {
                (true, _) => text.push_str(line),
                (false, true) => text.extend([body(line), usual]),
                (false, false) => text.push_str(body(line)),
            }
        }
    }
    text
}

/// How lines end in a text, mostly.
pub(super) fn usual_ending(text: &str) -> &'static str {
    let windows = text.matches("\r\n").count();
    let all = text.matches('\n').count();
    if windows * 2 > all { "\r\n" } else { "\n" }
}

fn body(line: &str) -> &str {
    line.trim_end_matches(['\r', '\n'])
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn compare(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let algorithm = match old.len() * new.len() <= PAIRS {
        true => Algorithm::Lcs,
        false => Algorithm::Myers,
    };
    let mut found = Replace::new(Capture::new());
    let Ok(()) = diff_slices(algorithm, &mut found, old, new);
    found.into_inner().into_ops()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n";
        let new = "1\n2\n3\n4\n5!\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17";
        let expected = "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+5!\n 6\n 7\n 8\n\
                        @@ -14,3 +14,4 @@\n 14\n 15\n 16\n+17\n\\ No newline at end of file\n";
        assert_eq!(unified(("a", old), ("b", new)), expected);
        assert_eq!(unified(("a", old), ("b", old)), "");
        let made = "--- /dev/null\n+++ b\n@@ -0,0 +1,1 @@\n+x\n";
        assert_eq!(unified(("/dev/null", ""), ("b", "x\n")), made);
    }

    #[test]
    fn unchanged_lines_keep_their_endings_and_new_ones_get_the_usual() {
        for (old, new, expected) in [
            ("a\nb\n", "a\nb\nc\n", "a\nb\nc\n"),
            ("a\r\nb\r\n", "a\nb\nc\n", "a\r\nb\r\nc\r\n"),
            ("a\r\nb\nc\r\n", "a\nb\nx\nc\n", "a\r\nb\nx\r\nc\r\n"),
            ("a\r\nb", "a\nb\nc\n", "a\r\nb\r\nc\r\n"),
        ] {
            assert_eq!(with_endings_of(old, new), expected, "{old:?} {new:?}");
        }
    }
}
