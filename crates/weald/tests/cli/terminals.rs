//! What others choose to be called or to say never commands the terminal of whoever looks at it.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;
use weald_testkit::TestEnv;

use crate::landing_gate::set;
use crate::trees_remove::repository;

/// Clipboard, title, screen, cursor, a string of the device, one-character controls, and a turned direction.
const EVIL: &str = "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}]0;owned\u{1b}\\\u{1b}[2J\u{1b}[3A\u{1b}P+q544e\u{1b}\\\u{9b}2J\u{9d}0;x\u{9c}\u{202e}\u{8}\u{1b}c\u{1b}";

/// The same as a name of a file.
const NAME: &str = "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{9b}2J\u{202e}.txt";

/// Everything that a command writes to a terminal which is its own.
fn on_terminal(command: &mut Command) -> String {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let terminal = openpt(flags).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let size = Winsize {
        ws_row: 50,
        ws_col: 400,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&terminal, size).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(rustix::fs::OFlags::NOCTTY.bits() as i32);
    let end = options.open(name.to_str().unwrap()).unwrap();
    let streams = || Stdio::from(end.try_clone().unwrap());
    command
        .stdin(Stdio::null())
        .stdout(streams())
        .stderr(streams());
    command.env("TERM", "xterm-256color").env_remove("NO_COLOR");
    let mut child = command.spawn().unwrap();
    command.stdout(Stdio::null()).stderr(Stdio::null());
    drop(end);
    let mut shown = Vec::new();
    // Ends with an error when nobody has the other end any more.
    let _ = File::from(terminal).read_to_end(&mut shown);
    child.wait().unwrap();
    String::from_utf8_lossy(&shown).into_owned()
}

/// The first thing in a text that a terminal would obey, but colours and line ends.
fn obeyed(shown: &str) -> Option<String> {
    // Of weald itself, while something takes its time.
    let mut text = shown.replace("\r\n", "\n").replace("\r\u{1b}[K", "");
    while let Some(at) = text.find('\r') {
        let end = text[at..].find("s ");
        match end.filter(|end| text[at..at + end].contains(" … ")) {
            Some(end) => text.replace_range(at..at + end + 2, ""),
            None => return Some(text[at..].chars().take(40).collect()),
        }
    }
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| {
        let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || (c.is_control() && c != '\n' && c != '\t')
    }) {
        let found = &rest[at..];
        let style = found.strip_prefix("\u{1b}[").and_then(|style| {
            let end = style.find(|c: char| !c.is_ascii_digit() && c != ';')?;
            style[end..].starts_with('m').then_some(&style[end + 1..])
        });
        match style {
            Some(behind) => rest = behind,
            None => return Some(found.chars().take(40).collect()),
        }
    }
    None
}

/// Shows what these commands write to a terminal, and finds those that command it.
struct Watch<'a> {
    env: &'a TestEnv,
    found: Vec<String>,
}

impl Watch<'_> {
    fn see(&mut self, args: &[&str]) -> String {
        let mut command = self.env.weald_command(args);
        // A pager has sequences of its own; what it is given is the same.
        let shown = on_terminal(command.env("GIT_PAGER", "cat"));
        if let Some(what) = obeyed(&shown) {
            self.found.push(format!("{}: {what:?}", args.join(" ")));
        }
        shown
    }
}

#[test]
fn x21_no_command_passes_a_control_sequence_to_the_terminal() {
    let env = repository();
    let mut watch = Watch {
        env: &env,
        found: Vec::new(),
    };
    // weald's own bell.
    set(&env, "notify.terminal", "off");
    let evil = env.home().join("evil");
    fs::write(&evil, EVIL).unwrap();
    fs::write(env.home().join("name"), NAME).unwrap();
    let files = format!(
        "evil={}; name=\"$(cat {}/name)\";",
        evil.display(),
        env.home().display()
    );
    set(
        &env,
        "setup.commands",
        &format!("cat {0}, cat {0} >&2", evil.display()),
    );
    env.ok(&["task", "add", "Fix it", "--description", EVIL]);
    let script = format!(
        "{files} cat $evil; cat $evil >&2; printf '\\033[31mred\\033[0m\\n'; echo mine > \"$name\"; git add .; \
         git commit -qm \"$(cat $evil)\"; git branch \"$(printf 'b\\302\\2332J\\342\\200\\256')\"; \
         weald session note \"$(cat $evil)\"; weald task done --report \"$(cat $evil)\"; echo x > \"x$name\"; \
         weald msg send bob \"$(cat $evil)\"; exit ${{1-3}}"
    );
    let shown = watch.see(&[
        "work", "1", "--name", "alice", "--", "sh", "-c", &script, "sh",
    ]);
    assert!(shown.contains("\u{1b}[31mred"), "colours stay: {shown:?}");
    watch.see(&["resume", "1", "--", "sh", "-c", &script, "sh"]);
    for id in ["a1", "a2"] {
        for args in [
            &["agent", "attach", id][..],
            &["agent", "attach", id, "--all"],
            &["agent", "logs", id],
            &["agent", "logs", id, "--raw"],
            &["agent", "pulse", id],
            &["agent", "diff", id],
        ] {
            watch.see(args);
        }
    }
    for line in [
        "agent list --all",
        "list",
        "list --fresh",
        "show fix-it",
        "status fix-it",
        "status --all",
        "diff fix-it",
        "diff fix-it --stat",
        "diff fix-it --name-only",
        "task show 1",
        "task list",
        "task export",
        "events --limit 100",
        "events --limit 100 --json",
        "task show 1 --json",
        "msg inbox --session bob",
        "session list --all",
        "session note --session alice",
        "rescue 1",
        "snapshot create fix-it",
        "snapshot list fix-it",
        "snapshot diff fix-it",
        "conflicts",
        "doctor",
        "usage",
        "clean",
        "undo --dry-run",
    ] {
        watch.see(&line.split(' ').collect::<Vec<_>>());
    }
    watch.see(&[]);
    let made = watch.see(&["new", "made"]);
    assert!(made.contains("]52;c;"), "set-up says it: {made}");
    land_with_evil(&mut watch, &evil.display().to_string());
    assert!(watch.found.is_empty(), "{:#?}", watch.found);
}

/// A gate that says it, a file of that name in the way, and a conflict in it.
fn land_with_evil(watch: &mut Watch<'_>, evil: &str) {
    let env = watch.env;
    set(env, "setup.commands", "");
    set(
        env,
        "gate.command",
        &format!("cat {evil}; cat {evil} >&2; exit 1"),
    );
    watch.see(&["land", "fix-it", "--commit", "all"]);
    watch.see(&["queue", "status", "--all"]);
    set(env, "gate.command", "true");
    fs::write(env.repo().join(NAME), "in the way\n").unwrap();
    env.ok(&["new", "b"]);
    let add = "echo b > \"$1\"; git add .; git commit -qm \"$1\"";
    env.weald(&["run", "b", "--", "sh", "-c", add, "sh", NAME]);
    let refused = watch.see(&["land", "b"]);
    assert!(refused.contains("]52;c;"), "the file is named: {refused}");
    let failing = format!("setup.commands=false '{NAME}'");
    watch.see(&["--set", &failing, "new", "c"]);
    let events = watch.see(&["events", "--limit", "20"]);
    assert!(events.contains("]52;c;"), "the file is named: {events}");
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", EVIL]);
    for line in [
        "conflicts",
        "sync fix-it",
        "status fix-it",
        "land fix-it",
        "verify",
        "events --limit 20",
        "approve fix-it",
        "rm fix-it",
        "rm fix-it --discard",
        "trash list",
        "restore",
        "undo",
    ] {
        watch.see(&line.split(' ').collect::<Vec<_>>());
    }
}

/// The way out of a run is the command's own.
#[test]
fn x21_a_runs_own_streams_stay_as_they_are() {
    let env = repository();
    env.ok(&["new", "a"]);
    let shown =
        on_terminal(&mut env.weald_command(&["run", "a", "--", "printf", "\\033]0;mine\\007"]));
    assert!(shown.contains("\u{1b}]0;mine\u{7}"), "{shown:?}");
}

#[test]
fn x21_what_a_server_hears_of_a_gate_is_clean() {
    let env = repository();
    let evil = env.home().join("evil");
    fs::write(&evil, EVIL).unwrap();
    env.ok(&["new", "a"]);
    let add = "echo a > a; git add .; git commit -qm a";
    env.weald(&["run", "a", "--", "sh", "-c", add]);
    // The last line is heard while the tests run; those that end at once have none.
    let gate = format!("cat {}; sleep 2", evil.display());
    set(&env, "gate.command", &gate);
    let request = json!({"request": {
        "names": ["a"], "strategy": null, "no_wait": false, "dry_run": false, "keep": false,
        "force": false, "stop_on_conflict": false, "at_conflict": "abort", "commit": null,
        "message": null, "report": null, "leaves": false,
    }});
    let weald = env.weald_command(&[]);
    let mut command = env.command("sh");
    let script = "printf %s \"$1\" | \"$0\" operate land";
    command.args(["-c", script]).arg(weald.get_program());
    let shown = on_terminal(command.arg(request.to_string()));
    assert!(shown.contains("]52;c;"), "the gate says it: {shown:?}");
    assert_eq!(obeyed(&shown), None, "{shown:?}");
}
