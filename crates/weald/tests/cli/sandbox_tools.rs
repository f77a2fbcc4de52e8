//! Work in the sandbox: git, package managers, servers, limits.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use weald_testkit::{TestEnv, skipped};

use crate::env;
use crate::sandbox::{confined, is_root, tree};

fn has(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        skipped(&format!("{program} is not installed"));
    }
    found
}

/// A private repository with alternates to the test's main repository.
fn private_repository(env: &TestEnv) -> String {
    let tree = tree(env);
    let objects = env.repo().join(".git/objects");
    for number in 1..=5 {
        fs::write(env.repo().join("a"), format!("{number}\n")).unwrap();
        env.git(&["add", "a"]);
        env.git(&["commit", "-q", "-m", &format!("commit {number}")]);
    }
    env.git(&["init", "-q", "-b", "main", &tree]);
    fs::write(
        Path::new(&tree).join(".git/objects/info/alternates"),
        format!("{}\n", objects.display()),
    )
    .unwrap();
    let main = env.repo().to_str().unwrap().to_owned();
    env.git(&["-C", &tree, "remote", "add", "origin", &main]);
    env.git(&["-C", &tree, "config", "user.name", "T"]);
    env.git(&["-C", &tree, "config", "user.email", "t@example.com"]);
    env.git(&["-C", &tree, "fetch", "-q", "origin"]);
    env.git(&["-C", &tree, "reset", "-q", "--hard", "origin/main"]);
    tree
}

#[test]
fn x2_git_works_inside_on_a_repository_with_alternates() {
    let env = env();
    let tree = private_repository(&env);
    let main = env.repo();
    let shown = ["--show", main.to_str().unwrap()];
    let steps = [
        "echo x > b; git add b; git commit -qm add",
        "git commit -q --amend -m amended",
        "echo y >> b; git stash -q; git stash pop -q; git checkout -q b",
        "git branch topic HEAD~2; git switch -q topic; echo t > t; git add t; git commit -qm topic",
        "git rebase -q main",
        "git switch -q main; git merge -q --no-ff -m merge topic",
        "git switch -q -c pick main~1; git cherry-pick topic",
        "git switch -q main; git tag v1; git tag -a -m x v2; git reset -q --hard HEAD~1; git reset -q --soft v1",
        "git reset -q --hard; git gc -q; git fsck --no-progress",
        "git fetch -q origin; git status --short; git diff HEAD~1 --stat",
        "git bisect start HEAD HEAD~4 && git bisect good && git bisect reset",
        "git blame a; git log --oneline --all | wc -l; git branch -q -D topic; git worktree list",
        "git submodule status; git rev-parse --show-toplevel",
    ];
    for step in steps {
        let answer = confined(&env, &tree, &shown, step);
        assert_eq!(answer.code, 0, "{step}: {answer:?}");
        for bad in ["error:", "fatal:", "warning:"] {
            assert!(!answer.stderr.contains(bad), "{step}: {answer:?}");
        }
    }
    env.git(&["fsck", "--no-progress"]);
}

#[test]
fn x9_extra_directories_are_written_and_denied_ones_look_empty() {
    let env = env();
    let tree = tree(&env);
    let extra = env.root().join("extra");
    let secret = env.root().join("home/secret");
    fs::create_dir_all(&extra).unwrap();
    fs::create_dir_all(&secret).unwrap();
    fs::write(secret.join("key"), "k").unwrap();
    fs::write(env.home().join("token"), "t").unwrap();
    env.ok(&["config", "set", "sandbox.write", extra.to_str().unwrap()]);
    env.ok(&["config", "set", "sandbox.read_deny", "~/secret,~/token"]);
    let home = env.home();
    let show = ["--show", home.to_str().unwrap()];
    let script = format!(
        "echo x > {0}/new && ls ~/secret; cat ~/token; echo y > {1}/no",
        extra.display(),
        env.home().display()
    );
    let answer = confined(&env, &tree, &show, &script);
    assert_eq!(
        fs::read_to_string(extra.join("new")).unwrap(),
        "x\n",
        "{answer:?}"
    );
    assert!(
        !answer.stdout.contains("key") && !answer.stdout.contains('t'),
        "{answer:?}"
    );
    assert!(!env.home().join("no").exists());
    let answer = confined(
        &env,
        &tree,
        &["--read-only"],
        "echo x > f; echo t > /tmp/t && cat /tmp/t",
    );
    assert_eq!(
        (answer.stdout.as_str(), Path::new(&tree).join("f").exists()),
        ("t\n", false),
        "{answer:?}"
    );
    assert!(!Path::new("/tmp/t").exists(), "its /tmp is its own");
}

#[test]
fn x9_the_network_can_be_off() {
    let env = env();
    let tree = tree(&env);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let run = |flags: &[&str]| {
        let args = [
            &["sandbox", "exec", "--write", &tree],
            flags,
            &["--", "bash", "-c", &script],
        ]
        .concat();
        env.weald(&args).code
    };
    assert_eq!(run(&[]), 0);
    for level in ["full", "landlock"] {
        assert_ne!(run(&["--no-network", "--level", level]), 0, "{level}");
    }
}

#[test]
fn x9_limits_hold() {
    let env = env();
    let tree = tree(&env);
    let answer = confined(
        &env,
        &tree,
        &["--memory", "64M"],
        "head -c 200M /dev/zero | tail -c 200M | wc -c",
    );
    assert_ne!(answer.stdout.trim(), "209715200", "{answer:?}");
    let answer = confined(
        &env,
        &tree,
        &["--max-output", "10K"],
        "head -c 1M /dev/zero; exit 5",
    );
    assert_eq!((answer.code, answer.stdout.len()), (5, 10 * 1024));
    assert!(answer.stderr.contains("--max-output"), "{answer:?}");
    let forks = "i=0; while [ $i -lt 200 ]; do sleep 5 & i=$((i + 1)); done; echo all";
    let answer = confined(&env, &tree, &["--processes", "40"], forks);
    match rustix::process::geteuid().is_root() {
        true => skipped("the kernel does not count root's processes"),
        false => assert!(!answer.stdout.contains("all"), "{answer:?}"),
    }
    env.ok(&["config", "set", "sandbox.file_size", "1M"]);
    confined(&env, &tree, &[], "head -c 5M /dev/zero > big");
    assert!(fs::metadata(Path::new(&tree).join("big")).unwrap().len() <= 1024 * 1024);
    env.ok(&["config", "set", "sandbox.tmp", "1M"]);
    let answer = confined(
        &env,
        &tree,
        &[],
        "head -c 900K /dev/zero > /tmp/a; head -c 900K /dev/zero > /tmp/b",
    );
    assert_ne!(answer.code, 0, "{answer:?}");
    env.ok(&["config", "set", "sandbox.cpu_seconds", "1"]);
    let answer = confined(&env, &tree, &[], "while :; do :; done");
    assert!(answer.code > 128, "{answer:?}");
}

/// The mechanism of the broker: a listed socket is connected by the launcher, everything else is refused.
#[test]
fn x9_a_listed_socket_can_be_reached_and_no_other() {
    if !has("python3") {
        return;
    }
    let env = env();
    let tree = tree(&env);
    let (listed, other) = (env.root().join("echo.sock"), env.root().join("other.sock"));
    let server = UnixListener::bind(&listed).unwrap();
    let _other = UnixListener::bind(&other).unwrap();
    let echo = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut word = [0; 5];
        stream.read_exact(&mut word).unwrap();
        stream.write_all(&word).unwrap();
    });
    let script = "import socket,sys\n\
        def connect(p):\n  s=socket.socket(socket.AF_UNIX); s.connect(p); return s\n\
        s=connect(sys.argv[1]); s.sendall(b'hello'); print(s.recv(5).decode())\n\
        for p in sys.argv[2:]:\n  try: connect(p); print('reached', p)\n  except OSError as e: print(type(e).__name__)\n\
        u=socket.socket(socket.AF_UNIX); u.bind('own.sock'); u.listen(); connect('own.sock'); print('own')\n";
    let (listed, other) = (listed.to_str().unwrap(), other.to_str().unwrap());
    let root = env.root().to_str().unwrap();
    let answer = env.weald(&[
        "sandbox", "exec", "--write", &tree, "--show", root, "--socket", listed, "--", "python3",
        "-c", script, listed, other,
    ]);
    assert_eq!(answer.stdout, "hello\nPermissionError\nown\n", "{answer:?}");
    echo.join().unwrap();
}

/// The developer's real home, for warm caches.
fn with_real_home(env: &TestEnv, tree: &str, flags: &[&str], script: &str) -> (i32, String) {
    let args = [
        &["sandbox", "exec", "--write", tree],
        flags,
        &["--", "sh", "-c", script],
    ]
    .concat();
    let mut command = env.weald_command(&args);
    for name in ["HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
        #[expect(
            clippy::disallowed_methods,
            reason = "the real caches are what is tested"
        )]
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let output = command.output().unwrap();
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.code().unwrap_or(-1), text.concat())
}

#[test]
fn x9_cargo_builds_and_tests_offline_from_a_warm_cache() {
    let env = env();
    let tree = tree(&env);
    fs::create_dir_all(Path::new(&tree).join("src")).unwrap();
    let manifest = "[package]\nname = 'p'\nversion = '0.1.0'\nedition = '2021'\n[dependencies]\nitoa = '1'\n[workspace]\n";
    fs::write(Path::new(&tree).join("Cargo.toml"), manifest).unwrap();
    let code =
        "fn main() {}\n#[test]\nfn t() { assert_eq!(itoa::Buffer::new().format(42), \"42\"); }\n";
    fs::write(Path::new(&tree).join("src/main.rs"), code).unwrap();
    let (code, text) = with_real_home(&env, &tree, &["--no-network"], "cargo test --offline 2>&1");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn x9_npm_installs_a_local_tarball() {
    if !has("npm") {
        return;
    }
    let env = env();
    let tree = tree(&env);
    let script = "mkdir package && echo '{\"name\":\"loc\",\"version\":\"1.0.0\"}' > package/package.json && \
        tar czf loc.tgz package && echo '{\"name\":\"x\",\"version\":\"1.0.0\"}' > package.json && \
        npm install --offline --no-audit --no-fund ./loc.tgz 2>&1 && test -f node_modules/loc/package.json";
    let (code, text) = with_real_home(&env, &tree, &["--no-network"], script);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn x9_pip_installs_into_a_venv() {
    if !has("python3") {
        return;
    }
    let env = env();
    let tree = tree(&env);
    let wheel = "import zipfile\nz=zipfile.ZipFile('zz-1-py3-none-any.whl','w')\nz.writestr('zz.py','x=42')\n\
        d='zz-1.dist-info/'\nz.writestr(d+'METADATA','Metadata-Version: 2.1\\nName: zz\\nVersion: 1\\n')\n\
        z.writestr(d+'WHEEL','Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        z.writestr(d+'RECORD','')\nz.close()";
    let script = format!(
        "python3 -m venv v && python3 -c \"{wheel}\" && v/bin/pip install -q --no-index ./zz-1-py3-none-any.whl 2>&1 && \
         v/bin/python -c 'import zz; print(zz.x)'"
    );
    let (code, text) = with_real_home(&env, &tree, &["--no-network"], &script);
    if text.contains("ensurepip") {
        return skipped("python3 has no venv here");
    }
    assert_eq!((code, text.trim().ends_with("42")), (0, true), "{text}");
}

#[test]
fn a_server_inside_can_be_reached_from_inside() {
    if !has("python3") {
        return;
    }
    let env = env();
    let tree = tree(&env);
    let script = "import socket\ns=socket.socket(); s.bind(('127.0.0.1',0)); s.listen()\n\
        c=socket.create_connection(s.getsockname()); a,_=s.accept(); c.send(b'hi'); print(a.recv(2).decode())";
    for flags in [&[][..], &["--no-network"]] {
        let args = [
            &["sandbox", "exec", "--write", &tree],
            flags,
            &["--", "python3", "-c", script],
        ]
        .concat();
        let answer = env.weald(&args);
        assert_eq!(
            (answer.code, answer.stdout.as_str()),
            (0, "hi\n"),
            "{answer:?}"
        );
    }
}

#[test]
fn x10_a_run_can_not_slow_its_own_end_or_borrow_the_launchers_rights() {
    if !has("python3") {
        return;
    }
    let env = env();
    let tree = tree(&env);
    let script = "import os,resource,socket\n\
        tries=[lambda: os.sched_setscheduler(1,os.SCHED_IDLE,os.sched_param(0)), lambda: os.sched_setaffinity(1,{0}),\n\
        lambda: os.setpriority(os.PRIO_PROCESS,1,5), lambda: os.setpriority(os.PRIO_PGRP,0,5),\n\
        lambda: resource.prlimit(1,resource.RLIMIT_NOFILE,(1,1)), lambda: socket.socket(socket.AF_NETLINK,socket.SOCK_RAW,15)]\n\
        for t in tries:\n  try: t(); print('worked')\n  except PermissionError: print('refused')\n\
        os.sched_setaffinity(0,{0}); os.nice(1); socket.socket(socket.AF_NETLINK,socket.SOCK_RAW,0)\n\
        resource.setrlimit(resource.RLIMIT_NOFILE,(64,64)); print('own')";
    for level in ["full", "landlock"] {
        let answer = env.weald(&[
            "sandbox", "exec", "--level", level, "--write", &tree, "--", "python3", "-c", script,
        ]);
        assert_eq!(
            answer.stdout,
            format!("{}own\n", "refused\n".repeat(6)),
            "{level}: {answer:?}"
        );
    }
}

#[test]
fn i4_a_device_that_the_user_lists_can_be_used_and_no_terminal() {
    let env = env();
    let tree = tree(&env);
    let can_open = |path: &&&str| {
        fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .is_ok()
    };
    let known = ["/dev/fuse", "/dev/kvm", "/dev/net/tun"];
    let Some(device) = known.iter().find(can_open) else {
        skipped("this user can't open any of /dev/fuse, /dev/kvm and /dev/net/tun");
        return;
    };
    let script = format!("exec 3<>{device}");
    for level in ["full", "landlock"] {
        let run = || confined(&env, &tree, &["--level", level], &script);
        assert_ne!(run().code, 0, "{level}");
        env.ok(&[
            "config",
            "set",
            "sandbox.devices",
            &format!("{device},/dev/nosuch"),
        ]);
        assert_eq!(run().code, 0, "{level}: {:?}", run());
        env.ok(&["config", "set", "sandbox.devices", "/dev/tty"]);
        let refused = run();
        assert!(refused.stderr.contains("never get"), "{refused:?}");
        env.ok(&["config", "unset", "sandbox.devices"]);
    }
}

/// Parts of CPython's own suite that ask much of the system and take seconds.
const SUITE: &str =
    "test.test_posix test.test_os test.test_fcntl test.test_mmap test.test_resource test.test_pty";

/// `xtask bench real` does the same with larger projects.
#[test]
fn i5_a_real_suite_passes_inside_as_it_does_outside() {
    let look = ["-c", "import sys, test.test_os; print(sys.executable)"];
    let python = Command::new("python3").args(look).output().unwrap();
    if !python.status.success() {
        skipped("the tests of Python are not installed");
        return;
    }
    let env = env();
    let tree = tree(&env);
    let python = String::from_utf8(python.stdout).unwrap();
    let script = format!("{} -m unittest -v {SUITE} 2>&1 >/dev/null", python.trim());
    // A run has no capabilities, also when root starts it.
    let bare = match is_root() {
        true => "exec setpriv --bounding-set=-all --inh-caps=-all ",
        false => "exec ",
    };
    let outside = Command::new("sh")
        .args(["-c", &format!("{bare}sh -c '{script}'")])
        .current_dir(&tree)
        .output()
        .unwrap();
    let outside = passes(&String::from_utf8_lossy(&outside.stdout));
    let inside = passes(&confined(&env, &tree, &[], &script).stdout);
    assert!(outside.len() > 300, "{outside:?}");
    let lost: Vec<_> = outside.difference(&inside).collect();
    let gained: Vec<_> = inside.difference(&outside).collect();
    assert!(
        lost.is_empty() && gained.is_empty(),
        "lost: {lost:#?}, gained: {gained:#?}"
    );
}

fn passes(report: &str) -> BTreeSet<String> {
    let passed = report
        .lines()
        .filter_map(|line| line.strip_suffix(" ... ok"));
    passed.map(str::to_owned).collect()
}
