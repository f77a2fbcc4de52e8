//! Every refusal, with little and with much in it.

use std::collections::BTreeMap;

use super::*;

/// A value with little or with much in it.
pub(super) trait Sample {
    fn sample(much: bool) -> Self;
}

macro_rules! samples {
    ($($type:ty: $little:expr, $much:expr;)*) => {
        $(impl Sample for $type {
            fn sample(much: bool) -> Self {
                if much { $much } else { $little }
            }
        })*
    };
}

samples! {
    bool: false, true;
    u32: 1, 4711;
    u64: 1, 7;
    String: "some".to_owned(), "commit-msg".to_owned();
    &'static str: "a merge", "a rebase";
    PathBuf: "/some/path".into(), "/some/odd path".into();
    TreeName: "fix".parse().unwrap(), "fix-it.2".parse().unwrap();
    TaskId: TaskId::Number(1), TaskId::External("gh-12".to_owned());
    LandingId: LandingId(1), LandingId(12);
    Token: Token(1), Token(2);
    LandingStatus: LandingStatus::Red, LandingStatus::Landed;
    Lacking: Lacking::Nothing, Lacking::Seal;
    Missing: Missing::Done, Missing::Verdict { phase: "review".to_owned(), items: "a".to_owned() };
    Gitlink: Gitlink { path: "sub".to_owned(), commit: "1".repeat(40) },
        Gitlink { path: "lib/sub".to_owned(), commit: "2".repeat(64) };
    Loss: Loss::Removed("a".into()), Loss::Hidden("a b".into(), "skip-worktree");
    Refusal: Refusal::RootCommit, Refusal::IndexLockDeleted;
}

impl<T: Sample> Sample for Option<T> {
    fn sample(much: bool) -> Self {
        much.then(|| T::sample(much))
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(much: bool) -> Self {
        (0..=usize::from(much)).map(|_| T::sample(much)).collect()
    }
}

impl<T: Sample> Sample for Box<T> {
    fn sample(much: bool) -> Self {
        Self::new(T::sample(much))
    }
}

#[test]
fn y17_every_refusal_has_a_code_and_a_message_and_its_words_stay_on_their_lines() {
    let samples = Refusal::samples();
    assert!(samples.len() > 120, "{}", samples.len());
    for refusal in samples {
        let reason = refusal.reason();
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(reason.code.as_str().chars().all(is_plain), "{refusal:?}");
        for text in [Some(&reason.message), reason.hint.as_ref()]
            .into_iter()
            .flatten()
        {
            assert!(!text.trim().is_empty(), "{refusal:?}");
            assert!(!text.contains(char::is_control), "{refusal:?}: {text}");
        }
    }
}

/// Every command in the reference, which is made from what parses them, with what stands there about it.
fn reference() -> BTreeMap<&'static str, &'static str> {
    let page = include_str!("../../../../docs/commands.md");
    let entries = page.split("\n###").skip(1);
    let entries = entries.filter_map(|entry| entry.trim_start_matches('#').split_once('\n'));
    entries.map(|(head, about)| (head.trim(), about)).collect()
}

#[test]
fn y17_commands_that_refusals_hint_at_exist_and_take_the_options_named() {
    let reference = reference();
    let mut named = 0;
    for refusal in Refusal::samples() {
        let hint = refusal.reason().hint.unwrap_or_default();
        for call in hint.split("weald ").skip(1) {
            // What is run in a worktree is not weald's to know, and the next command stands behind these.
            let call = call.split([';', ',', '&', '`']).next().unwrap_or_default();
            let mut words = call.split(" -- ").next().unwrap_or_default().split(' ');
            let first = words.next().unwrap_or_default();
            let mut command = format!("weald {first}");
            if let Some(next) = words.clone().next()
                && reference.contains_key(format!("{command} {next}").as_str())
            {
                command = format!("{command} {next}");
            }
            let about = reference.get(command.as_str());
            let about = about.unwrap_or_else(|| panic!("{hint}: there is no {command}"));
            named += 1;
            for option in words.filter(|word| word.starts_with('-')) {
                let option = option.split('=').next().unwrap_or_default();
                let mut ends = ["`", " ", ","].into_iter();
                let is_there = ends.any(|end| about.contains(&format!("{option}{end}")));
                // Global options stand at the head of the page.
                assert!(is_there || option == "--set", "{hint}: {command} {option}");
            }
        }
    }
    assert!(named > 60, "only {named} were found");
}
