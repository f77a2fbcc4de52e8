//! Real programs in a terminal, watched and typed to.

#![expect(clippy::disallowed_methods, reason = "tests start real processes")]

use std::io::{Read, Write};
use std::process::Command;

use weald_terminal::Size;
use weald_testkit::OnTerminal;

const SIZE: Size = Size {
    columns: 40,
    rows: 8,
};

fn start(script: &str) -> OnTerminal {
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("PATH", "/usr/bin:/bin");
    OnTerminal::start(&command, SIZE)
}

#[test]
fn a_program_goes_on_unwatched_and_two_watchers_see_the_same() {
    let program = start("echo ready; read a; echo got $a; read b; echo and $b; read c");
    let mut first = program.watcher(SIZE);
    first.sees("ready");
    first.types("one\r");
    first.sees("got one");
    drop(first);
    let (mut second, mut third) = (program.watcher(SIZE), program.watcher(SIZE));
    second.sees("got one");
    third.types("two\r");
    second.sees("and two");
    third.sees("and two");
    assert_eq!(second.terminal.text(), third.terminal.text());
    second.types("\r");
    let lines = program.ended();
    assert_eq!(lines, ["ready", "one", "got one", "two", "and two"]);
    second.takes_until("the end", |watcher| watcher.ended.is_some());
    assert_eq!(second.ended.as_deref(), Some("the program ended"));
}

#[test]
fn the_terminal_is_as_large_as_that_of_the_last_who_typed() {
    let program = start(
        r#"trap "stty size" WINCH; echo ready; stty size; while [ "$a" != q ]; do read a; stty size; done"#,
    );
    let (mut small, mut large) = (program.watcher(SIZE), {
        let size = Size {
            columns: 100,
            rows: 30,
        };
        let mut large = program.watcher(size);
        large.sees("ready");
        large
    });
    large.sees("30 100");
    small.types("\r");
    small.sees("8 40");
    let size = Size {
        columns: 61,
        rows: 9,
    };
    small.resizes(size);
    small.sees("9 61");
    large.types("q\r");
    assert!(program.ended().contains(&"30 100".to_owned()));
}

#[test]
fn a_program_waits_for_no_watcher_and_a_slow_one_skips_pictures() {
    let program = start(
        "read a; i=0; while [ $i -lt 200000 ]; do echo line $i; i=$((i+1)); done; echo done; read b",
    );
    let (mut typing, slow) = (program.watcher(SIZE), program.watcher(SIZE));
    typing.types("\r");
    // The slow one takes nothing meanwhile.
    typing.sees("done");
    let mut slow = slow;
    slow.sees("done");
    assert!(slow.drawings < 1_000, "{} drawings", slow.drawings);
    assert!(slow.terminal.text().contains(&"line 199999".to_owned()));
    typing.types("\r");
    let lines = program.ended();
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.starts_with("line "))
            .count(),
        200_000
    );
}

#[test]
fn full_screen_programs_draw_and_are_redrawn() {
    // Asks for the cursor's position, as full-screen programs do, and hangs if nobody answers.
    let script = r#"stty raw -echo; printf '\033[?1049h\033[2J\033[3;5Hhere\033[6n'
        answer=$(dd bs=1 count=6 2>/dev/null | od -An -c | tr -d ' \n'); printf '\r\nanswer %s' "$answer"
        dd bs=1 count=1 >/dev/null 2>&1; printf '\033[?1049l'; stty sane"#;
    let program = start(script);
    let mut first = program.watcher(SIZE);
    first.sees("answer 033[3;9R");
    assert_eq!(first.terminal.text()[2], "    here");
    drop(first);
    let mut second = program.watcher(SIZE);
    second.sees("answer 033[3;9R");
    assert_eq!(second.terminal.text()[2], "    here");
    second.types("q");
    let lines = program.ended();
    assert!(!lines.iter().any(|line| line.contains("here")), "{lines:?}");
}

#[test]
fn nonsense_from_a_watcher_ends_its_connection_alone() {
    let program = start("read a");
    let mut good = program.watcher(SIZE);
    let mut bad = program.watcher(SIZE);
    bad.stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut rest = Vec::new();
    bad.stream.read_to_end(&mut rest).unwrap();
    good.types("fine");
    good.sees("fine");
    good.types("\r");
    assert_eq!(program.ended(), ["fine"]);
}

#[test]
fn everybody_can_be_sent_away_while_the_program_goes_on() {
    let program = start("echo ready; read a; echo got $a");
    let mut watcher = program.watcher(SIZE);
    watcher.sees("ready");
    program.handle().detach_all("the agent stopped itself");
    watcher.takes_until("the end", |watcher| watcher.ended.is_some());
    let mut again = program.watcher(SIZE);
    again.types("more\r");
    again.sees("got more");
    assert_eq!(program.ended().last().map(String::as_str), Some("got more"));
}
