//! Programs in a real terminal, and people without bodies who watch and type.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weald_terminal::wire::{Incoming, LONGEST_FROM_HOST, Message};
use weald_terminal::{Handle, Host, Pair, Screen, Size};

use crate::{ScriptedModel, TestEnv};

/// How long anything on a terminal may take.
const LONG: Duration = Duration::from_secs(30);

/// A program whose controlling terminal is one of its own.
pub struct OnTerminal {
    folder: TempDir,
    child: Child,
    handle: Handle,
    host: JoinHandle<Vec<String>>,
}

impl OnTerminal {
    /// Starts `command`, which is replaced by one that has a terminal.
    pub fn start(command: &Command, size: Size) -> Self {
        let folder = TempDir::with_prefix("weald-terminal-").expect("a temporary folder");
        let Pair { master, slave } = Pair::open(size).expect("a terminal");
        let listener = UnixListener::bind(folder.path().join("socket")).expect("a socket");
        let host = Host::new(master, listener, size).expect("a host");
        let handle = host.handle();
        let copy = || slave.try_clone().expect("a descriptor");
        #[expect(clippy::disallowed_methods, reason = "tests start real processes")]
        let mut with_terminal = Command::new("setsid");
        with_terminal
            .args(["--ctty", "--wait"])
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear();
        for (name, value) in command.get_envs() {
            value.map(|value| with_terminal.env(name, value));
        }
        if let Some(directory) = command.get_current_dir() {
            with_terminal.current_dir(directory);
        }
        let child = with_terminal
            .env("TERM", "xterm-256color")
            .stdin(copy())
            .stdout(copy())
            .stderr(copy())
            .spawn()
            .expect("setsid starts");
        drop(slave);
        let host = std::thread::spawn(move || {
            let mut lines = Vec::new();
            host.run(&mut |line| lines.push(String::from_utf8_lossy(line).into_owned()))
                .expect("the host runs");
            lines
        });
        Self {
            folder,
            child,
            handle,
            host,
        }
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Attaches somebody with a terminal of this size.
    pub fn watcher(&self, size: Size) -> Watcher {
        let socket = self.folder.path().join("socket");
        let mut stream = UnixStream::connect(socket).expect("the host listens");
        stream.set_read_timeout(Some(LONG)).expect("a timeout");
        stream
            .write_all(&Message::Size(size).encoded())
            .expect("the host reads");
        Watcher {
            stream,
            incoming: Incoming::default(),
            terminal: Screen::new(size),
            drawings: 0,
            ended: None,
        }
    }

    /// Waits for its end; everything that was on its terminal, line by line.
    pub fn ended(mut self) -> Vec<String> {
        self.child.wait().expect("it is a child");
        self.handle.end("the program ended");
        self.host.join().expect("the host ends")
    }
}

impl TestEnv {
    /// What a script prints on a terminal of this width, line by line as it was written: the model of the terminal is
    /// wider, so that it wraps nothing. `weald` is on the search path.
    pub fn printed_at(&self, columns: u16, script: &str) -> Vec<String> {
        let mut bash = self.command("bash");
        let own = bash.get_envs().find(|(name, _)| *name == "PATH");
        let path = own.and_then(|(_, path)| path?.to_str()).unwrap_or_default();
        let folder = self.binary().parent().expect("it is a file").display();
        let path = format!("{folder}:{path}");
        bash.args(["-c", &format!("stty cols {columns}\n{script}")])
            .env("PATH", path)
            .env("NO_COLOR", "1");
        let wide = Size {
            columns: 500,
            rows: 300,
        };
        let lines = OnTerminal::start(&bash, wide).ended();
        lines
            .iter()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    /// A person's shell in the repository, with weald and the agents (if this environment has them) on its search path.
    pub fn shell(&self, model: Option<&ScriptedModel>, size: Size) -> (OnTerminal, Watcher) {
        let mut bash = self.command("bash");
        let own = bash.get_envs().find(|(name, _)| *name == "PATH");
        let path = own.and_then(|(_, path)| path?.to_str()).unwrap_or_default();
        let folder = self.binary().parent().expect("it is a file").display();
        let path = format!("{folder}:{}:{path}", self.home().join("bin").display());
        bash.args(["--norc", "--noprofile", "-i"])
            .env("PS1", "prompt> ")
            .env("HISTFILE", "")
            .env("PATH", path);
        if let Some(model) = model {
            bash.env("ANTHROPIC_BASE_URL", model.url())
                .env("ANTHROPIC_API_KEY", "scripted")
                .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        }
        let terminal = OnTerminal::start(&bash, size);
        let mut person = terminal.watcher(size);
        person.sees("prompt>");
        person.types("set -b; clear\r");
        (terminal, person)
    }
}

/// Somebody who watches a program's terminal.
pub struct Watcher {
    pub stream: UnixStream,
    incoming: Incoming,
    /// What their own terminal shows.
    pub terminal: Screen,
    pub drawings: usize,
    /// Why they were sent away.
    pub ended: Option<String>,
}

impl Watcher {
    pub fn types(&mut self, keys: &str) {
        let message = Message::Keys(keys.as_bytes().to_vec());
        self.stream
            .write_all(&message.encoded())
            .expect("the host reads");
    }

    pub fn resizes(&mut self, size: Size) {
        self.terminal.resize(size);
        self.stream
            .write_all(&Message::Size(size).encoded())
            .expect("the host reads");
    }

    /// Takes in what comes until the screen shows this.
    #[track_caller]
    pub fn sees(&mut self, wanted: &str) {
        self.takes_until(wanted, |watcher| {
            watcher.terminal.text().join("\n").contains(wanted)
        });
    }

    /// Takes in what comes until the screen shows this no more.
    #[track_caller]
    pub fn no_longer_sees(&mut self, unwanted: &str) {
        self.takes_until(unwanted, |watcher| {
            !watcher.terminal.text().join("\n").contains(unwanted)
        });
    }

    #[track_caller]
    pub fn takes_until(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) {
        let until = Instant::now() + LONG;
        while !is_there(self) {
            let shown = self.terminal.text().join("\n");
            assert!(Instant::now() < until, "waited for {what:?} at\n{shown}");
            self.incoming.read(&self.stream).expect("the host writes");
            while let Some(message) = self.incoming.next(LONGEST_FROM_HOST).expect("a message") {
                match message {
                    Message::Draw(drawing) => {
                        self.drawings += 1;
                        self.terminal.read(&drawing);
                    }
                    Message::Ended(why) | Message::Detached(why) => self.ended = Some(why),
                    other => panic!("a host sent {other:?}"),
                }
            }
        }
    }
}
