//! Sealed trees: nothing that plain git does in main harms one, and all of git works inside.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use weald_testkit::TestEnv;

use crate::env;

/// A repository with an identity and two files on `main`.
pub fn repository() -> TestEnv {
    let env = env();
    env.git(&["config", "user.name", "Test"]);
    env.git(&["config", "user.email", "test@example.com"]);
    fs::write(env.repo().join("one.txt"), "one\ntwo\nthree\n").unwrap();
    fs::create_dir(env.repo().join("src")).unwrap();
    fs::write(env.repo().join("src/lib.rs"), "fn main() {}\n").unwrap();
    env.git(&["add", "."]);
    env.git(&["commit", "-q", "-m", "files"]);
    env
}

/// Where a tree is.
pub fn tree(env: &TestEnv, name: &str) -> PathBuf {
    env.root().join("app.weald").join(name)
}

/// Runs a shell script of the user's in a directory, outside of any sandbox.
#[track_caller]
pub fn shell(env: &TestEnv, directory: &Path, script: &str) -> String {
    let output = env
        .command("sh")
        .args(["-ec", script])
        .current_dir(directory)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {said}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// The refs below a prefix: name and object.
pub fn refs(env: &TestEnv, git_dir: &Path, prefix: &str) -> BTreeMap<String, String> {
    let script =
        format!("git --git-dir=. for-each-ref --format='%(refname) %(objectname)' {prefix}");
    let listed = shell(env, git_dir, &script);
    let pairs = listed.lines().filter_map(|line| line.split_once(' '));
    pairs
        .map(|(name, id)| (name.to_owned(), id.to_owned()))
        .collect()
}

/// The vault of the repository.
pub fn vault(env: &TestEnv) -> PathBuf {
    env.repo().join(".git/weald/vault")
}

/// How much of a file counts, beside its length: some are endless.
const HASHED: u64 = 1 << 22;

/// Every file below a directory, with its kind, mode and content.
pub fn manifest(directory: &Path) -> BTreeMap<PathBuf, (u32, u64)> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        // What lies too deep for a path is left out.
        let Ok(entries) = fs::read_dir(&next) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(meta) = path.symlink_metadata() else {
                continue;
            };
            let mut hasher = DefaultHasher::new();
            if meta.is_symlink() {
                fs::read_link(&path).unwrap().hash(&mut hasher);
            } else if meta.is_file() {
                let mut start = Vec::new();
                let file = fs::File::open(&path).unwrap();
                file.take(HASHED).read_to_end(&mut start).unwrap();
                (meta.len(), start).hash(&mut hasher);
            } else if meta.is_dir() {
                open.push(path.clone());
            }
            let fact = (meta.permissions().mode(), hasher.finish());
            found.insert(path.strip_prefix(directory).unwrap().to_owned(), fact);
        }
    }
    found
}

/// A sealed tree with a commit, a staged, an unstaged and an untracked change.
fn busy_tree(env: &TestEnv) -> PathBuf {
    env.ok(&["new", "a"]);
    let path = tree(env, "a");
    let script = "echo more >> one.txt; git commit -qam second
        echo staged > staged.txt; git add staged.txt
        echo changed >> src/lib.rs; echo loose > loose.txt";
    shell(env, &path, script);
    env.ok(&["status", "a"]);
    path
}

#[test]
fn x1_plain_git_in_main_cannot_harm_a_sealed_tree() {
    let env = repository();
    let path = busy_tree(&env);
    let place = path.to_str().unwrap();
    let elsewhere = env.root().join("elsewhere");
    let tip = env.git(&["rev-parse", "wt/a"]);
    let before = manifest(&path);
    let refused: [&[&str]; 9] = [
        &["branch", "-D", "wt/a"],
        &["branch", "-f", "wt/a", "main"],
        &["worktree", "remove", "-f", "-f", place],
        &["worktree", "remove", place],
        &[
            "worktree",
            "move",
            "-f",
            "-f",
            place,
            elsewhere.to_str().unwrap(),
        ],
        &["checkout", "-q", "wt/a"],
        &["fetch", "-q", ".", "+main:wt/a"],
        &["worktree", "add", "-q", "../again", "wt/a"],
        &["switch", "-q", "-C", "wt/a", "main"],
    ];
    let harmless: [&[&str]; 5] = [
        &["worktree", "prune", "--expire=now"],
        &["gc", "-q", "--prune=now"],
        &["repack", "-adq"],
        &["reflog", "expire", "--expire=now", "--all"],
        &[
            "fetch",
            "-q",
            "--prune",
            ".",
            "refs/heads/*:refs/remotes/x/*",
        ],
    ];
    for (args, works) in refused
        .iter()
        .map(|args| (args, false))
        .chain(harmless.iter().map(|args| (args, true)))
    {
        let output = env.command("git").args(*args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), works, "git {args:?}: {said}");
        assert_eq!(manifest(&path), before, "git {args:?} changed the tree");
        assert_eq!(env.git(&["rev-parse", "wt/a"]), tip, "git {args:?}");
        assert!(
            env.git(&["worktree", "list"]).contains(place),
            "git {args:?}"
        );
        assert!(env.git(&["branch"]).contains("+ wt/a"), "git {args:?}");
    }
    assert!(!elsewhere.exists());
    let status = &env.ok(&["status", "a"])["tree"];
    let counts = ["staged", "unstaged", "untracked"].map(|key| status[key].as_u64());
    assert_eq!(counts, [Some(1), Some(1), Some(1)], "{status}");
    shell(
        &env,
        &path,
        "git fsck --no-dangling && git rev-list --objects --all > /dev/null",
    );
}

#[test]
fn x1_main_shows_nothing_of_ours_but_tree_branches() {
    let env = repository();
    let path = busy_tree(&env);
    shell(
        &env,
        &path,
        "git stash -q -u; git branch idea; git tag -m t mine; git commit -q --allow-empty -m third",
    );
    env.ok(&["snapshot", "create", "a"]);
    shell(
        &env,
        &path,
        "git commit -q --amend --allow-empty -m amended",
    );
    env.ok(&["status", "a"]);
    assert!(refs(&env, &vault(&env), "refs/snap").len() == 1);
    let expected = ["refs/heads/main", "refs/heads/wt/a"];
    let ours = refs(&env, &env.repo().join(".git"), "");
    assert_eq!(ours.keys().collect::<Vec<_>>(), expected);
    let all = env.git(&["log", "--all", "--format=%s"]);
    let mut subjects: Vec<_> = all.lines().collect();
    subjects.sort_unstable();
    assert_eq!(subjects, ["amended", "files", "first", "second"]);
    let bare = env.root().join("mirror.git");
    env.git(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    env.git(&["push", "-q", "--mirror", bare.to_str().unwrap()]);
    assert_eq!(refs(&env, &bare, ""), ours);
}

#[test]
fn x1_worktree_repair_changes_nothing() {
    let env = repository();
    let path = busy_tree(&env);
    let registration = env.repo().join(".git/worktrees");
    let before = (manifest(&path), manifest(&registration));
    for args in [
        vec!["worktree", "repair"],
        vec!["worktree", "repair", path.to_str().unwrap()],
    ] {
        // It may complain: what counts is what it does.
        env.command("git").args(&args).output().unwrap();
        assert_eq!(
            (manifest(&path), manifest(&registration)),
            before,
            "{args:?}"
        );
    }
    assert_eq!(env.ok(&["status", "a"])["tree"]["exists"], true);
    assert_eq!((manifest(&path), manifest(&registration)), before);
}

#[test]
fn x1_inside_git_answers_for_the_tree() {
    let env = repository();
    env.ok(&["new", "a"]);
    let path = tree(&env, "a");
    let place = path.to_str().unwrap();
    let ask = ["git", "rev-parse", "--show-toplevel", "--absolute-git-dir"];
    let expected = format!("{place}\n{place}/.git\n");
    let run = env.weald(&[&["run", "a", "--"][..], &ask].concat());
    assert_eq!(
        (run.code, run.stdout),
        (0, expected.clone()),
        "{}",
        run.stderr
    );
    let plain = shell(&env, &path.join("src"), &ask.join(" "));
    assert_eq!(plain + "\n", expected);
    let listed = env.git(&["worktree", "list", "--porcelain"]);
    assert!(listed.contains(&format!("worktree {place}\n")), "{listed}");
    assert!(
        listed.contains("branch refs/heads/wt/a\nlocked sealed by weald"),
        "{listed}"
    );
}

/// What people do with git, in an order in which each finds what it needs.
const OPERATIONS: [(&str, &str); 28] = [
    ("fsck at first", "git fsck --strict"),
    ("add", "echo a > a.txt; git add a.txt"),
    (
        "commit",
        "git commit -m 'a commit'; test -z \"$(git status --porcelain)\"",
    ),
    (
        "amend",
        "git commit --amend -m amended; git log -1 --format=%s | grep -qx amended",
    ),
    (
        "stash",
        "echo b >> a.txt; echo u > u.txt; git stash -u; test ! -e u.txt; git stash list",
    ),
    (
        "pop",
        "git stash pop; grep -qx b a.txt; test -e u.txt; rm u.txt; git commit -am popped",
    ),
    (
        "branch",
        "git branch side HEAD~1; git branch -m side other; git branch -D other; git branch side HEAD~1",
    ),
    (
        "switch",
        "git switch side; git switch -c extra; git switch -; git switch \"$WEALD_BRANCH\"",
    ),
    (
        "side work",
        "git switch side; echo s > s.txt; git add s.txt; git commit -m side; git switch -",
    ),
    ("cherry-pick", "git cherry-pick side; test -e s.txt"),
    (
        "reset",
        "git reset --hard HEAD~1; git reset --soft HEAD; git reset; test ! -e s.txt",
    ),
    (
        "merge",
        "git merge --no-ff -m merged side; git rev-parse HEAD^2",
    ),
    (
        "rebase",
        "git switch -c topic HEAD^1; echo t > t.txt; git add t.txt; git commit -m topic; git rebase side; git rebase -f side; git rebase --onto main HEAD~1",
    ),
    (
        "interactive rebase",
        "echo t2 >> t.txt; git commit -a --fixup HEAD; GIT_SEQUENCE_EDITOR=true git rebase -i --autosquash main",
    ),
    (
        "tag",
        "git tag light; git tag -a -m m heavy; git tag -d light; git describe heavy",
    ),
    (
        "revert",
        "git revert --no-edit HEAD; git reset --hard HEAD~1",
    ),
    (
        "bisect",
        "for n in 1 2 3 4; do git commit -q --allow-empty -m b$n; done; git bisect start HEAD main; git bisect run true; git bisect reset",
    ),
    ("blame", "git blame one.txt; git log -p --follow one.txt"),
    (
        "diff",
        "git diff main...; git log main..; git show HEAD; git grep -n two",
    ),
    (
        "fetch",
        "git fetch origin; git fetch --prune --tags origin; git log origin/main..",
    ),
    ("notes", "git notes add -m note; git notes show"),
    (
        "rm and mv",
        "git mv t.txt moved.txt; git rm one.txt; git restore --staged --worktree one.txt t.txt moved.txt 2> /dev/null || true; git reset --hard",
    ),
    ("clean", "echo j > junk; git clean -fdx; test ! -e junk"),
    (
        "submodule",
        "git submodule status; git -c protocol.file.allow=always submodule update --init; test -e lib/sub.txt; git submodule status",
    ),
    (
        "config",
        "git config my.key value; git config --unset my.key",
    ),
    ("reflog", "git reflog; git reflog expire --expire=now --all"),
    (
        "gc",
        "git gc; git gc --prune=now; git repack -ad; git maintenance run",
    ),
    (
        "fsck",
        "git fsck --strict; git count-objects -v; git rev-list --objects --all",
    ),
];

#[test]
fn x2_all_of_git_works_inside() {
    let env = repository();
    let home = env.home();
    let set_up = "git init -q --bare origin.git; git init -q -b main sub; cd sub
        echo s > sub.txt; git add .; git commit -qm sub";
    shell(&env, &home, set_up);
    let sub = home.join("sub");
    let origin = home.join("origin.git");
    env.git(&["remote", "add", "origin", origin.to_str().unwrap()]);
    let allow = "protocol.file.allow=always";
    env.git(&[
        "-c",
        allow,
        "submodule",
        "--quiet",
        "add",
        sub.to_str().unwrap(),
        "lib",
    ]);
    env.git(&["commit", "-q", "-m", "a submodule"]);
    env.git(&["push", "-q", "origin", "main"]);
    env.git(&["fetch", "-q", "origin"]);
    for kind in ["sealed", "linked"] {
        env.ok(&["new", kind, "--kind", kind]);
        for (name, script) in OPERATIONS {
            let script = script.replace("$WEALD_BRANCH", &format!("wt/{kind}"));
            let run = env.weald(&["run", kind, "--", "sh", "-exc", &script]);
            let bad = ["error:", "fatal:"]
                .iter()
                .any(|word| run.stderr.contains(word));
            assert!(run.code == 0 && !bad, "{name} in a {kind} tree: {run:#?}");
        }
        let tree = &env.ok(&["status", kind])["tree"];
        assert_eq!(tree["dirty"], false, "{tree}");
        // The next kind finds the names free.
        shell(
            &env,
            &env.root().join("app.weald").join(kind),
            "git switch -q --detach; git branch -q -D side topic extra; git tag -d heavy",
        );
    }
}
