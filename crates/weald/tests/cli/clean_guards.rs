//! Each blocker of a clean, made for real; paths that lead elsewhere; and what has only one of record, directory and entry.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::{TestEnv, full_scale};

use crate::clean::{abandoned, blockers, named, rewrite};
use crate::trees_meanwhile::{go_on, stopped};
use crate::trees_remove::{KINDS, commit, git_in, grow, repository, try_git, weald_in};
use crate::trees_trash::manifest;

const CLEAN: [&str; 3] = ["clean", "--min-age", "0"];

/// What blocks a tree that could go but for what `spoil` did to it.
pub fn spoiled(kind: &str, spoil: impl FnOnce(&TestEnv, &Path)) -> Vec<String> {
    let env = repository();
    let path = abandoned(&env, "a", kind);
    spoil(&env, &path);
    let answer = env.weald(&[&["--json"], &CLEAN[..]].concat());
    let found = blockers(&answer.json()).remove("a").unwrap_or_default();
    // Nothing that blocks a look lets an apply through.
    let applied = env.weald(&["clean", "--min-age", "0", "--apply", "--json"]);
    assert_eq!(applied.json()["removed"], json!([]), "{applied:#?}");
    found
}

#[test]
fn l3_what_is_wrong_with_the_directory() {
    for kind in KINDS {
        let gone = spoiled(kind, |_, path| fs::remove_dir_all(path).unwrap());
        assert_eq!(gone, ["missing_path"], "{kind}");
        let unread = ["diff_error", "branch_safety_unknown"];
        let replaced = spoiled(kind, |env, path| {
            fs::remove_dir_all(path).unwrap();
            git_in(env, env.root(), &["init", "-q", path.to_str().unwrap()]);
        });
        assert_eq!(replaced, ["not_git_worktree", unread[0], unread[1]]);
        let damaged = spoiled(kind, |env, path| {
            let entry = env.repo().join(".git/worktrees/a/index");
            let own = path.join(".git/index");
            let index = if kind == "sealed" { own } else { entry };
            fs::write(index, "damaged").unwrap();
        });
        assert_eq!(damaged, unread, "{kind}");
    }
}

#[test]
fn l3_what_it_holds() {
    for kind in KINDS {
        let dirty = spoiled(kind, |_, path| fs::write(path.join("x"), "x").unwrap());
        assert_eq!(dirty, ["dirty"]);
        let conflicted = spoiled(kind, |env, path| {
            git_in(env, path, &["checkout", "-q", "--detach"]);
            commit(env, path, "config.py", "ours\n");
            let ours = git_in(env, path, &["rev-parse", "HEAD"]);
            git_in(env, path, &["checkout", "-q", "--detach", "HEAD~1"]);
            commit(env, path, "config.py", "theirs\n");
            assert!(!try_git(env, path, &["merge", ours.trim()]).0);
        });
        assert_eq!(
            conflicted,
            ["conflicted", "dirty", "branch_not_merged"],
            "{kind}"
        );
        let ahead = spoiled(kind, |env, path| drop(commit(env, path, "new", "new")));
        assert_eq!(ahead, ["branch_not_merged"]);
    }
    // Work beside HEAD is work, too.
    let stashed = spoiled("sealed", |env, path| {
        fs::write(path.join("config.py"), "changed\n").unwrap();
        git_in(env, path, &["stash", "-q"]);
    });
    assert_eq!(stashed, ["branch_not_merged"]);
    let beside = spoiled("sealed", |env, path| {
        git_in(env, path, &["checkout", "-q", "-b", "beside"]);
        commit(env, path, "new", "new");
        git_in(env, path, &["checkout", "-q", "-"]);
    });
    assert_eq!(beside, ["branch_not_merged"]);
}

#[test]
fn l3_what_it_rests_on() {
    for kind in KINDS {
        let target = spoiled(kind, |env, _| rewrite(env, "a", "target", &json!("nosuch")));
        assert_eq!(target, ["base_unknown", "branch_safety_unknown"], "{kind}");
        let base = spoiled(kind, |env, _| {
            rewrite(env, "a", "base.commit", &json!("1".repeat(40)));
        });
        assert_eq!(base, ["base_unknown"], "{kind}");
        let branch = spoiled(kind, |env, _| rewrite(env, "a", "branch", &json!("mine")));
        assert_eq!(branch, ["branch_safety_unknown"], "{kind}");
        let shared = spoiled(kind, |env, _| {
            let other = env.root().join("other");
            let other = other.to_str().unwrap();
            env.git(&["worktree", "add", "-q", "-f", other, "wt/a"]);
        });
        assert_eq!(shared, ["shared"], "{kind}");
    }
}

#[test]
fn l3_who_has_to_do_with_it() {
    for kind in KINDS {
        let locked = spoiled(kind, |env, _| drop(env.ok(&["lock", "a"])));
        assert_eq!(locked, ["locked"]);
        let by_git = spoiled(kind, |env, path| {
            let path = path.to_str().unwrap();
            try_git(env, &env.repo(), &["worktree", "unlock", path]);
            env.git(&["worktree", "lock", "--reason", "on a stick", path]);
        });
        assert_eq!(by_git, ["locked"], "{kind}");
        let kept = spoiled(kind, |env, _| drop(env.ok(&["keep", "a"])));
        assert_eq!(kept, ["kept"]);
        let referenced = spoiled(kind, |env, _| {
            env.ok(&["session", "register", "bob"]);
            env.ok(&["session", "heartbeat", "bob", "--tree", "a"]);
        });
        assert_eq!(referenced, ["referenced"], "a heartbeat");
    }
}

#[test]
fn l3_from_inside_a_tree_and_from_its_sandbox() {
    let env = repository();
    let path = abandoned(&env, "a", "sealed");
    let answer = weald_in(
        &env,
        &path,
        &["clean", "--apply", "--min-age", "0", "--json"],
    );
    assert_eq!(blockers(&answer.json())["a"], ["cwd"]);
    let weald = env!("CARGO_BIN_EXE_weald");
    let args = [
        "run",
        "a",
        "--",
        weald,
        "clean",
        "--apply",
        "--min-age",
        "0",
    ];
    let inside = env.weald(&[&args[..], &["--json"]].concat());
    assert_eq!(inside.error_code(), "not_allowed_inside", "{inside:#?}");
    assert!(path.join("config.py").is_file());
}

#[test]
fn l3_what_runs_in_it() {
    for kind in KINDS {
        let env = repository();
        let path = abandoned(&env, "a", kind);
        let script = "touch begun.log; exec sleep 600";
        let mut command = env.weald_command(&["run", "a", "--", "sh", "-c", script]);
        let mut child = command.spawn().unwrap();
        while !path.join("begun.log").exists() {
            assert!(child.try_wait().unwrap().is_none(), "it ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        let report = env.ok(&["clean", "--min-age", "0", "--apply"]);
        assert_eq!(blockers(&report)["a"], ["active"], "{kind}");
        child.kill().unwrap();
        child.wait().unwrap();
        // Nobody has to run weald to be there.
        let mut shell = env.command("sleep");
        let mut shell = shell.arg("600").current_dir(&path).spawn().unwrap();
        let report = env.ok(&["clean", "--min-age", "0", "--apply"]);
        let told = &report["skipped"][0];
        assert_eq!(blockers(&report)["a"], ["active"], "{kind}: {told}");
        assert!(told["notes"].to_string().contains("is in it"), "{told}");
        shell.kill().unwrap();
        shell.wait().unwrap();
        let id = env.ok(&["task", "add", "more"])["task"]["id"].to_string();
        env.ok(&["new", "b", "--kind", kind, "--task", &id]);
        env.ok(&["task", "claim", &id, "--session", "bob"]);
        let claimed = blockers(&env.ok(&CLEAN)).remove("b").unwrap();
        assert!(claimed.contains(&"active".to_owned()), "{claimed:?}");
    }
}

#[test]
fn l16_a_record_that_leads_elsewhere_takes_nothing() {
    for kind in KINDS {
        let env = repository();
        abandoned(&env, "a", kind);
        let outside = env.root().join("documents");
        fs::create_dir_all(outside.join(".git/objects")).unwrap();
        fs::write(outside.join("letter"), "mine").unwrap();
        let link = env.root().join("app.weald/link");
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        let root = env.root().join("app.weald");
        let places = [
            Path::new("/"),
            &env.repo(),
            &env.repo().join(".git"),
            &root,
            &outside,
            &env.home(),
            &link,
        ]
        .map(Path::to_owned);
        for place in places {
            for identity in [json!(null), identity_of(&place)] {
                rewrite(&env, "a", "path", &json!(place));
                rewrite(&env, "a", "identity", &identity);
                let before = manifest(&outside);
                let answer = env.weald(&["clean", "--min-age", "0", "--apply", "--json"]);
                let told = answer.json();
                let found = blockers(&told).remove("a").unwrap_or_default();
                let word = match place == link {
                    true => "not_git_worktree",
                    false => "unsafe_path",
                };
                assert!(found.contains(&word.to_owned()), "{place:?}: {found:?}");
                if place != link {
                    assert_eq!(answer.code, 1, "{place:?}");
                }
                assert_eq!(told["removed"], json!([]), "{place:?}");
                assert_eq!(manifest(&outside), before);
                assert!(env.repo().join("config.py").is_file() && root.is_dir());
                assert!(link.symlink_metadata().unwrap().is_symlink());
            }
        }
    }
}

/// What a registry would have to say to take a directory for a tree's.
pub fn identity_of(path: &Path) -> Value {
    use std::os::unix::fs::MetadataExt;
    let found = path.symlink_metadata().unwrap();
    let born = found.created().ok();
    let born = born.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let born = born.map(|since| since.as_nanos() as u64);
    json!({"device": found.dev(), "inode": found.ino(), "born": born})
}

#[test]
fn l17_another_repository_in_its_place_is_left_alone_by_every_command() {
    for kind in KINDS {
        let env = repository();
        let path = abandoned(&env, "a", kind);
        fs::rename(&path, env.root().join("aside")).unwrap();
        git_in(&env, env.root(), &["init", "-q", path.to_str().unwrap()]);
        commit(&env, &path, "theirs", "theirs");
        fs::write(path.join("draft"), "theirs, too").unwrap();
        let before = manifest(&path);
        let clean = env.weald(&["clean", "--min-age", "0", "--apply", "--orphans", "--json"]);
        let found = &blockers(&clean.json())["a"];
        assert!(found.contains(&"not_git_worktree".to_owned()), "{found:?}");
        assert_eq!(clean.json()["removed"], json!([]));
        env.ok(&["task", "reopen", "1"]);
        for args in [
            &["rm", "a"][..],
            &["rm", "a", "--discard", "--force", "--force"],
            &["run", "a", "--", "touch", "mark"],
            &["land", "a"],
            &["ensure", "a"],
            &["new", "a"],
            &["sync", "a"],
            &["diff", "a"],
            &["snapshot", "create", "a"],
            &["keep", "a"],
            &["lock", "a"],
            &["setup", "a"],
            &["enter", "a"],
            &["status", "a"],
            &["show", "a"],
            &["path", "a"],
            &["snapshot", "restore", "a"],
            &["new", "--scratch", "--for", "a"],
            &["adopt", path.to_str().unwrap()],
            &["agent", "spawn", "1", "--", "touch", "mark"],
            &["work", "1", "--", "touch", "mark"],
        ] {
            let answer = env.weald(&[&["--json"], args].concat());
            assert!(![0, 2].contains(&answer.code), "{args:?}: {answer:#?}");
            assert_eq!(manifest(&path), before, "{kind} {args:?}");
            let by_name = ["status", "show", "rm", "path", "diff", "keep", "lock"];
            if by_name.contains(&args[0]) {
                let told = (answer.code, answer.error_code());
                assert_eq!(told, (1, "tree_replaced".to_owned()), "{kind} {args:?}");
            }
        }
        for list in [&["list"][..], &["list", "--fresh"], &["status", "--all"]] {
            let shown = env.weald(list).stdout;
            assert!(shown.contains("replaced"), "{kind} {list:?}: {shown}");
        }
        let shown = &env.ok(&["list"])["trees"][0];
        assert_eq!(shown["exists"], false, "{shown}");
        assert!(shown["problem"].is_string(), "{shown}");
        env.weald(&["doctor", "--fix"]);
        assert_eq!(manifest(&path), before, "{kind}");
    }
}

#[test]
fn l7_orphans_are_told_by_class_and_never_lost() {
    for kind in KINDS {
        let env = repository();
        let root = env.root().join("app.weald");
        let lost = grow(&env, "lost", kind);
        commit(&env, &lost, "new", "new");
        env.ok(&["status", "lost"]);
        fs::remove_dir_all(&lost).unwrap();
        fs::create_dir(root.join("theirs")).unwrap();
        fs::write(root.join("theirs/file"), "theirs").unwrap();
        fs::create_dir(root.join("empty")).unwrap();
        let left = grow(&env, "left", "sealed");
        fs::write(left.join("draft"), "mine").unwrap();
        // As if the registry had never heard of it.
        forget(&env, "left");
        let foreign = env.root().join("foreign");
        env.git(&["worktree", "add", "-q", foreign.to_str().unwrap()]);
        let dry = env.ok(&["clean", "--orphans"]);
        let found = |report: &Value, name: &str| {
            let mut all = report["orphans"].as_array().unwrap().iter();
            let one = all.find(|one| one["name"] == name);
            one.unwrap_or_else(|| panic!("{name}: {report:#}")).clone()
        };
        for (name, class, acts) in [
            ("lost", "record_without_directory", true),
            ("theirs", "directory_without_record", false),
            ("empty", "directory_without_record", true),
            ("left", "directory_without_record", true),
            ("foreign", "registration_without_record", false),
        ] {
            assert_eq!(found(&dry, name)["class"], class, "{kind} {name}");
            assert_eq!(found(&dry, name)["acts"], acts, "{kind} {name}");
        }
        assert_eq!(dry["orphans"].as_array().unwrap().len(), 5, "{dry:#}");
        // Without being asked to, nothing happens to them.
        env.ok(&["clean", "--apply"]);
        assert!(left.is_dir() && root.join("empty").is_dir());
        let mine = manifest(&left);
        let done = env.ok(&["clean", "--orphans", "--apply"]);
        let trash = found(&done, "left")["trash"].as_str().unwrap().to_owned();
        assert_eq!(manifest(Path::new(&trash)), mine);
        assert!(!left.exists() && !root.join("empty").exists());
        assert_eq!(
            fs::read_to_string(root.join("theirs/file")).unwrap(),
            "theirs"
        );
        assert!(foreign.join("config.py").is_file());
        assert_eq!(
            named(&done, "removed", "outcome"),
            [("lost".into(), "already_gone".into())]
        );
        assert_eq!(
            named(&done, "removed", "branch"),
            [("lost".into(), "kept_unmerged".into())]
        );
        assert!(
            env.git(&["log", "--format=%s", "wt/lost"])
                .starts_with("new")
        );
        let after = env.ok(&["clean", "--orphans", "--apply"]);
        let rest: Vec<_> = after["orphans"].as_array().unwrap().iter().collect();
        assert_eq!(rest.len(), 2, "{after:#}");
    }
}

#[test]
fn l7_a_folder_that_is_not_mounted_forgets_nothing() {
    let env = repository();
    grow(&env, "a", "sealed");
    let root = env.root().join("app.weald");
    fs::rename(&root, env.root().join("unmounted")).unwrap();
    let report = env.ok(&["clean", "--orphans", "--apply"]);
    assert_eq!(report["orphans"][0]["acts"], false, "{report:#}");
    assert_eq!(report["removed"], json!([]));
    fs::rename(env.root().join("unmounted"), &root).unwrap();
    assert_eq!(env.ok(&["status", "a"])["tree"]["exists"], true);
}

#[test]
fn l7_what_became_a_worktree_meanwhile_is_no_orphan() {
    let env = repository();
    let root = env.root().join("app.weald");
    let lost = grow(&env, "lost", "sealed");
    fs::remove_dir_all(&lost).unwrap();
    let places = ["new", "added"].map(|name| root.join(name));
    for place in &places {
        fs::create_dir(place).unwrap();
    }
    let apply = ["clean", "--orphans", "--apply", "--json"];
    let clean = stopped(&env, &apply, "clean.begun");
    env.ok(&["ensure", "lost"]);
    fs::remove_dir(&places[0]).unwrap();
    env.ok(&["new", "new"]);
    env.git(&["worktree", "add", "-q", places[1].to_str().unwrap()]);
    let (code, said) = go_on(clean);
    for place in [&lost, &places[0], &places[1]] {
        assert!(place.join("config.py").is_file(), "{place:?}: {said}");
    }
    assert_eq!(
        said.matches("is not an orphan any more").count(),
        3,
        "{said}"
    );
    assert_eq!(code, 1, "{said}");
    assert_eq!(env.ok(&["show", "lost"])["tree"]["status"], "active");
}

#[test]
fn l7_what_was_done_about_orphans_is_told_as_it_was() {
    let env = repository();
    let root = env.root().join("app.weald");
    let lost = grow(&env, "lost", "sealed");
    fs::remove_dir_all(&lost).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    let occupied = root.join("occupied");
    fs::create_dir(&occupied).unwrap();
    let mut somebody = env.command("sleep");
    let mut somebody = somebody.arg("600").current_dir(&occupied).spawn().unwrap();
    let dry = env.weald(&["clean", "--orphans"]).stdout;
    assert!(dry.contains("weald clean --orphans --apply"), "{dry}");
    let told = env.weald(&["clean", "--orphans", "--apply"]).stdout;
    assert!(occupied.is_dir(), "somebody stands in it: {told}");
    for said in [
        "is in it",
        "moved to the trash; to restore it: mv ",
        "removed its record",
        "Removed 1 record.",
        "Moved 1 directory to the trash.",
    ] {
        assert!(told.contains(said), "{said}: {told}");
    }
    assert!(!told.contains("weald undo"), "{told}");
    let log = env.weald(&["events"]).stdout;
    let noted = log.lines().find(|line| line.contains("orphan.trashed"));
    assert!(noted.unwrap().contains("app.weald/empty"), "{log}");
    somebody.kill().unwrap();
    somebody.wait().unwrap();
    env.ok(&["clean", "--orphans", "--apply"]);
    assert!(!occupied.exists());
}

#[test]
fn l2_a_process_that_stands_in_a_tree_keeps_it() {
    for kind in KINDS {
        let mut somebody = None;
        let found = spoiled(kind, |env, path| {
            let mut command = env.command("sleep");
            somebody = Some(command.arg("600").current_dir(path).spawn().unwrap());
        });
        assert_eq!(found, ["active"]);
        let mut somebody = somebody.unwrap();
        somebody.kill().unwrap();
        somebody.wait().unwrap();
    }
}

/// Takes a tree out of the registry and out of git, as a lost database would.
fn forget(env: &TestEnv, tree: &str) {
    let database = rusqlite::Connection::open(env.private().join("weald.db")).unwrap();
    let sql = "DELETE FROM trees WHERE json_extract(doc, '$.name') = ?1";
    assert_eq!(database.execute(sql, [tree]).unwrap(), 1);
    fs::remove_dir_all(env.repo().join(".git/worktrees").join(tree)).unwrap();
}

#[test]
fn l18_many_trees_are_judged_and_taken_in_little_time() {
    let (trees, stale, limit) = match full_scale() {
        true => (1000, 300, 3),
        false => (30, 10, 10),
    };
    let env = repository();
    for number in 0..trees {
        match number < stale {
            true => drop(abandoned(&env, &format!("t{number}"), "sealed")),
            false => drop(env.ok(&["new", &format!("t{number}")])),
        }
    }
    let begun = Instant::now();
    let report = env.ok(&["clean", "--min-age", "0"]);
    let took = begun.elapsed();
    assert_eq!(named(&report, "candidates", "reason").len(), stale);
    assert_eq!(blockers(&report).len(), trees - stale);
    assert!(took < Duration::from_secs(limit), "{took:?}");
    let report = env.ok(&["clean", "--apply", "--min-age", "0"]);
    let taken = named(&report, "removed", "outcome");
    assert_eq!(taken.len(), stale, "{report:#}");
    // All of them are one operation.
    assert_eq!(env.ok(&["undo"])["undone"], "clean.begun");
    let report = env.ok(&["clean", "--min-age", "0"]);
    assert_eq!(named(&report, "candidates", "reason").len(), stale);
}
