//! The way out of the vault: what was deleted from the trash for good is a branch of main again.

use std::fs;

use serde_json::json;

use crate::trees_remove::{KINDS, commit, git_in, grow, repository};

const PURGE: [&str; 5] = ["trash", "purge", "--older-than", "1ms", "--apply"];

#[test]
fn d13_what_a_purge_deleted_comes_out_of_the_vault() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "lost", kind);
        let tip = commit(&env, &path, "work.txt", "work\n");
        fs::write(path.join("draft"), "mine\n").unwrap();
        env.ok(&["rm", "lost", "--discard"]);
        env.refused(&["vault", "restore", "lost"], 4, "tree_not_found");
        env.ok(&PURGE);
        env.git(&["branch", "-D", "wt/lost"]);
        let kept = env.ok(&["vault", "list"])["kept"].clone();
        assert_eq!(kept[0]["name"], "lost", "{kind}: {kept:#}");
        assert_eq!(kept[0]["commits"][0]["commit"], tip, "{kind}: {kept:#}");
        let told = env.weald(&["vault", "list"]).stdout;
        for command in [
            "weald restore 1 --purged\n",
            "weald restore 1 --purged --snapshot 1\n",
        ] {
            assert!(told.contains(command), "{kind}: {told}");
        }
        let back = env.ok(&["vault", "restore", "1"])["restored"].clone();
        assert_eq!(back["branch"], "wt/lost", "{kind}: {back}");
        assert_eq!(env.git(&["rev-parse", "wt/lost"]).trim(), tip);
        let back = env.ok(&["vault", "restore", "lost", "--snapshot", "1"]);
        assert_eq!(back["restored"]["branch"], "wt/lost-snapshot-1");
        assert_eq!(env.git(&["show", "wt/lost-snapshot-1:draft"]), "mine\n");
        assert_eq!(env.git(&["show", "wt/lost-snapshot-1:work.txt"]), "work\n");
        // What holds it already is the answer; what holds something else is left alone.
        let back = env.ok(&["vault", "restore", "1", &tip[..8]]);
        assert_eq!(back["restored"]["branch"], "wt/lost");
        env.git(&["branch", "-f", "wt/lost", "main"]);
        let back = env.ok(&["vault", "restore", "1", &tip[..8]]);
        assert_eq!(back["restored"]["branch"], "wt/lost-2");
        env.ok(&["new", "again", "--base", "wt/lost-2"]);
        assert!(env.root().join("app.weald/again/work.txt").is_file());
    }
}

/// What an amend, a rebase or a reset dropped, in both kinds and on both kinds of refs.
#[test]
fn d13_commits_that_only_the_log_of_head_knows_come_out_of_the_vault_too() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let dropped = commit(&env, &path, "work.txt", "dropped\n");
        git_in(&env, &path, &["reset", "-q", "--hard", "HEAD~"]);
        env.ok(&["rm", "a"]);
        env.ok(&PURGE);
        env.git(&["reflog", "expire", "--expire=now", "--all"]);
        env.git(&["gc", "-q", "--prune=now"]);
        let kept = env.ok(&["vault", "list"])["kept"].clone();
        assert!(kept.to_string().contains(&dropped), "{kind}: {kept:#}");
        env.ok(&["vault", "restore", "1", &dropped[..8]]);
        assert_eq!(env.git(&["show", "wt/a:work.txt"]), "dropped\n", "{kind}");
    }
}

#[test]
fn d13_what_the_target_has_is_not_told_as_left_over() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    commit(&env, &path, "one", "1\n");
    commit(&env, &path, "two", "2\n");
    env.ok(&["land", "a"]);
    grow(&env, "empty", "sealed");
    env.ok(&["rm", "empty"]);
    env.ok(&PURGE);
    assert_eq!(env.ok(&["vault", "list"])["kept"], json!([]));
    env.refused(&["vault", "restore", "nobody"], 4, "not_in_vault");
    env.refused(&["vault", "restore", "a", "ffff"], 4, "not_in_vault");
    env.refused(
        &["vault", "restore", "a", "--snapshot", "7"],
        4,
        "no_snapshot",
    );
}
