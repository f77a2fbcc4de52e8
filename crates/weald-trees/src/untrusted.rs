//! What comes out of a tree is an agent's word: every id, name, number and text in it is checked once, before anything on
//! the host uses it. What must hold for any answer is here; what must hold for that of a job is next to the job.

use std::io::{BufRead, Read};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weald_git::Commit;

/// The longest first line of an answer.
const LINE_LIMIT: u64 = 32 << 20;

/// How many changed paths an answer may name.
pub(super) const MANY: usize = 20_000;

/// How many refs of its own an inner repository may have.
pub(super) const REFS: usize = 10_000;

/// How many stash entries and earlier HEADs are taken in.
pub(super) const SOME: usize = 1_000;

/// The longest message of a program inside.
const MESSAGE: usize = 4096;

/// No tree has more changes than this; sums of them don't overflow.
pub(super) const COUNT: u64 = u32::MAX as u64;

/// No tree is larger than this; sums of sizes don't overflow.
pub(super) const BYTES: u64 = 1 << 50;

/// What a kind of job answers.
pub trait Reply: Serialize + DeserializeOwned {
    /// The same with nothing in it that could be taken for something else; `None` if it makes no sense.
    fn checked(self) -> Option<Self>;
}

impl Reply for () {
    fn checked(self) -> Option<Self> {
        Some(self)
    }
}

/// The first line of an answer.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer<R> {
    Done { job: String, reply: R },
    Failed(String),
}

impl<'r, R> Answer<&'r R> {
    pub(super) fn of(job: &str, reply: &'r R) -> Self {
        Self::Done {
            job: job.to_owned(),
            reply,
        }
    }
}

impl<R: Reply> Answer<R> {
    /// The reply to a job, checked, or why the job was not done.
    pub(super) fn checked(self, asked: &str) -> Option<Result<R, String>> {
        match self {
            Self::Done { job, reply } if job == asked => Some(Ok(reply.checked()?)),
            Self::Done { .. } => None,
            Self::Failed(why) => Some(Err(message(why))),
        }
    }
}

/// The checked answer in the first line; what follows stays to be read. A line counts only if this binary would write it,
/// byte for byte: nothing is missing from it, and nothing is added.
pub(super) fn first_line<R: Reply>(
    job: &str,
    rest: &mut impl BufRead,
) -> Option<Result<R, String>> {
    let mut line = Vec::new();
    rest.take(LINE_LIMIT).read_until(b'\n', &mut line).ok()?;
    let line = line.strip_suffix(b"\n")?;
    let answer: Answer<R> = serde_json::from_slice(line).ok()?;
    let is_exact = serde_json::to_vec(&answer).ok()? == line;
    is_exact.then(|| answer.checked(job)).flatten()
}

pub(super) fn is_id(text: &str) -> bool {
    Commit::parse(text).is_some()
}

/// A name that is safe as a file and as a ref; git itself checks the rest.
pub(super) fn is_ref_name(name: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && c != ' ' && !is_invisible(c);
    name.len() < 1024
        && name.chars().all(is_plain)
        && name
            .split('/')
            .all(|part| !part.is_empty() && !part.starts_with('.') && part.len() < 250)
}

/// A name of a ref that git would not object to, so that a file can be made of it without git.
pub(super) fn is_simple_name(name: &str) -> bool {
    let is_simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let is_part = |part: &str| {
        let has_odd_end = part.ends_with('.') || part.ends_with(".lock");
        !has_odd_end && !part.starts_with('-') && !part.contains("..")
    };
    is_ref_name(name) && name.chars().all(is_simple) && name.split('/').all(is_part)
}

/// A name that can be shown, for one that can't.
pub(super) fn readable(name: &str) -> String {
    let shown = |c: char| match c.is_control() || c == ' ' || is_invisible(c) {
        true => '\u{fffd}',
        false => c,
    };
    let name: String = name.chars().take(100).map(shown).collect();
    match is_ref_name(&name) {
        true => name,
        false => "odd".to_owned(),
    }
}

/// Characters that change how others read.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

pub(super) fn is_path(path: &str) -> bool {
    path.len() < 8192 && !path.contains('\0')
}

/// Drops what is no path, and what is too many.
pub(super) fn keep_paths(paths: &mut Vec<String>, many: usize) {
    paths.retain(|path| is_path(path));
    paths.truncate(many);
}

/// The start of a text, without anything that a terminal would obey.
fn message(text: String) -> String {
    let plain = |c: char| {
        if c.is_control() && c != '\n' && c != '\t' {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().take(MESSAGE).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Diff;
    use super::super::inside::{
        ChangedFile, CommitEnd, CommitReply, Inspect, InspectReply, Job, Listed, Look, Reset, Size,
        Survey, Tips, Usage, UsageReply,
    };
    use super::*;

    fn answer_to<J: Job>(mut line: &[u8]) -> Option<Result<J::Reply, String>> {
        first_line(J::NAME, &mut line)
    }

    fn look(head: &str) -> Look {
        Look {
            head: Some(head.to_owned()),
            staged: u64::MAX,
            ..Look::default()
        }
    }

    #[test]
    fn x6_an_answer_that_could_be_taken_for_something_else_is_none() {
        let id = "1".repeat(40);
        let odd = format!("{id}\0{id}\0update refs/heads/main");
        for head in ["", "--output=/etc/passwd", "zzz", odd.as_str()] {
            assert!(look(head).checked().is_none(), "{head:?}");
        }
        assert_eq!(look(&id).checked().unwrap().staged, COUNT);
        let tips = Tips {
            refs: vec![("refs/heads/a\0b".into(), id.clone())],
            stash: vec![id.clone(); 5000],
            reflog: vec![String::new(), "--not".into(), id.clone()],
            worktrees: Vec::new(),
            staged: Some("HEAD".into()),
        };
        let checked = tips.clone().checked().unwrap();
        assert_eq!(checked.refs, [(format!("refs/odd/{id}"), id.clone())]);
        assert_eq!((checked.staged, checked.reflog), (None, vec![id.clone()]));
        for forged in [
            Tips {
                refs: vec![("refs/heads/a".into(), "--not".into())],
                ..tips.clone()
            },
            Tips {
                refs: vec![("refs/heads/a".into(), id.clone()); 2],
                ..tips.clone()
            },
            Tips {
                stash: vec!["HEAD".into()],
                ..tips.clone()
            },
            Tips {
                worktrees: vec!["--not".into()],
                ..tips
            },
        ] {
            assert!(forged.checked().is_none());
        }
        let why = format!("\u{1b}]52;c;eA==\u{7}{}", "x".repeat(100_000));
        let told = Answer::<()>::Failed(why)
            .checked(Reset::NAME)
            .unwrap()
            .unwrap_err();
        assert!(!told.contains('\u{1b}') && told.chars().count() == MESSAGE);
    }

    #[test]
    fn d4_what_can_not_be_kept_is_an_error_and_never_left_out() {
        let id = "1".repeat(40);
        let refs = |count: usize| (0..count).map(|at| (format!("refs/heads/{at}"), id.clone()));
        let with = |count: usize| Tips {
            refs: refs(count).collect(),
            ..Tips::default()
        };
        assert_eq!(with(REFS).checked().unwrap().excess(), None);
        let tips = with(REFS + 1).checked().unwrap();
        assert_eq!(tips.refs.len(), REFS + 1);
        assert!(tips.excess().unwrap().contains("10001 refs"));
        let stashed = Tips {
            stash: vec![id; SOME + 1],
            ..Tips::default()
        };
        let stashed = stashed.checked().unwrap();
        assert_eq!(stashed.stash.len(), SOME + 1);
        assert!(stashed.excess().unwrap().contains("1001 stash entries"));
    }

    #[test]
    fn a_branch_whose_name_can_not_be_shown_has_one_that_can() {
        let on = |name: &str| Look {
            branch: Some(name.to_owned()),
            ..Look::default()
        };
        for (name, shown) in [
            ("feature\u{200b}x", "feature\u{fffd}x"),
            ("\u{9b}31m", "\u{fffd}31m"),
            ("a//b", "odd"),
            ("wt/fix", "wt/fix"),
        ] {
            let look = on(name).checked().unwrap();
            assert_eq!(look.branch.as_deref(), Some(shown));
        }
    }

    #[test]
    fn x6_an_answer_counts_only_if_it_is_exact_and_of_the_right_kind() {
        let line = |answer: &serde_json::Value| format!("{answer}\n").into_bytes();
        let accepts = |line: &[u8]| answer_to::<Inspect>(line).is_some();
        let reply = InspectReply {
            look: look(&"1".repeat(40)),
            tips: Tips::default(),
            paths: vec!["a".into()],
            truncated: false,
            touched_at: None,
            changed: None,
        };
        let text = serde_json::to_string(&Answer::of(Inspect::NAME, &reply)).unwrap();
        let good = format!("{text}\n").into_bytes();
        assert!(accepts(&good) && !accepts(text.as_bytes()));
        assert!(answer_to::<Survey>(&good).is_none());
        // Every field is there, once and under its own name; nothing else is.
        for (from, to) in [
            ("\"touched_at\":null", ""),
            (",\"touched_at\":null", ""),
            ("\"touched_at\"", "\"touched\""),
            (
                "\"truncated\":false",
                "\"truncated\":false,\"truncated\":false",
            ),
            ("\"truncated\":false", "\"truncated\":false,\"text\":null"),
            ("\"truncated\":false", "\"truncated\": false"),
            (
                "\"touched_at\":null",
                "\"touched_at\":null,\"changed\":null",
            ),
            ("\"paths\":[\"a\"]", "\"paths\":[\"\\u0061\"]"),
        ] {
            let other = text.replacen(from, to, 1);
            assert!(
                other != text && !accepts(format!("{other}\n").as_bytes()),
                "{other}"
            );
        }
        let empty = serde_json::json!({"Done": {"job": "ClearEvicted", "reply": null}});
        assert!(answer_to::<Reset>(&line(&empty)).is_none());
        let failed = line(&serde_json::json!({"Failed": "no"}));
        assert_eq!(answer_to::<Reset>(&failed), Some(Err("no".to_owned())));
    }

    #[test]
    fn numbers_that_the_host_adds_up_are_bounded() {
        let file = ChangedFile {
            path: "a".into(),
            status: "modified".into(),
            state: "staged".into(),
            added: Some(u64::MAX),
            deleted: Some(u64::MAX),
        };
        let diff = Diff {
            files: vec![file.clone(), file],
            text: None,
            truncated: false,
        };
        let files = diff.checked().unwrap().files;
        let added = files.iter().filter_map(|file| file.added);
        let deleted = files.iter().filter_map(|file| file.deleted);
        assert_eq!(added.chain(deleted).sum::<u64>(), 4 * COUNT);
        let size = Size {
            bytes: u64::MAX,
            is_whole: true,
        };
        assert_eq!(size.checked().unwrap().bytes, BYTES);
        let usage = UsageReply {
            usage: Usage {
                ranges: vec![(0, 1), (u64::MAX - 1, u64::MAX)],
                ..Usage::default()
            },
            touched_at: None,
        };
        let ranges = usage.checked().unwrap().usage.ranges;
        assert_eq!(ranges.iter().map(|(_, length)| length).sum::<u64>(), 2);
        let left_out = vec!["a\0b".to_owned(), "a".to_owned()];
        let end = CommitEnd::Nothing { left_out };
        let reply = CommitReply { end, found: None }.checked();
        let left_out = vec!["a".to_owned()];
        assert_eq!(reply.unwrap().end, CommitEnd::Nothing { left_out });
    }

    #[test]
    fn a_simple_name_is_one_that_git_takes() {
        for name in ["refs/tree/1/HEAD", "refs/tree/1/heads/wt/a-b_c.d"] {
            assert!(is_simple_name(name), "{name}");
        }
        let odd = [
            "refs/a..b",
            "refs/.a",
            "refs/a.lock",
            "refs/a.lock/b",
            "refs/a.",
            "refs//a",
            "/refs",
            "refs/a/",
            "refs/-a",
            "refs/a~1",
            "refs/ä",
            "refs/a@{b",
            "refs/a\\b",
            "refs/../a",
        ];
        for name in odd {
            assert!(!is_simple_name(name), "{name}");
        }
    }
}
