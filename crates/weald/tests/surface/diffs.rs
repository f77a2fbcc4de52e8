//! A diff looks as the user's own git shows it, and nothing in a worktree decides about programs or the terminal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use weald_terminal::Size;
use weald_testkit::TestEnv;

use crate::env;

const SIZE: Size = Size {
    columns: 100,
    rows: 30,
};

/// What a test reads of a program's output.
fn output(env: &TestEnv, directory: &Path, program: &str, args: &[&str]) -> String {
    let mut command = env.command(program);
    let answer = command.args(args).current_dir(directory).output().unwrap();
    assert!(answer.status.success(), "{program} {args:?}: {answer:?}");
    String::from_utf8(answer.stdout).unwrap()
}

fn git_in(env: &TestEnv, directory: &Path, args: &[&str]) -> String {
    output(env, directory, "git", args)
}

/// A worktree with one commit: words changed, lines moved, bad white space, a renamed and a binary file.
fn changed(env: &TestEnv) -> PathBuf {
    let lines: String = (0..200)
        .map(|n| format!("line number {n} of many\n"))
        .collect();
    fs::write(env.repo().join("long.txt"), &lines).unwrap();
    fs::write(env.repo().join("old-name"), &lines).unwrap();
    fs::write(
        env.repo().join("main.rs"),
        "fn main() {\n    let a = 1;\n    let b = 2;\n}\n",
    )
    .unwrap();
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "files"]);
    let made = env.ok(&["new", "fix"]);
    let path = PathBuf::from(made["tree"]["path"].as_str().unwrap());
    let (head, tail) = lines.split_at(lines.len() / 2);
    fs::write(path.join("long.txt"), format!("{tail}{head}")).unwrap();
    fs::write(
        path.join("main.rs"),
        "fn main() {\n    let a = 11;  \n    let b = 2;\n}\n",
    )
    .unwrap();
    fs::rename(path.join("old-name"), path.join("new-name")).unwrap();
    fs::write(path.join("dos.txt"), "one\r\ntwo\r\n").unwrap();
    fs::write(path.join("binary"), [0, 1, 2]).unwrap();
    git_in(env, &path, &["add", "-A"]);
    git_in(env, &path, &["commit", "-qm", "change"]);
    path
}

#[test]
fn u8_a_diff_has_the_bytes_of_the_users_own_git() {
    let env = env();
    let path = changed(&env);
    let own = env.home().join(".gitconfig");
    let both = |options: &[&str]| {
        let mut args = vec!["diff", "--color=always"];
        args.extend(options);
        args.push("main...HEAD");
        let theirs = git_in(&env, &path, &args);
        // A carriage return reaches no terminal.
        let theirs = theirs.replace('\r', "^M");
        let mut args = vec!["--color", "always", "diff", "fix"];
        args.extend(options);
        let ours = env.weald(&args);
        assert_eq!(ours.code, 0, "{ours:?}");
        assert_eq!(ours.stdout, theirs, "{options:?}");
        theirs
    };
    let mut seen = String::new();
    for config in [
        "",
        "[color \"diff\"]\n new = bold yellow\n old = \"#aa0000\"\n func = blue\n plain = dim\n[diff]\n noprefix = true\n colorMoved = zebra\n context = 1\n",
    ] {
        let before = fs::read_to_string(&own).unwrap_or_default();
        fs::write(&own, format!("{before}{config}")).unwrap();
        for options in [
            &[][..],
            &["--word-diff"],
            &["--word-diff=color"],
            &["--color-moved=dimmed-zebra", "-U0"],
            &["-w", "--stat"],
            &["--name-only"],
        ] {
            seen += &both(options);
        }
    }
    // The comparison would say little if none of it were there.
    for wanted in [
        "\x1b[36m@@",
        "\x1b[1;33m+",
        "\x1b[1;35m-",
        "{+11;+}",
        "rename from old-name",
        "^M",
        "\x1b[34mfn main() {\x1b[m",
    ] {
        assert!(seen.contains(wanted), "{wanted:?}");
    }
    // What scripts read has no colours, unless the user's git would give them some.
    let plain = |args: &[&str]| env.weald(args).stdout;
    assert!(!plain(&["diff", "fix"]).contains('\x1b'));
    env.git(&["config", "--global", "color.ui", "always"]);
    assert!(plain(&["diff", "fix"]).contains("\x1b[1;33m+"));
    let never = ["--color", "never", "diff", "fix"];
    assert!(!plain(&never).contains('\x1b'));
    assert_eq!(env.ok(&["diff", "fix"])["truncated"], false);
    let unknown = env.weald(&["diff", "fix", "--word-diff=loud"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
}

#[test]
fn u8_a_diff_on_a_terminal_is_in_the_users_pager() {
    let env = env();
    let path = changed(&env);
    let pager = env.home().join("my-pager");
    let seen = env.home().join("paged");
    fs::write(
        &pager,
        format!(
            "#!/bin/sh\necho \"LESS=$LESS\" > {0}\ncat >> {0}\necho own pager\n",
            seen.display()
        ),
    )
    .unwrap();
    fs::set_permissions(&pager, fs::Permissions::from_mode(0o755)).unwrap();
    let (terminal, mut person) = env.shell(None, SIZE);
    // less leaves a short one on the screen, and stays with a long one until it is left. Ctrl-C is for less.
    person.types("weald diff fix --name-only; echo short-$?\r");
    person.sees("short-0");
    person.types("clear; weald diff fix; echo left-$?\r");
    person.sees("diff --git a/binary b/binary");
    person.types("/let a = 11\r");
    person.sees("+    let a = 11;");
    // Ctrl-C may take a key with it, and the shell takes no q.
    person.types("\x03");
    person.types("q");
    person.types("q");
    person.sees("left-0");
    person.types("\x15");
    // The user's own pager gets colours and numbers that fill the terminal.
    env.git(&["config", "--global", "core.pager", pager.to_str().unwrap()]);
    person.types("clear; weald diff fix --stat; echo ended-$?\r");
    person.sees("ended-0");
    person.sees("own pager");
    let text = fs::read_to_string(&seen).unwrap();
    let args = ["diff", "--color=always", "--stat=100", "main...HEAD"];
    let theirs = git_in(&env, &path, &args);
    assert!(theirs.contains("\x1b[32m+"), "{theirs:?}");
    assert_eq!(text, format!("LESS=FRX\n{theirs}"));
    // The repository's own configuration names no program.
    env.git(&["config", "--global", "--unset", "core.pager"]);
    fs::remove_file(&seen).unwrap();
    env.git(&["config", "core.pager", pager.to_str().unwrap()]);
    env.git(&["config", "pager.diff", pager.to_str().unwrap()]);
    person.types("clear; weald diff fix --name-only; echo again-$?\r");
    person.sees("again-0");
    assert!(!seen.exists());
    person.types("exit\r");
    terminal.ended();
}

#[test]
fn u8_a_hostile_worktree_starts_no_program_and_colours_nothing() {
    let env = env();
    env.ok(&["config", "set", "policy.gate", "human"]);
    let made = env.ok(&["new", "fix"]);
    let path = PathBuf::from(made["tree"]["path"].as_str().unwrap());
    let proof = env.root().join("proof");
    let program = env.root().join("evil");
    fs::write(
        &program,
        format!("#!/bin/sh\necho ran >> {}\ncat \"$1\"\n", proof.display()),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let evil = program.to_str().unwrap();
    for key in [
        "core.pager",
        "pager.diff",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "core.fsmonitor",
    ] {
        git_in(&env, &path, &["config", key, evil]);
    }
    fs::write(path.join(".gitattributes"), "*.txt diff=evil\n*.rs -diff\n").unwrap();
    // Ends git's colour, shows a change as none, sets the title, begins a line that git did not write.
    let content = "seen\x1b[m\x1b[31mred\x1b[8mhidden\x1b]0;title\x07\rnew line\n";
    fs::write(path.join("a.txt"), content).unwrap();
    fs::write(path.join("hidden.rs"), "fn hidden() {}\n").unwrap();
    git_in(&env, &path, &["-c", "core.fsmonitor=false", "add", "-A"]);
    git_in(
        &env,
        &path,
        &["-c", "core.fsmonitor=false", "commit", "-qm", "change"],
    );
    let _ = fs::remove_file(&proof);
    for color in ["always", "never"] {
        let answer = env.weald(&["--color", color, "diff", "fix"]);
        assert_eq!(answer.code, 0, "{answer:?}");
        let shown = answer.stdout;
        let line = shown.lines().find(|line| line.contains("seen")).unwrap();
        let green = match color {
            "always" => ("\x1b[32m+\x1b[m\x1b[32m", "\x1b[m"),
            _ => ("+", ""),
        };
        let harmless = "seenred\u{fffd}[8mhidden\u{fffd}]0;title\u{fffd}^Mnew line";
        assert_eq!(line, format!("{}{harmless}{}", green.0, green.1));
    }
    // On the host no attribute hides what is to be approved.
    let (terminal, mut person) = env.shell(None, SIZE);
    person.types("export GIT_PAGER=cat; clear; weald approve fix\r");
    person.sees("fn hidden()");
    person.sees("for main? [y/N]");
    person.types("n\r");
    person.sees("nothing was approved");
    person.types("exit\r");
    terminal.ended();
    assert!(!proof.exists(), "{:?}", fs::read_to_string(&proof));
}

#[test]
fn u8_a_replaced_object_is_shown_as_what_lands() {
    for kind in ["sealed", "linked"] {
        let env = env();
        let made = env.ok(&["new", "fix", "--kind", kind]);
        let path = PathBuf::from(made["tree"]["path"].as_str().unwrap());
        let git = |args: &[&str]| git_in(&env, &path, args).trim().to_owned();
        for content in ["nice", "evil"] {
            fs::write(path.join("a.txt"), format!("{content}\n")).unwrap();
            git(&["add", "-A"]);
            let base = match content {
                "nice" => &["commit", "-qm", "a"][..],
                _ => &["commit", "-q", "--amend", "-m", "a"],
            };
            git(base);
        }
        git(&["replace", "HEAD", "HEAD@{1}"]);
        let shown = env.weald(&["diff", "fix"]).stdout;
        assert!(shown.contains("+evil"), "{kind}: {shown}");
        env.ok(&["land", "fix"]);
        assert_eq!(git_in(&env, &env.repo(), &["show", "main:a.txt"]), "evil\n");
    }
}

#[test]
fn u8_approve_shows_the_diff_and_asks() {
    let env = env();
    env.ok(&["config", "set", "policy.gate", "human"]);
    let path = changed(&env);
    let head = git_in(&env, &path, &["rev-parse", "HEAD"]);
    let lands = || {
        let answer = env.weald(&["--json", "land", "fix"]).json();
        let code = answer["landings"][0]["reason"]["code"].as_str();
        code.unwrap_or_default().to_owned()
    };
    let (terminal, mut person) = env.shell(None, SIZE);
    person.types("export GIT_PAGER=cat; clear; weald approve fix\r");
    person.sees("Approve these 6 files of fix at");
    let text = person.terminal.text().join("\n");
    assert!(
        text.contains(&head[..9]) && text.contains("for main? [y/N]"),
        "{text}"
    );
    assert!(text.contains("let a = 11;"), "{text}");
    person.types("\r");
    person.sees("nothing was approved");
    assert_eq!(lands(), "needs_approval");
    // A commit that comes while the question stands is not part of the answer.
    person.types("clear; printf 'sec%s\\n' ond; weald approve fix\r");
    person.sees("second");
    person.sees("let a = 11;");
    person.sees("for main? [y/N]");
    fs::write(path.join("late"), "late\n").unwrap();
    git_in(&env, &path, &["add", "-A"]);
    git_in(&env, &path, &["commit", "-qm", "late"]);
    person.types("y\r");
    person.sees("fix may land on main at");
    assert_eq!(lands(), "needs_approval");
    // A script that says so is not asked, and sees what it saw before.
    person.types("clear; weald approve fix --yes; echo done-$?\r");
    person.sees("done-0");
    let text = person.terminal.text().join("\n");
    assert!(!text.contains("[y/N]") && !text.contains("@@"), "{text}");
    env.ok(&["land", "fix"]);
    person.types("exit\r");
    terminal.ended();
}
