//! What a purge could still lose: commits made in the trash, and somebody else's files to which records and names lead.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;
use weald_testkit::{Answer, TestEnv, full_scale};

use crate::clean::rewrite;
use crate::clean_guards::identity_of;
use crate::trees_remove::{KINDS, grow, repository, try_git};
use crate::trees_sealed::vault;
use crate::trees_trash::manifest;

const PURGE: [&str; 5] = ["trash", "purge", "--older-than", "1ms", "--apply"];

fn in_trash(env: &TestEnv) -> PathBuf {
    let listed = env.ok(&["trash", "list"]);
    PathBuf::from(listed["trash"][0]["path"].as_str().unwrap())
}

/// Commits in a tree that lies in the trash, as a process does that stood in it.
fn commit_in_trash(env: &TestEnv, place: &Path, text: &str) -> String {
    let objects = vault(env).join("objects");
    fs::write(place.join("late"), text).unwrap();
    for args in [
        &["add", "late"][..],
        &["commit", "-q", "-m", "late"],
        &["rev-parse", "HEAD"],
    ] {
        let mut git = env.command("git");
        git.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &objects);
        let output = git.current_dir(place).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        if args[0] == "rev-parse" {
            return String::from_utf8(output.stdout).unwrap().trim().to_owned();
        }
    }
    unreachable!()
}

/// Whether a ref of the vault leads to a commit.
fn vault_holds(env: &TestEnv, tip: &str) -> bool {
    let args = ["for-each-ref", "--contains", tip, "refs/tree/1/"];
    let (found, said) = try_git(env, &vault(env), &args);
    found && !said.trim().is_empty()
}

#[test]
fn d13_a_purge_takes_in_what_was_committed_in_the_trash() {
    for kind in KINDS {
        let env = repository();
        grow(&env, "a", kind);
        env.ok(&["rm", "a"]);
        let tip = commit_in_trash(&env, &in_trash(&env), "late\n");
        assert!(!vault_holds(&env, &tip), "{kind}");
        let place = in_trash(&env);
        env.ok(&PURGE);
        assert!(!place.exists(), "{kind}");
        assert!(vault_holds(&env, &tip), "{kind}: {tip} is nowhere");
    }
}

#[test]
fn d13_a_purge_keeps_what_it_cant_look_into() {
    let env = repository();
    grow(&env, "a", "sealed");
    env.ok(&["rm", "a"]);
    let place = in_trash(&env);
    commit_in_trash(&env, &place, "late\n");
    fs::write(place.join(".git/HEAD"), "nonsense\n").unwrap();
    let before = manifest(&place);
    let refused = env.refused(&PURGE, 1, "trash_not_taken_in");
    let hint = refused["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("weald restore 1"), "{hint}");
    assert_eq!(manifest(&place), before);
    let again = "clean --trash --older-than 1ms --apply --discard";
    assert!(hint.ends_with(&format!("weald {again}")), "{hint}");
    env.ok(&again.split(' ').collect::<Vec<_>>());
    assert!(!place.exists());
}

#[test]
fn d13_a_purge_that_keeps_one_tells_what_went() {
    let env = repository();
    for name in ["a", "b"] {
        grow(&env, name, "sealed");
    }
    env.ok(&["rm", "a"]);
    let place = in_trash(&env);
    env.ok(&["rm", "b"]);
    fs::write(place.join(".git/HEAD"), "nonsense\n").unwrap();
    let answer = env.weald(&[&PURGE[..], &["--json"]].concat());
    assert_eq!(answer.code, 1, "{answer:#?}");
    let told = answer.json();
    assert_eq!(told["trash"][0]["name"], "b", "{told:#}");
    assert_eq!(told["trash"].as_array().unwrap().len(), 1, "{told:#}");
    let kept = &told["failed"][0];
    assert_eq!(kept["id"], 1, "{told:#}");
    assert_eq!(kept["code"], "trash_not_taken_in", "{told:#}");
    let hint = kept["hint"].as_str().unwrap();
    assert!(hint.contains("weald restore 1"), "{hint}");
    let said = "a (1) was kept";
    assert!(answer.stderr.contains(said), "{answer:#?}");
    assert!(place.exists());
}

#[test]
fn l16_a_purge_deletes_nothing_outside_the_trash() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        env.ok(&["rm", "a"]);
        let victim = env.root().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("letter"), "mine").unwrap();
        rewrite(&env, "a", "identity", &identity_of(&victim));
        let trash = path.with_file_name(".trash");
        for place in [victim.clone(), trash.join("../../victim")] {
            rewrite(&env, "a", "trash.path", &json!(place));
            env.refused(&PURGE, 1, "trash_outside");
            let found = env.weald(&["doctor", "--fix", "--json"]).json();
            assert!(found.to_string().contains("trash_outside"), "{found}");
            assert_eq!(fs::read_to_string(victim.join("letter")).unwrap(), "mine");
        }
    }
}

#[test]
fn l16_nothing_goes_through_a_trash_that_is_a_link() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let outside = env.root().join("outside");
        fs::create_dir(&outside).unwrap();
        symlink(&outside, path.with_file_name(".trash")).unwrap();
        let before = manifest(&path);
        let answer = env.weald(&["rm", "a", "--json"]);
        assert_eq!(answer.code, 1, "{answer:#?}");
        assert!(answer.stdout.contains("symbolic link"), "{answer:#?}");
        assert_eq!(manifest(&path), before, "{kind}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        fs::remove_file(path.with_file_name(".trash")).unwrap();
        env.ok(&["rm", "a"]);
        // A trash that became one later.
        fs::remove_dir(&outside).unwrap();
        fs::rename(path.with_file_name(".trash"), &outside).unwrap();
        symlink(&outside, path.with_file_name(".trash")).unwrap();
        env.refused(&PURGE, 1, "trash_outside");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }
}

#[test]
fn z1_what_is_only_called_like_weald_s_own_stays() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        env.ok(&["rm", "a"]);
        let place = in_trash(&env);
        let going = place.with_file_name(".purging-1");
        fs::create_dir(&going).unwrap();
        fs::write(going.join("mine"), "mine").unwrap();
        let found = env.weald(&["doctor", "--fix", "--json"]).json().to_string();
        assert!(found.contains("trash_unknown"), "{found}");
        env.refused(&PURGE, 1, "tree_replaced");
        assert_eq!(fs::read_to_string(going.join("mine")).unwrap(), "mine");
        assert!(place.join("config.py").is_file(), "{kind}");
        fs::remove_dir_all(&going).unwrap();
        env.ok(&PURGE);
        // The same for what is called like a tree in the making.
        let new = path.with_file_name(".weald-new-1");
        fs::create_dir(&new).unwrap();
        fs::write(new.join("mine"), "mine").unwrap();
        let found = env.weald(&["doctor", "--fix", "--json"]).json().to_string();
        assert!(found.contains(".weald-new-1"), "{found}");
        assert_eq!(fs::read_to_string(new.join("mine")).unwrap(), "mine");
        // Nor does the tree that would be made there, for the first time or again, clear it away.
        let next = path.with_file_name(".weald-new-2");
        fs::rename(&new, &next).unwrap();
        env.refused(&["new", "b", "--kind", kind], 1, "path_occupied");
        let again = path.with_file_name(".weald-new-3");
        let third = grow(&env, "c", kind);
        fs::remove_dir_all(&third).unwrap();
        fs::rename(&next, &again).unwrap();
        env.refused(&["ensure", "c"], 1, "path_occupied");
        assert_eq!(fs::read_to_string(again.join("mine")).unwrap(), "mine");
        fs::remove_dir_all(&again).unwrap();
        env.ok(&["ensure", "c"]);
        assert!(third.join("config.py").is_file(), "{kind}");
    }
}

#[test]
fn d13_an_agent_may_see_what_a_purge_would_delete_and_not_purge() {
    let env = repository();
    grow(&env, "a", "sealed");
    env.ok(&["rm", "a"]);
    let place = in_trash(&env);
    let purge = |args: &[&str]| {
        let mut asked = env.weald_command(&[&["--json", "trash", "purge"], args].concat());
        let output = asked.env("CLAUDECODE", "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    };
    for more in [&["--apply"][..], &["--apply", "--discard"]] {
        let (code, text) = purge(&[&["--older-than", "0"], more].concat());
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("agent_session"), "{text}");
    }
    let (code, text) = purge(&["--older-than", "0"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("\"applied\":false"), "{text}");
    assert!(place.is_dir());
}

/// What an agent can make is deleted with few descriptors: folders deeper than any path, many entries, closed folders.
#[test]
fn x22_a_purge_ends_however_deep_wide_and_closed_a_tree_is() {
    let env = repository();
    env.ok(&["new", "a"]);
    let (folders, levels) = if full_scale() {
        (1000, 20_000)
    } else {
        (20, 3_000)
    };
    let script = format!(
        "import os\nfor f in range({folders}):\n    os.mkdir(f'w{{f}}')\n    for n in range(1000): os.close(os.open(f'w{{f}}/{{n}}', os.O_CREAT | os.O_WRONLY))\n\
         for n in range({levels}):\n    os.mkdir('d'); os.chdir('d')\nopen('end', 'w').close()\nos.mkdir('closed'); os.mkdir('closed/in'); os.chmod('closed', 0)\n"
    );
    let made = env.weald(&["run", "a", "--", "python3", "-c", &script]);
    assert_eq!(made.code, 0, "{made:#?}");
    env.ok(&["rm", "a", "--discard"]);
    let place = in_trash(&env);
    assert!(place.exists());
    let few = "ulimit -n 64; exec \"$0\" \"$@\"";
    let mut purge = env.command("sh");
    purge.args(["-c", few, env!("CARGO_BIN_EXE_weald")]);
    purge.args(PURGE).arg("--discard");
    let purged = Answer::of(purge.output().unwrap());
    assert_eq!(purged.code, 0, "{purged:#?}");
    assert!(!place.exists());
    assert_eq!(env.ok(&["trash", "list"])["trash"], json!([]));
}
