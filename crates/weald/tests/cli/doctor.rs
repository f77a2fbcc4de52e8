//! Doctor: what it looks at although something is broken, what it finds between records, git and disk, and how fast.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_app::Code;
use weald_testkit::{Answer, full_scale};

use crate::doctor_poisoned::{Ward, ward};
use crate::trees_meanwhile::{go_on, stopped};
use crate::trees_remove::{commit, git_in, grow, repository};
use crate::trees_trash::manifest;

pub fn codes(findings: &[Value]) -> Vec<&str> {
    let codes = findings.iter().map(|one| one["code"].as_str().unwrap());
    codes.collect()
}

#[track_caller]
pub fn the<'f>(findings: &'f [Value], code: &str) -> &'f Value {
    let found = findings.iter().find(|one| one["code"] == code);
    found.unwrap_or_else(|| panic!("no {code}: {findings:#?}"))
}

#[test]
fn l15_every_code_is_explained() {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md");
    let table = fs::read_to_string(table).unwrap();
    let rows = || table.lines().filter(|line| line.starts_with("| `"));
    for code in Code::ALL {
        let start = format!("| `{}` | {} | ", code.as_str(), code.means());
        let row = rows().find(|row| row.starts_with(&start));
        assert!(
            row.is_some_and(|row| row.len() > start.len() + 2),
            "{start}"
        );
    }
    assert_eq!(rows().count(), Code::ALL.len(), "and nothing else");
}

/// Whatever the records are, the rest is looked at, the answer is JSON, and nothing of them is written.
#[test]
fn l15_without_records_everything_else_is_looked_at() {
    let ward = ward();
    let private = ward.env.private();
    let file = private.join("weald.db");
    // One file is all of it.
    rusqlite::Connection::open(&file)
        .unwrap()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    let whole = fs::read(&file).unwrap();
    let newer = |path: &Path| {
        let database = rusqlite::Connection::open(path).unwrap();
        database
            .execute("INSERT INTO schema_versions VALUES (999, 'now')", [])
            .unwrap();
        database
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
    };
    let zeros_within = [&whole[..4096], &vec![0; whole.len() - 4096][..]].concat();
    type Damage<'d> = &'d dyn Fn(&Path);
    let cases: [(&str, Damage<'_>); 7] = [
        ("database_missing", &|path| fs::remove_file(path).unwrap()),
        ("database_broken", &|path| fs::write(path, "").unwrap()),
        ("database_broken", &|path| {
            fs::write(path, "garbage").unwrap()
        }),
        ("database_broken", &|path| {
            fs::write(path, &whole[..3000]).unwrap()
        }),
        ("database_broken", &|path| {
            fs::write(path, &zeros_within).unwrap()
        }),
        ("database_broken", &|path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
        ("database_newer", &newer),
    ];
    fs::write(ward.git_dir().join("worktrees/a/commondir"), "").unwrap();
    fs::write(ward.git_dir().join("refs/heads/other"), "").unwrap();
    for (code, damage) in cases {
        for beside in ["weald.db-wal", "weald.db-shm"] {
            let _ = fs::remove_file(private.join(beside));
        }
        match file.is_dir() {
            true => fs::remove_dir(&file).unwrap(),
            false => drop(fs::remove_file(&file)),
        }
        fs::write(&file, &whole).unwrap();
        damage(&file);
        let before = fs::read(&file).ok();
        let found = ward.doctor(&["--fix"]);
        assert_eq!(the(&found, code)["severity"], "error", "{found:#?}");
        the(&found, "ref_broken");
        if code != "database_newer" {
            let would = the(&found, code)["would"].as_str().unwrap();
            assert!(would.contains("weald doctor --rebuild"), "{would}");
        }
        assert_eq!(fs::read(&file).ok(), before, "{code}: it was written");
        let commondir = fs::read(ward.git_dir().join("worktrees/a/commondir"));
        assert_eq!(commondir.unwrap(), b"", "nothing is mended by guesses");
    }
}

#[test]
fn l15_without_git_or_configuration_everything_else_is_looked_at() {
    let ward = ward();
    fs::write(ward.git_dir().join("refs/heads/other"), "").unwrap();
    fs::remove_dir_all(ward.git_dir().join("worktrees/a")).unwrap();
    let mut without = ward.env.weald_command(&["doctor", "--json"]);
    let answer = Answer::of(without.env("PATH", "/nowhere").output().unwrap());
    assert_eq!(answer.code, 1, "{answer:#?}");
    let found = answer.json()["findings"].as_array().unwrap().clone();
    for code in ["git_missing", "ref_broken", "registration_lost"] {
        the(&found, code);
    }
    let config = ward.env.private().join("config.toml");
    fs::write(&config, "tree = = 3\n").unwrap();
    let found = ward.doctor(&["--fix"]);
    the(&found, "config_broken");
    assert_eq!(the(&found, "registration_lost")["fixed"], false);
    fs::remove_file(&config).unwrap();
    assert_eq!(
        the(&ward.doctor(&["--fix"]), "registration_lost")["fixed"],
        true
    );
    // What the repository says for itself only makes things stricter.
    fs::write(ward.env.repo().join("weald.toml"), "x = = 3\n").unwrap();
    ward.env.git(&["add", "weald.toml"]);
    ward.env.git(&["commit", "-q", "-m", "settings"]);
    assert_eq!(
        the(&ward.doctor(&[]), "config_shared_broken")["severity"],
        "warn"
    );
}

/// A state that somebody could lead elsewhere is opened by nobody.
#[test]
fn z2_a_linked_private_folder_is_told_and_not_followed() {
    let ward = ward();
    let (private, elsewhere) = (ward.env.private(), ward.env.root().join("elsewhere"));
    fs::rename(&private, &elsewhere).unwrap();
    symlink(&elsewhere, &private).unwrap();
    let before = manifest(&elsewhere);
    let found = ward.doctor(&["--fix"]);
    assert_eq!(the(&found, "state_linked")["severity"], "error");
    assert_eq!(manifest(&elsewhere), before);
    fs::remove_file(&private).unwrap();
    fs::rename(&elsewhere, &private).unwrap();
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&private, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(the(&ward.doctor(&["--fix"]), "private_open")["fixed"], true);
    assert_eq!(ward.doctor(&[]), Vec::<Value>::new());
}

/// Records that lost their last changes say so, and nothing is repaired by them.
#[test]
fn l15_records_that_lack_events_or_trees_repair_nothing() {
    let ward = ward();
    let file = ward.env.private().join("weald.db");
    let checkpoint = |path: &Path| {
        let database = rusqlite::Connection::open(path).unwrap();
        let fold = "PRAGMA wal_checkpoint(TRUNCATE)";
        database.query_row(fold, [], |_| Ok(())).unwrap();
    };
    checkpoint(&file);
    let old = fs::read(&file).unwrap();
    grow(&ward.env, "b", "sealed");
    for beside in ["weald.db-wal", "weald.db-shm"] {
        let _ = fs::remove_file(ward.env.private().join(beside));
    }
    fs::write(&file, old).unwrap();
    fs::remove_file(ward.git_dir().join("worktrees/a/commondir")).unwrap();
    let found = ward.doctor(&["--fix"]);
    the(&found, "database_behind");
    the(&found, "registration_unknown");
    assert!(found.iter().all(|one| one["fixed"] == false), "{found:#?}");
    assert!(ward.env.root().join("app.weald/b").is_dir());
}

#[test]
fn z2_pins_that_lead_nowhere_are_dropped_and_a_lost_vault_is_fed_again() {
    let ward = ward();
    let vault = ward.git_dir().join("weald/vault");
    let nothing = "1".repeat(40);
    for name in ["refs/tree/1/lost", "refs/snap/1/lost", "refs/main/lost"] {
        let path = vault.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{nothing}\n")).unwrap();
    }
    let found = ward.doctor(&[]);
    assert_eq!(codes(&found), ["pin_dangling"; 3]);
    assert!(found[0]["what"].as_str().unwrap().contains(&nothing));
    let fixed = ward.doctor(&["--fix"]);
    assert!(fixed.iter().all(|one| one["fixed"] == true), "{fixed:#?}");
    assert_eq!(ward.doctor(&["--fix"]), Vec::<Value>::new());
    // The commits of a tree are in the tree, too.
    let tip = git_in(&ward.env, &ward.a, &["rev-parse", "HEAD"]);
    fs::remove_dir_all(&vault).unwrap();
    assert_eq!(
        the(&ward.doctor(&["--fix"]), "vault_missing")["fixed"],
        true
    );
    assert_eq!(ward.doctor(&["--fix"]), Vec::<Value>::new());
    ward.env.ok(&["status", "a"]);
    assert_eq!(git_in(&ward.env, &ward.a, &["rev-parse", "HEAD"]), tip);
    git_in(&ward.env, &ward.a, &["fsck", "--connectivity-only"]);
    commit(&ward.env, &ward.a, "more", "m\n");
    ward.env.ok(&["status", "a"]);
}

/// What is in a tree is its agent's: told, never changed.
#[test]
fn z2_damage_in_a_tree_is_told_and_what_weald_wrote_there_is_mended() {
    let ward = ward();
    let (git, a) = (ward.a.join(".git"), json!("a"));
    let head = fs::read(git.join("HEAD")).unwrap();
    for text in ["", "what\n"] {
        fs::write(git.join("HEAD"), text).unwrap();
        let found = ward.doctor(&["--fix"]);
        let told = the(&found, "tree_damaged");
        assert_eq!((&told["fixed"], &told["tree"]), (&json!(false), &a));
        assert_eq!(fs::read_to_string(git.join("HEAD")).unwrap(), text);
    }
    fs::write(git.join("HEAD"), &head).unwrap();
    fs::rename(git.join("objects"), git.join("kept")).unwrap();
    the(&ward.doctor(&["--fix"]), "tree_damaged");
    fs::rename(git.join("kept"), git.join("objects")).unwrap();
    let lock = fs::File::create(git.join("index.lock")).unwrap();
    let hours_ago = std::time::SystemTime::now() - Duration::from_secs(7200);
    lock.set_modified(hours_ago).unwrap();
    the(&ward.doctor(&["--fix"]), "tree_lock");
    fs::remove_file(git.join("index.lock")).unwrap();
    fs::remove_file(git.join("objects/info/alternates")).unwrap();
    assert_eq!(
        the(&ward.doctor(&["--fix"]), "alternates_broken")["fixed"],
        true
    );
    let marker = ward.env.root().join("app.weald/.weald");
    fs::write(&marker, "/somewhere/else/.git\n").unwrap();
    assert_eq!(the(&ward.doctor(&["--fix"]), "marker_lost")["fixed"], true);
    fs::write(ward.l.join(".git"), "gitdir: /nowhere\n").unwrap();
    assert_eq!(
        the(&ward.doctor(&["--fix"]), "pointer_wrong")["fixed"],
        true
    );
    assert_eq!(ward.doctor(&["--fix"]), Vec::<Value>::new());
    git_in(&ward.env, &ward.l, &["status"]);
    // Another thing at the place of a tree is nobody's to touch.
    let kept = ward.env.root().join("kept");
    fs::rename(&ward.a, &kept).unwrap();
    symlink(&kept, &ward.a).unwrap();
    let told = ward.doctor(&["--fix"]);
    assert_eq!(the(&told, "tree_replaced")["severity"], "error");
    assert!(ward.a.is_symlink());
    fs::remove_file(&ward.a).unwrap();
    fs::rename(&kept, &ward.a).unwrap();
    assert_eq!(ward.doctor(&["--fix"]), Vec::<Value>::new());
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&ward.a, Some(1000), None).unwrap();
        the(&ward.doctor(&["--fix"]), "tree_owner");
    }
}

/// Edits a record behind weald's back.
fn edit_tree(ward: &Ward, name: &str, edit: impl Fn(&mut Value)) {
    let file = ward.env.private().join("weald.db");
    let database = rusqlite::Connection::open(file).unwrap();
    let doc: String = database
        .query_row("SELECT doc FROM trees WHERE name = ?1", [name], |row| {
            row.get(0)
        })
        .unwrap();
    let mut tree: Value = serde_json::from_str(&doc).unwrap();
    edit(&mut tree);
    database
        .execute(
            "UPDATE trees SET doc = ?2 WHERE name = ?1",
            [name, &tree.to_string()],
        )
        .unwrap();
}

#[test]
fn l15_a_binding_that_was_completed_meanwhile_is_not_undone() {
    let ward = ward();
    ward.env.ok(&["task", "add", "one"]);
    let database = rusqlite::Connection::open(ward.env.private().join("weald.db")).unwrap();
    let half_bound = "UPDATE tasks SET doc = json_set(doc, '$.worktree', 'a') WHERE id = '1'";
    for is_of_tree in [true, false] {
        match is_of_tree {
            true => edit_tree(&ward, "a", |tree| tree["task"] = json!("1")),
            false => assert_eq!(database.execute(half_bound, []).unwrap(), 1),
        }
        let doctor = stopped(&ward.env, &["doctor", "--fix", "--json"], "repair.found");
        ward.env.ok(&["task", "bind", "1", "a"]);
        let (_, said) = go_on(doctor);
        assert!(said.contains("binding_dangling"), "{said}");
        let task = ward.env.ok(&["task", "show", "1"])["task"].clone();
        assert_eq!(task["worktree"], "a", "{is_of_tree}: {said}");
        let tree = ward.env.ok(&["show", "a"])["tree"].clone();
        assert_eq!(tree["task"].to_string().trim_matches('"'), "1", "{said}");
        ward.env.ok(&["task", "unbind", "1"]);
    }
}

#[test]
fn l15_records_that_contradict_each_other_are_told() {
    let ward = ward();
    ward.env.ok(&["task", "add", "one"]);
    edit_tree(&ward, "a", |tree| tree["task"] = json!("1"));
    let found = ward.doctor(&["--fix"]);
    assert_eq!(the(&found, "binding_dangling")["fixed"], true, "{found:#?}");
    ward.env.ok(&["session", "register", "s"]);
    let database = rusqlite::Connection::open(ward.env.private().join("weald.db")).unwrap();
    database
        .execute(
            "UPDATE sessions SET doc = json_set(doc, '$.tree', 'gone') WHERE name = 's'",
            [],
        )
        .unwrap();
    drop(database);
    the(&ward.doctor(&["--fix"]), "session_dangling");
    ward.env.ok(&["session", "end", "s"]);
    let trash = ward.env.root().join("app.weald/.trash");
    fs::create_dir_all(trash.join("somebody-s")).unwrap();
    the(&ward.doctor(&["--fix"]), "trash_unknown");
    assert!(trash.join("somebody-s").is_dir());
    fs::remove_dir(trash.join("somebody-s")).unwrap();
    // A creation and a removal that nobody ended.
    let gone =
        json!({"host": "x", "boot_id": "x", "pid_namespace": "x", "pid": 1, "start_time": 1});
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    edit_tree(&ward, "a", |tree| {
        tree["removing"] = json!(true);
        tree["worker"] = gone.clone();
        tree["worker"]["host"] = json!(host.trim());
    });
    let lock = ward.git_dir().join("refs/heads/wt/a.lock");
    fs::write(&lock, "").unwrap();
    let found = ward.doctor(&["--fix"]);
    assert_eq!(the(&found, "lock_stale")["fixed"], true, "{found:#?}");
    assert_eq!(
        the(&found, "remove_unfinished")["fixed"],
        true,
        "{found:#?}"
    );
    assert!(!lock.exists() && ward.a.is_dir());
    assert_eq!(ward.doctor(&["--fix"]), Vec::<Value>::new());
    let path = ward.a.display().to_string();
    edit_tree(&ward, "l", |tree| tree["path"] = json!(path));
    assert_eq!(the(&ward.doctor(&[]), "path_twice")["severity"], "error");
}

#[test]
fn l15_a_stopped_process_that_holds_a_lock_is_named() {
    let ward = ward();
    let lock = ward.env.private().join("write.lock");
    let mut holding = ward.env.command("flock");
    holding.arg(&lock).args(["-c", "echo held; exec sleep 60"]);
    // A group of their own: its command ends with it.
    let mut child = holding
        .process_group(0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    use std::io::Read;
    let mut said = [0; 5];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut said)
        .unwrap();
    assert_eq!(
        ward.doctor(&[]),
        Vec::<Value>::new(),
        "one that works is let work"
    );
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let stat = format!("/proc/{}/stat", child.id());
    while !fs::read_to_string(&stat).unwrap().contains(") T ") {
        std::thread::yield_now();
    }
    let found = ward.doctor(&[]);
    let told = the(&found, "holder_stopped");
    assert!(
        told["would"]
            .as_str()
            .unwrap()
            .contains(&child.id().to_string())
    );
    rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).unwrap();
    child.wait().unwrap();
}

#[test]
fn l15_a_disk_without_room_is_told() {
    let ward = ward();
    let found = ward.doctor(&["--set", "doctor.min_free=900000G"]);
    assert_eq!(codes(&found), ["disk_low"]);
    assert_eq!(
        ward.doctor(&["--set", "doctor.min_free=none"]),
        Vec::<Value>::new()
    );
}

/// Many trees, a third of them gone or broken: no folder is read once a tree, no process is started for each.
#[test]
fn l18_doctor_looks_at_many_trees_in_little_time() {
    let (trees, stale, limit) = match full_scale() {
        true => (1000, 300, 3),
        false => (40, 12, 10),
    };
    let env = repository();
    for number in 0..trees {
        grow(&env, &format!("t{number}"), "sealed");
    }
    let place = env.root().join("app.weald");
    for number in 0..stale {
        let path = place.join(format!("t{number}"));
        match number % 3 {
            0 => fs::remove_dir_all(path).unwrap(),
            1 => fs::rename(&path, place.join(format!("moved-{number}"))).unwrap(),
            _ => {
                let entry = env.repo().join(format!(".git/worktrees/t{number}"));
                fs::write(entry.join("commondir"), "").unwrap();
            }
        }
    }
    let begun = Instant::now();
    let answer = env.weald(&["doctor", "--json"]);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(limit), "{took:?}");
    let found = answer.json()["findings"].as_array().unwrap().clone();
    assert_eq!(found.len(), 1 + stale, "{found:#?}");
    env.weald(&["doctor", "--fix"]);
    let second = env.weald(&["doctor", "--fix", "--json"]);
    let left = second.json()["findings"].as_array().unwrap().clone();
    assert_eq!(codes(&left[1..]), vec!["tree_missing"; stale.div_ceil(3)]);
}

#[test]
fn l15_people_read_what_is_amiss_and_who_can_mend_it() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    let healthy = env.weald(&["doctor"]);
    assert_eq!(healthy.code, 0);
    assert!(
        healthy.stdout.ends_with("\nno problems found\n"),
        "{healthy:#?}"
    );
    assert!(
        healthy.stdout.lines().all(|line| line.len() < 80),
        "{healthy:#?}"
    );
    // One that a repair mends, and one that it does not.
    fs::remove_dir_all(env.repo().join(".git/worktrees/a")).unwrap();
    let lost = grow(&env, "b", "sealed");
    fs::remove_dir_all(&lost).unwrap();
    let found = env.weald(&["doctor", "--json"]).json()["findings"].clone();
    let found = found.as_array().unwrap();
    assert_eq!(the(found, "registration_lost")["fixable"], true);
    assert_eq!(the(found, "tree_missing")["fixable"], false);
    let told = env.weald(&["doctor"]).stdout;
    let means = the(found, "tree_missing")["means"].as_str().unwrap();
    assert!(told.contains(means), "{told}");
    assert!(told.contains("only you can fix: tree_missing\n"), "{told}");
    assert!(
        told.ends_with("2 can be repaired: weald doctor --fix\n"),
        "{told}"
    );
    let told = env.weald(&["doctor", "--fix"]).stdout;
    assert!(told.contains("repaired: "), "{told}");
    assert!(told.contains("done: "), "{told}");
    assert!(told.ends_with("only you can fix: tree_missing\n"), "{told}");
    assert!(tree.is_dir());
    env.ok(&["ensure", "b"]);
    assert!(
        env.weald(&["doctor"])
            .stdout
            .ends_with("no problems found\n")
    );
}
