//! Import: what an agent made reaches the vault and main's branch, nothing is dropped, and a hostile inner repository
//! changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use weald_testkit::TestEnv;

use crate::trees_sealed::{manifest, refs, repository, shell, tree, vault};

/// What the vault holds of the first tree, by the names inside.
fn imported(env: &TestEnv) -> BTreeMap<String, String> {
    let all = refs(env, &vault(env), "refs/tree/1/");
    let short = |name: &str| name.strip_prefix("refs/tree/1/").unwrap().to_owned();
    all.iter()
        .map(|(name, id)| (short(name), id.clone()))
        .collect()
}

fn status(env: &TestEnv, name: &str) -> Value {
    env.ok(&["status", name])["tree"].clone()
}

#[test]
fn x3_commits_branches_tags_stashes_and_staged_blobs_are_taken_in() {
    let env = repository();
    env.ok(&["new", "a"]);
    let path = tree(&env, "a");
    let script = "echo 1 >> one.txt; git commit -qam work
        git branch deep/er/idea; git switch -q -c side; git commit -q --allow-empty -m side; git switch -q -
        git tag light; git tag -m heavy heavy
        for n in 1 2 3; do echo $n > one.txt; echo u$n > u$n.txt; git stash -q -u; done
        echo 'staged only' > s.txt; git add s.txt; echo 'then changed' > s.txt";
    shell(&env, &path, script);
    let head = shell(&env, &path, "git rev-parse HEAD");
    let looked = status(&env, "a");
    assert_eq!(
        (&looked["stashed"], &looked["ahead"]),
        (&3.into(), &1.into())
    );
    assert_eq!(env.git(&["rev-parse", "wt/a"]).trim_end(), head);
    let held = imported(&env);
    for (name, inside) in [
        ("HEAD", "HEAD"),
        ("heads/wt/a", "wt/a"),
        ("heads/deep/er/idea", "deep/er/idea"),
        ("heads/side", "side"),
        ("tags/light", "light"),
        ("tags/heavy", "heavy"),
        ("stash/0", "stash@{0}"),
        ("stash/1", "stash@{1}"),
        ("stash/2", "stash@{2}"),
    ] {
        let id = shell(&env, &path, &format!("git rev-parse '{inside}'"));
        assert_eq!(held.get(name), Some(&id), "{name}: {held:?}");
    }
    let reach = |from: &str, object: &str| {
        let script =
            format!("git --git-dir=. rev-list --objects refs/tree/1/{from} | grep -c {object}");
        assert_eq!(shell(&env, &vault(&env), &script), "1", "{from}");
    };
    reach("staged", &shell(&env, &path, "git rev-parse :s.txt"));
    reach(
        "stash/2",
        &shell(&env, &path, "git rev-parse 'stash@{2}^3:u1.txt'"),
    );
    // The user's checkout and other branches did not move.
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    shell(
        &env,
        &vault(&env),
        "git --git-dir=. fsck --strict --no-dangling",
    );
}

#[test]
fn x3_commits_in_a_worktree_inside_are_taken_in_and_count() {
    let env = repository();
    env.ok(&["new", "a"]);
    let path = tree(&env, "a");
    let script = "echo inner/ >> .git/info/exclude; git worktree add -q --detach inner; cd inner
        git commit -q --allow-empty -m one; git rev-parse HEAD > ../.git/one
        git checkout -q --detach HEAD~1; git commit -q --allow-empty -m two; git rev-parse HEAD";
    let tip = shell(&env, &path, script);
    let before = shell(&env, &path, "cat .git/one");
    assert_eq!(shell(&env, &path, "git status --porcelain"), "");
    env.refused(&["rm", "a"], 1, "tree_unlanded");
    assert_eq!(imported(&env).get("worktrees/0"), Some(&tip));
    // Gone inside, both stay in the vault.
    shell(&env, &path, "git worktree remove --force inner");
    status(&env, "a");
    let held: Vec<_> = imported(&env).into_values().collect();
    assert!(held.contains(&tip) && held.contains(&before), "{held:?}");
}

#[test]
fn x3_commits_on_any_inner_branch_reach_the_trees_branch() {
    let env = repository();
    env.ok(&["new", "a"]);
    let path = tree(&env, "a");
    shell(
        &env,
        &path,
        "git switch -q -c agent/own; git commit -q --allow-empty -m own",
    );
    let looked = status(&env, "a");
    let head = shell(&env, &path, "git rev-parse HEAD");
    assert_eq!(env.git(&["rev-parse", "wt/a"]).trim_end(), head);
    assert_eq!(
        looked["branch"], "wt/a",
        "the tree's branch is main's: {looked}"
    );
    shell(
        &env,
        &path,
        "git checkout -q --detach; git commit -q --allow-empty -m loose",
    );
    status(&env, "a");
    let head = shell(&env, &path, "git rev-parse HEAD");
    assert_eq!(env.git(&["rev-parse", "wt/a"]).trim_end(), head);
    let run = env.weald(&[
        "run",
        "a",
        "--",
        "git",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "run",
    ]);
    assert_eq!(run.code, 0, "{run:#?}");
    let head = shell(&env, &path, "git rev-parse HEAD");
    assert_eq!(
        env.git(&["rev-parse", "wt/a"]).trim_end(),
        head,
        "at the end of a run"
    );
}

#[test]
fn x3_tips_dropped_by_amend_and_rebase_are_kept() {
    let env = repository();
    env.ok(&["new", "a"]);
    let path = tree(&env, "a");
    let head = || shell(&env, &path, "git rev-parse HEAD");
    let old = || -> Vec<String> {
        let held = imported(&env);
        let kept = held.iter().filter(|(name, _)| name.starts_with("old/"));
        kept.map(|(_, id)| id.clone()).collect()
    };
    shell(&env, &path, "echo 1 > a.txt; git add .; git commit -qm one");
    let first = head();
    status(&env, "a");
    assert_eq!(old(), [""; 0]);
    shell(&env, &path, "git commit -q --amend -m amended");
    status(&env, "a");
    assert_eq!(old(), [first.as_str()]);
    assert_eq!(env.git(&["rev-parse", "wt/a"]).trim_end(), head());
    // Between two looks: only the reflog inside knows it.
    shell(&env, &path, "echo 2 > b.txt; git add .; git commit -qm two");
    let unseen = head();
    shell(&env, &path, "git commit -q --amend -m 'two, amended'");
    status(&env, "a");
    assert!(old().contains(&unseen), "{:?} lacks {unseen}", old());
    let rebased = head();
    env.git(&["commit", "-q", "--allow-empty", "-m", "main went on"]);
    status(&env, "a");
    shell(&env, &path, "git rebase -q main");
    let looked = status(&env, "a");
    assert_eq!(
        (&looked["ahead"], &looked["behind"]),
        (&3.into(), &0.into()),
        "{looked}"
    );
    assert!(old().contains(&rebased), "{:?} lacks {rebased}", old());
    assert_eq!(env.git(&["rev-parse", "wt/a"]).trim_end(), head());
    let count = old().len();
    status(&env, "a");
    assert_eq!(
        old().len(),
        count,
        "a look without a change keeps nothing new"
    );
    // A deleted branch and a dropped stash are tips, too.
    shell(
        &env,
        &path,
        "git switch -q -c gone; git commit -q --allow-empty -m gone; git switch -q -",
    );
    let gone = shell(&env, &path, "git rev-parse gone");
    status(&env, "a");
    shell(
        &env,
        &path,
        "git branch -q -D gone; git reflog expire --expire=now --all; git gc -q --prune=now",
    );
    status(&env, "a");
    assert!(old().contains(&gone), "{:?} lacks {gone}", old());
    shell(
        &env,
        &vault(&env),
        "git --git-dir=. rev-list --objects --all > /dev/null",
    );
}

#[test]
fn x3_an_agent_cannot_overwrite_what_was_kept() {
    let env = repository();
    env.ok(&["new", "a"]);
    let path = tree(&env, "a");
    shell(&env, &path, "git commit -q --allow-empty -m one");
    let first = shell(&env, &path, "git rev-parse HEAD");
    status(&env, "a");
    shell(
        &env,
        &path,
        "git commit -q --amend --allow-empty -m amended",
    );
    status(&env, "a");
    for name in [
        "old/1", "old/2", "HEAD", "staged", "branch", "stash/0", "old/x/y",
    ] {
        shell(&env, &path, &format!("git update-ref refs/{name} HEAD"));
        env.weald(&["status", "a", "--json"]);
        let kept = imported(&env).values().any(|id| *id == first);
        assert!(kept, "refs/{name} inside took the kept tip away");
        shell(&env, &path, &format!("git update-ref -d refs/{name}"));
    }
    assert_eq!(status(&env, "a")["dirty"], false);
    assert!(imported(&env).values().any(|id| *id == first));
}

#[test]
fn x3_a_branch_moved_by_someone_else_is_diverged_and_sync_resolves() {
    let env = repository();
    env.ok(&["new", "a"]);
    let path = tree(&env, "a");
    shell(
        &env,
        &path,
        "echo agent > agent.txt; git add .; git commit -qm agent",
    );
    status(&env, "a");
    let script = "git commit-tree -p main -m theirs main^{tree}";
    let theirs = shell(&env, &env.repo(), script);
    env.git(&["update-ref", "refs/heads/wt/a", &theirs]);
    shell(
        &env,
        &path,
        "echo more > agent.txt; git commit -qam 'agent again'",
    );
    let ours = shell(&env, &path, "git rev-parse HEAD");
    for _ in 0..2 {
        let looked = status(&env, "a");
        assert_eq!(looked["diverged"], true, "{looked}");
        assert_eq!(env.git(&["rev-parse", "wt/a"]).trim_end(), theirs);
        assert_eq!(imported(&env)["HEAD"], ours);
    }
    let synced = env.ok(&["sync", "a"]);
    assert_eq!(synced["outcome"], "merged", "{synced}");
    let looked = status(&env, "a");
    assert_ne!(looked["diverged"], true, "{looked}");
    let tip = env.git(&["rev-parse", "wt/a"]);
    assert_eq!(tip.trim_end(), shell(&env, &path, "git rev-parse HEAD"));
    for commit in [&theirs, &ours] {
        env.git(&["merge-base", "--is-ancestor", commit, "wt/a"]);
    }
    assert_eq!(
        fs::read_to_string(path.join("agent.txt")).unwrap(),
        "more\n"
    );
}

#[test]
fn x3_looks_without_changes_add_nothing_to_main() {
    let env = repository();
    env.ok(&["new", "a"]);
    let path = tree(&env, "a");
    let script = "git commit -q --allow-empty -m one; echo s > s.txt; git stash -q -u; echo d > d.txt; git add d.txt";
    shell(&env, &path, script);
    status(&env, "a");
    let objects = [
        env.repo().join(".git/objects"),
        vault(&env).join("objects"),
        path.clone(),
    ];
    let before = objects.each_ref().map(|place| manifest(place));
    let held = imported(&env);
    for _ in 0..30 {
        assert_eq!(status(&env, "a")["staged"], 1);
    }
    let after = objects.each_ref().map(|place| manifest(place));
    for ((before, after), place) in before.iter().zip(&after).zip(&objects) {
        assert_eq!(before, after, "{}", place.display());
    }
    assert_eq!(imported(&env), held);
}

/// What a hostile agent makes of its repository, and whether the look has to say that something is wrong.
const HOSTILE: [(&str, &str, bool); 20] = [
    (
        "corrupt blob",
        "echo x > x; git add x; git commit -qm x; f=$(git rev-parse HEAD:x | sed 's,^..,&/,'); chmod +w .git/objects/$f; echo junk > .git/objects/$f",
        true,
    ),
    (
        "corrupt commit",
        "git commit -q --allow-empty -m x; f=$(git rev-parse HEAD | sed 's,^..,&/,'); chmod +w .git/objects/$f; echo junk > .git/objects/$f",
        true,
    ),
    (
        "missing tree",
        "echo x > x; git add x; git commit -qm x; rm -f .git/objects/$(git rev-parse 'HEAD^{tree}' | sed 's,^..,&/,')",
        true,
    ),
    (
        "bad object name in a tree",
        "h=$(printf '100644 blob %s\\t.git\\n' $(git rev-parse HEAD:one.txt) | git mktree); git update-ref HEAD $(git commit-tree -p HEAD -m evil $h)",
        true,
    ),
    (
        "false parent by .git/shallow",
        "git commit -q --allow-empty -m 1; git commit -q --allow-empty -m 2; git commit -q --allow-empty -m 3; git rev-parse HEAD > .git/shallow; rm -rf .git/logs",
        false,
    ),
    (
        "ref to nothing",
        "echo 1234567890123456789012345678901234567890 > .git/refs/heads/x",
        false,
    ),
    (
        "HEAD to nothing",
        "echo 1234567890123456789012345678901234567890 > .git/HEAD",
        true,
    ),
    ("HEAD is a FIFO", "rm .git/HEAD; mkfifo .git/HEAD", true),
    ("HEAD is a link", "ln -sf /etc/passwd .git/HEAD", true),
    ("HEAD is a directory", "rm .git/HEAD; mkdir .git/HEAD", true),
    ("ref is a FIFO", "mkfifo .git/refs/heads/x", false),
    (
        "ref is a link",
        "ln -s /etc/passwd .git/refs/heads/x",
        false,
    ),
    (
        "ref is a link to a FIFO",
        "mkfifo .git/p; ln -s ../../p .git/refs/heads/x",
        false,
    ),
    (
        "ref is a directory with a FIFO",
        "mkdir .git/refs/heads/d; mkfifo .git/refs/heads/d/p",
        false,
    ),
    (
        "refs is a FIFO",
        "mv .git/refs .git/r; mkfifo .git/refs",
        true,
    ),
    (
        "packed-refs is a FIFO",
        "rm .git/packed-refs; mkfifo .git/packed-refs",
        true,
    ),
    ("index is a FIFO", "rm .git/index; mkfifo .git/index", true),
    (
        "reflog is a FIFO",
        "rm -f .git/logs/HEAD; mkfifo .git/logs/HEAD",
        true,
    ),
    (
        "odd names",
        "for n in ../../../evil 'a b' a.lock .x a..b '@{x}' 'x\\y' 'a:b' -x 'x~' 'q/' '//q'; do echo \"$(git rev-parse HEAD) refs/heads/$n\" >> .git/packed-refs; done",
        false,
    ),
    (
        "odd loose names",
        "cd .git/refs; for n in 'a b' a.lock .x a..b '@{x}' 'x~'; do echo 1234567890123456789012345678901234567890 > \"heads/$n\"; done; mkdir -p heads/empty/er; : > heads/void",
        false,
    ),
];

/// Every ref of main and of the vault.
fn all_refs(env: &TestEnv) -> [BTreeMap<String, String>; 2] {
    [env.repo().join(".git"), vault(env)].map(|git_dir| refs(env, &git_dir, ""))
}

/// A look at a hostile repository ends in time, tells what is wrong, and then moves nothing.
fn look_at_hostile(
    env: &TestEnv,
    name: &str,
    what: &str,
    must_tell: bool,
    before: &BTreeMap<String, String>,
) {
    let started = Instant::now();
    let answer = env.weald(&["status", name, "--json", "--set", "tree.look_limit=3s"]);
    let took = started.elapsed();
    assert!(took < Duration::from_secs(3 + 20), "{what} took {took:?}");
    let found = answer.json();
    let told = answer.code != 0 || found["tree"]["dirty"] == "unknown";
    assert!(told || !must_tell, "{what} was not told: {answer:#?}");
    if told {
        let why = [&found["tree"]["problem"], &found["error"]["message"]];
        assert!(why.iter().any(|why| why.is_string()), "{what}: {answer:#?}");
        let own = format!("refs/heads/wt/{name}");
        assert_eq!(all_refs(env)[0][&own], before[&own], "{what}");
    }
}

#[test]
fn x3_a_hostile_inner_repository_changes_nothing() {
    let env = repository();
    for (number, (_, script, _)) in HOSTILE.iter().enumerate() {
        let name = format!("t{number}");
        env.ok(&["new", &name]);
        shell(
            &env,
            &tree(&env, &name),
            "git commit -q --allow-empty -m good",
        );
        status(&env, &name);
        shell(&env, &tree(&env, &name), script);
    }
    let before = all_refs(&env);
    // Most of them wait, so they are looked at together.
    thread::scope(|scope| {
        for (number, (what, _, must_tell)) in HOSTILE.iter().enumerate() {
            let (env, before) = (&env, &before[0]);
            scope.spawn(move || {
                look_at_hostile(env, &format!("t{number}"), what, *must_tell, before)
            });
        }
    });
    let after = all_refs(&env);
    let odd = after.iter().flat_map(BTreeMap::keys);
    let odd: Vec<_> = odd
        .filter(|name| name.contains("evil") || name.contains(' '))
        .collect();
    assert!(odd.is_empty(), "{odd:?}");
    for (before, after) in before.iter().zip(&after) {
        let changed: Vec<_> = before
            .iter()
            .filter(|(name, id)| after.get(*name) != Some(id))
            .collect();
        assert!(
            changed.iter().all(|(name, _)| allowed_change(name)),
            "{changed:?}"
        );
    }
    for git_dir in [env.repo().join(".git"), vault(&env)] {
        shell(
            &env,
            &git_dir,
            "git --git-dir=. rev-list --objects --all > /dev/null",
        );
    }
    assert!(!Path::new("/evil").exists() && !env.root().join("evil").exists());
}

/// A false `shallow` file hides nothing that was already there: those commits are good and may come in.
fn allowed_change(name: &str) -> bool {
    let number = HOSTILE
        .iter()
        .position(|(what, ..)| what.contains("shallow"))
        .unwrap();
    let id = number + 1;
    name.ends_with(&format!("wt/t{number}")) || name.starts_with(&format!("refs/tree/{id}/"))
}

#[test]
fn x3_a_pack_that_is_too_large_is_refused() {
    let env = repository();
    env.ok(&["new", "a"]);
    let path = tree(&env, "a");
    let script = "head -c 3000000 /dev/urandom > big; git add big; git commit -qm big";
    shell(&env, &path, script);
    let before = all_refs(&env);
    let looked = env.weald(&["status", "a", "--json", "--set", "tree.import_limit=1M"]);
    let found = looked.json();
    let told = looked.code != 0 || found["tree"]["dirty"] == "unknown";
    assert!(told, "{looked:#?}");
    assert_eq!(all_refs(&env), before);
    env.refused(
        &["rm", "a", "--set", "tree.import_limit=1M"],
        1,
        "tree_unknown",
    );
    assert_eq!(
        status(&env, "a")["ahead"],
        1,
        "with a larger limit it comes in"
    );
}
