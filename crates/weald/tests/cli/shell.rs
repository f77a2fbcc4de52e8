//! weald in a shell: it goes where `enter` says, it completes, and `git weald` is weald.

use std::fs;
use std::path::Path;

use weald_testkit::{Answer, TestEnv, skipped};

use crate::env;
use crate::install::{bin, on_path};
use crate::trees_remove::{grow, repository};

/// Runs a script in a shell that knows weald by its name; `None` (said aloud) where there is no such shell.
fn shell(env: &TestEnv, words: &[&str], script: &str) -> Option<Answer> {
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin(env).display());
    let mut command = env.command(words[0]);
    command.args(&words[1..]).arg(script).env("PATH", path);
    match command.output() {
        Ok(output) => Some(Answer::of(output)),
        Err(error) => {
            skipped(&format!("a test with {}: {error}", words[0]));
            None
        }
    }
}

#[track_caller]
fn lines(env: &TestEnv, words: &[&str], script: &str) -> Option<Vec<String>> {
    let answer = shell(env, words, script)?;
    assert_eq!(answer.code, 0, "{answer:#?}");
    Some(answer.stdout.lines().map(str::to_owned).collect())
}

const BASH: [&str; 3] = ["bash", "--norc", "-c"];
const ZSH: [&str; 3] = ["zsh", "-f", "-c"];
const FISH: [&str; 3] = ["fish", "--no-config", "-c"];

const STORY: &str = r#"
cd "it's \$(odd)"
weald enter a; pwd; echo "$WEALD_TREE"
weald --color never exit; pwd; echo "${WEALD_TREE-unset}"
weald enter nobody; echo "$?"
weald enter a --json > /dev/null; pwd; weald exit"#;

#[test]
fn w5_every_shell_goes_where_enter_and_exit_say() {
    let env = repository();
    let tree = grow(&env, "a", "sealed").display().to_string();
    let odd = env.repo().join("it's $(odd)");
    fs::create_dir(&odd).unwrap();
    let expected = [&tree, "a", odd.to_str().unwrap(), "unset", "4", &tree];
    let fish = STORY
        .replace(
            "\"${WEALD_TREE-unset}\"",
            "(set -q WEALD_TREE; or echo unset)",
        )
        .replace("\"$?\"", "$status");
    for (words, script) in [
        (BASH, format!("eval \"$(weald shell-init bash)\"{STORY}")),
        (ZSH, format!("eval \"$(weald shell-init zsh)\"{STORY}")),
        (FISH, format!("weald shell-init fish | source{fish}")),
    ] {
        if let Some(told) = lines(&env, &words, &script) {
            assert_eq!(told, expected, "{}", words[0]);
        }
    }
    // Others may make and remove such files at this moment.
    let left = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let mut left =
        left.filter(|entry| entry.file_name().to_string_lossy().starts_with("weald-cd."));
    assert!(
        !left.any(|entry| fs::read_to_string(entry.path()).is_ok_and(|text| text.contains(&tree)))
    );
}

#[test]
fn a_file_to_move_by_is_not_made_and_no_link_is_followed() {
    let env = repository();
    grow(&env, "a", "sealed");
    let (file, link) = (env.root().join("file"), env.root().join("link"));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for place in [&file, &link] {
        let mut command = env.weald_command(&["enter", "a", "--json"]);
        let refused = Answer::of(command.env("WEALD_CD_FILE", place).output().unwrap());
        assert_eq!(refused.error_code(), "file");
        assert!(!file.exists());
    }
    fs::write(&file, "").unwrap();
    let mut command =
        env.weald_command(&["run", "a", "--", "sh", "-c", "echo ${WEALD_CD_FILE-none}"]);
    let inside = Answer::of(command.env("WEALD_CD_FILE", &file).output().unwrap());
    assert_eq!(inside.stdout, "none\n", "{inside:#?}");
}

/// What a shell offers after these words.
fn offered(env: &TestEnv, at: &Path, words: &str) -> Vec<(&'static str, String)> {
    let list = words.split(' ').map(|word| format!("'{word}'"));
    let list = list.collect::<Vec<_>>().join(" ");
    let last = words.split(' ').count() - 1;
    let at = format!("cd '{}'", at.display());
    let bash = format!(
        "eval \"$(weald shell-init bash)\"; {at}; COMP_WORDS=({list}); COMP_CWORD={last}; COMP_TYPE=63; \
         _weald_complete weald \"${{COMP_WORDS[COMP_CWORD]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let zsh = format!(
        "autoload -U compinit; compinit -u -D; eval \"$(weald shell-init zsh)\"; {at}; \
         _describe() {{ print -l -- \"${{(@P)3}}\" }}; words=({list}); CURRENT={}; _clap_dynamic_completer_weald",
        last + 1
    );
    let fish = format!("weald shell-init fish | source; {at}; complete -C '{words}'");
    let tried = [(BASH, bash), (ZSH, zsh), (FISH, fish)];
    let told = tried.into_iter().filter_map(|(shell_words, script)| {
        let answer = shell(env, &shell_words, &script)?;
        assert_eq!(answer.stderr, "", "{answer:#?}");
        Some((shell_words[0], answer.stdout))
    });
    told.collect()
}

#[test]
fn every_shell_completes_tasks_and_trees_with_what_they_are() {
    let env = repository();
    env.ok(&["task", "add", "Fix the: login"]);
    env.ok(&["task", "add", "Another one"]);
    env.ok(&["new", "fix-login", "--task", "1"]);
    env.ok(&["new", "other"]);
    for (words, word, about) in [
        ("weald task show ", "1", "Fix the: login"),
        ("weald rm ", "fix-login", "wt/fix-login, active, task 1"),
        ("weald enter ", "other", "wt/other, active"),
    ] {
        for (shell, told) in offered(&env, &env.repo(), words) {
            let is_it = |line: &str| line.starts_with(word) && line.ends_with(about);
            assert!(told.lines().any(is_it), "{shell} {words}: {told}");
        }
    }
    // Outside of repositories there is nothing to offer, nothing is said and nothing is made.
    for (shell, told) in offered(&env, env.root(), "weald rm ") {
        assert!(
            !told.contains("fix-login") && told.contains("--discard"),
            "{shell}: {told}"
        );
    }
}

#[test]
fn one_word_that_fits_is_completed_as_it_is() {
    let env = repository();
    env.ok(&["new", "fix-login"]);
    for (shell, told) in offered(&env, &env.repo(), "weald enter fi") {
        let told = told.trim_end();
        let expected = if shell == "bash" { "fix-login" } else { told };
        assert!(
            told.starts_with("fix-login") && told == expected,
            "{shell}: {told}"
        );
    }
}

#[test]
fn git_weald_is_weald_wherever_git_is_called() {
    let env = repository();
    let tree = grow(&env, "a", "linked");
    env.ok(&["task", "add", "Fix the login"]);
    assert_eq!(
        on_path(&env, &["install", "git", "--dry-run"])["install"]["outcome"],
        "installed"
    );
    assert!(!bin(&env).join("git-weald").exists());
    let done = on_path(&env, &["install", "git"]);
    assert_eq!(done["install"]["files"][0]["outcome"], "created", "{done}");
    assert_eq!(
        on_path(&env, &["install", "git"])["install"]["outcome"],
        "already_installed"
    );
    fs::create_dir(env.repo().join("sub")).unwrap();
    let script = format!(
        "cd sub; git weald path a --check new; git -C '{0}' weald task show 1 --json | head -c 20; echo
         git weald rm nobody 2> /dev/null; echo $?
         git weald task nosuch 2>&1 | grep Usage
         git weald -h | head -1
         git -c alias.w='!weald' -C '{0}' w list --json | grep -c '\"name\":\"a\"'
         GIT_DIR=/nowhere GIT_WORK_TREE=/nowhere weald task list --json | grep -c login",
        tree.display()
    );
    let told = lines(&env, &BASH, &script).unwrap();
    let new = tree.join("new");
    let expected = [
        new.to_str().unwrap(),
        "{\"schema_version\":1,",
        "4",
        "Usage: weald task [OPTIONS] [COMMAND]",
        "Run many coding agents on one git repository, each in its own sandboxed worktree",
        "1",
        "1",
    ];
    assert_eq!(told, expected);
    assert_eq!(
        on_path(&env, &["install", "git", "--remove"])["install"]["outcome"],
        "removed"
    );
    assert!(bin(&env).join("weald").exists() && !bin(&env).join("git-weald").exists());
    // Somebody else's program of that name stays.
    fs::write(bin(&env).join("git-weald"), "theirs").unwrap();
    assert_eq!(
        on_path(&env, &["install", "git"])["error"]["code"],
        "name_taken"
    );
    assert_eq!(
        on_path(&env, &["install", "git", "--remove"])["install"]["outcome"],
        "not_installed"
    );
    assert_eq!(
        fs::read_to_string(bin(&env).join("git-weald")).unwrap(),
        "theirs"
    );
}

#[test]
fn shell_init_names_a_binary_that_no_search_path_has() {
    let env = env();
    for name in ["bash", "zsh", "fish"] {
        let script = env.weald(&["shell-init", name]).stdout;
        assert!(script.contains(env!("CARGO_BIN_EXE_weald")), "{script}");
        assert!(!script.contains("command WEALD"), "{script}");
    }
}
