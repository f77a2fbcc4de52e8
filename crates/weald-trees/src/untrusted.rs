//! What comes out of a tree is an agent's word: every id, name, number and text in it is checked here, once, before anything
//! on the host uses it.

use weald_git::Commit;

use super::inside::{ChangedFile, Look, Reply, Tips, apart};

/// How many refs, and as many changed paths, an answer may name.
const MANY: usize = 20_000;

/// How many stash entries and earlier HEADs are taken in.
const SOME: usize = 1_000;

/// The longest message of a program inside.
const MESSAGE: usize = 4096;

/// No tree has more changes than this; sums of them don't overflow.
const COUNT: u64 = u32::MAX as u64;

/// No tree is larger than this; sums of sizes don't overflow.
const BYTES: u64 = 1 << 50;

/// The same answer with nothing in it that could be taken for something else; `None` if it makes no sense.
pub(super) fn checked(reply: Reply) -> Option<Reply> {
    let mut reply = reply;
    reply.error = reply.error.map(message);
    if reply.snapshot.as_deref().is_some_and(|id| !is_id(id)) {
        return None;
    }
    reply.look = match reply.look {
        Some(look) => Some(checked_look(look)?),
        None => None,
    };
    reply.tips = reply.tips.map(checked_tips);
    reply.paths.retain(|path| is_path(path));
    reply.paths.truncate(MANY);
    reply.aside.retain(|path| is_path(path));
    reply.aside.truncate(MANY);
    reply.ignored.retain(|path| is_path(path));
    reply.ignored.truncate(SOME);
    if let Some(size) = &mut reply.size {
        size.bytes = size.bytes.min(BYTES);
    }
    if let Some(usage) = &mut reply.usage {
        usage.bytes = usage.bytes.min(BYTES);
        usage.shared = usage.shared.map(|shared| shared.min(BYTES));
        usage.ranges = apart(std::mem::take(&mut usage.ranges));
        usage.regenerable.retain(|folder| is_path(&folder.path));
        usage.regenerable.truncate(SOME);
        for folder in &mut usage.regenerable {
            folder.bytes = folder.bytes.min(BYTES);
            folder.frees = folder.frees.min(folder.bytes);
        }
    }
    reply.files.retain(is_file);
    reply.files.truncate(MANY);
    for file in &mut reply.files {
        file.added = file.added.map(|lines| lines.min(COUNT));
        file.deleted = file.deleted.map(|lines| lines.min(COUNT));
    }
    Some(reply)
}

fn checked_look(look: Look) -> Option<Look> {
    let head_is_odd = look.head.as_deref().is_some_and(|id| !is_id(id));
    let branch_is_odd = look
        .branch
        .as_deref()
        .is_some_and(|name| !is_ref_name(name));
    if head_is_odd || branch_is_odd {
        return None;
    }
    let known = ["rebase", "merge", "cherry-pick", "revert", "bisect"];
    Some(Look {
        staged: look.staged.min(COUNT),
        unstaged: look.unstaged.min(COUNT),
        untracked: look.untracked.min(COUNT),
        hidden: look.hidden.min(COUNT),
        conflicted: look.conflicted.min(COUNT),
        ignored: look.ignored.min(COUNT),
        stashed: look.stashed.min(COUNT),
        operation: look.operation.map(|name| {
            let known = known.iter().find(|known| **known == name);
            known.map_or("something unknown", |known| known).to_owned()
        }),
        ..look
    })
}

fn checked_tips(mut tips: Tips) -> Tips {
    tips.refs
        .retain(|(name, id)| is_ref_name(name) && is_id(id));
    tips.refs.truncate(MANY);
    for list in [&mut tips.stash, &mut tips.reflog, &mut tips.worktrees] {
        list.retain(|id| is_id(id));
        list.truncate(SOME);
    }
    tips.staged = tips.staged.filter(|id| is_id(id));
    tips
}

fn is_id(text: &str) -> bool {
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

/// Characters that change how others read.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

pub(super) fn is_path(path: &str) -> bool {
    path.len() < 8192 && !path.contains('\0')
}

fn is_file(file: &ChangedFile) -> bool {
    is_path(&file.path) && file.status.len() < 32 && file.state.len() < 32
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
    use super::super::inside::{Size, Usage};
    use super::*;

    #[test]
    fn x6_an_answer_that_could_be_taken_for_something_else_is_none() {
        let id = "1".repeat(40);
        let look = |head: &str| Reply {
            look: Some(Look {
                head: Some(head.to_owned()),
                staged: u64::MAX,
                ..Look::default()
            }),
            ..Reply::default()
        };
        let odd = format!("{id}\0{id}\0update refs/heads/main");
        for head in ["", "--output=/etc/passwd", "zzz", odd.as_str()] {
            assert!(checked(look(head)).is_none(), "{head:?}");
        }
        let good = checked(look(&id)).unwrap();
        assert_eq!(good.look.unwrap().staged, COUNT);
        let tips = Tips {
            refs: vec![
                ("refs/heads/a\0b".into(), id.clone()),
                ("refs/heads/a".into(), "--not".into()),
            ],
            stash: vec![id.clone(); 5000],
            reflog: vec![String::new(), "--not".into(), id.clone()],
            worktrees: vec!["--not".into()],
            staged: Some("HEAD".into()),
        };
        let tips = checked_tips(tips);
        assert!(tips.refs.is_empty() && tips.staged.is_none() && tips.worktrees.is_empty());
        assert_eq!((tips.stash.len(), tips.reflog), (SOME, vec![id]));
        let told = checked(Reply {
            error: Some(format!("\u{1b}]52;c;eA==\u{7}{}", "x".repeat(100_000))),
            ..Reply::default()
        });
        let told = told.unwrap().error.unwrap();
        assert!(!told.contains('\u{1b}') && told.chars().count() == MESSAGE);
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
        let reply = checked(Reply {
            files: vec![file.clone(), file],
            size: Some(Size {
                bytes: u64::MAX,
                is_whole: true,
            }),
            usage: Some(Usage {
                ranges: vec![(0, 1), (u64::MAX - 1, u64::MAX)],
                ..Usage::default()
            }),
            ..Reply::default()
        });
        let reply = reply.unwrap();
        let added = reply.files.iter().filter_map(|file| file.added);
        let deleted = reply.files.iter().filter_map(|file| file.deleted);
        assert_eq!(added.chain(deleted).sum::<u64>(), 4 * COUNT);
        assert_eq!(reply.size.unwrap().bytes, BYTES);
        let ranges = reply.usage.unwrap().ranges;
        assert_eq!(ranges.iter().map(|(_, length)| length).sum::<u64>(), 2);
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
