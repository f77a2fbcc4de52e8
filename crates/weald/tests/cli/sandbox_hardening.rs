//! Ways out that somebody found once, and that stay shut.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::env;
use crate::sandbox::{confined, tree};

#[test]
fn x7_what_a_run_can_write_does_not_decide_about_the_next_one() {
    let env = env();
    let tree = tree(&env);
    let outside = env.root().join("outside");
    fs::create_dir_all(&outside).unwrap();
    let outside = outside.to_str().unwrap();
    let plant = format!(
        "git init -q . && mkdir -p .git/weald/private && \
         printf '[sandbox]\\nlevel=\"landlock\"\\nwrite=[\"{outside}\"]\\n' > .git/weald/private/config.toml"
    );
    assert_eq!(confined(&env, &tree, &["--show", outside], &plant).code, 0);
    for directory in [tree.as_str(), outside] {
        let mut command = env.weald_command(&[
            "-C", directory, "sandbox", "exec", "--write", &tree, "--show", outside,
        ]);
        command.args([
            "--",
            "sh",
            "-c",
            &format!("echo $WEALD_SANDBOX; echo x > {outside}/f"),
        ]);
        let output = command.output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            "full",
            "from {directory}"
        );
        assert!(!PathBuf::from(outside).join("f").exists());
    }
    // A FIFO in its repository is not waited for.
    let fifo = "rm -f .git/commondir; mkfifo .git/commondir";
    assert_eq!(confined(&env, &tree, &[], fifo).code, 0);
    let started = Instant::now();
    confined(&env, &tree, &[], "true");
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn x5_control_planes_are_hidden_wherever_the_command_starts() {
    let env = env();
    env.ok(&["task", "add", "a"]);
    let (repo, private) = (env.repo(), env.private());
    let script = format!(
        "ls {}; mv .git/weald .git/old; mv .git old",
        private.display()
    );
    let args = [
        "-C",
        "/",
        "sandbox",
        "exec",
        "--write",
        repo.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        &script,
    ];
    let answer = env.weald(&args);
    assert!(!answer.stdout.contains("weald.db"), "{answer:?}");
    assert!(
        private.join("weald.db").exists(),
        "the way to a mask can't be renamed: {answer:?}"
    );
    let secret = env.root().join("sec");
    fs::create_dir_all(&secret).unwrap();
    fs::write(secret.join("key"), "k").unwrap();
    let tree = tree(&env);
    let root = env.root().to_str().unwrap();
    let relative = [
        "-C", root, "sandbox", "exec", "--write", &tree, "--show", root, "--mask", "sec", "--",
        "ls", "../sec",
    ];
    assert!(
        !env.weald(&relative).stdout.contains("key"),
        "a mask is meant from where the caller is"
    );
    assert_eq!(
        confined(
            &env,
            &tree,
            &["--level", "landlock", "--mask", &format!("{tree}/inside")],
            "true"
        )
        .code,
        2
    );
}

#[test]
fn x5_streams_are_no_way_out() {
    use std::os::unix::fs::PermissionsExt;
    let env = env();
    let tree = tree(&env);
    let (input, output) = (env.root().join("input"), env.root().join("output"));
    fs::write(&input, "hello\n").unwrap();
    fs::write(&output, "old\n").unwrap();
    let script = "cat; chmod 4777 /dev/stdin /dev/stdout; truncate -s 0 /dev/stdout; touch -d 2001-01-01 /dev/stdin; true";
    let mut command = env.weald_command(&[
        "sandbox", "exec", "--write", &tree, "--", "sh", "-c", script,
    ]);
    command.stdin(fs::File::open(&input).unwrap());
    command
        .stdout(fs::OpenOptions::new().append(true).open(&output).unwrap())
        .stderr(Stdio::null());
    let modes = || [&input, &output].map(|path| fs::metadata(path).unwrap().permissions().mode());
    let before = (modes(), fs::metadata(&input).unwrap().modified().unwrap());
    assert!(command.status().unwrap().success());
    assert_eq!(
        (modes(), fs::metadata(&input).unwrap().modified().unwrap()),
        before
    );
    assert_eq!(fs::read_to_string(&output).unwrap(), "old\nhello\n");
    let mut command = env.weald_command(&["sandbox", "exec", "--write", &tree, "--", "true"]);
    assert_eq!(
        command
            .stdin(fs::File::open(env.root()).unwrap())
            .output()
            .unwrap()
            .status
            .code(),
        Some(2)
    );
}

/// The dynamic loader tells, for each program it loads, under which process number: the launcher and the command are told
/// to, the helper between them must not be.
#[test]
fn x5_the_helper_loads_nothing_of_the_commands_environment() {
    let env = env();
    let tree = tree(&env);
    let mut command = env.weald_command(&["sandbox", "exec", "--write", &tree, "--", "/bin/true"]);
    let output = command.env("LD_DEBUG", "statistics").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = text
        .lines()
        .filter_map(|line| line.split_once(':')?.0.trim().parse().ok());
    let processes: std::collections::BTreeSet<u32> = told.collect();
    assert_eq!(processes.len(), 2, "launcher and command: {text}");
}

#[test]
fn directories_that_can_not_be_meant_are_refused() {
    let env = env();
    let tree = tree(&env);
    let home = env.home();
    for bad in [
        "/",
        "/etc",
        "/tmp",
        "/dev",
        home.to_str().unwrap(),
        env.root().to_str().unwrap(),
    ] {
        let answer = env.weald(&["sandbox", "exec", "--write", bad, "--", "true"]);
        assert_eq!(answer.code, 2, "{bad}: {answer:?}");
    }
    let (inner, link) = (PathBuf::from(&tree).join("inner"), env.root().join("link"));
    fs::create_dir_all(&inner).unwrap();
    std::os::unix::fs::symlink(&tree, &link).unwrap();
    assert_eq!(
        env.weald(&[
            "sandbox",
            "exec",
            "--write",
            link.to_str().unwrap(),
            "--",
            "true"
        ])
        .code,
        2
    );
    let set = format!("sandbox.write={}", inner.display());
    let nested = env.weald(&[
        "--set", &set, "sandbox", "exec", "--write", &tree, "--", "true",
    ]);
    assert_eq!(nested.code, 2, "a run could make a link of it: {nested:?}");
    let socket = PathBuf::from(&tree).join("s.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let listed = env.weald(&[
        "sandbox",
        "exec",
        "--write",
        &tree,
        "--socket",
        socket.to_str().unwrap(),
        "--",
        "true",
    ]);
    assert_eq!(listed.code, 2, "{listed:?}");
}
