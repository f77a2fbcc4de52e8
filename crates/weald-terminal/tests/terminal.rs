//! Real programs in a terminal, watched and typed to.

#![expect(clippy::disallowed_methods, reason = "tests start real processes")]

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weald_terminal::wire::{Incoming, LONGEST_FROM_HOST, Message};
use weald_terminal::{Handle, Host, Pair, Screen, Size};

/// How long anything here may take.
const LONG: Duration = Duration::from_secs(20);

const SIZE: Size = Size {
    columns: 40,
    rows: 8,
};

/// A program in a terminal of its own.
struct Program {
    folder: TempDir,
    child: Child,
    handle: Handle,
    host: JoinHandle<Vec<String>>,
}

impl Program {
    fn start(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let Pair { master, slave } = Pair::open(SIZE).unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let host = Host::new(master, listener, SIZE).unwrap();
        let handle = host.handle();
        let child = Command::new("setsid")
            .args(["--ctty", "--wait", "sh", "-c", script])
            .env("TERM", "xterm-256color")
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave)
            .spawn()
            .unwrap();
        let host = std::thread::spawn(move || {
            let mut lines = Vec::new();
            host.run(&mut |line| lines.push(String::from_utf8_lossy(line).into_owned()))
                .unwrap();
            lines
        });
        Self {
            folder,
            child,
            handle,
            host,
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn watched(&self, size: Size) -> Watcher {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(&Message::Size(size).encoded()).unwrap();
        Watcher {
            stream,
            incoming: Incoming::default(),
            terminal: Screen::new(size),
            drawings: 0,
            ended: None,
        }
    }

    /// Waits for its end; what the terminal said in all.
    fn ended(mut self) -> Vec<String> {
        self.child.wait().unwrap();
        self.handle.end("the program ended");
        self.host.join().unwrap()
    }
}

/// A person with a terminal, without the person.
struct Watcher {
    stream: UnixStream,
    incoming: Incoming,
    terminal: Screen,
    drawings: usize,
    ended: Option<String>,
}

impl Watcher {
    fn types(&mut self, keys: &str) {
        let message = Message::Keys(keys.as_bytes().to_vec());
        self.stream.write_all(&message.encoded()).unwrap();
    }

    fn resizes(&mut self, size: Size) {
        self.terminal.resize(size);
        self.stream
            .write_all(&Message::Size(size).encoded())
            .unwrap();
    }

    /// Takes in what comes until it shows something.
    fn sees(&mut self, wanted: &str) {
        self.takes_until(wanted, |watcher| {
            watcher.terminal.text().join("\n").contains(wanted)
        });
    }

    fn takes_until(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) {
        let until = Instant::now() + LONG;
        while !is_there(self) {
            let shown = self.terminal.text().join("\n");
            assert!(Instant::now() < until, "{what:?} is not in\n{shown}");
            self.incoming.read(&self.stream).unwrap();
            while let Some(message) = self.incoming.next(LONGEST_FROM_HOST).unwrap() {
                match message {
                    Message::Draw(drawing) => {
                        self.drawings += 1;
                        self.terminal.read(&drawing);
                    }
                    Message::Ended(why) => self.ended = Some(why),
                    other => panic!("a host sent {other:?}"),
                }
            }
        }
    }
}

#[test]
fn a3_a_program_goes_on_unwatched_and_two_watchers_see_the_same() {
    let program = Program::start("echo ready; read a; echo got $a; read b; echo and $b; read c");
    let mut first = program.watched(SIZE);
    first.sees("ready");
    first.types("one\r");
    first.sees("got one");
    drop(first);
    let (mut second, mut third) = (program.watched(SIZE), program.watched(SIZE));
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
fn a3_the_terminal_is_as_large_as_that_of_the_last_who_typed() {
    let program = Program::start(
        r#"trap "stty size" WINCH; echo ready; stty size; while [ "$a" != q ]; do read a; stty size; done"#,
    );
    let (mut small, mut large) = (program.watched(SIZE), {
        let size = Size {
            columns: 100,
            rows: 30,
        };
        let mut large = program.watched(size);
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
fn a3_a_program_waits_for_no_watcher_and_a_slow_one_skips_pictures() {
    let program = Program::start(
        "read a; i=0; while [ $i -lt 200000 ]; do echo line $i; i=$((i+1)); done; echo done; read b",
    );
    let (mut typing, slow) = (program.watched(SIZE), program.watched(SIZE));
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
fn a3_full_screen_programs_draw_and_are_redrawn() {
    // Asks for the cursor's position, as full-screen programs do, and hangs if nobody answers.
    let script = r#"stty raw -echo; printf '\033[?1049h\033[2J\033[3;5Hhere\033[6n'
        answer=$(dd bs=1 count=6 2>/dev/null | od -An -c | tr -d ' \n'); printf '\r\nanswer %s' "$answer"
        dd bs=1 count=1 >/dev/null 2>&1; printf '\033[?1049l'; stty sane"#;
    let program = Program::start(script);
    let mut first = program.watched(SIZE);
    first.sees("answer 033[3;9R");
    assert_eq!(first.terminal.text()[2], "    here");
    drop(first);
    let mut second = program.watched(SIZE);
    second.sees("answer 033[3;9R");
    assert_eq!(second.terminal.text()[2], "    here");
    second.types("q");
    let lines = program.ended();
    assert!(!lines.iter().any(|line| line.contains("here")), "{lines:?}");
}

#[test]
fn a3_nonsense_from_a_watcher_ends_its_connection_alone() {
    let program = Program::start("read a");
    let mut good = program.watched(SIZE);
    let mut bad = program.watched(SIZE);
    bad.stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut rest = Vec::new();
    bad.stream.read_to_end(&mut rest).unwrap();
    good.types("fine");
    good.sees("fine");
    good.types("\r");
    assert_eq!(program.ended(), ["fine"]);
}

#[test]
fn a3_everybody_can_be_sent_away_while_the_program_goes_on() {
    let program = Program::start("echo ready; read a; echo got $a");
    let mut watcher = program.watched(SIZE);
    watcher.sees("ready");
    program.handle.detach_all("the agent stopped itself");
    watcher.takes_until("the end", |watcher| watcher.ended.is_some());
    let mut again = program.watched(SIZE);
    again.types("more\r");
    again.sees("got more");
    assert_eq!(program.ended().last().map(String::as_str), Some("got more"));
}
