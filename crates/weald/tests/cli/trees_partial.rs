//! Trees of a partial clone: a main whose older files are only on its remote.

use std::fs;
use std::path::{Path, PathBuf};

use weald_testkit::TestEnv;

use crate::env;
use crate::trees_remove::{commit, git_in, grow, try_git};

/// A clone without blobs but those of its checkout, of a remote with five commits.
fn partial() -> (TestEnv, PathBuf) {
    let env = env();
    let remote = env.root().join("remote");
    fs::rename(env.repo(), &remote).unwrap();
    for (key, value) in [
        ("user.name", "Test"),
        ("user.email", "test@example.com"),
        ("uploadpack.allowFilter", "true"),
        ("uploadpack.allowAnySHA1InWant", "true"),
    ] {
        git_in(&env, &remote, &["config", key, value]);
    }
    for number in 1..=5 {
        fs::write(remote.join("same"), "as ever\n").unwrap();
        fs::write(remote.join("changing"), format!("version {number}\n")).unwrap();
        commit(&env, &remote, &format!("f{number}"), &format!("{number}\n"));
        git_in(&env, &remote, &["add", "-A"]);
        git_in(&env, &remote, &["commit", "-q", "-m", "more"]);
    }
    let url = format!("file://{}", remote.display());
    let app = env.repo();
    let args = [
        "clone",
        "-q",
        "--filter=blob:none",
        &url,
        app.to_str().unwrap(),
    ];
    git_in(&env, env.root(), &args);
    env.git(&["config", "user.name", "Test"]);
    env.git(&["config", "user.email", "test@example.com"]);
    env.git(&["config", "maintenance.auto", "false"]);
    (env, remote)
}

/// How many objects a repository knows of and does not have.
fn missing(env: &TestEnv, directory: &Path) -> usize {
    let args = ["rev-list", "--objects", "--all", "--missing=print"];
    let listed = git_in(env, directory, &args);
    listed.lines().filter(|line| line.starts_with('?')).count()
}

fn text(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| format!("{}: {error}", path.display()))
}

#[test]
fn k1_a_sealed_tree_of_a_partial_clone_lives_without_the_files_of_older_history() {
    let (env, remote) = partial();
    let absent = missing(&env, &env.repo());
    assert!(absent > 0, "it is partial");
    let path = grow(&env, "a", "sealed");
    assert_eq!(
        missing(&env, &env.repo()),
        absent,
        "nothing more was fetched"
    );
    assert_eq!(text(path.join("changing")), "version 5\n");
    let script = "echo mine >> same; git commit -qam mine; git log --oneline | wc -l; \
                  echo staged > s; git add s; echo draft > d; git gc -q; git status --porcelain";
    let run = env.weald(&["run", "a", "--", "sh", "-c", script]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "12\nA  s\n?? d\n"),
        "{run:#?}"
    );
    // Older files are not here; git says so, and everything else goes on.
    fs::rename(&remote, env.root().join("gone")).unwrap();
    let (done, said) = try_git(&env, &path, &["show", "HEAD~4:changing"]);
    assert!(!done && said.contains("promisor"), "{said}");
    let tip = git_in(&env, &path, &["rev-parse", "HEAD"])
        .trim()
        .to_owned();
    assert_eq!(env.ok(&["status", "a"])["tree"]["ahead"], 1);
    assert_eq!(env.git(&["rev-parse", "wt/a"]).trim(), tip);
    env.ok(&["snapshot", "create", "a"]);
    fs::remove_file(path.join("d")).unwrap();
    env.ok(&["snapshot", "restore", "a", "1"]);
    assert_eq!(text(path.join("d")), "draft\n");
    env.refused(&["rm", "a"], 1, "tree_dirty");
    env.ok(&["rm", "a", "--discard"]);
    env.ok(&["trash", "restore", "a"]);
    assert_eq!(text(path.join("same")), "as ever\nmine\n");
    assert_eq!(env.weald(&["doctor"]).code, 0);
    assert_eq!(missing(&env, &env.repo()), absent);
}

#[test]
fn k2_files_that_a_partial_clone_lacks_are_fetched_for_the_base_alone() {
    let (env, remote) = partial();
    let absent = missing(&env, &env.repo());
    grow(&env, "now", "sealed");
    env.ok(&["new", "then", "--base", "HEAD~4"]);
    let path = env.root().join("app.weald/then");
    assert_eq!(text(path.join("changing")), "version 3\n");
    assert_eq!(git_in(&env, &path, &["status", "--porcelain"]), "");
    let left = missing(&env, &env.repo());
    assert!(0 < left && left < absent, "{left} of {absent}");
    // The remote goes on; its news come in by a sync.
    commit(&env, &remote, "news", "n\n");
    env.git(&["pull", "-q", "--ff-only"]);
    assert_eq!(env.ok(&["sync", "now"])["outcome"], "merged");
    assert_eq!(text(env.root().join("app.weald/now/news")), "n\n");
    assert_eq!(env.ok(&["sync", "then"])["outcome"], "merged");
    assert_eq!(text(path.join("changing")), "version 5\n");
    // A tree that is gone is made again.
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(env.ok(&["ensure", "then"])["outcome"], "recreated");
    assert_eq!(text(path.join("changing")), "version 5\n");
}

#[test]
fn k2_a_partial_clone_that_is_offline_refuses_what_it_lacks_and_makes_nothing() {
    let (env, remote) = partial();
    grow(&env, "now", "sealed");
    fs::rename(&remote, env.root().join("gone")).unwrap();
    for kind in ["sealed", "linked"] {
        let args = ["new", "then", "--base", "HEAD~4", "--kind", kind];
        let refused = env.refused(&args, 1, "partial_clone");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("could not be fetched"), "{message}");
        assert!(env.git(&["branch", "--list", "wt/then"]).is_empty());
        assert!(!env.root().join("app.weald/then").exists());
    }
    // What is here serves on.
    env.ok(&["new", "again", "--set", "tree.fetch=never"]);
    assert_eq!(
        env.ok(&["list", "--fresh"])["trees"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn k2_upkeep_of_the_vault_keeps_the_promise() {
    let (env, _) = partial();
    let path = grow(&env, "a", "sealed");
    env.git(&["fetch", "-q", "--refetch", "--filter=blob:none"]);
    env.git(&["gc", "-q", "--prune=now"]);
    commit(&env, &env.repo(), "own", "o\n");
    env.ok(&["sync", "a"]);
    env.ok(&["vault", "maintain"]);
    let packs = env.repo().join(".git/weald/vault/objects/pack");
    let of = |kind: &str| {
        let entries = fs::read_dir(&packs).unwrap().flatten();
        entries
            .filter(|entry| entry.path().extension().is_some_and(|found| found == kind))
            .count()
    };
    assert!(of("promisor") > 0 && of("promisor") <= of("pack"));
    git_in(&env, &path, &["fsck", "--connectivity-only"]);
    git_in(&env, &path, &["gc", "-q"]);
    git_in(&env, &path, &["status", "--porcelain"]);
}

#[test]
fn x3_news_that_came_into_a_partial_tree_by_itself_are_taken_in_once_main_has_them() {
    let (env, remote) = partial();
    let path = grow(&env, "a", "sealed");
    for number in 1..=3 {
        commit(&env, &remote, "news", &format!("news {number}\n"));
    }
    git_in(&env, &path, &["fetch", "-q"]);
    let looked = &env.ok(&["status", "a"])["tree"];
    assert_eq!(
        looked["dirty"], false,
        "what it only knows of is not taken: {looked}"
    );
    commit(&env, &path, "own", "o\n");
    git_in(&env, &path, &["merge", "-q", "-m", "both", "origin/main"]);
    let looked = &env.ok(&["status", "a"])["tree"];
    assert_eq!(looked["dirty"], "unknown", "{looked}");
    let problem = looked["problem"].as_str().unwrap();
    assert!(
        problem.contains("can't be imported") && problem.contains("missing blob"),
        "{problem}"
    );
    env.git(&["fetch", "-q"]);
    let looked = &env.ok(&["status", "a"])["tree"];
    assert_eq!(
        (&looked["dirty"], &looked["inner_branch"]),
        (&false.into(), &"wt/a".into())
    );
    let tip = git_in(&env, &path, &["rev-parse", "HEAD"]);
    assert_eq!(env.git(&["rev-parse", "wt/a"]), tip);
}

#[test]
fn x3_work_on_top_of_older_history_of_a_partial_clone_is_taken_in() {
    let (env, _) = partial();
    let path = grow(&env, "a", "sealed");
    // Its files come from the remote, into the tree alone.
    git_in(&env, &path, &["checkout", "-q", "-b", "older", "HEAD~6"]);
    assert_eq!(text(path.join("changing")), "version 2\n");
    fs::write(path.join("same"), "changed\n").unwrap();
    env.ok(&["snapshot", "create", "a"]);
    let tip = commit(&env, &path, "own", "o\n");
    assert_eq!(env.ok(&["status", "a"])["tree"]["inner_head"], tip.as_str());
    git_in(&env, &path, &["reset", "-q", "--hard"]);
    env.ok(&["snapshot", "restore", "a", "1"]);
    assert_eq!(text(path.join("same")), "changed\n");
    assert_eq!(text(path.join("changing")), "version 2\n");
}
