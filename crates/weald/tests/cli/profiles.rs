//! One test a profile: each column of its conventions, as far as there are commands for it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::{commit, git_in, repository};

/// What a profile promises.
struct Expected {
    profile: &'static str,
    /// The task's own id, its tree's name, path (below the test's folder) and branch.
    task: (&'static str, &'static str, &'static str, &'static str),
    longest_name: usize,
    /// What a new tree starts from while the main checkout is on branch `side`.
    base: &'static str,
    /// Warn, refuse or ignore.
    dirty_main: &'static str,
    /// The status of a pending task after it is bound.
    bound: &'static str,
    /// What becomes of the branch of an unchanged tree, and of one with commits that nobody else has.
    branches: (&'static str, &'static str),
    /// Where the trash is, below the tree's root or the repository.
    trash: &'static str,
    /// Keys of commands that are still to come.
    keys: &'static [(&'static str, &'static str)],
}

const DEFAULT: Expected = Expected {
    profile: "default",
    task: ("gh-12", "fix-it", "app.weald/fix-it", "wt/fix-it"),
    longest_name: 64,
    base: "main",
    dirty_main: "warn",
    bound: "pending",
    branches: ("deleted", "kept_unmerged"),
    trash: "app.weald/.trash",
    keys: &[
        ("tree.share", "copy"),
        ("tree.lock", "never"),
        ("work.land", "true"),
        ("landing.strategy", "squash"),
        ("landing.fetch", "try"),
        ("landing.after", "trash"),
        ("policy.gate", "tests"),
        ("clean.requires", "landed"),
        ("clean.min_age", "24h"),
        ("clean.stale_after", "7d"),
        ("clean.kill_switches", "[]"),
        ("views", "none"),
        ("mcp.aliases", "none"),
    ],
};

fn chosen(profile: &str) -> TestEnv {
    let env = repository();
    env.ok(&["init", "--profile", profile]);
    env
}

fn keys(env: &TestEnv) -> Value {
    env.ok(&["config", "show"])["config"]["values"].clone()
}

/// A key's value as text.
fn key(keys: &Value, name: &str) -> String {
    let all = keys.as_array().unwrap();
    let value = &all.iter().find(|key| key["key"] == name).unwrap()["value"];
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().filter_map(Value::as_str).collect();
            format!("[{}]", items.join(", "))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn path(env: &TestEnv, below: &str) -> PathBuf {
    env.root().join(below)
}

/// A tree's path in a profile that puts it beside others of its kind.
fn path_of(tree: &Value) -> PathBuf {
    PathBuf::from(tree["path"].as_str().unwrap())
}

#[track_caller]
fn holds(expected: &Expected) {
    let Expected { profile, task, .. } = expected;
    let env = chosen(profile);
    let keys = keys(&env);
    for (name, value) in expected.keys {
        assert_eq!(key(&keys, name), *value, "{profile} {name}");
    }
    // Path, branch, name, bind.
    env.ok(&["task", "add", "Fix it", "--id", task.0]);
    let made = env.ok(&["new", "--task", task.0])["tree"].clone();
    assert_eq!(made["name"], task.1, "{profile}");
    assert_eq!(path_of(&made), path(&env, task.2), "{profile}");
    assert_eq!(made["branch"], task.3, "{profile}");
    let bound = env.ok(&["task", "show", task.0])["task"]["status"].clone();
    assert_eq!(bound, expected.bound, "{profile}");
    let locks = key(&keys, "tree.lock") == "create";
    assert_eq!(made["locked"].is_object(), locks, "{profile}");
    // The branch on removal, and the trash.
    let rm = |name: &str| env.ok(&["rm", name, "--discard", "--force", "--force"]);
    let unchanged = rm(task.1);
    assert_eq!(unchanged["branch"], expected.branches.0, "{profile}");
    let trashed = PathBuf::from(unchanged["tree"]["trash"]["path"].as_str().unwrap());
    assert_eq!(
        trashed.parent().unwrap(),
        path(&env, expected.trash),
        "{profile}"
    );
    let name = trashed.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(
        name.starts_with(&format!("{}-2", task.1)),
        "{profile} {name}"
    );
    let other = env.ok(&["new", "other"])["tree"].clone();
    let tip = commit(&env, &path_of(&other), "work", "1");
    assert_eq!(rm("other")["branch"], expected.branches.1, "{profile}");
    let vault = env.repo().join(".git/weald/vault");
    assert_eq!(
        git_in(&env, &vault, &["cat-file", "-t", &tip]).trim(),
        "commit"
    );
    names_and_base(expected);
}

#[track_caller]
fn names_and_base(expected: &Expected) {
    let profile = expected.profile;
    let env = chosen(profile);
    // The rule for names.
    let too_long = "x".repeat(expected.longest_name + 1);
    env.refused(&["new", &too_long], 2, "invalid_name");
    env.ok(&["new", &too_long[1..]]);
    // The base.
    let main = env.git(&["rev-parse", "HEAD"]).trim().to_owned();
    env.git(&["checkout", "-q", "-b", "side"]);
    let side = commit(&env, &env.repo(), "side", "1");
    let base = env.ok(&["new", "based"])["tree"]["base"].clone();
    let commit = if expected.base == "HEAD" { side } else { main };
    assert_eq!(
        base,
        json!({"ref": expected.base, "commit": commit}),
        "{profile}"
    );
    // Changes in the main checkout.
    fs::write(env.repo().join("config.py"), "dirty\n").unwrap();
    let answer = env.weald(&["new", "dirty", "--json"]);
    let warned = answer.stderr.contains("uncommitted changes");
    match expected.dirty_main {
        "refuse" => assert_eq!(answer.error_code(), "main_dirty", "{profile}"),
        "warn" => assert!(answer.code == 0 && warned, "{profile} {answer:#?}"),
        _ => assert!(answer.code == 0 && !warned, "{profile} {answer:#?}"),
    }
}

#[test]
fn p17_default() {
    holds(&DEFAULT);
}

#[test]
fn p17_classroom() {
    holds(&Expected {
        profile: "classroom",
        task: ("gh-12", "fix-it", "app/.worktrees/fix-it", "wt/fix-it"),
        base: "HEAD",
        dirty_main: "ignore",
        branches: ("deleted", "deleted"),
        trash: "app/.worktrees/.trash",
        keys: &[
            ("tree.share", "none"),
            ("work.land", "false"),
            ("landing.strategy", "merge"),
            ("landing.fetch", "never"),
            ("landing.after", "keep"),
            ("clean.requires", "landed"),
            ("views", "classroom"),
            ("mcp.aliases", "classroom"),
        ],
        ..DEFAULT
    });
}

#[test]
fn p17_two_plane() {
    holds(&Expected {
        profile: "two-plane",
        task: ("gh-12", "fix-it", "app/.worktrees/fix-it", "wt/fix-it"),
        longest_name: 40,
        base: "HEAD",
        dirty_main: "ignore",
        bound: "in_progress",
        branches: ("kept_by_policy", "kept_by_policy"),
        trash: "app/.worktrees/.trash",
        keys: &[
            ("tree.share", "none"),
            ("work.land", "false"),
            ("landing.strategy", "merge"),
            ("landing.fetch", "never"),
            ("landing.after", "keep"),
            ("views", "two-plane"),
        ],
    });
}

#[test]
fn p17_jkz() {
    holds(&Expected {
        profile: "jkz",
        task: ("gh-12", "12", "jkz-worktree-12", "jkz/issue-12"),
        trash: "app/.git/weald/worktree-trash",
        keys: &[
            ("tree.lock", "create"),
            ("tree.share", "symlink"),
            ("tree.share_paths", "[node_modules]"),
            ("work.land", "true"),
            ("policy.gate", "human"),
            ("landing.strategy", "squash"),
            ("landing.fetch", "try"),
            ("landing.after", "keep"),
            ("clean.requires", "merged"),
            ("clean.stale_after", "4h"),
            ("clean.kill_switches", "[JKZ_WORKTREE_CLEANUP_DISABLE]"),
            ("sweep.kill_switches", "[JKZ_STALE_LOCK_SWEEP_DISABLE]"),
            ("defer.kill_switches", "[JKZ_USE_CC_WORKTREES=0]"),
        ],
        ..DEFAULT
    });
}

#[test]
fn p17_jean_claude() {
    holds(&Expected {
        profile: "jean-claude",
        task: (
            "beads-jc-y97",
            "beads-jc-y97",
            "app/trees/beads-jc-y97",
            "beads/jc-y97",
        ),
        dirty_main: "refuse",
        trash: "app/trees/.trash",
        keys: &[
            ("tree.share", "none"),
            ("work.land", "true"),
            ("landing.strategy", "merge"),
            ("landing.message", "Merge workflow {name}"),
            ("landing.fetch", "try"),
            ("landing.after", "trash"),
            ("clean.requires", "complete"),
            ("clean.stale_after", "7d"),
            ("views", "jean-claude"),
        ],
        ..DEFAULT
    });
    // With the tree, and refused if unmerged.
    let env = chosen("jean-claude");
    let tree = env.ok(&["new", "a"])["tree"].clone();
    commit(&env, &path_of(&tree), "work", "1");
    env.refused(&["rm", "a"], 1, "tree_unlanded");
}

#[test]
fn p17_claude_code() {
    holds(&Expected {
        profile: "claude-code",
        task: (
            "gh-12",
            "fix-it",
            "app/.claude/worktrees/fix-it",
            "worktree-fix-it",
        ),
        base: "HEAD",
        dirty_main: "ignore",
        branches: ("deleted", "kept_by_policy"),
        trash: "app/.claude/worktrees/.trash",
        keys: &[
            ("name.slashes", "plus"),
            ("tree.lock", "run"),
            ("tree.share", "symlink"),
            ("work.land", "false"),
            ("landing.strategy", "squash"),
            ("landing.fetch", "never"),
            ("landing.after", "keep"),
            ("clean.requires", "unchanged"),
        ],
        ..DEFAULT
    });
    // Origin's default comes before HEAD.
    let env = repository();
    let clone = env.root().join("clone");
    let (from, to) = (env.repo(), clone.to_str().unwrap());
    env.git(&["clone", "-q", from.to_str().unwrap(), to]);
    let weald = |args: &[&str]| {
        let all = [&["-C", to], args, &["--json"]].concat();
        env.weald(&all).json()
    };
    weald(&["init", "--profile", "claude-code"]);
    let origin = git_in(&env, &clone, &["rev-parse", "HEAD"])
        .trim()
        .to_owned();
    commit(&env, &clone, "local", "1");
    let base = weald(&["new", "a"])["tree"]["base"].clone();
    assert_eq!(base, json!({"ref": "origin/HEAD", "commit": origin}));
}

#[test]
fn p17_refact() {
    let env = chosen("refact");
    let keys = keys(&env);
    for (name, value) in [
        ("tree.share", "none"),
        ("tree.base", "task"),
        ("work.land", "false"),
        ("landing.strategy", "squash"),
        ("landing.fetch", "never"),
        ("landing.after", "trash"),
        ("clean.requires", "landed"),
        ("clean.stale_after", "24h"),
        ("views", "none"),
    ] {
        assert_eq!(key(&keys, name), value, "{name}");
    }
    env.git(&["branch", "release"]);
    let release = commit(&env, &env.repo(), "more", "1");
    let task =
        r#"{"id": "gh-12", "subject": "Fix it", "plan": "Big Board", "base_branch": "release"}"#;
    env.weald_with_input(&["task", "import"], task.as_bytes());
    let tree = env.ok(&["new", "--task", "gh-12"])["tree"].clone();
    assert_eq!(
        (&tree["name"], &tree["base"]["ref"]),
        (&json!("T-12"), &json!("release"))
    );
    assert_ne!(tree["base"]["commit"], release.as_str());
    let branch = tree["branch"].as_str().unwrap();
    assert!(
        branch.starts_with("refact/task/big-board/card/T-12/"),
        "{branch}"
    );
    let place = path_of(&tree);
    let root = env.home().join(".cache/weald/worktrees");
    assert!(place.starts_with(&root), "{}", place.display());
    assert_eq!(place.file_name().unwrap().to_str(), Some("T-12-1"));
    // The name is used again after a removal, the place is not.
    let removed = env.ok(&["rm", "T-12"]);
    assert_eq!(removed["branch"], "deleted", "with the tree when landed");
    let trashed = Path::new(removed["tree"]["trash"]["path"].as_str().unwrap());
    assert_eq!(
        trashed.parent(),
        place.parent().map(|root| root.join(".trash")).as_deref()
    );
    let again = env.ok(&["new", "--task", "gh-12"])["tree"].clone();
    assert_ne!(again["path"], tree["path"]);
    commit(&env, &path_of(&again), "work", "1");
    assert_eq!(
        env.ok(&["rm", "T-12", "--discard"])["branch"],
        "kept_unmerged"
    );
}

#[test]
fn p17_old_habits_work_and_the_hint_names_ours() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let made = env.weald(&["create", "a", "--task", "1", "--json"]);
    assert_eq!((made.code, &made.json()["tree"]["name"]), (0, &json!("a")));
    assert!(made.stderr.contains("weald new"), "{made:#?}");
    let listed = env.weald(&["worktrees", "list", "--json"]);
    assert_eq!(listed.json()["trees"][0]["name"], "a");
    assert!(listed.stderr.contains("weald list"), "{listed:#?}");
    for (args, hint) in [
        (&["worktrees", "cleanup", "a"][..], "weald clean"),
        (&["worktrees", "cleanup", "1", "--apply"], "weald clean"),
        (
            &["worktrees", "cleanup", "--force", "1"],
            "weald rm a --discard",
        ),
        (
            &["worktrees", "cleanup", "--force", "--apply"],
            "weald clean",
        ),
        (&["cleanup-merged", "--apply"], "weald clean"),
    ] {
        let told = env.weald(&[args, &["--json"]].concat());
        assert_eq!(told.code, 0, "{told:#?}");
        assert!(told.stderr.contains(hint), "{told:#?}");
        let blockers = told.json()["skipped"][0]["blockers"].to_string();
        assert!(blockers.contains("not_done"), "{told:#?}");
    }
    env.refused(&["worktrees", "cleanup", "nobody"], 4, "tree_not_found");
    assert!(env.root().join("app.weald/a").is_dir());
    let removed = env.weald(&["remove", "a", "--json"]);
    assert_eq!(removed.json()["outcome"], "trashed");
    assert!(removed.stderr.contains("weald rm"), "{removed:#?}");
    let help = env.weald(&["--help"]).stdout;
    for hidden in ["create ", "remove ", "worktrees ", "cleanup-merged"] {
        assert!(
            !help
                .lines()
                .any(|line| line.trim_start().starts_with(hidden)),
            "{help}"
        );
    }
}

#[test]
fn p16_an_old_state_of_jean_claude_is_imported_with_a_warning() {
    let env = chosen("jean-claude");
    let file = env.root().join("state.json");
    let state = r#"{"workflow_id": "beads-jc-1", "workflow_name": "n", "workflow_type": "beads",
        "beads_task_id": "jc-1", "beads_task_title": "Fix it", "phase": "implementing", "iteration": 3}"#;
    fs::write(&file, state).unwrap();
    let args = [
        "task",
        "import",
        "--from",
        "jean-claude",
        file.to_str().unwrap(),
    ];
    let answer = env.weald(&[&args[..], &["--json"]].concat());
    assert_eq!((answer.code, &answer.json()["ids"]), (0, &json!(["jc-1"])));
    assert_eq!(answer.json()["warnings"].as_array().unwrap().len(), 1);
    assert!(answer.stderr.contains("names no worktree"), "{answer:#?}");
    let task = env.ok(&["task", "show", "jc-1"])["task"].clone();
    assert_eq!(
        (&task["subject"], &task["iteration"]),
        (&json!("Fix it"), &json!(3))
    );
    // Resumed: its tree is made, and the view of it is there.
    let made = env.ok(&["ensure", "--task", "jc-1"])["tree"].clone();
    assert_eq!(
        (&made["name"], &made["branch"]),
        (&json!("beads-jc-1"), &json!("beads/jc-1"))
    );
    // The view reads back as a state that names its worktree.
    let view = env.repo().join("agents/beads-jc-1/state.json");
    let text = fs::read_to_string(&view).unwrap().replace("jc-1", "jc-2");
    fs::write(&file, text).unwrap();
    assert_eq!(env.ok(&args)["warnings"], json!([]));
    assert_eq!(
        env.ok(&["task", "show", "jc-2"])["task"]["last_worktree"],
        "beads-jc-2"
    );
    fs::write(&file, "[1]").unwrap();
    assert_eq!(env.weald(&args).code, 1);
}

/// What follows `weald ` in code of the page, with what follows the code.
fn named_commands(page: &str) -> Vec<(String, bool)> {
    let parts: Vec<_> = page.split('`').collect();
    let code = parts.iter().enumerate().skip(1).step_by(2);
    let commands = code.filter_map(|(place, text)| {
        let word = text.strip_prefix("weald ")?.split(' ').next()?;
        let is_to_come = parts
            .get(place + 1)
            .is_some_and(|after| after.starts_with('†'));
        Some((word.to_owned(), is_to_come))
    });
    commands.collect()
}

#[test]
fn p17_the_page_for_newcomers_names_commands_that_exist() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coming-from.md");
    let page = fs::read_to_string(page).unwrap();
    let env = repository();
    let named = named_commands(&page);
    assert!(named.len() > 50, "{named:?}");
    for (word, is_to_come) in named {
        let known = env.weald(&["help", &word]).code == 0;
        assert_ne!(
            known, is_to_come,
            "weald {word}: exists {known}, marked as to come {is_to_come}"
        );
    }
    for profile in ["classroom", "two-plane", "refact", "jkz", "jean-claude"] {
        assert!(page.contains(&format!("\n## {profile}\n")), "{profile}");
    }
}
