//! Two texts, line by line: what changed, for people, and line endings that stay as they were.

/// The most pairs of lines that are compared; beyond that a changed part is shown as replaced.
const PAIRS: usize = 4_000_000;

/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;

/// A line of either text, with its ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    /// In both; as the old text has it.
    Same(&'a str),
    /// Only in the old one.
    Gone(&'a str),
    /// Only in the new one.
    New(&'a str),
}

/// The change as `diff -u` shows it; empty if there is none. A text that is not there has no name.
pub(super) fn unified(old: (&str, &str), new: (&str, &str)) -> String {
    let lines = compare(old.1, new.1, |line| line);
    let is_change = |line: &Line<'_>| !matches!(line, Line::Same(_));
    let mut told = String::new();
    let mut next = 0;
    while let Some(first) = lines[next..].iter().position(is_change) {
        let first = next + first;
        let mut last = first;
        for (at, line) in lines.iter().enumerate().skip(first) {
            if is_change(line) {
                last = at;
            } else if at - last > 2 * CONTEXT {
                break;
            }
        }
        let begin = first.saturating_sub(CONTEXT).max(next);
        let end = (last + CONTEXT + 1).min(lines.len());
        if told.is_empty() {
            told = format!("--- {}\n+++ {}\n", old.0, new.0);
        }
        hunk(&mut told, &lines, begin, end);
        next = end;
    }
    told
}

fn hunk(told: &mut String, lines: &[Line<'_>], begin: usize, end: usize) {
    let is_old = |line: &&Line<'_>| !matches!(line, Line::New(_));
    let is_new = |line: &&Line<'_>| !matches!(line, Line::Gone(_));
    let range = |is_in: &dyn Fn(&&Line<'_>) -> bool| {
        let before = lines[..begin].iter().filter(|line| is_in(line)).count();
        let count = lines[begin..end].iter().filter(|line| is_in(line)).count();
        let start = if count == 0 { before } else { before + 1 };
        format!("{start},{count}")
    };
    told.push_str(&format!("@@ -{} +{} @@\n", range(&is_old), range(&is_new)));
    for line in &lines[begin..end] {
        let (sign, text) = match line {
            Line::Same(text) => (' ', text),
            Line::Gone(text) => ('-', text),
            Line::New(text) => ('+', text),
        };
        told.push(sign);
        told.push_str(text);
        if !text.ends_with('\n') {
            told.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// The new text with the line endings of the old one: unchanged lines keep theirs, others get the one that is usual there.
pub(super) fn with_endings_of(old: &str, new: &str) -> String {
    if !old.contains('\r') {
        return new.to_owned();
    }
    let usual = usual_ending(old);
    let lines = compare(old, new, body);
    let mut text = String::new();
    for line in lines {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push_str(usual);
        }
        match line {
            Line::Same(line) => text.push_str(line),
            Line::Gone(_) => {}
            Line::New(line) => {
                text.push_str(body(line));
                if line.ends_with('\n') {
                    text.push_str(usual);
                }
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

/// Which lines of both texts are the same, by what `key` makes of them.
fn compare<'a>(old: &'a str, new: &'a str, key: fn(&str) -> &str) -> Vec<Line<'a>> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let equal = |a: &&str, b: &&str| key(a) == key(b);
    let pairs = old.iter().zip(&new);
    let head = pairs.take_while(|(a, b)| equal(a, b)).count();
    let pairs = old[head..].iter().rev().zip(new[head..].iter().rev());
    let tail = pairs.take_while(|(a, b)| equal(a, b)).count();
    let (from, to) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut lines: Vec<_> = old[..head].iter().copied().map(Line::Same).collect();
    match from.len() * to.len() <= PAIRS {
        true => longest_common(from, to, &equal, &mut lines),
        false => {
            lines.extend(from.iter().copied().map(Line::Gone));
            lines.extend(to.iter().copied().map(Line::New));
        }
    }
    lines.extend(old[old.len() - tail..].iter().copied().map(Line::Same));
    lines
}

fn longest_common<'a>(
    from: &[&'a str],
    to: &[&'a str],
    equal: &dyn Fn(&&str, &&str) -> bool,
    lines: &mut Vec<Line<'a>>,
) {
    let width = to.len() + 1;
    // How many lines the rests have in common, from each pair of places on.
    let mut common = vec![0_u32; (from.len() + 1) * width];
    for a in (0..from.len()).rev() {
        for b in (0..to.len()).rev() {
            common[a * width + b] = match equal(&from[a], &to[b]) {
                true => common[(a + 1) * width + b + 1] + 1,
                false => common[(a + 1) * width + b].max(common[a * width + b + 1]),
            };
        }
    }
    let (mut a, mut b) = (0, 0);
    while a < from.len() && b < to.len() {
        if equal(&from[a], &to[b]) {
            lines.push(Line::Same(from[a]));
            (a, b) = (a + 1, b + 1);
        } else if common[(a + 1) * width + b] >= common[a * width + b + 1] {
            lines.push(Line::Gone(from[a]));
            a += 1;
        } else {
            lines.push(Line::New(to[b]));
            b += 1;
        }
    }
    lines.extend(from[a..].iter().copied().map(Line::Gone));
    lines.extend(to[b..].iter().copied().map(Line::New));
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
