//! Ten thousand malformed names, ids and lines: nothing panics, nothing slips through.

use proptest::prelude::*;
use weald_core::Timestamp;
use weald_core::id::TaskId;
use weald_core::import::{parse_jsonl, parse_markdown};
use weald_core::name::{SessionName, TreeName};

fn safe(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !text.is_empty()
        && text.len() <= 64
        && text.chars().all(allowed)
        && !text.starts_with(['.', '-'])
        && !text.contains("..")
}

/// Text that tries: any Unicode, separators, dots, control bytes, long runs, almost-names.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[A-Za-z0-9._-]{0,80}",
        "[-./\\\\ ~^:*?;|&$`'\"\0\n\u{202e}\u{200b}a1]{0,20}",
        "\\PC{300,400}",
        "(\\.\\./){1,5}[a-z]{0,5}",
        "-{1,2}[a-z=]{1,9}",
        "#?[0-9]{1,25}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn n1_n7_names_and_ids_are_safe_or_refused(text in hostile()) {
        for accepted in [text.parse::<TreeName>().ok().map(String::from), text.parse::<SessionName>().ok().map(String::from)].into_iter().flatten() {
            prop_assert!(safe(&accepted), "{accepted:?}");
        }
        if let Ok(id) = text.parse::<TaskId>() {
            prop_assert!(safe(&id.to_string()) && safe(&id.bare()), "{id:?}");
        }
    }

    #[test]
    fn t13_lines_are_tasks_or_errors(text in hostile(), field in hostile()) {
        let json = serde_json::json!({"id": field, "subject": text, field.clone(): text.clone()}).to_string();
        for line in [text.as_bytes(), json.as_bytes(), format!("- {text}").as_bytes()] {
            for parsed in [parse_jsonl(line, Timestamp::UNIX_EPOCH), parse_markdown(line, Timestamp::UNIX_EPOCH)] {
                for task in parsed.tasks {
                    prop_assert!(!task.task.subject.chars().any(char::is_control));
                    prop_assert!(task.id.is_none_or(|id| safe(&id.to_string())));
                }
            }
        }
    }
}
