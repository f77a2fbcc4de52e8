//! Networks by name.
//!
//! The servers are on loopback, and names lead there by a list of names that a mount namespace of the test has in the place
//! of the host's.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use weald_testkit::{Answer, Gate, Scenario, ScriptedModel, TestEnv, Turn, skipped};

/// How long an agent may take to write something down.
const PATIENCE: Duration = Duration::from_secs(60);

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A test's folder with a server, and names that lead to it.
struct Lab {
    env: TestEnv,
    port: u16,
    /// Runs are those of an ordinary user; the tests of an ordinary user always are.
    as_user: bool,
}

const NAMES: &str = "127.0.0.1 localhost\n\
    127.0.0.1 one.example two.example a.below.example rebind.example\n\
    169.254.169.254 meta.example\n";

impl Lab {
    fn new() -> Self {
        let env = TestEnv::with_files(env!("CARGO_BIN_EXE_weald"));
        fs::write(env.root().join("names"), NAMES).unwrap();
        fs::create_dir_all(env.root().join("served")).unwrap();
        fs::create_dir_all(env.root().join("tree")).unwrap();
        let port = serve(env.root().join("served"));
        Self {
            env,
            port,
            as_user: false,
        }
    }

    /// The same for uid 1000; `None` (said aloud) where that can't be had.
    fn of_user() -> Option<Self> {
        let lab = Self {
            as_user: true,
            ..Self::new()
        };
        if !is_root() {
            return Some(lab);
        }
        let root = lab.env.root();
        fs::copy(env!("CARGO_BIN_EXE_weald"), root.join("weald")).unwrap();
        for path in ["", "home", "tree", "weald", "names"] {
            chown(root.join(path), Some(1000), Some(1000)).unwrap();
        }
        match lab.in_names(["true"]).status.success() {
            true => Some(lab),
            false => {
                skipped("uid 1000 can't reach the temporary directory");
                None
            }
        }
    }

    fn binary(&self) -> PathBuf {
        match self.as_user && is_root() {
            true => self.env.root().join("weald"),
            false => env!("CARGO_BIN_EXE_weald").into(),
        }
    }

    /// A command where the names are known.
    fn named<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.env.command("unshare");
        let (flags, drops) = match (is_root(), self.as_user) {
            (true, false) => ("-m", ""),
            (true, true) => ("-m", "setpriv --reuid 1000 --regid 1000 --clear-groups"),
            (false, _) => ("-rm", ""),
        };
        let script = format!("mount --bind \"$0\" /etc/hosts && exec {drops} \"$@\"");
        command
            .args([flags, "sh", "-c", &script])
            .arg(self.env.root().join("names"));
        command.args(words);
        if self.as_user && is_root() {
            command.current_dir(self.env.root());
        }
        command
    }

    fn in_names<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Output {
        self.named(words).output().unwrap()
    }

    fn weald(&self, args: &[&str]) -> Answer {
        let binary = self.binary();
        let words = [binary.as_os_str()].into_iter();
        let words = words.chain(args.iter().map(|word| word.as_ref()));
        Answer::of(self.in_names(words))
    }

    /// Runs a script in a sandbox that reaches these hosts; `PORT` in them and in it is the server's.
    fn run(&self, hosts: &str, script: &str) -> Answer {
        let port = self.port.to_string();
        let (hosts, script) = (hosts.replace("PORT", &port), script.replace("PORT", &port));
        let mut words = vec![self.binary().into_os_string()];
        let tree = self.env.root().join("tree");
        let flags = [
            "--set",
            "sandbox.network=allow",
            "sandbox",
            "exec",
            "--write",
        ];
        words.extend(flags.map(Into::into));
        words.push(tree.into());
        words.extend(["--", "sh", "-c", &script].map(Into::into));
        let mut command = self.named(words);
        command.env("WEALD_SANDBOX_HOSTS", hosts);
        // cargo's toolchain is in the real home.
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".rustup"));
        let rustup = std::env::var_os("RUSTUP_HOME").map(PathBuf::from).or(home);
        if let Some(path) = rustup.filter(|path| path.is_dir()) {
            command.env("RUSTUP_HOME", path);
        }
        Answer::of(command.output().unwrap())
    }
}

/// Serves the files of a folder, and `/hello` and `/big`, on a port of loopback.
fn serve(folder: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let folder = folder.clone();
            thread::spawn(move || answer(&folder, stream.unwrap()));
        }
    });
    port
}

fn answer(folder: &Path, mut stream: TcpStream) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let first = lines.next()?.ok()?;
    while !lines.next()?.ok()?.is_empty() {}
    let path = first.split(' ').nth(1)?.split('?').next()?.to_owned();
    let body = match path.as_str() {
        "/hello" => Some(b"hello".to_vec()),
        "/big" => Some(vec![b'x'; 32 << 20]),
        _ => fs::read(folder.join(path.trim_matches('/'))).ok(),
    };
    let (status, body) = match body {
        Some(body) => ("200 OK", body),
        None => ("404 Not Found", Vec::new()),
    };
    let kind = if path.ends_with('/') {
        "text/html"
    } else {
        "application/octet-stream"
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&body).ok()
}

fn has(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    let found = found.is_ok_and(|found| found.status.success());
    if !found {
        skipped(&format!("{program} is not installed"));
    }
    found
}

/// Asks for pages and prints `ok` or the exit code of curl.
const ASK: &str =
    "ask() { curl -sS -m 20 -o /dev/null \"$1\" 2> /dev/null && echo ok || echo $?; }\n";

/// What curl says: the name is unknown, nothing answers.
const UNKNOWN: &str = "6";
const REFUSED: &str = "7";

fn check_hosts(lab: &Lab) {
    let listed = "one.example:PORT,*.below.example,rebind.example,meta.example:80,127.0.0.1:PORT";
    let asked = [
        ("one.example:PORT", "ok"),
        // A service of the host's, listed with its port.
        ("127.0.0.1:PORT", "ok"),
        ("[::ffff:127.0.0.1]:PORT", "ok"),
        // Known to the host, and not listed.
        ("two.example:PORT", UNKNOWN),
        ("example.com", UNKNOWN),
        // Listed with another port.
        ("one.example:1", REFUSED),
        ("127.0.0.1:1", REFUSED),
        // Listed without a port, so what leads to this machine is not meant.
        ("a.below.example:PORT", REFUSED),
        ("rebind.example:PORT", REFUSED),
        // Never by name.
        ("meta.example:80", REFUSED),
        // Addresses that nobody listed.
        ("169.254.169.254", REFUSED),
        ("10.0.0.1", REFUSED),
        ("[::1]:PORT", REFUSED),
        ("[2001:db8::1]:80", REFUSED),
    ];
    let lines = asked.map(|(url, _)| format!("ask 'http://{url}/hello'\n"));
    let answer = lab.run(listed, &format!("{ASK}{}", lines.concat()));
    let found: Vec<_> = answer.stdout.lines().collect();
    let wanted: Vec<_> = asked.iter().map(|(_, wanted)| *wanted).collect();
    assert_eq!(found, wanted, "{answer:?}");
    let port = lab.port;
    let said = &answer.stderr;
    assert!(said.contains("9 connections were refused"), "{said}");
    for part in [
        "two.example (curl)".to_owned(),
        "one.example:1 (curl)".to_owned(),
        format!("a.below.example:{port} = 127.0.0.1 (curl)"),
        format!(
            "allow with: weald config set sandbox.hosts +two.example,example.com,one.example:1,a.below.example:{port}"
        ),
    ] {
        assert!(said.contains(&part), "{part}: {said}");
    }
    assert!(!said.contains("+meta") && !said.contains(",meta"), "{said}");
}

#[test]
fn a16_a_run_reaches_the_listed_hosts_and_nothing_else() {
    if has("curl") {
        check_hosts(&Lab::new());
    }
}

#[test]
fn a16_a_run_of_an_ordinary_user_reaches_the_listed_hosts_and_nothing_else() {
    if is_root()
        && has("curl")
        && has("setpriv")
        && let Some(lab) = Lab::of_user()
    {
        check_hosts(&lab);
    }
}

/// Connections as programs make them: at once, in parallel, without waiting, with options that they set before.
const PROGRAM: &str = r#"
import asyncio, errno, os, select, socket, threading, urllib.request
HOST, PORT = "one.example", int(os.environ["SERVER"])
def page(path):
    return len(urllib.request.urlopen(f"http://{HOST}:{PORT}{path}").read())
print("big", page("/big"))
many = []
threads = [threading.Thread(target=lambda: many.append(page("/hello"))) for _ in range(50)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
print("threads", len(many), sum(many))
async def ask():
    reader, writer = await asyncio.open_connection(HOST, PORT)
    writer.write(b"GET /hello HTTP/1.1\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer.endswith(b"hello")
async def ask_often():
    return sum(await asyncio.gather(*[ask() for _ in range(50)]))
print("tasks", asyncio.run(ask_often()))
address = socket.gethostbyname(HOST)
one = socket.socket()
one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
queue = select.epoll()
queue.register(one, select.EPOLLOUT)
copy = os.dup(one.fileno())
one.setblocking(False)
print("first", one.connect_ex((address, PORT)) in (0, errno.EINPROGRESS))
print("ready", queue.poll(5)[0][1] & select.EPOLLOUT != 0)
print("again", one.connect_ex((address, PORT)) == errno.EISCONN)
print("kept", one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)
print("peer", one.getpeername()[0] == address)
os.write(copy, b"GET /hello HTTP/1.1\r\n\r\n")
one.setblocking(True)
one.shutdown(socket.SHUT_WR)
print("half", one.recv(9999, socket.MSG_WAITALL).endswith(b"hello"))
def error(call):
    try:
        call()
    except OSError as error:
        return errno.errorcode[error.errno]
print("port", error(lambda: socket.create_connection((HOST, PORT + 1))))
late = socket.socket(); late.setblocking(False)
print("late", errno.errorcode[late.connect_ex(("10.0.0.1", 80))])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print("datagram", error(lambda: out.sendto(b"x", ("8.8.8.8", 53))))
print("connected", error(lambda: out.connect(("8.8.8.8", 53))))
own = socket.socket(); own.bind(("127.0.0.1", 0)); own.listen()
socket.create_connection(own.getsockname()); print("own", own.accept()[1][0])
print("raw", error(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)))
"#;

#[test]
fn a16_programs_connect_as_they_are_used_to() {
    if !has("python3") {
        return;
    }
    let lab = Lab::new();
    fs::write(lab.env.root().join("tree/program.py"), PROGRAM).unwrap();
    let answer = lab.run("one.example:PORT", "SERVER=PORT python3 program.py");
    let wanted = "big 33554432\nthreads 50 250\ntasks 50\nfirst True\nready True\nagain True\n\
        kept True\npeer True\nhalf True\nport EACCES\nlate EACCES\ndatagram ENETUNREACH\n\
        connected EACCES\nown 127.0.0.1\nraw EPERM\n";
    assert_eq!(answer.stdout, wanted, "{answer:?}");
}

/// Prepares what tools load: a repository, a wheel, a crate, an npm package.
const PREPARE: &str = r#"
set -e
cd "$SERVED"
git init -q --bare -b main repo.git
git -C "$REPO" push -q "$SERVED/repo.git" HEAD:refs/heads/main
git -C repo.git update-server-info
mkdir -p tiny-1.0.0/src index/ti/ny dl simple/tiny npm
printf '[package]\nname = "tiny"\nversion = "1.0.0"\nedition = "2021"\n' > tiny-1.0.0/Cargo.toml
: > tiny-1.0.0/src/lib.rs
tar czf dl/tiny tiny-1.0.0
printf '{"dl":"http://one.example:%s/dl/{crate}"}' "$PORT" > index/config.json
printf '{"name":"tiny","vers":"1.0.0","deps":[],"cksum":"%s","features":{},"yanked":false}\n' \
    "$(sha256sum dl/tiny | cut -d' ' -f1)" > index/ti/ny/tiny
mkdir package; printf '{"name":"tiny","version":"1.0.0"}' > package/package.json
tar czf npm/tiny.tgz package
printf '{"name":"tiny","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"tiny","version":"1.0.0","dist":{"tarball":"http://one.example:%s/npm/tiny.tgz"}}}}' "$PORT" > tiny
"#;

/// Each tool with what it prints when it has loaded something.
const TOOLS: [(&str, &str); 6] = [
    ("curl", "curl -sS http://one.example:PORT/hello"),
    (
        "node",
        "node -e 'fetch(\"http://one.example:PORT/hello\").then(r => r.text()).then(t => process.stdout.write(t))'",
    ),
    (
        "git",
        "git clone -q http://one.example:PORT/repo.git clone && test -f clone/config.py && echo hello",
    ),
    (
        "cargo",
        "mkdir -p new/src && cd new && : > src/lib.rs && \
         printf '[package]\\nname = \"new\"\\nversion = \"1.0.0\"\\nedition = \"2021\"\\n[dependencies]\\ntiny = { version = \"1\", registry = \"own\" }\\n' > Cargo.toml && \
         CARGO_HOME=$PWD/home CARGO_REGISTRIES_OWN_INDEX=sparse+http://one.example:PORT/index/ cargo fetch -q && \
         grep -q 'name = \"tiny\"' Cargo.lock && echo hello",
    ),
    (
        "npm",
        "mkdir p && cd p && npm install --silent --no-audit --no-fund --cache $PWD/cache --registry http://one.example:PORT/ tiny > /dev/null && \
         test -f node_modules/tiny/package.json && echo hello",
    ),
    (
        "pip",
        "pip --disable-pip-version-check download -q --no-deps --index-url http://one.example:PORT/simple/ --trusted-host one.example tiny && \
         test -f tiny-1.0.0-py3-none-any.whl && echo hello",
    ),
];

#[test]
fn a16_tools_load_from_listed_hosts() {
    let lab = Lab::new();
    let served = lab.env.root().join("served");
    let prepared = lab
        .env
        .command("sh")
        .args(["-c", PREPARE])
        .env("SERVED", &served)
        .env("REPO", lab.env.repo())
        .env("PORT", lab.port.to_string())
        .output()
        .unwrap();
    assert!(prepared.status.success(), "{prepared:?}");
    let wheel = "tiny-1.0.0-py3-none-any.whl";
    fs::write(served.join("simple").join(wheel), wheel_of_nothing()).unwrap();
    let page = format!("<a href=\"/simple/{wheel}\">{wheel}</a>");
    // A folder's page is served from a file that has the name of the folder's address.
    fs::remove_dir(served.join("simple/tiny")).unwrap();
    fs::write(served.join("simple/tiny"), page).unwrap();
    thread::scope(|scope| {
        for (tool, script) in TOOLS.into_iter().filter(|(tool, _)| has(tool)) {
            let lab = &lab;
            scope.spawn(move || {
                let answer = lab.run("one.example:PORT", script);
                assert_eq!(answer.stdout.trim(), "hello", "{tool}: {answer:?}");
            });
        }
    });
}

/// An archive with the least that pip wants to see in a wheel.
fn wheel_of_nothing() -> Vec<u8> {
    let script = "import sys, zipfile, io\n\
        out = io.BytesIO()\n\
        with zipfile.ZipFile(out, 'w') as wheel:\n\
        \x20   at = 'tiny-1.0.0.dist-info/'\n\
        \x20   wheel.writestr(at + 'METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0.0\\n')\n\
        \x20   wheel.writestr(at + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        \x20   wheel.writestr(at + 'RECORD', '')\n\
        sys.stdout.buffer.write(out.getvalue())\n";
    let made = Command::new("python3").args(["-c", script]).output();
    made.map(|made| made.stdout).unwrap_or_default()
}

#[test]
fn a16_hosts_of_a_repository_count_after_an_approval_that_shows_them() {
    if !has("curl") {
        return;
    }
    let lab = Lab::new();
    let repo = lab.env.repo();
    let list = |hosts: &str| {
        let text = format!("[sandbox]\nnetwork = 'allow'\nhosts = [{hosts}]\n");
        fs::write(repo.join("weald.toml"), text).unwrap();
        lab.env.git(&["add", "-A"]);
        lab.env.git(&["commit", "-qm", "hosts"]);
    };
    let port = lab.port;
    list(&format!("'one.example:{port}'"));
    assert_eq!(lab.weald(&["new", "fix"]).code, 0);
    let ask = || {
        let url = format!("http://one.example:{port}/hello");
        let answer = lab.weald(&["run", "fix", "--", "curl", "-sS", &url]);
        answer.stdout
    };
    assert_eq!(ask(), "");
    let listed = lab.weald(&["trust", "--list"]);
    assert!(listed.stdout.contains("not approved"), "{listed:?}");
    assert_eq!(ask(), "");
    let trusted = Answer::of(
        lab.named([env!("CARGO_BIN_EXE_weald"), "trust"])
            .output()
            .unwrap(),
    );
    assert!(
        trusted.stdout.contains(&format!("one.example:{port}")),
        "{trusted:?}"
    );
    assert_eq!(ask(), "hello");
    // The user takes it out again, for this repository.
    let set = |value: &str| lab.weald(&["config", "set", "sandbox.hosts", value]).code;
    assert_eq!(set(&format!("!one.example:{port}")), 0);
    assert_eq!(ask(), "");
    assert_eq!(set(&format!("+one.example:{port}")), 0);
    let shown = lab.weald(&["config", "show", "--json"]);
    assert!(shown.stdout.contains("one.example"), "{shown:?}");
    assert_eq!(lab.weald(&["config", "unset", "sandbox.hosts"]).code, 0);
    assert_eq!(ask(), "hello");
    // One more host is another list, which nobody approved.
    list(&format!("'one.example:{port}', 'two.example'"));
    assert_eq!(ask(), "");
}

#[test]
fn a16_level_landlock_has_no_network_by_name_and_says_so() {
    let lab = Lab::new();
    let tree = lab.env.root().join("tree");
    let answer = lab.env.weald(&[
        "--set",
        "sandbox.network=allow",
        "sandbox",
        "exec",
        "--level",
        "landlock",
        "--write",
        tree.to_str().unwrap(),
        "--",
        "touch",
        "there",
    ]);
    assert_eq!(answer.code, 6, "{answer:?}");
    assert!(answer.stderr.contains("needs level full"), "{answer:?}");
    assert!(!tree.join("there").exists());
    for bad in ["https://example.com", "*", "example.com:0", "127.1"] {
        let set = lab.env.weald(&["config", "set", "sandbox.hosts", bad]);
        assert_ne!(set.code, 0, "{bad}");
    }
}

#[test]
fn a16_agents_reach_their_model_and_what_was_refused_is_listed() {
    const NAMES: [&str; 2] = ["claude", "codex"];
    let gates = [Gate::new(), Gate::new()];
    let scenarios = NAMES.iter().zip(&gates).map(|(name, gate)| {
        let ask =
            "curl -sS -m 5 http://secret.example/x http://169.254.169.254/y; echo \"code $?\"";
        let turns = [Turn::shell(ask), Turn::say("done").behind(gate)];
        Scenario::new(&format!("work of {name}"), turns)
    });
    let model = ScriptedModel::start(scenarios.collect::<Vec<_>>());
    let Some(env) = TestEnv::with_agents(env!("CARGO_BIN_EXE_weald"), &model) else {
        return;
    };
    fs::write(env.repo().join("Cargo.toml"), "").unwrap();
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "a project"]);
    env.ok(&["new", "seen"]);
    env.ok(&["config", "set", "sandbox.network", "allow"]);
    let started = NAMES.map(|name| {
        let subject = format!("work of {name}");
        let args = ["work", &subject, "--driver", name];
        env.weald_with_agents(&model, &args).spawn().unwrap()
    });
    for gate in &gates {
        gate.wait_for_arrival();
    }
    let begun = Instant::now();
    // While they are at work it is on the board, with the command that allows it.
    let needs = loop {
        let board = env.ok(&[]);
        let needs = board["needs"].as_array().cloned().unwrap_or_default();
        let refused: Vec<Value> = needs
            .into_iter()
            .filter(|it| it["kind"] == "refused")
            .collect();
        if refused.len() == 2 {
            break refused;
        }
        assert!(begun.elapsed() < PATIENCE, "{board}");
        thread::sleep(Duration::from_millis(50));
    };
    for need in &needs {
        let word = |name: &str| need[name].as_str().unwrap().to_owned();
        assert!(word("what").contains("secret.example"), "{need}");
        let command = word("command");
        let (start, hosts) = command.split_once('+').unwrap();
        assert_eq!(start, "weald config set sandbox.hosts ");
        // Codex looks for news of itself, too.
        assert!(
            hosts.split(',').any(|host| host == "secret.example"),
            "{need}"
        );
        assert!(!hosts.contains("169.254"), "{need}");
    }
    for gate in &gates {
        gate.open();
    }
    for (name, child) in NAMES.iter().zip(started) {
        let answer = Answer::of(child.wait_with_output().unwrap());
        let results = model.results(&format!("work of {name}"));
        assert!(
            results[0].contains("code 7"),
            "{name}: {results:?} {answer:?}"
        );
    }
    for agent in ["a1", "a2"] {
        let log = env.weald(&["agent", "logs", agent]);
        for part in [
            "; allow with: weald config set sandbox.hosts +",
            "secret.example",
        ] {
            assert!(log.stderr.contains(part), "{log:?}");
        }
        let refused = env.ok(&["agent", "logs", agent])["refused"].clone();
        let refused = refused.as_array().unwrap().iter();
        let refused: Vec<_> = refused
            .map(|it| (&it["host"], &it["port"], &it["program"]))
            .collect();
        for (host, port) in [
            ("secret.example", Value::Null),
            ("169.254.169.254", 80.into()),
        ] {
            let is_this = |it: &&(&Value, &Value, &Value)| *it.0 == host && *it.1 == port;
            let found = refused.iter().find(is_this);
            assert!(found.is_some_and(|it| it.2 == "curl"), "{refused:?}");
        }
        let pulse = env.weald(&["agent", "pulse", agent]);
        assert!(pulse.stdout.contains("refused"), "{pulse:?}");
    }
    let explained = env.weald(&["sandbox", "explain", "seen"]);
    for line in [
        "may reach on the network",
        "seems to need",
        "static.crates.io",
    ] {
        assert!(explained.stdout.contains(line), "{explained:?}");
    }
}
