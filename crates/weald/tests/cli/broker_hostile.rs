//! A hostile client in a tree: it knows its own secret and sends what it likes.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::broker::{field, weald};

/// A client without manners. `connect` works at every level.
const CLIENT: &str = r#"
import json, os, socket, sys, time
secret = os.environ['WEALD_BROKER_SECRET']
def connect():
    while os.environ['WEALD_SANDBOX'] == 'landlock':
        try: return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0x7765616c)
        except BlockingIOError: time.sleep(0.02)
    s = socket.socket(socket.AF_UNIX)
    here, (folder, name) = os.getcwd(), os.path.split(os.environ['WEALD_BROKER'])
    os.chdir(folder)
    s.connect(name)
    os.chdir(here)
    return s
def line(s):
    s.settimeout(30)
    text = b''
    while not text.endswith(b'\n'):
        try: more = s.recv(65536)
        except ConnectionError: more = b''
        if not more: break
        text += more
    return json.loads(text) if text else None
def raw(data, s=None):
    s = s or connect()
    try: s.sendall(data)
    except OSError: pass
    return line(s)
def ask(op, s=None, **words):
    given = words.pop('secret_', secret)
    return raw(json.dumps({'secret': given, 'ask': {'op': op, **words}}).encode() + b'\n', s)
def code(answer):
    return answer and (answer['answer'].get('error') or {}).get('code', 'ok')
"#;

/// Starts a script with the client in a tree.
fn start(env: &TestEnv, tree: &str, level: &str, script: &str) -> Child {
    let text = format!("{CLIENT}\n{script}");
    // An agent by its name, so that it has a session.
    let agent = env.agent_that_is("claude", "/usr/bin/python3");
    let mut command = env.weald_command(&["run", tree, "--sandbox", level, "--"]);
    command.arg(agent).arg("-c").arg(text);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs it to its end; its output is one JSON value.
#[track_caller]
fn told(env: &TestEnv, level: &str, script: &str) -> Value {
    let answer = Answer::of(start(env, "fix", level, script).wait_with_output().unwrap());
    assert_eq!(answer.code, 0, "{answer:#?}");
    serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{answer:#?}"))
}

#[test]
fn x12_a_hostile_client_gets_errors_and_hurts_nothing() {
    let script = r#"
good = lambda: code(ask('overview'))
seen = {}
seen['no json'] = code(raw(b'hello\n'))
seen['empty'] = code(raw(b'\n'))
seen['nul'] = code(raw(b'\0\0\0\n'))
seen['no utf-8'] = code(raw(b'{"secret":"\xff\xfe"}\n'))
seen['a list'] = code(raw(b'[]\n'))
seen['deep'] = code(raw(b'[' * 100000 + b'\n'))
seen['deep in ask'] = code(raw(b'{"secret":"x","ask":' + b'{"a":' * 5000 + b'1' + b'}' * 5001 + b'\n'))
seen['wrong secret'] = code(ask('overview', secret_='0' * 64))
seen['no secret'] = code(raw(b'{"ask":{"op":"overview"}}\n'))
seen['short secret'] = code(ask('overview', secret_=secret[:-1]))
seen['2 MiB'] = code(raw(b'x' * (2 << 20) + b'\n'))
seen['2 MiB without an end'] = code(raw(b'x' * (2 << 20)))
seen['many elements'] = code(raw(b'{"secret":"x","ask":{"op":"task_list","status":[' + b'"",' * 200000 + b'""]}}\n'))
seen['unknown'] = code(ask('rm', tree='fix'))
seen['extra words'] = code(ask('overview', root=True))
seen['nul in a text'] = code(ask('session_note', text='a\0b'))
seen['a long note'] = code(ask('session_note', text='x' * 100000))
seen['an escape as a name'] = code(ask('msg_send', to='\x1b[2Jbob', text='x', kind='message'))
seen['a path as a tree'] = code(ask('status', tree='../../other'))
s = connect()
seen['several on one'] = [code(ask('overview', s)), code(ask('task_show', s, id=2)), code(ask('task_done', s, id=2))]
seen['nothing after a bad one'] = [code(raw(b'bad\n', s)), raw(b'bad\n', s)]
seen['still there'] = good()
print(json.dumps(seen))
"#;
    for level in ["full", "landlock", "off"] {
        let env = field();
        let seen = told(&env, level, script);
        for name in [
            "no json",
            "empty",
            "nul",
            "no utf-8",
            "a list",
            "deep",
            "deep in ask",
            "no secret",
            "unknown",
            "extra words",
            "an escape as a name",
        ] {
            assert_eq!(seen[name], "bad_request", "{level} {name}: {seen}");
        }
        assert_eq!(seen["wrong secret"], "wrong_secret", "{level}: {seen}");
        assert_eq!(seen["short secret"], "wrong_secret");
        assert_eq!(seen["many elements"], "wrong_secret");
        assert_eq!(seen["2 MiB"], "request_too_long");
        assert_eq!(seen["2 MiB without an end"], "request_too_long");
        assert_eq!(seen["a long note"], "text_too_long");
        assert_eq!(seen["nul in a text"], "ok");
        assert_eq!(seen["a path as a tree"], "not_allowed_inside");
        assert_eq!(
            seen["several on one"],
            json!(["ok", "ok", "not_allowed_inside"])
        );
        assert_eq!(
            seen["nothing after a bad one"],
            json!(["bad_request", null])
        );
        assert_eq!(seen["still there"], "ok");
        assert_eq!(
            env.ok(&["task", "show", "2"])["task"]["status"],
            "in_progress"
        );
    }
}

#[test]
fn x12_slow_and_silent_clients_hold_nobody_up() {
    let script = r#"
slow = [connect() for _ in range(4)]
for s in slow: s.sendall(b'{')
silent = [connect() for _ in range(3)]
began = time.time()
first = code(ask('overview'))
took = time.time() - began
# Drips: a byte a second is left after ten seconds, whatever comes.
dripping, dropped = time.time(), None
while time.time() - dripping < 25 and dropped is None:
    try:
        slow[0].sendall(b' ')
        slow[0].settimeout(1)
        if slow[0].recv(1) == b'': dropped = time.time() - dripping
    except TimeoutError: pass
    except OSError: dropped = time.time() - dripping
many = []
for _ in range(200):
    try: many.append(connect())
    except OSError: break
# Some of them may get the places of silent ones that are dropped just then.
full = next(filter(None, (code(line(s)) for s in many[10:40])), None)
for s in many + slow + silent: s.close()
last = None
for _ in range(20):
    last = code(ask('overview'))
    if last == 'ok': break
    time.sleep(0.5)
print(json.dumps({'first': first, 'took': took, 'dropped': dropped, 'full': full, 'last': last}))
"#;
    let env = field();
    let seen = told(&env, "full", script);
    assert_eq!(seen["first"], "ok", "{seen}");
    assert!(seen["took"].as_f64().unwrap() < 5.0, "{seen}");
    let dropped = seen["dropped"].as_f64().unwrap_or_else(|| panic!("{seen}"));
    assert!((5.0..20.0).contains(&dropped), "{seen}");
    assert_eq!(seen["full"], "broker_busy", "{seen}");
    assert_eq!(seen["last"], "ok", "{seen}");
}

/// Processor time of a process and those it waited for, in seconds.
fn processor_time(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11..13]
        .iter()
        .map(|ticks| ticks.parse::<u64>().unwrap())
        .sum();
    ticks as f64 / 100.0
}

#[test]
fn x12_a_flood_holds_nobody_up() {
    let script = r#"
import threading
print('on', flush=True)
end, counts = time.time() + 8, {'ok': 0}
def flood(op, words):
    while time.time() < end:
        try:
            s = connect()
            while time.time() < end:
                got = code(ask(op, s, **words))
                if got is None: break
                counts[got] = counts.get(got, 0) + 1
        except OSError: pass
kinds = [('msg_send', {'to': 'bob', 'text': 'x' * 100000, 'kind': 'message'}), ('task_list', {}), ('events', {'limit': 200}), ('status', {})]
threads = [threading.Thread(target=flood, args=kind) for kind in kinds * 3]
[t.start() for t in threads]; [t.join() for t in threads]
print(json.dumps(counts))
"#;
    let env = field();
    let journal = env.private().join("events.jsonl");
    let size = || fs::metadata(&journal).unwrap().len();
    let before = size();
    let mut child = start(&env, "fix", "full", script);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    let (began, used) = (Instant::now(), processor_time(child.id()));
    let mut slowest = Duration::ZERO;
    while began.elapsed() < Duration::from_secs(3) {
        let asked = Instant::now();
        env.ok(&["task", "list"]);
        let mut other = start(&env, "other", "full", "print(code(ask('overview')))");
        let mut text = String::new();
        other
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        other.wait().unwrap();
        assert_eq!(text, "ok\n", "the other run's broker answers");
        slowest = slowest.max(asked.elapsed());
    }
    let (took, used) = (
        began.elapsed().as_secs_f64(),
        processor_time(child.id()) - used,
    );
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success(), "{rest}");
    let grown = size() - before;
    assert!(slowest < Duration::from_secs(8), "a call took {slowest:?}");
    // Two seconds at once are its share, and a quarter of the rest; without a bound it would be all of it.
    assert!(used < took * 0.75, "{used} of {took} seconds: {rest}");
    assert!(grown < 3 << 20, "the journal grew by {grown} bytes: {rest}");
}

#[test]
fn x12_another_runs_broker_is_not_reached() {
    let env = field();
    let script = "print(os.environ['WEALD_BROKER'], secret, flush=True); sys.stdin.read()";
    let text = format!("{CLIENT}\n{script}");
    let mut command = env.weald_command(&["run", "other", "--", "python3", "-c", &text]);
    let mut child = command
        .env("WEALD_SESSION", "bob")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let (path, secret) = line.trim().split_once(' ').unwrap();
    let tried = format!(
        r#"
theirs, known = {path:?}, {secret:?}
seen = {{}}
def attempt(name, what):
    try: seen[name] = str(what())
    except OSError as error: seen[name] = type(error).__name__
folder = os.path.dirname(theirs)
attempt('look', lambda: os.stat(theirs))
attempt('list', lambda: os.listdir(os.path.dirname(folder)))
def reach():
    s = socket.socket(socket.AF_UNIX); s.connect(theirs); return 'reached'
attempt('connect', reach)
def chdir():
    os.chdir(folder); s = socket.socket(socket.AF_UNIX); s.connect('broker'); return 'reached'
attempt('from its folder', chdir)
seen['secret'] = code(ask('overview', secret_=known))
def shows(pid):
    try: return bool(open(f'/proc/{{pid}}/environ', 'rb').read())
    except OSError: return False
seen['variables'] = [pid for pid in os.listdir('/proc') if pid.isdigit() and pid != str(os.getpid()) and shows(pid)]
print(json.dumps(seen))
"#
    );
    for level in ["full", "landlock"] {
        let seen = told(&env, level, &tried);
        assert!(
            seen["connect"].as_str().unwrap().ends_with("Error"),
            "{level}: {seen}"
        );
        assert!(
            seen["from its folder"].as_str().unwrap().ends_with("Error"),
            "{level}: {seen}"
        );
        assert_eq!(seen["secret"], "wrong_secret", "{level}: {seen}");
        if level == "full" {
            assert_eq!(seen["look"], "FileNotFoundError", "{seen}");
            assert_eq!(seen["list"], "PermissionError", "{seen}");
            assert_eq!(seen["variables"], json!([]), "{seen}");
        }
    }
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn x12_the_end_of_a_run_is_not_delayed_by_who_holds_its_broker() {
    let env = field();
    for level in ["full", "landlock", "off"] {
        let script = format!(
            r#"
held = [connect() for _ in range(5)]
held[0].sendall(b'{{')
if os.fork() == 0:
    os.setsid()
    for n in (0, 1, 2): os.close(n)
    time.sleep(60)
    os._exit(0)
print('1')
# {level}
"#
        );
        let began = Instant::now();
        assert_eq!(told(&env, level, &script), json!(1));
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{level}: {:?}",
            began.elapsed()
        );
    }
    let gone = env
        .command(weald(&env))
        .args(["task", "show", "--json"])
        .output()
        .unwrap();
    assert_eq!(
        Answer::of(gone).error_code(),
        "usage",
        "outside, without a task"
    );
}
