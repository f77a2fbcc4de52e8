//! Files that programs on the host act on without asking: no agent lands one unasked.

use std::fs;

use serde_json::Value;
use weald_testkit::TestEnv;

use crate::landing::{land, landed, rev};
use crate::landing_approval::approve;
use crate::trees_create::git_in;
use crate::trees_remove::{KINDS, grow, repository};
use crate::work::status;

/// One path of each kind that is protected by default.
const PATHS: [&str; 30] = [
    ".claude/settings.local.json",
    ".mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    "opencode.jsonc",
    ".cursor/mcp.json",
    ".kiro/hooks/x",
    ".aider.conf.yml",
    ".zed/tasks.json",
    ".envrc",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    ".exrc",
    ".dir-locals.el",
    ".husky/pre-commit",
    ".githooks/pre-commit",
    "lefthook.yml",
    ".pre-commit-config.yaml",
    ".devcontainer/devcontainer.json",
    ".github/workflows/ci.yml",
    ".gitlab-ci.yml",
    ".gitattributes",
    ".gitmodules",
    ".worktreeinclude",
    ".npmrc",
    ".yarnrc.yml",
    ".cargo/config.toml",
    "weald.toml",
    "deep/er/.claude/settings.json",
    ".Claude/settings.json",
];

/// A shell script that writes every one of them.
fn writes_all() -> String {
    let write = |path: &&str| format!("mkdir -p $(dirname {path}) && : > {path}");
    let writes: Vec<_> = PATHS.iter().map(write).collect();
    writes.join(" && ")
}

fn protected(files: &Value) -> Vec<String> {
    let files = files.as_array().unwrap().iter();
    let protected = files.filter(|file| file["protected"] == true);
    let mut paths: Vec<_> = protected
        .map(|file| file["path"].as_str().unwrap().to_owned())
        .collect();
    paths.sort();
    paths
}

fn sorted(paths: &[&str]) -> Vec<String> {
    let mut paths: Vec<_> = paths.iter().map(|path| (*path).to_owned()).collect();
    paths.sort();
    paths
}

/// The files at main's tip.
fn on_main(env: &TestEnv) -> Vec<String> {
    let listed = env.git(&["ls-tree", "-r", "--name-only", "main"]);
    listed.lines().map(str::to_owned).collect()
}

/// Why a worktree does not land: for want of an approval.
#[track_caller]
fn refusal(env: &TestEnv, name: &str) -> Value {
    let (code, landings) = land(env, &[name]);
    let reason = landings[0]["reason"].clone();
    assert_eq!(
        (code, &reason["code"]),
        (1, &Value::from("needs_approval")),
        "{reason}"
    );
    reason
}

#[test]
fn y7_an_automatic_commit_leaves_new_protected_files_out() {
    for kind in KINDS {
        let env = repository();
        env.ok(&["task", "add", "Change it"]);
        let staged = "git add .mcp.json .vscode && git add -N .envrc";
        let odd = "d=$(printf 'no\\377utf8') && mkdir \"$d\" && echo x > \"$d/.mcp.json\"";
        let script = format!("{} && {staged} && {odd} && echo new > added", writes_all());
        let new = ["ensure", "--task", "1", "--kind", kind];
        env.ok(&new);
        let answer = env.weald(&["work", "1", "--", "sh", "-c", &script]);
        assert_eq!(answer.code, 0, "{kind}: {answer:#?}");
        assert_eq!(
            on_main(&env),
            [".gitignore", "added", "config.py"],
            "{kind}"
        );
        let said = format!("{}{}", answer.stdout, answer.stderr);
        for path in [
            ".claude",
            ".mcp.json",
            ".envrc",
            "deep/er/.claude",
            ".github/workflows",
        ] {
            assert!(said.contains(path), "{kind} {path}: {said}");
        }
        assert!(said.contains("weald approve"), "{kind}: {said}");
    }
}

#[test]
fn y7_work_that_is_all_protected_waits_for_a_person() {
    let env = repository();
    env.ok(&["task", "add", "Change it"]);
    let before = rev(&env, "main");
    let answer = env.weald(&[
        "work",
        "1",
        "--",
        "sh",
        "-c",
        "mkdir .claude; echo {} > .claude/settings.json",
    ]);
    assert_eq!(answer.code, 1, "{answer:#?}");
    assert_eq!(rev(&env, "main"), before);
    assert!(answer.stdout.contains(".claude"), "{answer:#?}");
    assert_ne!(status(&env, "1"), "completed");
    // What it says works.
    let by_hand = "git add -A && git commit -qm settings";
    let ran = env.weald(&["run", "change-it", "--", "sh", "-c", by_hand]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    refusal(&env, "change-it");
    let approved = approve(&env, "change-it");
    assert_eq!(protected(&approved["files"]), [".claude/settings.json"]);
    landed(&env, &["change-it"]);
    assert!(on_main(&env).contains(&".claude/settings.json".to_owned()));
}

#[test]
fn y7_committed_files_that_the_host_acts_on_need_an_approval() {
    let env = repository();
    env.ok(&["task", "add", "Change it"]);
    let before = rev(&env, "main");
    let script = format!(
        "{} && echo new > added && git add -A && git commit -qm all",
        writes_all()
    );
    let answer = env.weald(&["work", "1", "--json", "--", "sh", "-c", &script]);
    assert_eq!(answer.code, 1, "{answer:#?}");
    let json = answer.json();
    let reason = &json["landing"]["reason"];
    assert_eq!(reason["code"], "needs_approval", "{json:#}");
    let mut named: Vec<_> = reason["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap())
        .collect();
    named.sort_unstable();
    assert_eq!(named, sorted(&PATHS));
    assert_eq!(reason["hint"], "weald approve change-it");
    assert_eq!(rev(&env, "main"), before);
    let approved = approve(&env, "change-it");
    assert_eq!(protected(&approved["files"]), sorted(&PATHS));
    landed(&env, &["change-it"]);
}

#[test]
fn y7_every_type_of_entry_and_both_ends_of_a_rename_are_protected() {
    for (name, script, path) in [
        ("link", "ln -s /tmp .claude", ".claude"),
        ("nested", "mkdir a; ln -s .. a/.vscode", "a/.vscode"),
        (
            "gitlink",
            "mkdir .husky && git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),.husky",
            ".husky",
        ),
        (
            "into",
            "mkdir .zed; git mv config.py .zed/tasks.json",
            ".zed/tasks.json",
        ),
        ("out", "git mv .npmrc npmrc", ".npmrc"),
        ("gone", "git rm -q .npmrc", ".npmrc"),
        ("mode", "chmod +x .npmrc", ".npmrc"),
    ] {
        let env = repository();
        fs::write(env.repo().join(".npmrc"), "x\n").unwrap();
        env.git(&["add", "."]);
        env.git(&["commit", "-qm", "npm"]);
        let tree = grow(&env, name, "sealed");
        let add = if name == "gitlink" { ":" } else { "git add -A" };
        let script = format!("{script} && {add} && git commit -qm change");
        let ran = env.weald(&["run", name, "--", "sh", "-c", &script]);
        assert_eq!(ran.code, 0, "{name}: {ran:#?}");
        let reason = refusal(&env, name);
        assert_eq!(reason["paths"][0], path, "{name}");
        // Behind a gitlink there may be more.
        let count = reason["paths"].as_array().unwrap().len();
        assert!(count == 1 || name == "gitlink", "{name}: {reason}");
        assert!(tree.is_dir());
    }
}

#[test]
fn y7_only_the_user_narrows_what_is_protected() {
    let env = repository();
    fs::write(
        env.repo().join("weald.toml"),
        "policy.protected = ['!.vscode', '!.claude']\n",
    )
    .unwrap();
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "narrow"]);
    let tree = grow(&env, "a", "sealed");
    fs::create_dir(tree.join(".vscode")).unwrap();
    fs::write(tree.join(".vscode/tasks.json"), "{}").unwrap();
    git_in(&env, &tree, &["add", "-A"]);
    git_in(&env, &tree, &["commit", "-qm", "tasks"]);
    refusal(&env, "a");
    fs::write(
        env.repo().join("weald.toml"),
        "policy.protected = ['infra/']\n",
    )
    .unwrap();
    env.git(&["commit", "-qam", "add"]);
    let reason = refusal(&env, "a");
    assert_eq!(reason["paths"], serde_json::json!([".vscode/tasks.json"]));
    env.ok(&["config", "set", "policy.protected", "!.vscode"]);
    landed(&env, &["a"]);
    assert!(on_main(&env).contains(&".vscode/tasks.json".to_owned()));
}

#[test]
fn y7_a_link_in_place_of_a_folder_with_protected_files_needs_an_approval() {
    let env = repository();
    env.ok(&["task", "add", "Link"]);
    let script = "mkdir other && echo '[build]' > other/config.toml && mkdir sub && ln -s ../other sub/.cargo";
    let answer = env.weald(&["work", "1", "--json", "--", "sh", "-c", script]);
    let landed = env.git(&["ls-tree", "-r", "--name-only", "main"]);
    assert!(!landed.contains(".cargo"), "{landed} {answer:#?}");
}

#[test]
fn y7_files_with_another_name_that_the_host_acts_on_need_an_approval() {
    let env = repository();
    let base = "mkdir -p agents/claude tools/hooks && echo {} >agents/claude/settings.json && \
                ln -s agents/claude .claude && echo x >dev.env && ln -s dev.env .envrc && \
                echo 'exit 0' >tools/hooks/pre-commit && git add -A && git commit -qm base && \
                git config core.hooksPath tools/hooks";
    crate::landing_moving::sh(&env, &env.repo(), base);
    for (name, change, path) in [
        (
            "link",
            "echo evil >agents/claude/settings.json",
            "agents/claude/settings.json",
        ),
        ("file", "echo evil >dev.env", "dev.env"),
        (
            "hook",
            "echo evil >tools/hooks/pre-commit",
            "tools/hooks/pre-commit",
        ),
        (
            "bare",
            "mkdir -p r/objects r/refs; echo 'ref: refs/heads/main' >r/HEAD; echo >r/objects/k; echo >r/refs/k",
            "r/HEAD",
        ),
    ] {
        let tree = grow(&env, name, "sealed");
        let script = format!("{change}; git add -A; git commit -q --no-verify -m change");
        crate::landing_moving::sh(&env, &tree, &script);
        assert_eq!(refusal(&env, name)["paths"][0], path, "{name}");
    }
    // A person's word is enough, and other files need none.
    approve(&env, "hook");
    landed(&env, &["hook"]);
    let tree = grow(&env, "plain", "sealed");
    let script = "echo 1 >agents/other; git add -A; git commit -q --no-verify -m change";
    crate::landing_moving::sh(&env, &tree, script);
    landed(&env, &["plain"]);
}

#[test]
fn y7_what_the_host_runs_or_obeys_by_configuration_and_links_needs_an_approval() {
    let env = repository();
    // Hooks by links, folders with `..`, included files, drivers; links by way of others, submodules and the host.
    let base = "git init -q ../lib && cd ../lib && ln -s ../tooling .claude && git add . && git commit -qm links && cd - && \
        git -c protocol.file.allow=always submodule -q add ../lib sub && \
        mkdir -p scripts tools hk sys tooling deep/er deep/z z cfg editor w2 && \
        touch tools/go scripts/cond scripts/recent w2/x scripts/pc scripts/fmt.sh scripts/plain tools/k hk/x sys/x tooling/a z/a deep/er/k deep/z/a cfg/a editor/a team.inc && \
        ln -s deep/er aa && ln -s aa/../z .claude && ln -s ../alias cfg/out && ln -s ../alias/cfg .zed && ln -s $PWD ../alias && \
        git add . && git commit -qm base && echo .vscode >>.git/info/exclude && ln -s editor .vscode && \
        mkdir -p .git/hooks && ln -s ../../scripts/pc .git/hooks/pre-commit && ln -s ../../scripts/new .git/hooks/commit-msg && \
        git config core.hooksPath tools/../hk && git config include.path ../team.inc && \
        git config includeIf.onbranch:none.path ../later.inc && git config filter.fmt.clean scripts/fmt.sh && \
        git config alias.go '!cd tools && ./go' && git config gc.recentObjectsHook scripts/recent && \
        git config --file ../cond.inc core.fsmonitor scripts/cond && git config includeIf.onbranch:other.path $PWD/../cond.inc && \
        git config extensions.worktreeConfig true && git worktree add -q ../second && \
        git -C ../second config --worktree core.hooksPath w2";
    crate::landing_moving::sh(&env, &env.repo(), base);
    let change = |name: &str, path: &str, script: &str| {
        let tree = grow(&env, name, "sealed");
        let script = format!("{script}; git add -A; git commit -q --no-verify -m change");
        crate::landing_moving::sh(&env, &tree, &script);
        path.to_owned()
    };
    for (name, path) in [
        ("hook", "scripts/pc"),
        ("new-hook", "scripts/new"),
        ("dotted", "hk/x"),
        ("included", "team.inc"),
        ("to-include", "later.inc"),
        ("filter", "scripts/fmt.sh"),
        ("sub-link", "tooling/a"),
        ("through", "deep/z/a"),
        ("returning", "cfg/a"),
        ("untracked", "editor/a"),
        ("alias", "tools/go"),
        ("recent", "scripts/recent"),
        ("condition", "scripts/cond"),
        ("second-hooks", "w2/x"),
    ] {
        change(name, path, &format!("echo '# evil' >>{path}"));
        assert_eq!(refusal(&env, name)["paths"], serde_json::json!([path]));
    }
    // What is behind a submodule that goes is named, too.
    let gone = change("gone", "sub/.claude", "rm -rf sub; git rm -rq --cached sub");
    assert_eq!(refusal(&env, "gone")["paths"], serde_json::json!([gone]));
    // The system's configuration counts like the user's.
    change("system", "sys/x", "echo evil >sys/x");
    let file = env.root().join("system.conf");
    fs::write(&file, "[core]\n\thooksPath = sys\n").unwrap();
    let mut command = env.weald_command(&["land", "system", "--json"]);
    command.env_remove("GIT_CONFIG_NOSYSTEM");
    let output = command.env("GIT_CONFIG_SYSTEM", &file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("needs_approval"), "{said}");
    // Nothing else asks for a person.
    let script = "echo 1 >scripts/plain; echo 1 >z/a; echo 1 >tools/x; echo 1 >scripts/pc2; echo 1 >deep/er/x";
    change("plain", "", script);
    landed(&env, &["plain"]);
}
