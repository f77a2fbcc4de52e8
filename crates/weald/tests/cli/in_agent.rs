//! An agent that does what a test says, one command after the other, where weald put it.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

/// Takes requests out of a folder that git does not look into, and leaves the answers there.
const AGENT: &str = r#"
import json, os, subprocess, sys, time
folder = '.git/exchange'
os.makedirs(folder, exist_ok=True)
def run(argv, stdin=''):
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, errors='replace')
    return {'code': done.returncode, 'stdout': done.stdout, 'stderr': done.stderr}
def mcp(tool, arguments):
    server = subprocess.Popen(['weald', 'mcp'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    def say(message):
        server.stdin.write(json.dumps({'jsonrpc': '2.0', **message}) + '\n')
        server.stdin.flush()
    def answer(wanted):
        for line in server.stdout:
            if json.loads(line).get('id') == wanted: return json.loads(line)
    client = {'protocolVersion': '2025-06-18', 'capabilities': {}, 'clientInfo': {'name': 'test', 'version': '1'}}
    say({'id': 1, 'method': 'initialize', 'params': client})
    answer(1)
    say({'method': 'notifications/initialized'})
    say({'id': 2, 'method': 'tools/call', 'params': {'name': tool, 'arguments': arguments}})
    told = answer(2)
    server.stdin.close()
    server.wait()
    return told
number = 1
open(f'{folder}/ready', 'w').close()
last = time.time()
while time.time() - last < 120:
    asked = f'{folder}/{number}.ask'
    if not os.path.exists(asked):
        time.sleep(0.01)
        continue
    last = time.time()
    asked = json.load(open(asked))
    if 'exit' in asked: sys.exit(asked['exit'])
    told = mcp(*asked['mcp']) if 'mcp' in asked else run(asked['argv'], asked.get('stdin', ''))
    with open(f'{folder}/{number}.tmp', 'w') as file: json.dump(told, file)
    os.rename(f'{folder}/{number}.tmp', f'{folder}/{number}.told')
    number += 1
sys.exit(9)
"#;

const PATIENCE: Duration = Duration::from_secs(90);

/// Starts a command of weald's that runs the agent, as alice: `words`, then `--`, then the agent.
pub fn begin(env: &TestEnv, words: &[&str]) -> Child {
    let mut command = env.weald_command(words);
    spawn(command.args(["--", "python3", "-c", AGENT]))
}

/// The same with python under another name.
pub fn begin_by(env: &TestEnv, words: &[&str], program: &str) -> Child {
    let mut command = env.weald_command(words);
    spawn(command.args(["--", program, "-c", AGENT]))
}

/// The same with a command that a test prepared.
pub fn begin_with(command: &mut Command) -> Child {
    spawn(command.args(["--", "python3", "-c", AGENT]))
}

fn spawn(command: &mut Command) -> Child {
    command.env("WEALD_SESSION", "alice");
    let streams = command.stdin(Stdio::null()).stdout(Stdio::piped());
    streams.stderr(Stdio::piped()).spawn().unwrap()
}

/// How a command ended.
pub fn ended(child: Child) -> Answer {
    Answer::of(child.wait_with_output().unwrap())
}

/// The agent in one tree.
pub struct InAgent {
    folder: PathBuf,
    next: u64,
}

impl InAgent {
    /// The agent in this tree, as soon as it is there.
    #[track_caller]
    pub fn at(env: &TestEnv, tree: &str) -> Self {
        let folder = env
            .root()
            .join("app.weald")
            .join(tree)
            .join(".git/exchange");
        let agent = Self { folder, next: 0 };
        agent.wait_for("ready");
        agent
    }

    /// Runs a command of weald's.
    #[track_caller]
    pub fn weald(&mut self, args: &[&str]) -> Answer {
        self.run(&[&["weald"], args].concat(), "")
    }

    /// The same, with `--json` and a good end.
    #[track_caller]
    pub fn ok(&mut self, args: &[&str]) -> Value {
        let answer = self.weald(&[args, &["--json"]].concat());
        assert_eq!(answer.code, 0, "{args:?}: {answer:#?}");
        answer.json()
    }

    /// The same with this refusal.
    #[track_caller]
    pub fn refused(&mut self, args: &[&str], code: &str) -> Value {
        let answer = self.weald(&[args, &["--json"]].concat());
        assert_ne!(answer.code, 0, "{args:?}: {answer:#?}");
        assert_eq!(answer.error_code(), code, "{args:?}: {answer:#?}");
        let error = answer.json()["error"].clone();
        assert!(!error["hint"].is_null(), "{answer:#?}");
        error
    }

    /// Runs a command.
    #[track_caller]
    pub fn run(&mut self, argv: &[&str], stdin: &str) -> Answer {
        let told = self.told(&json!({"argv": argv, "stdin": stdin}));
        let text = |name: &str| told[name].as_str().unwrap().to_owned();
        Answer {
            code: told["code"].as_i64().unwrap() as i32,
            stdout: text("stdout"),
            stderr: text("stderr"),
        }
    }

    /// Runs a script that has to succeed.
    #[track_caller]
    pub fn sh(&mut self, script: &str) {
        let answer = self.run(&["sh", "-c", script], "");
        assert_eq!(answer.code, 0, "{script}: {answer:#?}");
    }

    /// Calls a tool of a server of its own; answers what the tool said, or the error in it.
    #[track_caller]
    pub fn mcp(&mut self, tool: &str, arguments: Value) -> Result<Value, Value> {
        let told = self.told(&json!({"mcp": [tool, arguments]}));
        let result = &told["result"];
        match result["isError"] == false {
            true => Ok(result["structuredContent"].clone()),
            false => {
                let text = result["content"][0]["text"].as_str();
                let text = text.unwrap_or_else(|| panic!("{tool}: {told:#}"));
                Err(serde_json::from_str::<Value>(text).unwrap()["error"].clone())
            }
        }
    }

    /// Ends with this code.
    pub fn exit(mut self, code: i32) {
        self.ask(&json!({"exit": code}));
    }

    fn ask(&mut self, asked: &Value) -> u64 {
        self.next += 1;
        let place = |kind: &str| self.folder.join(format!("{}.{kind}", self.next));
        fs::write(place("new"), asked.to_string()).unwrap();
        fs::rename(place("new"), place("ask")).unwrap();
        self.next
    }

    #[track_caller]
    fn told(&mut self, asked: &Value) -> Value {
        let number = self.ask(asked);
        let path = self.wait_for(&format!("{number}.told"));
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    #[track_caller]
    fn wait_for(&self, name: &str) -> PathBuf {
        let (path, deadline) = (self.folder.join(name), Instant::now() + PATIENCE);
        while !path.exists() {
            assert!(Instant::now() < deadline, "{} never came", path.display());
            std::thread::sleep(Duration::from_millis(10));
        }
        path
    }
}
