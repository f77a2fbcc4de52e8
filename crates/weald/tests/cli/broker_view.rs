//! What a run sees of the folders that belong to runs and agents: its own, and nothing of the others.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use weald_sandbox::{Ended, Invocation, Level, Policy, Revealed, launch};
use weald_testkit::TestEnv;

use crate::broker;
use crate::env;
use crate::in_agent::ended;
use crate::sandbox::{as_user, ordinary_home};

/// A field with two runs and two homes; the policy of the first of each.
fn field(env: &TestEnv, level: Level) -> Policy {
    let root = env.root().canonicalize().unwrap();
    for folder in [
        "tree",
        "runs/mine",
        "runs/other",
        "homes/mine/agent",
        "homes/other/agent",
        "tmp",
    ] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for name in [
        "runs/mine/prompt",
        "runs/other/prompt",
        "homes/mine/agent/state",
        "homes/other/agent/state",
    ] {
        fs::write(root.join(name), "text\n").unwrap();
    }
    let mut policy = Policy::new(root.join("tree"));
    policy.level = level;
    policy.tmp = Some(root.join("tmp"));
    policy.show = vec![
        root.clone(),
        Path::new(env!("CARGO_BIN_EXE_weald"))
            .parent()
            .unwrap()
            .to_owned(),
    ];
    policy.mask = vec![root.join("runs"), root.join("homes")];
    policy.reveal = vec![
        Revealed {
            path: root.join("runs/mine"),
            writable: false,
        },
        Revealed {
            path: root.join("homes/mine/agent"),
            writable: true,
        },
    ];
    policy
}

/// The exit code of a script that runs with it.
fn runs(env: &TestEnv, policy: &Policy, script: &str) -> Option<i32> {
    let invocation = Invocation {
        helper: env!("CARGO_BIN_EXE_weald").into(),
        command: vec!["sh".into(), "-ec".into(), script.into()],
        directory: policy.write[0].clone(),
        environment: vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("ROOT".into(), env.root().canonicalize().unwrap().into()),
        ],
        streams: [Stdio::null(), Stdio::null(), Stdio::null()],
    };
    match launch(policy, invocation)
        .ok()?
        .wait(Some(Duration::from_secs(20)))
        .unwrap()
    {
        Ended::Code(code) => Some(code),
        Ended::Signal(_) | Ended::TimedOut => None,
    }
}

#[test]
fn x12_a_run_sees_its_own_folders_and_writes_only_its_home() {
    for level in [Level::Full, Level::Landlock] {
        let env = env();
        let policy = field(&env, level);
        let may = [
            "cat $ROOT/runs/mine/prompt",
            "cat $ROOT/homes/mine/agent/state",
            "echo new > $ROOT/homes/mine/agent/new; rm $ROOT/homes/mine/agent/state",
        ];
        for script in may {
            assert_eq!(runs(&env, &policy, script), Some(0), "{level:?}: {script}");
        }
        assert!(
            env.root().join("homes/mine/agent/new").exists(),
            "on the host's disk"
        );
        let must_not = [
            "echo x > $ROOT/runs/mine/prompt",
            "echo x > $ROOT/runs/mine/new",
            "rm $ROOT/runs/mine/prompt",
            "mv $ROOT/homes/mine/agent $ROOT/homes/mine/elsewhere",
            "echo x > $ROOT/homes/other/agent/state",
            "echo x > $ROOT/homes/mine/new",
        ];
        for script in must_not {
            assert_ne!(runs(&env, &policy, script), Some(0), "{level:?}: {script}");
        }
    }
}

#[test]
fn x12_folders_of_others_are_neither_seen_nor_listed() {
    let env = env();
    let policy = field(&env, Level::Full);
    let hidden = [
        "ls $ROOT/runs",
        "ls $ROOT/homes",
        "ls $ROOT/homes/mine",
        "test -e $ROOT/runs/other",
        "cat $ROOT/runs/mine/../other/prompt",
        "cat $ROOT/homes/other/agent/state",
    ];
    for script in hidden {
        assert_ne!(runs(&env, &policy, script), Some(0), "{script}");
    }
    // The same without the masks: the scripts are right.
    let mut open = policy.clone();
    open.mask.clear();
    for script in hidden {
        assert_eq!(runs(&env, &open, script), Some(0), "{script}");
    }
}

#[test]
fn x12_nothing_is_revealed_that_is_masked_itself_or_a_link() {
    let env = env();
    let policy = field(&env, Level::Full);
    let mut masked = policy.clone();
    masked.mask.push(policy.reveal[1].path.join("state"));
    assert_eq!(runs(&env, &masked, "true"), None);
    let mut linked = policy.clone();
    let link = env.root().canonicalize().unwrap().join("runs/link");
    std::os::unix::fs::symlink(&linked.write[0], &link).unwrap();
    linked.reveal[0].path = link;
    assert_eq!(runs(&env, &linked, "true"), None);
    assert_eq!(runs(&env, &policy, "true"), Some(0));
}

#[test]
fn x12_no_descriptor_but_the_streams_is_passed() {
    for level in [Level::Full, Level::Landlock] {
        let env = env();
        let policy = field(&env, level);
        // Open and without "close on exec", as a careless caller would have it.
        let careless = fs::File::open("/dev/null").unwrap();
        rustix::io::fcntl_setfd(&careless, rustix::io::FdFlags::empty()).unwrap();
        let script = "for n in $(seq 3 99); do if [ -e /proc/$$/fd/$n ]; then exit 9; fi; done";
        let invocation = Invocation {
            helper: env!("CARGO_BIN_EXE_weald").into(),
            command: vec!["sh".into(), "-ec".into(), script.into()],
            directory: policy.write[0].clone(),
            environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            streams: [Stdio::null(), Stdio::null(), Stdio::null()],
        };
        let running = launch(&policy, invocation).unwrap();
        let ended = running.wait(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(ended, Ended::Code(0), "{level:?}");
    }
}

#[test]
fn x12_an_ordinary_user_asks_from_inside_too() {
    let Some(home) = ordinary_home("x12-user") else {
        return;
    };
    let at = |program: &Path, args: &[&str]| {
        let mut command = Command::new(program);
        as_user(&mut command).args(args).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("HOME", &home).env("WEALD_SESSION", "alice");
        command.env("WEALD_POOL_SIZE", "0").current_dir(&home);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {text}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (git, weald) = (Path::new("git"), home.join("weald"));
    let named = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    at(git, &["init", "-q", "-b", "main", "app"]);
    let commit = ["-C", "app", "commit", "-q", "--allow-empty", "-m", "first"];
    at(git, &[&named[..], &commit[..]].concat());
    for args in [
        vec!["task", "add", "fix it"],
        vec!["task", "claim", "1"],
        vec!["new", "fix", "--task", "1"],
    ] {
        at(&weald, &[&["-C", "app"], &args[..]].concat());
    }
    let own = weald.to_str().unwrap();
    for level in ["full", "landlock", "off"] {
        let run = [
            "-C",
            "app",
            "run",
            "fix",
            "--sandbox",
            level,
            "--",
            own,
            "task",
            "show",
        ];
        assert!(at(&weald, &run).contains("fix it"), "{level}");
    }
    let _ = fs::remove_dir_all(&home);
}

#[test]
fn x12_a_landing_from_inside_lands_as_configured() {
    let env = broker::agent_field();
    let (child, mut alice) = broker::begin_alice(&env, "full");
    alice.sh("echo x > landed; git add landed; git -c user.name=a -c user.email=a@example.com commit -qm work");
    let tip = env.git(&["rev-parse", "main"]);
    for flags in [
        &["--strategy", "merge"][..],
        &["--strategy", "ff", "--dry-run"],
    ] {
        alice.refused(&[&["land"], flags].concat(), "not_allowed_inside");
    }
    assert_eq!(env.git(&["rev-parse", "main"]), tip);
    let landed = alice.ok(&["land", "--strategy", "squash"]);
    assert_eq!(landed["landings"][0]["outcome"], "landed", "{landed:#}");
    assert_eq!(landed["landings"][0]["strategy"], "squash", "{landed:#}");
    alice.exit(0);
    assert_eq!(ended(child).code, 0);
}
