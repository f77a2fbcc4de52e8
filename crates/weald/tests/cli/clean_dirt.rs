//! What counts as changed for a clean: what the user ignores does not, what git was told not to see does.

use std::fs;
use std::time::{Duration, SystemTime};

use crate::clean::{abandoned, blockers, named, pair};
use crate::clean_guards::spoiled;
use crate::trees_remove::{KINDS, commit, git_in, repository};

const CLEAN: [&str; 3] = ["clean", "--min-age", "0"];

#[test]
fn l2_benign_dirt_of_the_users_config_keeps_no_tree() {
    for kind in KINDS {
        let env = repository();
        let path = abandoned(&env, "a", kind);
        fs::create_dir(path.join(".claude")).unwrap();
        fs::write(path.join(".claude/settings.local.json"), "{}").unwrap();
        let clean = ["clean", "--apply", "--min-age", "0"];
        assert_eq!(blockers(&env.ok(&clean))["a"], ["dirty"]);
        // The repository can't say so.
        fs::write(
            env.repo().join("weald.toml"),
            "clean.ignore_dirty = ['.claude/*']\n",
        )
        .unwrap();
        env.git(&["add", "weald.toml"]);
        env.git(&["commit", "-q", "-m", "config"]);
        assert_eq!(blockers(&env.ok(&clean))["a"], ["dirty"]);
        let set = "clean.ignore_dirty=.claude/settings.local.json";
        let own = [&clean[..], &["--set", set]].concat();
        fs::write(path.join("draft"), "mine").unwrap();
        assert_eq!(blockers(&env.ok(&own))["a"], ["dirty"]);
        fs::remove_file(path.join("draft")).unwrap();
        // Only files: whatever else has that name may hold anything.
        let benign = path.join(".claude/settings.local.json");
        fs::remove_file(&benign).unwrap();
        fs::create_dir(&benign).unwrap();
        fs::write(benign.join("work.c"), "mine").unwrap();
        assert_eq!(blockers(&env.ok(&own))["a"], ["dirty"], "a directory");
        git_in(&env, &benign, &["init", "-q"]);
        commit(&env, &benign, "work.c", "mine, too");
        assert_eq!(blockers(&env.ok(&own))["a"], ["dirty"], "a repository");
        fs::remove_dir_all(&benign).unwrap();
        std::os::unix::fs::symlink("elsewhere", &benign).unwrap();
        assert_eq!(blockers(&env.ok(&own))["a"], ["dirty"], "a link");
        fs::remove_file(&benign).unwrap();
        fs::write(&benign, "{}").unwrap();
        let report = env.ok(&own);
        let removed = named(&report, "removed", "outcome");
        assert_eq!(removed, [pair("a", "trashed")], "{report:#}");
        let id = report["removed"][0]["id"].to_string();
        env.ok(&["trash", "restore", &id]);
        let kept = path.join(".claude/settings.local.json");
        assert_eq!(fs::read_to_string(kept).unwrap(), "{}");
    }
}

#[test]
fn l2_line_ends_that_only_the_tree_calls_the_same_are_work() {
    let line_ends = spoiled("sealed", |env, path| {
        let text = fs::read_to_string(path.join("config.py")).unwrap();
        git_in(env, path, &["config", "core.autocrlf", "input"]);
        fs::write(path.join("config.py"), text.replace('\n', "\r\n")).unwrap();
        // That is the same to git, which notes the times.
        git_in(env, path, &["add", "config.py"]);
        assert_eq!(git_in(env, path, &["status", "--porcelain"]), "");
    });
    assert_eq!(line_ends, ["dirty"]);
    let line_ends = spoiled("sealed", |env, path| {
        let file = path.join("config.py");
        let text = fs::read_to_string(&file).unwrap();
        git_in(env, path, &["config", "core.autocrlf", "input"]);
        fs::write(&file, text.replace('\n', "\r\n")).unwrap();
        let old = SystemTime::now() - Duration::from_secs(60);
        let written = fs::File::options().write(true).open(&file).unwrap();
        written.set_modified(old).unwrap();
        git_in(env, path, &["add", "config.py"]);
        // Now the index says that it makes the tree of HEAD, and is older than no file.
        git_in(env, path, &["write-tree"]);
        env.refused(&["rm", "a"], 1, "tree_dirty");
    });
    assert_eq!(line_ends, ["dirty"], "with an index that is whole");
}

#[test]
fn l2_work_that_git_was_told_not_to_see_is_work() {
    for kind in KINDS {
        for mark in ["--skip-worktree", "--assume-unchanged"] {
            let hidden = spoiled(kind, |env, path| {
                git_in(env, path, &["update-index", mark, "config.py"]);
                fs::write(path.join("config.py"), "hidden\n").unwrap();
                assert_eq!(git_in(env, path, &["status", "--porcelain"]), "");
                env.refused(&["rm", "a"], 1, "tree_dirty");
            });
            assert_eq!(hidden, ["dirty"], "{kind} {mark}");
        }
        let env = repository();
        let path = abandoned(&env, "a", kind);
        let mark = ["update-index", "--skip-worktree", "config.py"];
        git_in(&env, &path, &mark);
        let clean = env.ok(&CLEAN);
        assert_eq!(
            named(&clean, "candidates", "tree").len(),
            1,
            "a mark alone: {clean}"
        );
        fs::remove_file(path.join("config.py")).unwrap();
        env.ok(&["rm", "a"]);
    }
    let touched = spoiled("sealed", |env, path| {
        let file = path.join("config.py");
        let text = fs::read_to_string(&file).unwrap();
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        git_in(env, path, &["config", "core.checkStat", "minimal"]);
        git_in(env, path, &["config", "core.trustctime", "false"]);
        git_in(env, path, &["update-index", "--refresh"]);
        // Of the times that nobody can set, git compares the seconds.
        std::thread::sleep(Duration::from_millis(1100));
        fs::write(&file, text.to_uppercase()).unwrap();
        let written = fs::File::options().write(true).open(&file).unwrap();
        written.set_modified(time).unwrap();
        assert_eq!(git_in(env, path, &["status", "--porcelain"]), "");
    });
    assert_eq!(touched, ["dirty"]);
    let mode = spoiled("sealed", |env, path| {
        use std::os::unix::fs::PermissionsExt;
        git_in(env, path, &["config", "core.fileMode", "false"]);
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(path.join("config.py"), mode).unwrap();
        assert_eq!(git_in(env, path, &["status", "--porcelain"]), "");
    });
    assert_eq!(mode, ["dirty"]);
    let case = spoiled("sealed", |env, path| {
        git_in(env, path, &["config", "core.ignoreCase", "true"]);
        fs::write(path.join("CONFIG.py"), "another file\n").unwrap();
        assert_eq!(git_in(env, path, &["status", "--porcelain"]), "");
        env.refused(&["rm", "a"], 1, "tree_dirty");
    });
    assert_eq!(case, ["dirty"]);
    let beside = spoiled("sealed", |env, path| {
        git_in(env, path, &["worktree", "add", "-q", "--detach", "x.log"]);
        commit(env, &path.join("x.log"), "new", "new");
    });
    assert_eq!(beside, ["branch_not_merged"]);
}

#[test]
fn l2_what_main_says_about_line_ends_is_no_dirt() {
    let env = repository();
    env.git(&["config", "core.autocrlf", "true"]);
    env.git(&["config", "core.fileMode", "false"]);
    let path = abandoned(&env, "a", "sealed");
    assert_eq!(fs::read(path.join("config.py")).unwrap(), b"base\r\n");
    // Read again, and by the settings of main.
    git_in(&env, &path, &["config", "core.autocrlf", "false"]);
    fs::write(path.join("config.py"), "base\r\n").unwrap();
    let clean = env.ok(&CLEAN);
    assert_eq!(named(&clean, "candidates", "tree").len(), 1, "{clean}");
}
