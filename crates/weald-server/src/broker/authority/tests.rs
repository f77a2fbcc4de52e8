//! Who may ask for what, as a table.

use serde_json::{Value, json};

use super::*;

fn own() -> Authority {
    Authority {
        session: "alice".parse().unwrap(),
        task: Some("7".parse().unwrap()),
        token: Some(Token(3)),
        tree: "fix".parse().unwrap(),
        agent: None,
    }
}

fn decide(authority: &Authority, mut request: Value) -> Result<(), String> {
    request["secret"] = json!("");
    let request: Request = serde_json::from_value(request).map_err(|error| error.to_string())?;
    authority
        .permits(&request)
        .map_err(|error| error.to_string())
}

#[test]
fn the_own_task_and_tree_are_allowed() {
    for ask in [
        json!({"op": "overview"}),
        json!({"op": "task_list"}),
        json!({"op": "task_show", "id": 9}),
        json!({"op": "task_show"}),
        json!({"op": "task_claim"}),
        json!({"op": "task_claim", "id": 7}),
        json!({"op": "task_renew", "id": "7"}),
        json!({"op": "task_done", "report": {"text": "done"}}),
        json!({"op": "task_fail", "id": 7}),
        json!({"op": "msg_send", "to": "bob", "text": "hi", "kind": "message"}),
        json!({"op": "status", "tree": "fix"}),
        json!({"op": "status", "tree": "7"}),
        json!({"op": "land", "tree": "fix"}),
        json!({"op": "events", "limit": 5}),
    ] {
        assert_eq!(decide(&own(), json!({"ask": ask})), Ok(()), "{ask}");
    }
    let named = json!({"ask": {"op": "task_done"}, "session": "alice", "token": 3});
    assert_eq!(decide(&own(), named), Ok(()));
}

#[test]
fn whatever_is_somebody_elses_is_refused() {
    for (request, why) in [
        (
            json!({"ask": {"op": "task_done", "id": 8}}),
            "not this run's own",
        ),
        (
            json!({"ask": {"op": "task_fail", "id": "gh-7"}}),
            "not this run's own",
        ),
        (
            json!({"ask": {"op": "task_claim", "id": 8}}),
            "not this run's own",
        ),
        (
            json!({"ask": {"op": "task_renew", "id": 8}}),
            "not this run's own",
        ),
        (json!({"ask": {"op": "task_done"}, "token": 4}), "token 4"),
        (
            json!({"ask": {"op": "msg_inbox"}, "session": "bob"}),
            "not for bob",
        ),
        (
            json!({"ask": {"op": "overview"}, "session": "bob"}),
            "not for bob",
        ),
        (
            json!({"ask": {"op": "land", "tree": "other"}}),
            "not this run's own tree",
        ),
        (
            json!({"ask": {"op": "diff", "tree": "8", "style": "files"}}),
            "not this run's own tree",
        ),
        (
            json!({"ask": {"op": "snapshot_create", "tree": "../fix"}}),
            "not this run's own tree",
        ),
        (
            json!({"ask": {"op": "msg_send", "to": "bob", "text": "", "kind": "shutdown"}}),
            "can't ask others to stop",
        ),
    ] {
        let refusal = decide(&own(), request.clone()).unwrap_err();
        assert!(refusal.contains(why), "{request}: {refusal}");
    }
}

#[test]
fn without_a_claim_there_is_nothing_to_finish() {
    let unclaimed = Authority {
        token: None,
        ..own()
    };
    let unbound = Authority {
        task: None,
        token: None,
        ..own()
    };
    for authority in [&unclaimed, &unbound] {
        for op in ["task_done", "task_fail", "task_renew", "task_claim"] {
            let refusal = decide(authority, json!({"ask": {"op": op}})).unwrap_err();
            assert!(refusal.contains("has no task"), "{op}: {refusal}");
        }
        // A token that it was not given is not taken from it either.
        assert!(decide(authority, json!({"ask": {"op": "task_done"}, "token": 3})).is_err());
    }
    assert!(decide(&unclaimed, json!({"ask": {"op": "task_show"}})).is_ok());
    assert!(decide(&unbound, json!({"ask": {"op": "task_show"}})).is_err());
}

#[test]
fn nothing_else_is_understood() {
    for ask in [
        json!({"op": "rm", "tree": "fix"}),
        json!({"op": "approve", "tree": "fix"}),
        json!({"op": "config_set", "key": "policy.gate", "value": "none"}),
        json!({"op": "task_add", "subject": "x"}),
        json!({"op": "land", "keep": false}),
        json!({"op": "land", "on_conflict": "leave"}),
        json!({"op": "task_done", "force": true}),
        json!({"op": "msg_inbox", "session": "bob"}),
        json!({"op": "msg_send", "from": "bob", "to": "alice", "text": "x", "kind": "message"}),
        json!({}),
        json!("overview"),
    ] {
        let request = json!({"secret": "", "ask": ask});
        assert!(serde_json::from_value::<Request>(request).is_err(), "{ask}");
    }
    assert!(
        decide(
            &own(),
            json!({"ask": {"op": "overview"}, "authority": "root"})
        )
        .is_err()
    );
}
