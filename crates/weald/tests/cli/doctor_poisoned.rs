//! Hand-broken repositories: doctor names each state, repairs what is weald's own, and changes no byte of anybody else's.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use weald_testkit::TestEnv;

use crate::trees_remove::{commit, git_in, grow, repository};

/// A repository with a sealed tree `a`, a linked one `l`, and a worktree `f` of the user's own.
pub struct Ward {
    pub env: TestEnv,
    pub a: PathBuf,
    pub l: PathBuf,
}

pub fn ward() -> Ward {
    let env = repository();
    let a = grow(&env, "a", "sealed");
    let l = grow(&env, "l", "linked");
    commit(&env, &a, "done", "d\n");
    env.ok(&["status", "a"]);
    env.git(&["worktree", "add", "-q", "-b", "f", "../f"]);
    env.git(&["branch", "other"]);
    Ward { env, a, l }
}

impl Ward {
    pub fn git_dir(&self) -> PathBuf {
        self.env.repo().join(".git")
    }

    /// What doctor found beside the level of the sandbox.
    pub fn doctor(&self, args: &[&str]) -> Vec<Value> {
        let answer = self.env.weald(&[&["doctor", "--json"], args].concat());
        let all = answer.json()["findings"].as_array().unwrap().clone();
        let findings: Vec<_> = all.into_iter().skip(1).collect();
        let is_open = |one: &Value| one["severity"] != "info" && one["fixed"] == false;
        let expected = i32::from(findings.iter().any(is_open));
        assert_eq!(answer.code, expected, "{answer:#?}");
        findings
    }

    /// Everything that is not weald's: the user's checkouts, and main but for weald's folder, its entries and its branches.
    fn foreign(&self) -> BTreeMap<PathBuf, String> {
        let git_dir = self.git_dir();
        let ours = [
            git_dir.join("weald"),
            git_dir.join("worktrees/a"),
            git_dir.join("worktrees/l"),
            git_dir.join("refs/heads/wt"),
            git_dir.join("logs/refs/heads/wt"),
        ];
        let mut found = BTreeMap::new();
        let mut open = vec![self.env.repo(), self.env.root().join("f")];
        while let Some(path) = open.pop() {
            if ours.contains(&path) {
                continue;
            }
            let kind = path.symlink_metadata().unwrap();
            let content = match kind.file_type() {
                kind if kind.is_symlink() => format!("-> {:?}", fs::read_link(&path).unwrap()),
                kind if kind.is_dir() => {
                    let entries = fs::read_dir(&path).unwrap();
                    open.extend(entries.map(|entry| entry.unwrap().path()));
                    "folder".to_owned()
                }
                kind if kind.is_file() => fs::read(&path).unwrap().escape_ascii().to_string(),
                _ => "other".to_owned(),
            };
            found.insert(path, format!("{:o} {content}", kind.permissions().mode()));
        }
        found
    }
}

/// What is done to a file.
#[derive(Debug, Clone, Copy)]
enum How {
    Empty,
    Gone,
    Garbage,
    Folder,
    Link,
    Fifo,
    /// Nothing but zeros, as after a power cut.
    Zeros,
    /// Half a line at its end, as of a write that was cut short.
    Torn,
    /// A lock file that is hours old.
    OldLock,
    /// A folder with something in it, as a killed process leaves one.
    OldFolder,
}

use How::*;

impl How {
    fn apply(self, path: &Path) {
        let before = fs::read(path).unwrap_or_default();
        let _ = fs::remove_file(path);
        let hours_ago = SystemTime::now() - Duration::from_secs(7 * 3600);
        match self {
            Empty => fs::write(path, "").unwrap(),
            Gone => {}
            Garbage => fs::write(path, "\u{1}what is this?\n").unwrap(),
            Folder => fs::create_dir(path).unwrap(),
            Link => symlink("/dev/null", path).unwrap(),
            Fifo => {
                let made = std::process::Command::new("mkfifo").arg(path).status();
                assert!(made.unwrap().success());
            }
            Zeros => fs::write(path, [0; 41]).unwrap(),
            Torn => fs::write(path, [&before[..], b"{\"half"].concat()).unwrap(),
            OldLock => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                let file = File::create(path).unwrap();
                file.set_modified(hours_ago).unwrap();
            }
            OldFolder => {
                fs::create_dir_all(path).unwrap();
                fs::write(path.join("x"), "x").unwrap();
                let file = File::open(path).unwrap();
                file.set_modified(hours_ago).unwrap();
            }
        }
    }
}

/// One broken state: where, how, what doctor calls it, and whether it mends it.
type State = (&'static str, How, &'static str, bool);

fn remove(path: &Path) {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Breaks one thing at a time: it is named, mended or left alone, nothing else is touched, and a second run does nothing.
fn each_is_named(ward: &Ward, base: &Path, states: &[State]) {
    assert_eq!(ward.doctor(&["--fix"]), Vec::<Value>::new(), "healthy");
    for state in states {
        let (file, how, code, mended) = *state;
        let path = base.join(file);
        let before = fs::read(&path).ok();
        how.apply(&path);
        let foreign = ward.foreign();
        let looked = ward.doctor(&[]);
        assert!(looked.iter().all(|one| one["fixed"] == false), "{state:?}");
        let fixed = ward.doctor(&["--fix"]);
        for found in [&looked, &fixed] {
            assert!(has(found, code), "{state:?} is not named: {found:#?}");
        }
        let of_code: Vec<_> = fixed.iter().filter(|one| one["code"] == code).collect();
        assert!(
            of_code.iter().all(|one| one["fixed"] == mended),
            "{state:?}: {fixed:#?}"
        );
        assert!(
            of_code[0]["means"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
        assert_eq!(
            ward.foreign(),
            foreign,
            "{state:?} changed what is not weald's"
        );
        let second = ward.doctor(&["--fix"]);
        match mended {
            true => assert_eq!(second, Vec::<Value>::new(), "{state:?}: a second run"),
            false => {
                assert_eq!(second, fixed, "{state:?}: a second run");
                remove(&path);
                if let Some(before) = before {
                    fs::write(&path, before).unwrap();
                }
            }
        }
    }
    let listed = ward.env.git(&["worktree", "list"]);
    assert_eq!(listed.lines().count(), 4, "{listed}");
}

fn has(findings: &[Value], code: &str) -> bool {
    findings.iter().any(|one| one["code"] == code)
}

#[test]
fn z2_broken_entries_of_ours_are_written_again() {
    let ward = ward();
    let broken = "registration_broken";
    let states = [
        ("a/commondir", Empty, broken, true),
        ("a/commondir", Gone, broken, true),
        ("a/commondir", Garbage, broken, true),
        ("a/commondir", Fifo, broken, true),
        ("a/HEAD", Empty, broken, true),
        ("a/HEAD", Folder, broken, true),
        ("a/gitdir", Empty, broken, true),
        ("a/gitdir", Link, broken, true),
        ("a/locked", Folder, broken, true),
        ("a/index", Empty, broken, true),
        ("l/commondir", Empty, broken, true),
        ("l/gitdir", Gone, broken, true),
        ("l/HEAD", Zeros, broken, true),
        // What is staged in a linked tree is the user's own.
        ("l/index", Empty, broken, false),
        ("a/weald", Garbage, broken, true),
        ("a/gitdir.999999999.new", Garbage, "leftover", true),
    ];
    each_is_named(&ward, &ward.git_dir().join("worktrees"), &states);
    let status = git_in(&ward.env, &ward.l, &["status", "--porcelain"]);
    assert_eq!(status, "", "the linked tree is as it was");
    let aside = fs::read_dir(ward.env.private().join("aside")).unwrap();
    assert!(aside.count() > 5, "nothing was thrown away");
}

#[test]
fn z2_broken_entries_of_others_are_told_and_left_alone() {
    let ward = ward();
    let broken = "foreign_broken";
    let states = [
        ("f/commondir", Empty, broken, false),
        ("f/commondir", Garbage, broken, false),
        ("f/HEAD", Empty, broken, false),
        ("f/HEAD", Gone, broken, false),
        ("f/gitdir", Empty, broken, false),
        ("f/gitdir", Folder, broken, false),
        ("f/index", Empty, broken, false),
        ("f/index", Fifo, broken, false),
        ("f/locked", Folder, broken, false),
        ("x", Folder, broken, false),
        ("x", Empty, broken, false),
        ("f/index.lock", OldLock, "lock_stale", false),
    ];
    each_is_named(&ward, &ward.git_dir().join("worktrees"), &states);
}

#[test]
fn z2_refs_and_locks_of_main_are_told_and_the_branch_of_a_tree_comes_back() {
    let ward = ward();
    let tip = ward.env.git(&["rev-parse", "wt/a"]);
    let states = [
        ("index.lock", OldLock, "lock_stale", false),
        ("HEAD.lock", OldLock, "lock_stale", false),
        ("config.lock", OldLock, "lock_stale", false),
        ("packed-refs.lock", OldLock, "lock_stale", false),
        ("refs/heads/other.lock", OldLock, "lock_stale", false),
        ("refs/heads/other", Empty, "ref_broken", false),
        ("refs/heads/other", Garbage, "ref_broken", false),
        ("packed-refs", Garbage, "packed_refs_broken", false),
        ("packed-refs", Folder, "packed_refs_broken", false),
        ("HEAD", Empty, "head_broken", false),
        ("HEAD", Gone, "head_broken", false),
        ("HEAD", Garbage, "head_broken", false),
        ("HEAD", Fifo, "head_broken", false),
        ("packed-refs", Fifo, "packed_refs_broken", false),
        ("refs/heads/other", Fifo, "ref_broken", false),
        ("refs/heads/wt/a", Empty, "branch_lost", true),
        ("refs/heads/wt/a", Zeros, "branch_lost", true),
        ("refs/heads/wt/a", Gone, "branch_lost", true),
    ];
    each_is_named(&ward, &ward.git_dir(), &states);
    assert_eq!(ward.env.git(&["rev-parse", "wt/a"]), tip, "from the vault");
    Empty.apply(&ward.git_dir().join("refs/heads/other"));
    let found = ward.doctor(&[]);
    let told = found[0]["would"].as_str().unwrap();
    let main = ward.env.git(&["rev-parse", "main"]);
    assert!(told.contains(main.trim()), "the log is told: {told}");
}

#[test]
fn z2_the_vault_and_weald_s_own_folder_are_mended() {
    let ward = ward();
    let states = [
        ("vault/HEAD", Empty, "vault_broken", true),
        ("vault/HEAD", Gone, "vault_broken", true),
        ("vault/config", Garbage, "vault_broken", true),
        ("vault/config", Folder, "vault_broken", true),
        ("vault/HEAD", Fifo, "vault_broken", true),
        ("vault/config", Fifo, "vault_broken", true),
        ("vault/packed-refs", Fifo, "vault_broken", true),
        ("vault/packed-refs", Folder, "vault_broken", true),
        ("vault/objects/pack/pack-0.idx", Garbage, "vault_pack", true),
        ("vault/objects/pack/pack-0.pack", Empty, "vault_pack", true),
        ("vault/objects/pack/tmp_pack_x", OldLock, "leftover", true),
        (
            "vault/refs/tree/1/heads/wt/a.lock",
            OldLock,
            "leftover",
            true,
        ),
        ("vault/refs/tree/1/x", Empty, "vault_ref_broken", true),
        ("pool/new-1", OldFolder, "leftover", true),
        (
            "private/workshop/registration-999999999-x",
            OldFolder,
            "leftover",
            true,
        ),
        ("private/events.jsonl", Empty, "journal_behind", true),
        ("private/events.jsonl", Garbage, "journal_behind", true),
        ("private/events.jsonl", Torn, "journal_torn", true),
        ("private/events.jsonl", Folder, "journal_broken", false),
        ("private/config.toml", Garbage, "config_broken", false),
    ];
    fs::create_dir_all(ward.git_dir().join("weald/pool")).unwrap();
    File::create(ward.git_dir().join("weald/pool/fill.lock")).unwrap();
    each_is_named(&ward, &ward.git_dir().join("weald"), &states);
    ward.env.ok(&["status", "a"]);
}
