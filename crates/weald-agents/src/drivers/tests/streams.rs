//! What drivers read from lines that real agents wrote (`recorded/`), and from odd ones.

use super::*;

/// What lines say, but for what is only counted.
fn observed(driver: &dyn Driver, lines: &str) -> Vec<Observed> {
    let mut all = all_observed(driver, lines);
    all.retain(|one| !is_count(one));
    all
}

fn all_observed(driver: &dyn Driver, lines: &str) -> Vec<Observed> {
    let lines = lines.lines();
    lines
        .flat_map(|line| driver.read(line.as_bytes()))
        .collect()
}

fn is_count(observed: &Observed) -> bool {
    matches!(observed, Observed::Message { .. } | Observed::Model { .. })
}

#[test]
fn a12_real_lines_say_what_each_message_and_model_used() {
    let usage = |input_tokens, output_tokens, cost_usd| Usage {
        input_tokens,
        output_tokens,
        cost_usd,
    };
    let message = |id: &str| Observed::Message {
        id: id.to_owned(),
        model: "claude-opus-5-5".to_owned(),
        usage: usage(1, 1, None),
    };
    let model = |model: &str, usage| Observed::Model {
        model: model.to_owned(),
        usage,
    };
    let counted = |name: &str, lines: &str| {
        let mut all = all_observed(&*driver("", Some(name), &[]), lines);
        all.retain(is_count);
        all
    };
    let claude = model("claude-opus-5-5", usage(3, 6, Some(0.000132)));
    assert_eq!(
        counted("claude", include_str!("../recorded/claude.jsonl")),
        [message("msg_0"), message("msg_2"), claude]
    );
    assert_eq!(
        counted("codex", include_str!("../recorded/codex.jsonl")),
        [model("", usage(3, 3, None))]
    );
    // Claude Code's own words, and a message without a number.
    let own = r#"{"type":"assistant","message":{"id":"x","model":"<synthetic>","usage":{"input_tokens":0},"content":[]}}"#;
    assert_eq!(counted("claude", own), []);
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

fn called(id: &str, tool: &str, detail: &str) -> Observed {
    Observed::Called(Called {
        id: id.into(),
        tool: tool.into(),
        detail: detail.into(),
        within: None,
    })
}

fn returned(id: &str, ok: bool, code: Option<i64>, text: &str) -> Observed {
    Observed::Returned(Returned {
        id: id.into(),
        ok,
        code,
        text: text.into(),
    })
}

#[test]
fn lines_of_a_real_claude_are_read() {
    let claude = driver("", Some("claude"), &[]);
    let command = "echo hi > a.txt; echo x > /srv/app/xx; git add -A; git commit -m one";
    let answer = "/bin/bash: line 1: /srv/app/xx: Read-only file system\n[wt/t1 4e7c5fd] one\n 1 file changed, 1 insertion(+), 1 deletion(-)";
    let expected = [
        Observed::Conversation("1fb49229-5067-4831-94c0-b8c874fc78b2".into()),
        called("toolu_0", "Bash", command),
        Observed::Raw,
        returned("toolu_0", true, None, answer),
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
    let within = Some("t".to_owned());
    let expected = [
        Observed::Within {
            within: "t".into(),
            said: "for you".into(),
        },
        Observed::Called(Called {
            id: String::new(),
            tool: "Read".into(),
            detail: "/a".into(),
            within,
        }),
    ];
    assert_eq!(observed(&*claude, subagent), expected);
    let red = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":[{"type":"text","text":"Exit code 7\nno"}]}]}}"#;
    let expected = [returned("t", false, Some(7), "no")];
    assert_eq!(observed(&*claude, red), expected);
}

#[test]
fn lines_of_a_real_codex_are_read() {
    let codex = driver("", Some("codex"), &[]);
    let command = "echo hi > a.txt; echo x > /srv/app/xx; git add -A; git commit -m one";
    let complaint = "Model metadata for `fake` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.";
    let answer = "/bin/bash: line 1: /srv/app/xx: Read-only file system\nOn branch wt/t1\nnothing to commit, working tree clean";
    let expected = [
        Observed::Conversation("01a1e01c-5a6a-7ce1-85d2-753f279984ec".into()),
        Observed::Complained(complaint.into()),
        Observed::Raw,
        called("item_1", "Shell", command),
        returned("item_1", false, Some(1), answer),
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
    let expected = [called("", "Edit", "/a, /b"), returned("", false, None, "")];
    assert_eq!(observed(&*codex, edit), expected);
    let tool = r#"{"type":"item.completed","item":{"id":"i","type":"mcp_tool_call","server":"s","tool":"t","result":{"content":[{"type":"text","text":"yes"}]},"error":null,"status":"completed"}}"#;
    assert_eq!(observed(&*codex, tool), [returned("i", true, None, "yes")]);
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

#[test]
fn a9_another_mode_and_denied_tools_are_no_success() {
    let init = |mode: &str| {
        format!(
            r#"{{"type":"system","subtype":"init","session_id":"s","permissionMode":"{mode}"}}"#
        )
    };
    for (words, mode, is_told) in [
        (&[][..], "bypassPermissions", false),
        (&[], "", false),
        (&[], "default", true),
        (&["--permission-mode", "plan"], "plan", false),
        (&["--permission-mode=plan"], "default", true),
        (&["--permission-mode", "manual"], "default", false),
    ] {
        let claude = driver("", Some("claude"), words);
        let told = observed(&*claude, &init(mode));
        let unfit = told.iter().any(|one| matches!(one, Observed::Unfit(_)));
        assert_eq!(unfit, is_told, "{words:?} {mode}");
    }
    let claude = driver("", Some("claude"), &[]);
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"done","permission_denials":[{"tool_name":"Write\u001b[2J"},{"tool_name":"Bash"},{"tool_name":"Bash"}]}"#;
    let told = observed(&*claude, result).pop().unwrap();
    let Observed::Unfit(why) = &told else {
        panic!("{told:?}");
    };
    assert!(
        why.contains("denied 3 tool calls (Bash, Write [2J)"),
        "{why}"
    );
    assert!(why.contains("then resume it"), "{why}");
}
