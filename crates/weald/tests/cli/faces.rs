//! What people see: help, refusals, no prompts, no colours where they don't belong.

use std::process::Stdio;

use weald_testkit::TestEnv;

use crate::env;

#[test]
fn help_reads_like_a_product() {
    let env = env();
    let help = env.weald(&["--help"]).stdout;
    for part in [
        "Start:",
        "  weald demo ",
        "More:",
        "  weald task add \"Fix the login\"",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(
        help.lines().all(|line| line.chars().count() <= 100),
        "{help}"
    );
    assert!(!help.contains('\u{1b}'), "no colours in a pipe");
    assert_eq!(env.weald(&["help", "task", "claim"]).code, 0);
    assert!(env.weald(&["--version"]).stdout.starts_with("weald "));
}

#[test]
fn a_refusal_says_what_and_how_to_go_on() {
    let env = env();
    env.ok(&["task", "add", "a"]);
    env.ok(&["task", "claim", "1", "--session", "alice"]);
    let answer = env.weald(&["task", "done", "1"]);
    let expected = "error: task 1 is held by alice; this needs the token of that claim\n  \
                    hint: if that is you, add --token N with the token printed by weald task claim\n";
    assert_eq!(
        (answer.code, answer.stdout.as_str(), answer.stderr.as_str()),
        (1, "", expected)
    );
}

#[test]
fn k12_outside_a_repository_every_command_says_so_and_writes_nothing() {
    let env = TestEnv::without_repository(env!("CARGO_BIN_EXE_weald"));
    let commands: [&[&str]; 8] = [
        &[],
        &["task", "list"],
        &["task", "add", "x"],
        &["session", "list"],
        &["events"],
        &["config", "show"],
        &["init"],
        &["msg", "inbox"],
    ];
    for command in commands {
        env.refused(command, 4, "not_a_repository");
    }
    assert_eq!(
        std::fs::read_dir(env.root()).unwrap().count(),
        1,
        "only the home"
    );
    let answer = env.weald(&["task", "list"]);
    assert!(answer.stderr.contains("git init"), "{answer:?}");
}

#[test]
fn usage_mistakes_are_json_when_asked() {
    let env = env();
    let answer = env.weald(&["task", "nosuch", "--json"]);
    assert_eq!((answer.code, answer.error_code().as_str()), (2, "usage"));
    assert_eq!(env.weald(&["task", "nosuch"]).stdout, "");
    assert_eq!(env.weald(&["nosuch"]).code, 2);
}

#[test]
fn colours_follow_the_flag_and_no_color() {
    let env = env();
    env.ok(&["task", "add", "a"]);
    let escapes = |args: &[&str], variable: &str| {
        let output = env.weald_command(args).env(variable, "1").output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains('\u{1b}')
    };
    assert!(!escapes(&["task", "list"], "X"));
    assert!(escapes(&["task", "list", "--color", "always"], "X"));
    assert!(!escapes(
        &["task", "list", "--color", "never"],
        "CLICOLOR_FORCE"
    ));
    assert!(!escapes(&["task", "list"], "NO_COLOR"));
}

#[test]
fn the_board_shows_everything_at_a_glance() {
    let env = env();
    assert!(env.weald(&[]).stdout.contains("weald task add"));
    env.ok(&["task", "add", "a"]);
    env.ok(&["task", "add", "b", "--after", "1"]);
    env.ok(&["task", "claim", "--session", "alice"]);
    let board = env.ok(&[]);
    assert_eq!(
        board["counts"],
        serde_json::json!({"pending": 1, "in_progress": 1})
    );
    assert_eq!(board["in_progress"][0]["owner"], "alice");
    assert!(env.weald(&[]).stdout.contains("#1 a alice"));
}

#[test]
fn completions_look_into_the_repository_and_never_write() {
    let env = env();
    let complete = || {
        let mut command = env.weald_command(&["--", "weald", "task", "show", ""]);
        command.env("COMPLETE", "fish");
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    };
    complete();
    assert!(!env.private().exists());
    env.ok(&["task", "add", "Fix the login"]);
    assert!(complete().contains("1\tFix the login"), "{}", complete());
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            env.weald(&["completions", shell])
                .stdout
                .contains("COMPLETE"),
            "{shell}"
        );
    }
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let env = env();
    let folder = env.root().join("man");
    assert_eq!(env.weald(&["man", folder.to_str().unwrap()]).code, 0);
    for page in ["weald.1", "weald-task-claim.1", "weald-msg-reply.1"] {
        assert!(folder.join(page).is_file(), "{page}");
    }
    assert!(env.weald(&["man"]).stdout.contains(".TH weald"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let env = env();
    let tasks: String = (0..3_000)
        .map(|n| format!("{{\"subject\":\"{n}\"}}\n"))
        .collect();
    env.weald_with_input(&["task", "import"], tasks.as_bytes());
    let mut child = env
        .weald_command(&["task", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}
