//! Agents on systems without user namespaces, where the user chose level landlock.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use weald_testkit::{Answer, Scenario, ScriptedModel, TestEnv, Turn};

/// Starts its arguments where a filter denies user namespaces, as in a container.
const DENIED: &str = r#"
import ctypes, os, struct, sys
unshare, clone = {'x86_64': (272, 56), 'aarch64': (97, 220)}[os.uname().machine]
EPERM, ENOSYS, ALLOW = 0x50001, 0x50026, 0x7fff0000
rules = [
    (0x20, 0, 0, 0), (0x15, 0, 1, 435), (0x06, 0, 0, ENOSYS),
    (0x15, 1, 0, unshare), (0x15, 0, 3, clone),
    (0x20, 0, 0, 16), (0x45, 0, 1, 0x10000000), (0x06, 0, 0, EPERM), (0x06, 0, 0, ALLOW),
]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *rule) for rule in rules))
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
program = Program(len(rules), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
# With a listener, as some containers have one.
flags = 8 if os.environ.get('LISTENS') else 0
seccomp = {'x86_64': 317, 'aarch64': 277}[os.uname().machine]
assert libc.prctl(38, 1, 0, 0, 0) == 0
listener = libc.syscall(seccomp, 1, flags, ctypes.byref(program))
assert listener >= 0
if flags: os.set_inheritable(listener, True)
os.execvp(sys.argv[1], sys.argv[1:])
"#;

/// The same command where user namespaces are denied.
fn denied(command: &Command) -> Command {
    within(&["python3", "-c", DENIED], command)
}

/// The same command where the system allows no further user namespace.
fn forbidden(command: &Command) -> Command {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    within(&["unshare", "-Ur", "sh", "-c", script, "sh"], command)
}

/// A command as the last arguments of another one.
fn within(words: &[&str], command: &Command) -> Command {
    let mut outer = Command::new(words[0]);
    outer.args(&words[1..]).arg(command.get_program());
    outer.args(command.get_args()).env_clear();
    let set = command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    outer.envs(set).stdin(Stdio::null());
    match command.get_current_dir() {
        Some(folder) => outer.current_dir(folder),
        None => &mut outer,
    };
    outer
}

/// What every kind of worktree, and a person, does there. `$W` is weald.
const STORY: &str = r##"
set -e
git init -q -b main app; cd app
git config user.name T; git config user.email t@example.com
echo base > base; printf '[setup]\ncommands = ["touch .git/set-up; touch %s/app/set-up || true"]\n' "$HOME" > weald.toml
git add -A; git commit -qm one
expect() { wanted=$1; shift; code=0; "$@" > $HOME/out 2>&1 || code=$?
    [ "$code" = "$wanted" ] || { echo "$*: $code"; cat $HOME/out; exit 1; }; }
says() { grep -q -e "$1" $HOME/out || { echo "no '$1' in:"; cat $HOME/out; exit 1; }; }
silent() { ! grep -q -e "$1" $HOME/out || { echo "'$1' in:"; cat $HOME/out; exit 1; }; }
W=$HOME/weald
$W trust > $HOME/out
$W config set gate.command 'test -f base && ! touch ../../app/gate' > $HOME/out

# Level full is configured, and can't be had: nothing is started, claimed or made.
expect 6 $W work "do it" -- touch started; says 'filter of system calls\|sysctl -w user.max_user_namespaces='; says 'set sandbox.level=landlock'; says 'but not modes'
expect 0 $W task list; says 'no tasks'
expect 1 $W doctor; says 'config set sandbox.level landlock'
$W new full > $HOME/out 2>&1 || true
expect 126 $W run full -- touch started; says '--sandbox landlock'
[ ! -e set-up ] && [ ! -e started ] && [ ! -e ../app.weald/full/.git/set-up ] && [ ! -e ../app.weald/full/started ]
echo x > ../app.weald/full/x; git -C ../app.weald/full add x; git -C ../app.weald/full commit -qm x
expect 6 $W land full
[ "$(git rev-list --count main)" = 1 ]
$W rm full --discard > $HOME/out

$W config set sandbox.level landlock > $HOME/out
expect 0 $W doctor; says 'as configured'
expect 0 $W new fix; [ -e ../app.weald/fix/.git/set-up ]; [ ! -e set-up ]

# What is weaker is said once; `explain` says it always.
expect 0 $W run fix -- true; says 'level landlock does not cover'
expect 0 $W run fix -- true; silent 'does not cover'
expect 0 $W sandbox explain fix; says 'does not cover'
expect 0 $W sandbox explain fix; says 'does not cover'

# Commands inside reach the broker from any process, though every descriptor is closed; nothing else is a unix socket.
expect 0 $W run fix -- python3 -c '
import os, socket, subprocess
done = subprocess.run(["weald", "status"], close_fds=True, capture_output=True, text=True)
assert done.returncode == 0 and "wt/fix" in done.stdout, done
for protocol in [0, 1, 0x7765616d]:
    try: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, protocol)
    except PermissionError: continue
    raise SystemExit(f"a socket of protocol {protocol}")
# A process that nobody may look into, as Codex makes itself.
import ctypes; assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0
given = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0x7765616c)
assert given.getpeername().endswith("broker")
for call in [given.connect, given.bind]:
    try: call("\0elsewhere")
    except OSError: continue
    raise SystemExit(f"{call} works on the socket")
'
expect 0 $W --set sandbox.network=off run fix -- sh -c 'weald status'
# A sandbox of its own in the run is another run, or none.
expect 1 $W run fix -- sh -c 'weald sandbox exec --level landlock --write . -- weald status'

# An agent reports, lands, and is held.
expect 0 $W work "do it" -- sh -c 'echo hi > hi; touch ../../app/stolen ../fix/stolen; git add hi; git commit -qm hi; weald task done --report did && weald land'
[ "$(git show main:hi)" = hi ]; [ ! -e stolen ]; [ ! -e ../app.weald/fix/stolen ]; [ ! -e gate ]
mkdir -p .git/hooks; printf '#!/bin/sh\ntouch ran ../../app/hooked; git add ran\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
$W new hooks > $HOME/out 2>&1; echo h > ../app.weald/hooks/h
expect 0 $W land hooks --commit=all -m hooks; rm .git/hooks/pre-commit
git show main:ran main:h > $HOME/out; [ ! -e hooked ]
expect 0 $W snapshot create fix; expect 0 $W sync fix; expect 0 $W status fix
expect 0 $W task add Phased; expect 0 $W phase 2 -- sh -c 'echo p > p-$WEALD_ROLE'
expect 0 $W task add Queued; expect 0 $W worker --idle-timeout 100ms -- sh -c 'echo w > worked'
[ "$(git show main:worked)" = w ]

# A linked worktree would let the run write weald's own records.
expect 0 $W new linked --kind linked
expect 125 $W run linked -- touch started; says "can't protect"; [ ! -e ../app.weald/linked/started ]
expect 1 $W work "in main" --no-worktree -- touch started; says "can't protect"; [ ! -e started ]
expect 0 $W task list; ! grep -q 'in main' $HOME/out
expect 0 $W status linked
"##;

/// A folder with a copy of weald for this user.
fn home(name: &str, user: Option<u32>) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(&home).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_weald"), home.join("weald")).unwrap();
    if user.is_some() {
        std::os::unix::fs::chown(&home, user, user).unwrap();
    }
    home
}

#[test]
fn a17_without_user_namespaces_everything_works_at_the_level_that_was_chosen_and_at_no_weaker_one()
{
    let is_root = rustix::process::geteuid().is_root();
    let users = match is_root {
        true => vec![None, Some(1000)],
        false => vec![None],
    };
    for user in users {
        let home = home(&format!("a17-{}", user.unwrap_or(0)), user);
        let mut command = Command::new("sh");
        command.args(["-c", STORY]).current_dir(&home);
        command.env("HOME", &home).env("WEALD_POOL_SIZE", "0");
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        let mut command = match user {
            // By the system's limit, in a namespace of its own.
            None if is_root => forbidden(&command),
            _ => denied(&command),
        };
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{user:?}: {told}");
        let _ = fs::remove_dir_all(home);
    }
}

#[test]
fn a17_in_a_container_with_a_listener_of_its_own_a_run_starts_and_says_why_weald_is_out_of_reach() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_weald"));
    env.ok(&["config", "set", "sandbox.level", "landlock"]);
    env.ok(&["new", "fix"]);
    let script = "touch inside; touch ../../app/outside || echo held; weald status";
    let mut command = denied(&env.weald_command(&["run", "fix", "--", "sh", "-c", script]));
    let answer = Answer::of(command.env("LISTENS", "1").output().unwrap());
    assert_eq!(answer.code, 5, "{answer:#?}");
    assert!(answer.stdout.contains("held"), "{answer:#?}");
    let why = "a container or a sandbox around this run keeps it from weald";
    assert!(answer.stderr.contains(why), "{answer:#?}");
    assert!(!env.repo().join("outside").exists());
}

#[test]
fn a17_real_agents_without_user_namespaces_use_their_tools_and_land() {
    let script = |name: &str, line: &str| {
        format!(
            "sed -i '{line}s/.*/{name} was here/' notes.txt; echo mine > \"$WEALD_MAIN/stolen\"; echo \"code $?\"; \
             weald status; git add -A && git commit -qm 'by {name}'"
        )
    };
    let scenario = |name: &str, line: &str| {
        let turns = [
            Turn::Tool {
                name: "mcp__weald__message_send".to_owned(),
                input: json!({"to": "lead", "text": format!("{name} is here")}),
            },
            Turn::shell(script(name, line)),
            Turn::say("done"),
        ];
        Scenario::new(&format!("tools of {name}"), turns)
    };
    let model = ScriptedModel::start([scenario("claude", "3"), scenario("codex", "33")]);
    let Some(env) = TestEnv::with_agents(env!("CARGO_BIN_EXE_weald"), &model) else {
        return;
    };
    env.ok(&["config", "set", "sandbox.level", "landlock"]);
    env.ok(&[
        "config",
        "set",
        "gate.command",
        "grep -q 'was here' notes.txt",
    ]);
    for (name, line) in [("claude", 3), ("codex", 33)] {
        let about = format!("tools of {name}");
        let args = ["work", &about, "--driver", name, "--json"];
        let command = env.weald_with_agents(&model, &args);
        let answer = Answer::of(denied(&command).output().unwrap());
        let results = model.results(&about).join("\n");
        assert_eq!(answer.code, 0, "{name}: {answer:#?}\n{results}");
        assert!(results.contains("code 1"), "main was written: {results}");
        assert!(results.contains("active "), "weald status: {results}");
        let inbox = env.ok(&["msg", "inbox", "--consume", "--session", "lead"]);
        assert_eq!(inbox["messages"][0]["text"], format!("{name} is here"));
        let landed = env.git(&["show", "main:notes.txt"]);
        let changed = landed.lines().nth(line - 1);
        assert_eq!(changed, Some(format!("{name} was here").as_str()));
        assert!(!env.repo().join("stolen").exists());
    }
}
