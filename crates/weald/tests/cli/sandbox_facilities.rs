//! What programs find inside a sandbox: debuggers and local communication work, the rest is refused in a way they can handle.

use std::collections::BTreeMap;
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use weald_testkit::{FACILITIES, skipped};

use crate::env;
use crate::sandbox::{as_user, confined, is_root, ordinary_home, own_home, tree};

/// Found by every user.
const PYTHON: &str = "/usr/bin/python3";

/// A place with the binary and the probes in it, for root or an ordinary user.
struct Place {
    home: PathBuf,
    ordinary: bool,
}

/// As both users, as far as they can be had.
fn places(name: &str) -> Vec<Place> {
    if !Path::new(PYTHON).exists() {
        skipped("python3 is not installed");
        return Vec::new();
    }
    let mut all = Vec::new();
    if is_root() {
        let home = own_home(&format!("{name}-root"));
        all.push(Place {
            home,
            ordinary: false,
        });
    }
    all.extend(ordinary_home(&format!("{name}-user")).map(|home| Place {
        home,
        ordinary: true,
    }));
    assert!(!all.is_empty(), "neither root nor a user can try this");
    for place in &all {
        fs::write(place.home.join("facilities.py"), FACILITIES).unwrap();
        fs::create_dir(place.home.join("tree")).unwrap();
        place.own("tree");
    }
    all
}

impl Place {
    /// Gives a file to the place's user.
    fn own(&self, name: &str) {
        if self.ordinary && is_root() {
            let owner = Some(1000);
            std::os::unix::fs::chown(self.home.join(name), owner, owner).unwrap();
        }
    }

    fn command(&self, level: Option<&str>) -> Command {
        let mut command = match level {
            None => Command::new(PYTHON),
            Some(level) => {
                let mut weald = Command::new(self.home.join("weald"));
                weald.args(["sandbox", "exec", "--level", level, "--write", "."]);
                weald.args(["--", PYTHON]);
                weald
            }
        };
        command.current_dir(self.home.join("tree"));
        command.env("HOME", &self.home).stdin(Stdio::null());
        if self.ordinary {
            // The suite's own may be closed to others.
            command.env("TMPDIR", "/tmp");
            as_user(&mut command);
        }
        command
    }

    /// What the probes with these words in their names find, outside or at a level.
    fn find(&self, level: Option<&str>, names: &[&str]) -> BTreeMap<String, String> {
        let mut command = self.command(level);
        command.arg(self.home.join("facilities.py")).args(names);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        let found: BTreeMap<_, _> = lines
            .map(|(name, said)| (name.to_owned(), said.to_owned()))
            .collect();
        let problem = String::from_utf8_lossy(&output.stderr);
        for name in names {
            let is_tried = found.keys().any(|probe| probe.contains(name));
            assert!(is_tried, "{level:?}: nothing tries {name}: {problem}");
        }
        found
    }

    /// Asserts that inside all of it works that works outside; names those that do not even work there.
    #[track_caller]
    fn expect_same(&self, names: &[&str], but: &[&str]) {
        let outside = self.find(None, names);
        let inside = self.find(Some("full"), names);
        for (name, said) in &outside {
            if said != "works" {
                skipped(&format!("{name} does not work here: {said}"));
            } else if !but.contains(&name.as_str()) {
                assert_eq!(inside[name], "works", "{name}, root: {}", !self.ordinary);
            }
        }
    }
}

#[test]
fn i3_datagram_sockets_have_names_where_the_user_allows_it() {
    for place in places("i3-datagrams") {
        let names = ["unix datagram socket", "socket pair: datagram"];
        let refused = place.find(Some("full"), &names);
        assert_eq!(refused["unix datagram socket, abstract"], "EACCES");
        let config = place.home.join(".config/weald");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("config.toml"), "sandbox.datagrams = true\n").unwrap();
        place.expect_same(&names, &[]);
        // What listens in the home, or without a file, is the host's.
        let path = place.home.join("host.sock");
        let host = UnixDatagram::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let name = format!("weald-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let unnamed = UnixDatagram::bind_addr(&address).unwrap();
        let script = "import socket, sys\nfor to in sys.argv[1], chr(0) + sys.argv[2]:\n  try: \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', to); print('sent')\n  except OSError: print('no')";
        let send = |level| {
            let mut command = place.command(level);
            let output = command
                .args(["-c", script])
                .arg(&path)
                .arg(&name)
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(send(Some("full")), "no\nno\n", "{}", place.ordinary);
        for socket in [&host, &unnamed] {
            socket.set_nonblocking(true).unwrap();
            assert!(socket.recv(&mut [0; 1]).is_err());
        }
        assert_eq!(send(None), "sent\nsent\n", "{}", place.ordinary);
    }
}

#[test]
fn i1_programs_find_their_own_sockets_in_the_home_and_not_those_of_the_host() {
    for place in places("i1-sockets") {
        let host = std::os::unix::net::UnixListener::bind(place.home.join("host.sock")).unwrap();
        place.own("host.sock");
        let script = "import os,socket\n\
            home=os.path.expanduser('~')\n\
            def connect(p):\n s=socket.socket(socket.AF_UNIX); s.connect(p)\n\
            u=socket.socket(socket.AF_UNIX); u.bind(home+'/own.sock'); u.listen(); connect(home+'/own.sock'); print('own')\n\
            for p in ('/host.sock','/moved.sock'):\n\
            \u{20}try: connect(home+p); print('reached')\n\
            \u{20}except OSError: print('refused')\n\
            \u{20}if p=='/host.sock': os.rename(home+p,home+'/moved.sock')";
        let output = place
            .command(Some("full"))
            .args(["-c", script])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, "own\nrefused\nrefused\n", "{output:?}");
        drop(host);
    }
}

#[test]
fn i2_debuggers_and_schedulers_work_on_own_processes() {
    for place in places("i2") {
        place.expect_same(
            &[
                "ptrace",
                "child's memory",
                "/mem of a child",
                "kcmp",
                "affinity",
                "priority",
                "scheduler",
                "limits",
                "personality",
                "core file",
            ],
            &[],
        );
        // Without a pid namespace other processes would be in reach.
        let names = [
            "ptrace: attach",
            "affinity: of a child",
            "limits: of a child",
        ];
        for (name, said) in place.find(Some("landlock"), &names) {
            assert_eq!(said, "EPERM", "{name}");
        }
    }
}

#[test]
fn i2_a_command_that_asks_to_be_traced_ends_as_usual() {
    for place in places("i2-traced") {
        let script = "import ctypes,os,signal\n\
            libc=ctypes.CDLL(None); assert libc.ptrace(0,0,0,0)==0\n\
            signal.signal(signal.SIGUSR1,lambda *a: print('signalled',flush=True))\n\
            os.kill(os.getpid(),signal.SIGUSR1)\n\
            os.execv('/bin/sh',['sh','-c','echo executed; exit 3'])";
        let output = place
            .command(Some("full"))
            .args(["-c", script])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            (output.status.code(), said.as_ref()),
            (Some(3), "signalled\nexecuted\n"),
            "{output:?}"
        );
    }
}

#[test]
fn i2_what_weald_runs_inside_is_neither_traced_nor_read_nor_scheduled() {
    for place in places("i2-own") {
        let script = "import ctypes,os,resource,signal\n\
            libc=ctypes.CDLL(None,use_errno=True)\n\
            def trace(p):\n if libc.ptrace(0x4206,p,0,0)!=0: raise PermissionError()\n\
            others=[int(p) for p in os.listdir('/proc') if p.isdigit() and int(p)!=os.getpid()]\n\
            assert len(others)==2, others\n\
            for p in others:\n\
            \u{20}tries=[lambda: trace(p), lambda: open(f'/proc/{p}/mem'), lambda: open(f'/proc/{p}/maps').read(), lambda: os.readlink(f'/proc/{p}/fd/0'),\n\
            \u{20}\u{20}lambda: open(f'/proc/{p}/environ').read()]\n\
            \u{20}tries+=[lambda: os.setpriority(0,p,9), lambda: os.sched_setaffinity(p,{0}), lambda: resource.prlimit(p,resource.RLIMIT_NOFILE,(9,9))]\n\
            \u{20}if p!=1: tries+=[lambda: os.kill(p,signal.SIGKILL), lambda: os.kill(p,signal.SIGSTOP)]\n\
            \u{20}for number,t in enumerate(tries):\n\
            \u{20}\u{20}try: t(); print('worked',p,number)\n\
            \u{20}\u{20}except PermissionError: pass\n\
            print('done')";
        let output = place
            .command(Some("full"))
            .args(["-c", script])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, "done\n", "root: {}: {output:?}", !place.ordinary);
    }
}

#[test]
fn i2_gdb_strace_and_the_leak_checker_work() {
    let env = env();
    let tree = tree(&env);
    let leak = "#include <stdlib.h>\nint main(void) { char *volatile p = malloc(7); p = 0; return p != 0; }\n";
    fs::write(Path::new(&tree).join("leak.c"), leak).unwrap();
    for (program, script, wanted) in [
        (
            "strace",
            "strace -f -e trace=exit_group sh -c 'exit 0' 2>&1",
            "exit_group(0)",
        ),
        (
            "gdb",
            "gdb -nx -batch -ex 'break exit' -ex run -ex kill --args /bin/true 2>&1",
            "Inferior 1",
        ),
        (
            "gcc",
            "gcc -fsanitize=address leak.c -o leak && ASAN_OPTIONS=detect_leaks=1 ./leak 2>&1; true",
            "7 byte(s) leaked",
        ),
    ] {
        let installed = Command::new(program).arg("--version").output();
        if !installed.is_ok_and(|output| output.status.success()) {
            skipped(&format!("{program} is not installed"));
            continue;
        }
        let answer = confined(&env, &tree, &[], script);
        assert!(answer.stdout.contains(wanted), "{program}: {answer:?}");
    }
}

#[test]
fn i3_own_processes_talk_to_each_other_and_know_each_other() {
    let names = [
        "unix stream",
        "unix seqpacket",
        "socket pair",
        "peer credentials",
        "credentials with",
        "descriptors over",
        "POSIX",
        "System V",
        "FIFO",
        "loopback",
        "/proc/self/comm",
        "/proc/self/oom",
        "name of another thread",
        "affinity: of another",
    ];
    for place in places("i3") {
        // /proc is read-only, and only what is opened without creating it is put to the launcher.
        place.expect_same(&names, &["/proc/self/comm by a shell's redirection"]);
    }
}

#[test]
fn i3_a_datagram_pair_sends_to_nobody_else_and_offline_there_is_none() {
    let env = env();
    let tree = tree(&env);
    let outside = env.root().join("outside.sock");
    let server = UnixDatagram::bind(&outside).unwrap();
    server.set_nonblocking(true).unwrap();
    let script = "import os,socket,sys\n\
        a,b=socket.socketpair(socket.AF_UNIX,socket.SOCK_DGRAM)\n\
        for send in (lambda: a.sendto(b'x',sys.argv[1]), lambda: a.sendmsg([b'x'],[],0,sys.argv[1])):\n\
        \u{20}try: send()\n\
        \u{20}except OSError as e: print(e.errno)\n\
        a.setblocking(False); b.setblocking(False)\n\
        print(os.get_inheritable(a.fileno()), len(b.recv(9)))";
    let root = env.root().to_str().unwrap();
    let run = |flags: &[&str]| {
        let start = ["sandbox", "exec", "--write", &tree, "--show", root];
        let end = ["--", PYTHON, "-c", script, outside.to_str().unwrap()];
        env.weald(&[&start, flags, &end].concat())
    };
    if !Path::new(PYTHON).exists() {
        return skipped("python3 is not installed");
    }
    let answer = run(&[]);
    assert_eq!(answer.stdout, "False 1\n", "{answer:?}");
    assert!(server.recv(&mut [0; 1]).is_err(), "nothing came out");
    let answer = run(&["--no-network"]);
    assert!(answer.stderr.contains("PermissionError"), "{answer:?}");
}

#[test]
fn i4_what_is_refused_answers_with_an_error_and_never_kills() {
    let refused = [
        "io_uring",
        "userfaultfd",
        "user namespace",
        "FUSE",
        "KVM",
        "raw socket",
        "32-bit",
        "keys",
        "perf",
        "datagram socket in",
    ];
    for place in places("i4") {
        for level in ["full", "landlock"] {
            for (name, said) in place.find(Some(level), &refused) {
                let known = ["EPERM", "ENOSYS", "EACCES", "ENOENT"];
                assert!(known.contains(&said.as_str()), "{level}, {name}: {said}");
            }
            let output = place.explain(level);
            let lines = output["sandbox"]["refuses"].as_array().unwrap().clone();
            let all = Value::from(lines).to_string();
            for word in ["namespaces", "32-bit", "io_uring", "KVM", "raw"] {
                assert!(all.contains(word), "{level}, {word}: {all}");
            }
        }
    }
}

impl Place {
    fn explain(&self, level: &str) -> Value {
        let mut command = Command::new(self.home.join("weald"));
        command.args(["sandbox", "explain", "--json", "."]);
        command.args(["--set", &format!("sandbox.level={level}")]);
        command.current_dir(self.home.join("tree"));
        command.env("HOME", &self.home);
        if self.ordinary {
            as_user(&mut command);
        }
        let output = command.output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }
}
