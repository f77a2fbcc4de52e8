//! What drivers read from lines that real agents wrote (`recorded/`), and from odd ones.

use super::*;

fn observed(driver: &dyn Driver, lines: &str) -> Vec<Observed> {
    let lines = lines.lines();
    lines
        .flat_map(|line| driver.read(line.as_bytes()))
        .collect()
}

fn used(input_tokens: u64, output_tokens: u64, cost_usd: Option<f64>) -> Observed {
    Observed::Usage(Usage {
        input_tokens,
        output_tokens,
        cost_usd,
    })
}

fn finished(ok: bool, text: &str) -> Observed {
    let text = text.to_owned();
    Observed::Finished { ok, text }
}

#[test]
fn lines_of_a_real_claude_are_read() {
    let claude = driver("", Some("claude"), &[]);
    let action = "Bash: echo hi > a.txt; echo x > /srv/app/xx; git add -A; git commit -m one";
    let expected = [
        Observed::Conversation("1fb49229-5067-4831-94c0-b8c874fc78b2".into()),
        Observed::Action(action.into()),
        Observed::Raw,
        Observed::Raw,
        Observed::Said("all done".into()),
        used(3, 6, Some(0.000132)),
        finished(true, "all done"),
    ];
    assert_eq!(
        observed(&*claude, include_str!("../recorded/claude.jsonl")),
        expected
    );
    let failed = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found"],"usage":{"input_tokens":2,"cache_read_input_tokens":3},"modelUsage":{},"total_cost_usd":0}"#;
    let expected = [
        used(5, 0, Some(0.0)),
        finished(false, "No conversation found"),
    ];
    assert_eq!(observed(&*claude, failed), expected);
    let subagent = r#"{"type":"assistant","parent_tool_use_id":"t","message":{"content":[{"type":"text","text":"for you"},{"type":"tool_use","name":"Read","input":{"file_path":"/a"}}]}}"#;
    assert_eq!(
        observed(&*claude, subagent),
        [Observed::Action("Read: /a".into())]
    );
}

#[test]
fn lines_of_a_real_codex_are_read() {
    let codex = driver("", Some("codex"), &[]);
    let action = "Shell: echo hi > a.txt; echo x > /srv/app/xx; git add -A; git commit -m one";
    let expected = [
        Observed::Conversation("01a1e01c-5a6a-7ce1-85d2-753f279984ec".into()),
        Observed::Raw,
        Observed::Raw,
        Observed::Action(action.into()),
        Observed::Raw,
        Observed::Said("all done".into()),
        used(3, 3, None),
        finished(true, "all done"),
    ];
    assert_eq!(
        observed(&*codex, include_str!("../recorded/codex.jsonl")),
        expected
    );
    let failed = r#"{"type":"turn.failed","error":{"message":"no quota"}}"#;
    assert_eq!(observed(&*codex, failed), [finished(false, "no quota")]);
    let edit = r#"{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"/a"},{"path":"/b"}]}}"#;
    assert_eq!(
        observed(&*codex, edit),
        [Observed::Action("Edit: /a, /b".into())]
    );
}

#[test]
fn odd_lines_are_kept_and_nothing_else() {
    let forged = [
        &b""[..],
        b"{",
        b"[1]",
        b"\xff\xfe",
        br#"{"type": 5}"#,
        br#"{"type": "system", "subtype": "init", "session_id": "--resume"}"#,
        br#"{"type": "thread.started", "thread_id": "../../x"}"#,
        br#"{"type": "assistant", "message": {"content": "text"}}"#,
        br#"{"type": "assistant", "message": {"content": [5, null, {"type": "text"}]}}"#,
        br#"{"type": "item.started", "item": []}"#,
        br#"{"type": "item.completed", "item": {"type": "agent_message", "text": 5}}"#,
    ];
    for name in ["claude", "codex"] {
        let driver = driver("", Some(name), &[]);
        for line in forged {
            assert_eq!(driver.read(line), [Observed::Raw], "{line:?}");
        }
        let huge = format!(
            "{{\"type\":\"result\",\"result\":\"{}\"}}",
            "x".repeat(9 << 20)
        );
        assert_eq!(driver.read(huge.as_bytes()), [Observed::Raw]);
    }
    let long = format!(
        "{{\"type\":\"result\",\"result\":\"{}\"}}",
        "x".repeat(1 << 20)
    );
    let claude = driver("", Some("claude"), &[]);
    let Some(Observed::Finished { ok: false, text }) = claude.read(long.as_bytes()).pop() else {
        panic!("a result ends it");
    };
    assert!(text.len() < 1 << 17);
}
