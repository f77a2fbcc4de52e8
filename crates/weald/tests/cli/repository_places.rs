//! A repository's own files choose no place that the host writes to: hostile settings and links in a fresh clone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use weald_testkit::{Answer, TestEnv};

use crate::env;
use crate::trees_create::git_in;
use crate::trees_refuse::manifest;

/// Where weald keeps its own things, relative to the folder that holds repository and home.
const OWN: [&str; 10] = [
    "app.weald",
    "home/.cache/weald",
    "home/.local/state/weald",
    "app/.git/weald",
    "app/.git/worktrees",
    "app/.git/refs/heads/wt",
    "app/.git/logs/refs/heads/wt",
    "app/.git/objects",
    "app/.git/info/exclude",
    "app/.git/WEALD_FENCE",
];

/// A repository next to another one and to the user's settings, with links that lead to those and into its `.git`.
fn surroundings() -> TestEnv {
    let env = env();
    fs::create_dir(env.home().join(".config")).unwrap();
    fs::write(env.home().join(".config/mine"), "").unwrap();
    let sibling = env.root().join("sibling");
    fs::create_dir(&sibling).unwrap();
    git_in(&env, &sibling, &["init", "-q"]);
    git_in(
        &env,
        &sibling,
        &["commit", "-q", "--allow-empty", "-m", "first"],
    );
    symlink("../home/.config", env.repo().join("out")).unwrap();
    symlink(".git/hooks", env.repo().join("hooks")).unwrap();
    fs::write(env.repo().join("config"), "[core]\n\tpager = evil\n").unwrap();
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "links"]);
    env
}

/// Makes this the repository's settings, for whoever clones it.
fn settle(env: &TestEnv, settings: &str) {
    fs::write(env.repo().join("weald.toml"), settings).unwrap();
    env.git(&["add", "weald.toml"]);
    env.git(&["commit", "-q", "--allow-empty", "-m", "settings"]);
}

/// Everything but what is weald's own. What lies at `also` may change, too.
fn others(env: &TestEnv, also: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = manifest(env.root());
    let own = |path: &Path| {
        let mut places = OWN.iter().chain(also);
        places.any(|own| path.starts_with(own) || Path::new(own).starts_with(path))
    };
    found.retain(|path, _| !own(path));
    found
}

/// What a person does first in a clone, and what follows from it.
fn first_commands(env: &TestEnv) -> Vec<Answer> {
    let commands: [&[&str]; 6] = [
        &["new", "a"],
        &["list"],
        &["status"],
        &["task", "add", "Look around"],
        &["rm", "a", "--discard"],
        &["trash", "list"],
    ];
    commands.iter().map(|command| env.weald(command)).collect()
}

/// What was added, changed or removed.
fn changed(
    before: &BTreeMap<PathBuf, Vec<u8>>,
    after: &BTreeMap<PathBuf, Vec<u8>>,
) -> Vec<PathBuf> {
    let paths = before.keys().chain(after.keys());
    let differ = paths.filter(|path| before.get(*path) != after.get(*path));
    differ.cloned().collect()
}

#[track_caller]
fn nothing_is_written(env: &TestEnv, settings: &str, also: &[&str]) -> Vec<Answer> {
    let before = others(env, also);
    let answers = first_commands(env);
    let changed = changed(&before, &others(env, also));
    assert!(changed.is_empty(), "{settings}: {changed:?}\n{answers:#?}");
    answers
}

#[test]
fn x14_no_setting_of_a_repository_chooses_where_the_host_writes() {
    let env = surroundings();
    let places = [
        "{repo_parent}/home/.config/git",
        "{repo_parent}/home/.config/{name}",
        "{repo_parent}/sibling/{name}",
        "{repo}/.git/hooks",
        "{repo}/.git/hooks/{name}",
        "{repo}/out/{name}",
        "{repo}/{name}",
        "{common_dir}/{name}",
        "../../../config/{name}",
        "~/.config/{name}",
        "/var/tmp/weald-x14/{name}",
    ];
    for place in places {
        // The trash of one worktree is not called like it.
        let trash = place.replace("{name}", "trash");
        settle(
            &env,
            &format!("tree.path = '{place}'\ntrash.path = '{trash}'\n"),
        );
        let answers = nothing_is_written(&env, place, &[]);
        assert_eq!(answers[0].code, 0, "{place}: {answers:#?}");
        for key in ["tree.path", "trash.path"] {
            let told = format!("ignoring {key} in weald.toml at main");
            assert!(answers[0].stderr.contains(&told), "{place}: {answers:#?}");
            let way = format!("weald config set {key} VALUE");
            assert!(answers[0].stderr.contains(&way), "{place}: {answers:#?}");
        }
    }
    let rest = [
        "target = '../../../config'\ntree.task_name = '../{slug}'\nphase.list = ['../../x']
         tree.share_paths = ['../sibling', '/etc', '~/.config', '.git/hooks', 'out', 'out/git']
         sandbox.write = ['/']\nsandbox.sockets = ['/run/x.sock']\nhook.allow = ['~/']
         setup.commands = ['touch ../pwned \"$HOME/pwned\" /var/tmp/weald-x14']",
        "tree.share = 'symlink'\ntree.share_paths = ['../sibling', '.git/hooks', 'out', 'hooks']
         gate.command = 'touch ../pwned'\nlanding.check = 'touch ../pwned'
         agent.command = 'touch ../pwned'\nagent.drivers = ['../x: touch pwned']
         source.from = 'command'\nsource.fetch = 'touch ../pwned'
         phase.commands = ['build: touch ../pwned']\nclean.kill_switches = ['../x']
         landing.message = '../../{name}'",
    ];
    for settings in rest {
        settle(&env, settings);
        nothing_is_written(&env, settings, &[]);
    }
    assert!(!Path::new("/var/tmp/weald-x14").exists());
}

#[test]
fn x14_a_branch_template_of_a_repository_makes_branches_alone() {
    let env = surroundings();
    for branch in [
        "../../../config",
        "../../config",
        "../../hooks/post-checkout",
        "../../../../sibling/.git/refs/heads/evil",
        "../../../../sibling/.git/config",
        "../../../../home/.config/git/config",
        "{repo}",
        "/etc/{name}",
        "a/../../../config",
        "{name}..x",
        "{name}.lock",
        "-{name}",
        "HEAD",
        "a b",
        "{name}~1",
        "x//y",
        ".x/{name}",
    ] {
        settle(&env, &format!("tree.branch = '{branch}'\n"));
        let answers = nothing_is_written(&env, branch, &[]);
        let refused = env.refused(&["new", "b"], 1, "bad_branch");
        assert_eq!(
            refused["error"]["details"]["key"], "tree.branch",
            "{branch}"
        );
        let told = &answers[0].stderr;
        assert!(
            told.contains("tree.branch (weald.toml at main)"),
            "{branch}: {told}"
        );
        assert!(
            told.contains("weald config set tree.branch 'wt/{name}'"),
            "{branch}: {told}"
        );
        // Whatever needs no new branch goes on.
        assert_eq!((answers[1].code, answers[2].code), (0, 0), "{answers:#?}");
        let work = env.weald(&["work", "Do it", "--new", "--", "true"]);
        assert!(
            work.code != 0 && work.stderr.contains("tree.branch"),
            "{work:#?}"
        );
    }
    env.ok(&["config", "set", "tree.branch", "wt/{name}"]);
    env.ok(&["new", "a"]);
    env.git(&["rev-parse", "--verify", "refs/heads/wt/a"]);
}

#[test]
fn x14_a_link_in_the_repository_leads_no_worktree_out_of_it() {
    for (profile, root) in [
        ("classroom", ".worktrees"),
        ("claude-code", ".claude"),
        ("claude-code", ".claude/worktrees"),
        ("jean-claude", "trees"),
    ] {
        for to in ["home/.config", "sibling/.git", "app/.git/hooks", "app/.git"] {
            let env = surroundings();
            let place = env.repo().join(root);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            symlink(env.root().join(to), &place).unwrap();
            env.git(&["add", "-f", root]);
            let settings = format!("profile = '{profile}'\ntree.dirty_main = 'ignore'\n");
            settle(&env, &settings);
            let views = ["app/.tasks", "app/agents"];
            let answers = nothing_is_written(&env, &format!("{profile} {to}"), &views);
            let told = &answers[0].stderr;
            assert_eq!(answers[0].code, 1, "{profile} {to}: {told}");
            assert!(
                told.contains(&format!("tree.path (profile {profile})"))
                    && told.contains("weald config set tree.path"),
                "{profile} {to}: {told}"
            );
        }
    }
}

#[test]
fn x14_a_link_in_the_repository_leads_no_trash_gate_or_view_out_of_it() {
    let env = surroundings();
    fs::create_dir(env.repo().join(".worktrees")).unwrap();
    for name in [".trash", ".gate"] {
        symlink(
            "../../home/.config",
            env.repo().join(".worktrees").join(name),
        )
        .unwrap();
    }
    symlink("../home/.config", env.repo().join(".tasks")).unwrap();
    env.git(&["add", "-f", ".worktrees", ".tasks"]);
    settle(&env, "profile = 'classroom'\ntree.dirty_main = 'ignore'\n");
    env.ok(&["config", "set", "gate.command", "true"]);
    let also = [
        "app/.worktrees/a",
        "app/.worktrees/events.jsonl",
        "app/.worktrees/.weald",
    ];
    nothing_is_written(&env, "classroom", &also);
    let before = others(&env, &also);
    env.weald(&["new", "a"]);
    let tree = env.repo().join(".worktrees/a");
    fs::write(tree.join("new.txt"), "x").unwrap();
    git_in(&env, &tree, &["add", "new.txt"]);
    git_in(&env, &tree, &["commit", "-q", "-m", "more"]);
    let landed = env.weald(&["land", "a"]);
    assert_ne!(landed.code, 0, "{landed:#?}");
    let removed = env.weald(&["rm", "a", "--discard"]);
    assert!(removed.stderr.contains("trash.path"), "{removed:#?}");
    assert_eq!(
        changed(&before, &others(&env, &also)),
        [""; 0].map(PathBuf::from)
    );
    assert!(env.repo().join(".worktrees/a").is_dir(), "{removed:#?}");
}

#[test]
fn x14_profiles_inside_the_repository_work_when_the_repository_names_them() {
    for (profile, place) in [
        ("classroom", ".worktrees/a"),
        ("two-plane", ".worktrees/a"),
        ("claude-code", ".claude/worktrees/a"),
        ("jean-claude", "trees/a"),
    ] {
        let env = env();
        settle(&env, &format!("profile = '{profile}'\n"));
        env.ok(&["new", "a"]);
        assert!(env.repo().join(place).is_dir(), "{profile}");
        env.ok(&["rm", "a"]);
        env.ok(&["trash", "restore", "a"]);
        assert!(env.repo().join(place).is_dir(), "{profile}");
        assert_eq!(env.git(&["status", "--porcelain"]), "", "{profile}");
    }
}

#[test]
fn x14_the_users_own_templates_may_lead_anywhere_but_into_git() {
    let env = env();
    for (place, code) in [
        ("{repo_parent}/elsewhere/{name}", 0),
        ("{repo}/../up/{name}", 0),
        ("{repo}/.git/hooks/{name}", 1),
        ("{repo}/.GIT/hooks/{name}", 1),
        ("{repo}/sub/.git/{name}", 1),
        ("trees/{name}", 1),
        ("~/trees/{name}", 1),
        ("{repo_parent}", 1),
        ("{repo}", 1),
    ] {
        let answer = env.weald(&["new", "a", "--set", &format!("tree.path={place}")]);
        assert_eq!(answer.code, code, "{place}: {answer:#?}");
        env.weald(&["rm", "a", "--discard", "--force"]);
    }
}
