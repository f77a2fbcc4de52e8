//! Claude Code and Codex as they are, on a model that says what a test wants.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::{Answer, Gate, Request, Scenario, ScriptedModel, TestEnv, Turn};

use crate::sandbox::say;
use crate::trees_remove::git_in;
use crate::trees_trash::manifest;

/// How long an agent may take to write something down.
const PATIENCE: Duration = Duration::from_secs(60);

/// What both agents are told by, and which of them.
const AGENTS: [&str; 2] = ["claude", "codex"];

/// A repository with a file of many lines, and both agents on the search path; `None` where they can't be had.
pub fn with_agents(model: &ScriptedModel) -> Option<TestEnv> {
    TestEnv::with_agents(env!("CARGO_BIN_EXE_weald"), model)
}

/// weald with the agents on its search path and the model as theirs.
pub fn weald(env: &TestEnv, model: &ScriptedModel, args: &[&str]) -> Command {
    env.weald_with_agents(model, args)
}

pub fn add_task(env: &TestEnv, subject: &str) -> String {
    let task = &env.ok(&["task", "add", subject])["task"]["id"];
    task.as_str()
        .map_or_else(|| task.to_string(), str::to_owned)
}

/// Everything that no agent may write: the home, and a tree of somebody else's. Without what weald itself keeps there, and
/// the programs.
fn outside(env: &TestEnv, sibling: &Path) -> BTreeMap<PathBuf, (u32, String)> {
    let names = fs::read_dir(env.home()).unwrap();
    let names = names.map(|entry| entry.unwrap().path());
    let roots = names.filter(|path| !path.ends_with("bin"));
    let mut all = BTreeMap::new();
    for root in roots.chain([sibling.to_owned()]) {
        let found = manifest(&root).into_iter();
        all.extend(found.map(|(path, what)| (root.join(path), what)));
    }
    let own = [".cache/weald", ".local/state/weald"].map(|name| env.home().join(name));
    all.retain(|path, _| own.iter().all(|own| !path.starts_with(own)));
    all
}

/// Paths that are not the same in both.
fn differing<'a>(
    before: &'a BTreeMap<PathBuf, (u32, String)>,
    after: &'a BTreeMap<PathBuf, (u32, String)>,
) -> Vec<&'a PathBuf> {
    let all = before.keys().chain(after.keys());
    all.filter(|path| before.get(*path) != after.get(*path))
        .collect()
}

/// The agent's record as `weald work --json` answers it.
fn agent(answer: &Answer) -> Value {
    answer.json()["agent"].clone()
}

#[test]
fn s5_real_agents_at_once_stay_in_their_trees_and_land() {
    let gates = [Gate::new(), Gate::new()];
    let script = |name: &str, line: &str| format!("sed -i '{line}s/.*/{name} was here/' notes.txt");
    // Where main is becomes known with the environment; the shell asks for it.
    let escape = "echo mine > \"$WEALD_MAIN/stolen.txt\"; echo \"code $?\"";
    let commit = "git add -A && git commit -q -m 'from an agent'";
    let scenario = |name: &str, line: &str, gate: &Gate| {
        let turns = [
            Turn::shell(script(name, line)),
            Turn::shell(escape).behind(gate),
            Turn::shell(commit),
            Turn::say(format!("{name} is done")),
        ];
        Scenario::new(&format!("work of {name}"), turns)
    };
    let model = ScriptedModel::start([
        scenario("claude", "1", &gates[0]),
        scenario("codex", "$", &gates[1]),
    ]);
    let Some(env) = with_agents(&model) else {
        return;
    };
    env.ok(&["new", "sibling"]);
    let sibling = env.root().join("app.weald/sibling");
    let before = outside(&env, &sibling);
    let begun = Instant::now();
    let started = AGENTS.map(|name| {
        let task = add_task(&env, &format!("work of {name}"));
        let args = ["work", &task, "--driver", name, "--json"];
        weald(&env, &model, &args).spawn().unwrap()
    });
    // Both are at work at the same time.
    for gate in &gates {
        gate.wait_for_arrival();
    }
    for gate in &gates {
        gate.open();
    }
    let answers = started.map(|child| Answer::of(child.wait_with_output().unwrap()));
    for (name, answer) in AGENTS.iter().zip(&answers) {
        assert_eq!(answer.code, 0, "{name}: {answer:#?}");
        assert_eq!(
            answer.json()["landing"]["status"],
            "landed",
            "{name}: {answer:#?}"
        );
        // The agent saw why its write failed.
        let results = model.results(&format!("work of {name}"));
        assert_eq!(results.len(), 3, "{results:#?}");
        // Shells differ in where they put the file and how they begin.
        let failed = results[1].to_lowercase();
        assert!(failed.contains("read-only file system"), "{results:#?}");
        assert!(failed.contains("stolen.txt"), "{results:#?}");
        assert!(results[1].contains("code 1"), "{results:#?}");
        assert!(agent(answer)["conversation"].is_string(), "{answer:#?}");
        assert!(
            agent(answer)["usage"]["output_tokens"].as_u64() > Some(0),
            "{answer:#?}"
        );
    }
    let notes = fs::read_to_string(env.repo().join("notes.txt")).unwrap();
    let lines: Vec<_> = notes.lines().collect();
    assert_eq!((lines[0], lines[39]), ("claude was here", "codex was here"));
    assert_eq!(git_in(&env, &env.repo(), &["status", "--porcelain"]), "");
    assert!(!env.repo().join("stolen.txt").exists());
    let after = outside(&env, &sibling);
    assert_eq!(differing(&before, &after), Vec::<&PathBuf>::new());
    say(&format!("both took {:.1} s", begun.elapsed().as_secs_f64()));
}

/// Whether a file below a folder holds a text. Files may come and go.
fn holds(folder: &Path, text: &str) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .any(|path| match path.is_dir() {
            true => holds(&path, text),
            false => fs::read_to_string(&path).is_ok_and(|content| content.contains(text)),
        })
}

/// Waits until an agent has written this down in its private state, which it does a moment later than it goes on.
fn wait_for_note(env: &TestEnv, text: &str) {
    let homes = env.own_folder().join("homes");
    let begun = Instant::now();
    while !holds(&homes, text) {
        assert!(begun.elapsed() < PATIENCE, "no {text} in {homes:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Ends the agent's own processes, as an out-of-memory killer would. Its supervisor is left alone.
fn kill_agent(env: &TestEnv, program: &str) {
    let root = env.root().to_str().unwrap().as_bytes();
    let mut killed = 0;
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let (line, variables) = (read("cmdline"), read("environ"));
        let is_ours = variables.windows(root.len()).any(|part| part == root);
        let first = line.split(|byte| *byte == 0).next().unwrap_or_default();
        if is_ours && first.ends_with(program.as_bytes()) {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            killed += usize::from(
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok(),
            );
        }
    }
    assert!(killed > 0, "no {program} runs");
}

#[test]
fn p3_a_real_agent_killed_half_way_goes_on_in_its_own_conversation() {
    for name in AGENTS {
        let gate = Gate::new();
        let about = format!("long work of {name}");
        let turns = [
            Turn::shell("echo half > half.txt; printf 'first-%s-done' half"),
            Turn::shell("cat half.txt; echo whole > whole.txt").behind(&gate),
            Turn::say("now it is done"),
        ];
        let model = ScriptedModel::start([Scenario::new(&about, turns)]);
        let Some(env) = with_agents(&model) else {
            return;
        };
        let task = add_task(&env, &about);
        let args = ["work", &task, "--driver", name, "--json"];
        let working = weald(&env, &model, &args).spawn().unwrap();
        gate.wait_for_arrival();
        wait_for_note(&env, "first-half-done");
        kill_agent(&env, name);
        let killed = Answer::of(working.wait_with_output().unwrap());
        assert_eq!(killed.code, 1, "{name}: {killed:#?}");
        let before = agent(&killed);
        assert_eq!(before["end"]["outcome"], "crashed", "{name}: {killed:#?}");
        let tree = PathBuf::from(killed.json()["tree"]["path"].as_str().unwrap());
        assert_eq!(fs::read_to_string(tree.join("half.txt")).unwrap(), "half\n");
        let asked = model.requests(&about).len();
        gate.open();

        let resume = ["resume", &task, "--json"];
        let resumed = Answer::of(weald(&env, &model, &resume).output().unwrap());
        assert_eq!(resumed.code, 0, "{name}: {resumed:#?}");
        let after = agent(&resumed);
        assert_eq!(after["resumes"], before["id"], "{resumed:#?}");
        assert_eq!(
            after["conversation"], before["conversation"],
            "{resumed:#?}"
        );
        assert_eq!(after["tree"], before["tree"], "{resumed:#?}");
        // The model was told what went before, by the agent itself.
        let first = &model.requests(&about)[asked];
        assert!(first.results()[0].contains("first-half-done"), "{first:#?}");
        let whole = fs::read_to_string(env.repo().join("whole.txt")).unwrap();
        assert_eq!(whole, "whole\n");
        assert!(env.repo().join("half.txt").exists());
    }
}

#[test]
fn s12_a_message_reaches_a_real_claude_while_it_works() {
    let gate = Gate::new();
    let about = "work with a colleague";
    let turns = [
        Turn::shell("echo one > one.txt"),
        Turn::shell("echo two > two.txt").behind(&gate),
        Turn::say("done with both"),
    ];
    let model = ScriptedModel::start([Scenario::new(about, turns)]);
    let Some(env) = with_agents(&model) else {
        return;
    };
    let task = add_task(&env, about);
    let args = ["work", &task, "--driver", "claude", "--name", "builder"];
    let working = weald(&env, &model, &args).spawn().unwrap();
    gate.wait_for_arrival();
    env.ok(&["msg", "send", "builder", "mind the third file"]);
    // Its supervisor takes it out and passes it on.
    let begun = Instant::now();
    let inbox = ["msg", "inbox", "--session", "builder"];
    while env.ok(&inbox)["messages"] != json!([]) {
        assert!(begun.elapsed() < PATIENCE, "nobody takes the message");
        thread::sleep(Duration::from_millis(20));
    }
    gate.open();
    let answer = Answer::of(working.wait_with_output().unwrap());
    assert_eq!(answer.code, 0, "{answer:#?}");
    let requests = model.requests(about);
    // Claude Code brings it with the next result, and says that its user sent it.
    let told = |one: &Request| one.body.to_string().contains("mind the third file");
    assert!(requests.iter().any(told), "{:#?}", requests.last());
    assert!(env.repo().join("two.txt").exists());
}
