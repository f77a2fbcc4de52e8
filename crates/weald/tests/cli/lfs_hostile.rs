//! Git LFS objects of agents that are careless or hostile: nothing of anybody else's changes, and what is no good is refused soon.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use weald_testkit::TestEnv;

use crate::lfs::{OLD, bytes, commit_large, objects, with_lfs};
use crate::trees_remove::{git_in, grow};

/// The one object of a size.
fn object_of(git_dir: &Path, size: u64) -> std::path::PathBuf {
    let mut found = objects(git_dir).into_iter();
    found
        .find(|path| path.symlink_metadata().unwrap().len() == size)
        .unwrap()
}

/// Everything of main's that a refused landing leaves alone.
fn state(env: &TestEnv) -> (String, String, usize) {
    let main = env.git(&["rev-parse", "main"]);
    let status = env.git(&["status", "--porcelain"]);
    (main, status, objects(&env.repo().join(".git")).len())
}

#[test]
fn y1_an_agent_that_overwrites_its_object_changes_nobody_elses() {
    let Some(env) = with_lfs() else { return };
    let (a, b) = (grow(&env, "a", "sealed"), grow(&env, "b", "sealed"));
    let script = "for f in $(find .git/lfs/objects -type f); do chmod u+w $f; printf spoilt | dd of=$f conv=notrunc status=none; done";
    let ran = env.weald(&["run", "a", "--", "sh", "-c", script]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let spoilt = fs::read(object_of(&a.join(".git"), OLD as u64)).unwrap();
    assert!(spoilt.starts_with(b"spoilt"));
    for git_dir in [b.join(".git"), env.repo().join(".git")] {
        let object = fs::read(object_of(&git_dir, OLD as u64)).unwrap();
        assert!(object == bytes(1, OLD), "{}", git_dir.display());
    }
    // It takes nobody's place either: main's is not asked for.
    commit_large(&env, &a, "new.bin", &bytes(2, 900));
    env.ok(&["land", "a"]);
    let object = fs::read(object_of(&env.repo().join(".git"), OLD as u64)).unwrap();
    assert!(object == bytes(1, OLD));
}

#[test]
fn y1_an_object_that_is_not_what_its_pointer_names_does_not_land() {
    let Some(env) = with_lfs() else { return };
    let tree = grow(&env, "a", "sealed");
    commit_large(&env, &tree, "new.bin", &bytes(9, 50_000));
    let object = object_of(&tree.join(".git"), 50_000);
    let before = state(&env);
    let spoil: [(&str, &dyn Fn()); 7] = [
        ("other content", &|| {
            fs::write(&object, bytes(8, 50_000)).unwrap()
        }),
        ("shorter", &|| fs::write(&object, b"short").unwrap()),
        ("longer", &|| fs::write(&object, bytes(9, 60_000)).unwrap()),
        ("gone", &|| ()),
        ("a FIFO", &|| {
            let made = std::process::Command::new("mkfifo").arg(&object).status();
            assert!(made.unwrap().success());
        }),
        ("a link", &|| {
            fs::write(tree.join("copy"), bytes(9, 50_000)).unwrap();
            symlink(tree.join("copy"), &object).unwrap();
        }),
        ("a folder", &|| fs::create_dir(&object).unwrap()),
    ];
    for (what, spoil) in spoil {
        let _ = fs::remove_file(&object);
        spoil();
        let began = Instant::now();
        let refused = env.weald(&["land", "a", "--json"]);
        assert!(
            refused.stdout.contains("lfs_missing"),
            "{what}: {refused:#?}"
        );
        assert!(refused.stdout.contains("new.bin"), "{what}: {refused:#?}");
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        assert_eq!(state(&env), before, "{what}");
    }
    // The hint makes it again, from the file; also where a damaged copy has the right length.
    fs::remove_dir(&object).unwrap();
    let _ = fs::remove_file(tree.join("copy"));
    fs::write(&object, bytes(8, 50_000)).unwrap();
    let refused = env.weald(&["land", "a", "--json"]).json();
    let hint = refused["landings"][0]["reason"]["hint"].as_str().unwrap();
    let (command, _) = hint.split_once("; or ").unwrap();
    let mut shell = env.command("sh");
    let program = Path::new(env!("CARGO_BIN_EXE_weald"));
    let script = format!(
        "PATH={}:$PATH; {command}",
        program.parent().unwrap().display()
    );
    let ran = shell.args(["-c", &script]).output().unwrap();
    assert!(ran.status.success(), "{command}: {ran:#?}");
    env.ok(&["land", "a"]);
    assert!(fs::read(env.repo().join("new.bin")).unwrap() == bytes(9, 50_000));
}

#[test]
fn y1_a_pointer_that_claims_too_much_is_refused_at_once() {
    let Some(env) = with_lfs() else { return };
    let tree = grow(&env, "a", "sealed");
    let id = "4".repeat(64);
    let size = 10_u64 << 30;
    let pointer =
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{id}\nsize {size}\n");
    fs::write(tree.join("huge.bin"), pointer).unwrap();
    git_in(&env, &tree, &["add", "-A"]);
    git_in(&env, &tree, &["commit", "-q", "-m", "huge"]);
    let before = state(&env);
    let began = Instant::now();
    let refused = env.weald(&["land", "a", "--json"]);
    assert!(refused.stdout.contains("lfs_missing"), "{refused:#?}");
    // With a file of that length, which takes no room.
    let folder = tree.join(".git/lfs/objects/44/44");
    fs::create_dir_all(&folder).unwrap();
    let file = File::create(folder.join(&id)).unwrap();
    file.set_len(size).unwrap();
    let refused = env.weald(&["land", "a", "--json"]);
    assert!(
        refused.code != 0 && refused.stdout.contains("tree.lfs_limit"),
        "{refused:#?}"
    );
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(state(&env), before);
    assert!(env.weald(&["trash", "list"]).stdout.is_empty() || tree.exists());
    // One that grows while it is read ends where its pointer says.
    file.set_len(0).unwrap();
    let pointer =
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{id}\nsize 90000000\n");
    fs::write(tree.join("huge.bin"), pointer).unwrap();
    git_in(&env, &tree, &["commit", "-q", "-a", "-m", "smaller"]);
    file.set_len(90_000_000).unwrap();
    let grown = folder.join(&id);
    let grows = std::thread::spawn(move || {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(3) {
            let mut file = OpenOptions::new().append(true).open(&grown).unwrap();
            file.write_all(&[0; 1 << 16]).unwrap();
        }
    });
    let refused = env.weald(&["land", "a", "--json"]);
    assert!(refused.stdout.contains("lfs_missing"), "{refused:#?}");
    grows.join().unwrap();
    assert_eq!(state(&env), before);
}

#[test]
fn y1_objects_are_in_main_before_its_branch_names_them() {
    let Some(env) = with_lfs() else { return };
    let tree = grow(&env, "a", "sealed");
    commit_large(&env, &tree, "new.bin", &bytes(3, 40_000));
    let branch = env.git(&["rev-parse", "wt/a"]);
    // Killed after the objects of git came, and before a ref of the vault or of main names them.
    let mut killed = env.weald_command(&["status", "a"]);
    killed
        .env("WEALD_STEP", "kill:import.received")
        .output()
        .unwrap();
    assert_eq!(env.git(&["rev-parse", "wt/a"]), branch);
    assert_eq!(objects(&env.repo().join(".git")).len(), 2);
    // Where they can't be written, nothing names them.
    let tree = grow(&env, "b", "sealed");
    commit_large(&env, &tree, "more.bin", &bytes(4, 40_000));
    let store = env.repo().join(".git/lfs/objects");
    fs::rename(&store, store.with_extension("away")).unwrap();
    fs::write(&store, "in the way").unwrap();
    let branch = env.git(&["rev-parse", "wt/b"]);
    let looked = env.weald(&["land", "b"]);
    assert_ne!(looked.code, 0, "{looked:#?}");
    assert_eq!(env.git(&["rev-parse", "wt/b"]), branch);
    fs::remove_file(&store).unwrap();
    fs::rename(store.with_extension("away"), &store).unwrap();
    // The next look takes it all.
    env.ok(&["land", "b"]);
    assert!(fs::read(env.repo().join("more.bin")).unwrap() == bytes(4, 40_000));
}

#[test]
fn y1_text_that_looks_like_a_pointer_lands_as_text() {
    let Some(env) = with_lfs() else { return };
    let tree = grow(&env, "a", "sealed");
    let id = "5".repeat(64);
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{id}\nsize 12\n");
    fs::write(tree.join("fixture.txt"), &pointer).unwrap();
    git_in(&env, &tree, &["add", "-A"]);
    git_in(&env, &tree, &["commit", "-q", "-m", "fixture"]);
    env.ok(&["land", "a"]);
    assert_eq!(
        fs::read_to_string(env.repo().join("fixture.txt")).unwrap(),
        pointer
    );
}
