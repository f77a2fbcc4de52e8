//! Who may ask for what, as a table.

use serde_json::{Value, json};

use weald_app::Mandate;
use weald_core::id::Token;

use super::*;

fn own() -> Authority {
    Authority {
        session: Some("alice".parse().unwrap()),
        task: Some("7".parse().unwrap()),
        token: Some(Token(3)),
        tree: "fix".parse().unwrap(),
        branch: "wt/fix".to_owned(),
        path: "/repo.weald/fix".into(),
        agent: None,
        mandate: Mandate::Land,
    }
}

fn decide(authority: &Authority, mut request: Value) -> Result<(), String> {
    request["secret"] = json!("");
    let request: Request = serde_json::from_value(request).map_err(|error| error.to_string())?;
    permits(authority, &request).map_err(|error| error.to_string())
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
            "not as bob",
        ),
        (
            json!({"ask": {"op": "overview"}, "session": "bob"}),
            "not as bob",
        ),
        (
            json!({"ask": {"op": "land", "tree": "other"}}),
            "not this run's own worktree",
        ),
        (
            json!({"ask": {"op": "diff", "tree": "8", "style": "files"}}),
            "not this run's own worktree",
        ),
        (
            json!({"ask": {"op": "snapshot_create", "tree": "../fix"}}),
            "not this run's own worktree",
        ),
        (
            json!({"ask": {"op": "msg_send", "to": "bob", "text": "", "kind": "shutdown"}}),
            "can't ask other agents to stop",
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
fn x15_without_a_mandate_nothing_lands_and_the_refusal_names_the_persons_command() {
    for (mandate, why, command) in [
        (Mandate::Run, "`weald run` lands nothing", "weald land fix"),
        (Mandate::Keep, "--no-land", "weald land fix"),
        (Mandate::Phase, "after the last PASS", "weald phase 7"),
        (Mandate::Race, "not been picked", "weald race pick 7 fix"),
    ] {
        let authority = Authority { mandate, ..own() };
        for ask in [
            json!({"op": "land"}),
            json!({"op": "land", "tree": "fix", "no_wait": true}),
            json!({"op": "land", "tree": "7", "report": "done"}),
        ] {
            let refusal = decide(&authority, json!({"ask": ask})).unwrap_err();
            assert!(refusal.contains("no mandate to land"), "{refusal}");
            assert!(refusal.contains(why), "{refusal}");
            assert!(refusal.contains("kept in worktree fix"), "{refusal}");
        }
        let hint = authority.no_mandate().hint().unwrap();
        assert!(hint.ends_with(command), "{hint}");
        let dry = json!({"ask": {"op": "land", "dry_run": true}});
        assert_eq!(decide(&authority, dry), Ok(()));
    }
}

#[test]
fn u5_a_shell_may_wish_to_land_its_own_worktree_and_nothing_more() {
    let shell = Authority {
        session: None,
        token: None,
        mandate: Mandate::Wish,
        ..own()
    };
    let wish = |tree: Option<&str>| json!({"ask": {"op": "land", "tree": tree, "commit": "all"}});
    assert_eq!(decide(&shell, wish(None)), Ok(()));
    assert_eq!(decide(&shell, wish(Some("fix"))), Ok(()));
    let refusal = decide(&shell, wish(Some("other"))).unwrap_err();
    assert!(refusal.contains("not this run's own worktree"), "{refusal}");
    let refusal = decide(
        &shell,
        json!({"ask": {"op": "sync", "tree": null, "rebase": false}}),
    )
    .unwrap_err();
    assert!(refusal.contains("has no session"), "{refusal}");
}

#[test]
fn x24_a_run_without_a_session_reads_and_changes_nothing() {
    let nobody = Authority {
        session: None,
        token: None,
        mandate: Mandate::Run,
        ..own()
    };
    for ask in [
        json!({"op": "overview"}),
        json!({"op": "task_list"}),
        json!({"op": "task_ready"}),
        json!({"op": "task_show"}),
        json!({"op": "session_list"}),
        json!({"op": "events", "limit": 5}),
        json!({"op": "status"}),
        json!({"op": "path"}),
        json!({"op": "beside", "path": "a"}),
        json!({"op": "diff", "style": "files"}),
        json!({"op": "snapshot_list"}),
    ] {
        assert_eq!(decide(&nobody, json!({"ask": ask})), Ok(()), "{ask}");
    }
    for ask in [
        json!({"op": "task_claim"}),
        json!({"op": "task_renew"}),
        json!({"op": "task_done"}),
        json!({"op": "task_fail"}),
        json!({"op": "msg_send", "to": "bob", "text": "hi", "kind": "message"}),
        json!({"op": "msg_send", "to": "bob", "text": "hi", "kind": "plan"}),
        json!({"op": "msg_reply", "id": 1, "text": "yes", "verdict": "approved"}),
        json!({"op": "msg_answer", "id": 1}),
        json!({"op": "msg_inbox"}),
        json!({"op": "msg_inbox", "consume": true}),
        json!({"op": "session_note"}),
        json!({"op": "session_note", "text": "x"}),
        json!({"op": "snapshot_create"}),
        json!({"op": "land", "dry_run": true}),
    ] {
        let refusal = decide(&nobody, json!({"ask": ask})).unwrap_err();
        assert!(refusal.contains("has no session"), "{ask}: {refusal}");
    }
    let named = json!({"ask": {"op": "msg_inbox"}, "session": "alice"});
    let refusal = decide(&nobody, named).unwrap_err();
    assert!(refusal.contains("acts as no session"), "{refusal}");
}

#[test]
fn nothing_else_is_understood() {
    for ask in [
        json!({"op": "rm", "tree": "fix"}),
        json!({"op": "approve", "tree": "fix"}),
        json!({"op": "config_set", "key": "policy.gate", "value": "none"}),
        json!({"op": "task_add", "subject": "x"}),
        json!({"op": "land", "force": true}),
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
