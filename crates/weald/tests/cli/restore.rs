//! The five words of upkeep: `rm`, `restore`, `undo`, `clean`, `doctor`, and that older words answer the same.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::{KINDS, commit, grow, has_event, repository};
use crate::trees_trash::manifest;

/// An answer without what no two calls share.
fn answer(env: &TestEnv, args: &[&str]) -> Value {
    let mut answer = env.ok(args);
    if let Some(usage) = answer.get_mut("usage").and_then(Value::as_object_mut) {
        for changing in ["free", "private", "vault", "freeing"] {
            usage.remove(changing);
        }
    }
    answer
}

#[test]
fn without_a_name_restore_lists_the_trash_and_by_name_or_number_it_brings_back() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        commit(&env, &path, "work.txt", "work\n");
        fs::write(path.join("draft"), "mine\n").unwrap();
        let before = manifest(&path);
        assert_eq!(env.ok(&["restore"])["trash"], json!([]));
        assert_eq!(env.weald(&["restore"]).stdout, "the trash is empty\n");
        let remove = || env.weald(&["rm", "a", "--discard"]).stdout;
        for name in ["a", "1"] {
            let removed = remove();
            assert!(
                removed.ends_with("restore it: weald restore 1\n"),
                "{removed}"
            );
            assert_eq!(env.ok(&["restore"]), env.ok(&["trash", "list"]));
            assert_eq!(env.ok(&["restore"])["trash"][0]["name"], "a");
            let back = env.ok(&["restore", name]);
            assert_eq!(back["tree"]["path"], path.to_str().unwrap(), "{back:#}");
            assert!(has_event(&env, "a", "tree.restored"), "{kind}");
            let draft = Path::new("draft");
            assert_eq!(manifest(&path).get(draft), before.get(draft), "{kind}");
            // The older word answers the same kind of object.
            remove();
            let older = env.ok(&["trash", "restore", name]);
            let keys = |answer: &Value| {
                let tree = answer["tree"].as_object().unwrap();
                tree.keys().cloned().collect::<Vec<_>>()
            };
            assert_eq!(keys(&older), keys(&back));
        }
        let refused = env.refused(&["restore", "nobody"], 4, "not_in_trash");
        let hint = refused["error"]["hint"].as_str().unwrap();
        assert_eq!(
            hint,
            "weald restore; for purged worktrees: weald restore --purged"
        );
    }
}

#[test]
fn restore_brings_back_a_snapshot_and_says_how_to_go_back_again() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    fs::write(path.join("text"), "good\n").unwrap();
    env.ok(&["snapshot", "create", "a"]);
    fs::write(path.join("text"), "ruined\n").unwrap();
    let back = env.weald(&["restore", "a", "--snapshot", "1"]).stdout;
    assert!(
        back.contains("to undo: weald restore a --snapshot 2"),
        "{back}"
    );
    assert_eq!(fs::read_to_string(path.join("text")).unwrap(), "good\n");
    let again = env.ok(&["restore", "a", "--snapshot", "2"]);
    assert_eq!(again["snapshot"]["id"], 2, "{again:#}");
    assert_eq!(fs::read_to_string(path.join("text")).unwrap(), "ruined\n");
    assert_eq!(env.weald(&["restore", "--snapshot", "1"]).code, 2);
}

#[test]
fn what_was_purged_comes_back_as_a_branch() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    commit(&env, &path, "one", "1\n");
    let last = commit(&env, &path, "two", "2\n");
    fs::write(path.join("draft"), "mine\n").unwrap();
    env.ok(&["rm", "a", "--discard"]);
    let listed = env.ok(&["clean", "--trash", "--older-than", "0"]);
    assert_eq!(
        (&listed["applied"], &listed["trash"][0]["name"]),
        (&json!(false), &json!("a"))
    );
    assert_eq!(
        env.ok(&["clean", "--trash", "--apply"])["trash"],
        json!([]),
        "it is young"
    );
    env.ok(&["clean", "--trash", "--older-than", "0", "--apply"]);
    env.git(&["branch", "-D", "wt/a"]);
    assert_eq!(env.ok(&["restore", "--purged"]), env.ok(&["vault", "list"]));
    let back = env.ok(&["restore", "a", "--purged"])["restored"].clone();
    assert_eq!(
        (&back["branch"], &back["commit"]),
        (&json!("wt/a"), &json!(last))
    );
    let back = env.ok(&["restore", "1", "--purged", "--commit", &last[..8]]);
    assert_eq!(back["restored"]["commit"], last);
    env.ok(&["restore", "a", "--purged", "--snapshot", "1"]);
    assert_eq!(env.git(&["show", "wt/a-snapshot-1:draft"]), "mine\n");
    assert_eq!(env.weald(&["restore", "a", "--commit", &last]).code, 2);
}

#[test]
fn what_older_words_free_clean_frees_with_the_same_answers() {
    let env = repository();
    grow(&env, "a", "sealed");
    let vault = ["clean", "--vault"];
    assert_eq!(env.ok(&vault), env.ok(&["vault", "status"]));
    assert!(env.ok(&["clean", "--vault", "--apply"])["vault"]["dropped"].is_number());
    let dry = env.ok(&["clean", "--leftovers"]);
    assert_eq!(dry, env.ok(&["sweep", "--dry-run"]));
    assert_eq!(
        env.ok(&["clean", "--leftovers", "--apply"])["sweep"]["applied"],
        true
    );
    for (new, old) in [
        (&["clean", "--usage"][..], &["usage"][..]),
        (&["clean", "--usage", "a"], &["usage", "a"]),
        (&["clean", "--free", "1"], &["usage", "--free", "1"]),
    ] {
        assert_eq!(answer(&env, new), answer(&env, old), "{new:?}");
    }
    assert_eq!(
        env.ok(&["clean", "--free", "1"])["usage"]["freeing"]["applied"],
        false
    );
    // One at a time, and none together with the options of worktrees.
    for wrong in [
        "--trash --vault",
        "--leftovers --usage",
        "--trash --min-age 0",
        "--free 1 --orphans",
        "--older-than 0",
        "--grace 1m",
    ] {
        let words: Vec<_> = ["clean"].into_iter().chain(wrong.split(' ')).collect();
        assert_eq!(env.weald(&words).code, 2, "{wrong}");
    }
}

#[test]
fn d13_an_agent_does_not_purge_by_the_new_word_either() {
    let env = repository();
    grow(&env, "a", "sealed");
    env.ok(&["rm", "a"]);
    for (more, code) in [
        (&[][..], 0),
        (&["--apply"], 1),
        (&["--apply", "--discard"], 1),
    ] {
        let words = [&["--json", "clean", "--trash", "--older-than", "0"], more].concat();
        let mut asked = env.weald_command(&words);
        let output = asked.env("CLAUDECODE", "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert_eq!(text.contains("agent_session"), code == 1, "{text}");
    }
    assert_eq!(env.ok(&["restore"])["trash"][0]["name"], "a");
}

#[test]
fn older_words_work_and_no_list_names_them() {
    let env = repository();
    let help = env.weald(&["help", "--all"]).stdout;
    let listed = |name: &str| {
        let starts = [format!("  {name} "), format!("  weald {name} ")];
        help.lines()
            .any(|line| starts.iter().any(|start| line.starts_with(start)))
    };
    for name in ["rm", "restore", "undo", "clean", "doctor"] {
        assert!(listed(name), "{name}: {help}");
    }
    for name in ["trash", "vault", "sweep", "usage"] {
        assert!(!listed(name), "{name}: {help}");
        let own = env.weald(&["help", name]);
        assert_eq!(own.code, 0, "{own:?}");
        assert!(own.stdout.contains("Now: weald "), "{own:?}");
    }
    let queue = env.weald(&["queue", "--help"]).stdout;
    assert!(!queue.contains("recover"), "{queue}");
    let missing = env.refused(&["doctor", "--recover", "9"], 4, "landing_not_found");
    assert_eq!(
        missing,
        env.refused(&["queue", "recover", "9"], 4, "landing_not_found")
    );
}

/// The switch is for `weald clean` as a whole.
#[test]
fn l3_clean_switched_off_deletes_nothing_whatever_it_is_asked_for() {
    let env = repository();
    grow(&env, "a", "sealed");
    env.ok(&["rm", "a"]);
    for what in [
        &["--trash", "--older-than", "0"][..],
        &["--leftovers"],
        &["--free", "1G"],
        &["--vault"],
    ] {
        let mut command = env.weald_command(&[&["clean"], what, &["--apply", "--json"]].concat());
        let output = command.env("WEALD_CLEAN_DISABLE", "1").output().unwrap();
        assert!(output.status.success(), "{what:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["disabled"], "WEALD_CLEAN_DISABLE", "{what:?}");
    }
    assert_eq!(env.ok(&["trash", "list"])["trash"][0]["name"], "a");
    env.refused(&["clean", "--usage", "--apply"], 2, "usage");
}
