//! What people read of agents, and by which name weald knows people.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use weald_terminal::Size;
use weald_testkit::{Answer, Gate, Scenario, ScriptedModel, TestEnv, Turn, Watcher};

use crate::finishing::wait_until;

const WEALD: &str = env!("CARGO_BIN_EXE_weald");

const SIZE: Size = Size {
    columns: 120,
    rows: 40,
};

/// Runs a command in a shell; what it printed on the terminal, and its exit code.
fn typed(person: &mut Watcher, command: &str) -> (String, i32) {
    static TYPED: AtomicU32 = AtomicU32::new(0);
    let mark = format!("ended-{}=", TYPED.fetch_add(1, Ordering::Relaxed));
    let shown = |person: &Watcher| person.terminal.text().join("\n");
    person.types(&format!("clear; {command}; echo {mark}$?\r"));
    person.takes_until(&mark, |person| {
        let text = shown(person);
        text.split_once(&format!("\n{mark}"))
            .is_some_and(|(_, rest)| rest.contains("prompt>"))
    });
    let text = shown(person);
    let (printed, rest) = text.split_once(&format!("\n{mark}")).unwrap();
    let code = rest.lines().next().unwrap().trim().parse().unwrap();
    (printed.trim_end().to_owned(), code)
}

#[test]
fn a15_a_person_at_a_terminal_is_the_git_user_and_needs_no_token() {
    let env = TestEnv::with_files(WEALD);
    env.git(&["config", "user.name", "Ada Lovelace"]);
    for subject in ["first", "second", "third", "fourth"] {
        env.ok(&["task", "add", subject]);
    }
    let (shell, mut ada) = env.shell(None, SIZE);
    let (seen, _) = typed(&mut ada, "weald task claim 1");
    assert!(seen.contains("claimed by ada-lovelace"), "{seen}");
    assert!(seen.ends_with("finish it: weald task done 1"), "{seen}");
    assert!(!seen.contains("WEALD_SESSION"), "no warning: {seen}");
    // Another terminal on another day is the same person; where the answer goes changes nothing.
    let (other, mut again) = env.shell(None, SIZE);
    let name = "grep -o '[a-z]*-*ada-lovelace' | head -1";
    let (seen, _) = typed(&mut again, &format!("weald task claim 2 --json | {name}"));
    assert_eq!(seen.trim(), "ada-lovelace");
    for command in ["renew 1", "done 1", "release 2"] {
        let (seen, code) = typed(&mut again, &format!("weald task {command}"));
        assert_eq!(code, 0, "{command}: {seen}");
    }
    assert_eq!(
        env.ok(&["task", "show", "1"])["task"]["status"],
        "completed"
    );

    // A token that is given decides, and somebody else's claim needs its own.
    let claimed = env.ok(&["task", "claim", "3", "--session", "bob"]);
    typed(&mut ada, "weald task claim 4");
    for command in ["done 3", "done 3 --session bob", "done 4 --token 99"] {
        let (seen, code) = typed(&mut ada, &format!("weald task {command}"));
        assert_eq!(code, 1, "{command}: {seen}");
    }
    let token = claimed["lease"]["token"].to_string();
    env.ok(&["task", "done", "3", "--session", "bob", "--token", &token]);

    // Another git user on the same account is another person, and an agent's name stays the agent's.
    let sender = "weald msg send x hello --json | grep -o '\"from\": *\"[^\"]*'";
    env.git(&["config", "user.name", "Grace Hopper"]);
    let (seen, code) = typed(&mut again, "weald task done 4");
    assert_eq!(code, 1, "{seen}");
    assert!(typed(&mut again, sender).0.ends_with("\"grace-hopper"));
    let mut agent = env.command("sleep").arg("600").spawn().unwrap();
    let pid = agent.id().to_string();
    env.ok(&["session", "register", "bob", "--pid", &pid]);
    env.git(&["config", "user.name", "bob"]);
    assert!(typed(&mut again, sender).0.ends_with("\"person-bob"));
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert!(typed(&mut again, sender).0.ends_with("\"bob"));
    for (shell, mut person) in [(shell, ada), (other, again)] {
        person.types("exit\r");
        shell.ended();
    }
}

#[test]
fn a15_x24_an_agent_on_a_terminal_is_not_the_person() {
    let env = TestEnv::with_files(WEALD);
    env.git(&["config", "user.name", "Ada Lovelace"]);
    env.ok(&["task", "add", "hers"]);
    env.ok(&["new", "fix"]);
    let (shell, mut ada) = env.shell(None, SIZE);
    typed(&mut ada, "weald task claim 1");
    // By a variable, by its name, and by the run that it is in: at no level does it finish what she holds.
    let program = env.home().join("claude");
    symlink("/bin/bash", &program).unwrap();
    let program = program.display();
    let mut tries = vec![
        "CLAUDECODE=1 weald task done 1".to_owned(),
        format!("{program} -c 'weald task done 1; exit $?'"),
    ];
    let inside = "unset $(env | grep -o \"^WEALD_[A-Z_]*\"); weald task done 1; exit $?";
    for level in ["full", "landlock", "off"] {
        tries.push(format!(
            "weald run fix --sandbox {level} -- sh -c '{inside}'"
        ));
    }
    for command in tries {
        let (seen, code) = typed(&mut ada, &command);
        assert_ne!(code, 0, "{command}: {seen}");
        let task = env.ok(&["task", "show", "1"])["task"].clone();
        assert_eq!(task["status"], "in_progress", "{command}: {seen}");
    }
    // A worktree's configuration is an agent's: nobody becomes somebody else by it.
    let path = env.ok(&["show", "fix"])["tree"]["path"].clone();
    let path = path.as_str().unwrap();
    let mut git = env.command("git");
    git.args(["-C", path, "config", "user.name", "Mallory"]);
    assert!(git.status().unwrap().success());
    let (seen, code) = typed(&mut ada, &format!("cd {path} && weald task done 1"));
    assert_eq!(code, 0, "{seen}");
    ada.types("exit\r");
    shell.ended();
}

/// A log without its times and the prompt, whose wording is not its own.
fn without_times(log: &str) -> String {
    let lines = log.lines().skip(2).map(|line| {
        let (time, text) = line.split_at(line.len().min(7));
        let is_time = time
            .trim()
            .split(':')
            .all(|part| part.parse::<u32>().is_ok());
        let mark = if is_time { "   TIME" } else { time };
        format!("{mark}{text}\n")
    });
    lines.collect()
}

#[test]
fn a11_logs_show_calls_with_results_times_messages_and_last_words_once() {
    let gate = Gate::new();
    let script = |name: &str, gate: Option<&Gate>| {
        let first = Turn::shell("echo hi > a.txt; pwd; echo two");
        let turns = [
            match gate {
                Some(gate) => first.behind(gate),
                None => first,
            },
            Turn::shell("seq 20; exit 3"),
            Turn::say("all is well\nat the end"),
        ];
        Scenario::new(&format!("logs of {name}"), turns)
    };
    let model = ScriptedModel::start([script("claude", Some(&gate)), script("codex", None)]);
    let Some(env) = TestEnv::with_agents(WEALD, &model) else {
        return;
    };
    for (id, name, tool) in [("a1", "claude", "Bash"), ("a2", "codex", "Shell")] {
        let about = format!("logs of {name}");
        let args = ["work", &about, "--driver", name, "--no-land"];
        let mut work = env.weald_with_agents(&model, &args);
        let work = work.stdin(Stdio::null()).spawn().unwrap();
        let message = match name {
            "claude" => {
                gate.wait_for_arrival();
                env.ok(&["agent", "steer", id, "use tabs", "--session", "boss"]);
                let is_given = || env.weald(&["agent", "logs", id]).stdout.contains("< boss");
                while !is_given() {
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
                gate.open();
                "   TIME  < boss: use tabs\n"
            }
            _ => "",
        };
        let worked = Answer::of(work.wait_with_output().unwrap());
        assert_eq!(worked.code, 0, "{worked:#?}");
        let log = env.weald(&["agent", "logs", id]).stdout;
        let expected = format!(
            "{message}   TIME  > {tool}: echo hi > a.txt; pwd; echo two
           .
           two
   TIME  > {tool}: seq 20; exit 3
           … 15 lines before
           16
           17
           18
           19
           20
           ✗ exit 3
   TIME  all is well
         at the end
"
        );
        assert!(log.starts_with("   0:00  < prompt: "), "{log}");
        let found = without_times(&log);
        let known = found.replace("   TIME  | Model metadata", "   TIME  |");
        let known: String = known
            .split_inclusive('\n')
            .filter(|line| !line.contains("TIME  |"))
            .collect();
        assert_eq!(known, expected, "\n{log}");
        // `work` printed the same, and the words at the end once.
        for line in ["✗ exit 3", "           two"] {
            assert!(worked.stdout.contains(line), "{worked:#?}");
        }
        assert_eq!(
            worked.stdout.matches("at the end").count(),
            1,
            "{worked:#?}"
        );
        let full = env.weald(&["agent", "logs", id, "--full"]).stdout;
        assert!(full.contains("           1\n           2\n"), "{full}");

        // Programs get absolute times and whole results; the stream stays what it was.
        let json = env.ok(&["agent", "logs", id]);
        let events = json["events"].as_array().unwrap();
        assert!(
            events.iter().all(|event| event["at"].is_string()),
            "{json:#}"
        );
        let kinds: Vec<&str> = events
            .iter()
            .map(|event| event["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds[0], "prompt", "{json:#}");
        let results = events.iter().filter(|event| event["kind"] == "result");
        let results: Vec<&Value> = results.collect();
        assert_eq!(results[1]["code"], 3, "{json:#}");
        assert!(
            results[1]["text"].as_str().unwrap().starts_with("1\n2\n"),
            "{json:#}"
        );
        let raw = env.weald(&["agent", "logs", id, "--raw"]).stdout;
        let kept = env.private().join(format!("agents/{id}/output.log"));
        assert_eq!(raw, fs::read_to_string(kept).unwrap());

        // Everything about it, and never a line of its stream.
        let pulse = env.weald(&["agent", "pulse", id]).stdout;
        let shown = env.weald(&["agent", "show", id]).stdout;
        for text in [&pulse, &shown] {
            assert!(!text.contains("{\""), "{text}");
        }
        for fact in [
            &about,
            "driver       ",
            "conversation ",
            "used         ",
            "✗ exit 3",
            "started  ",
        ] {
            assert!(shown.contains(fact), "{fact}: {shown}");
        }
        let json = env.ok(&["agent", "show", id]);
        assert_eq!(json["agents"][0]["driver"], json!(name));
    }
    assert_eq!(
        env.weald(&["agent"]).stdout,
        env.weald(&["agent", "list"]).stdout
    );

    // On a terminal: in colour, and cut to it.
    let narrow = Size {
        columns: 44,
        rows: 40,
    };
    let (shell, mut person) = env.shell(None, narrow);
    let (seen, _) = typed(&mut person, "weald agent logs a1 --tail 11");
    assert!(seen.contains("> Bash: seq 20; exit 3\n"), "{seen}");
    let (seen, _) = typed(&mut person, "weald agent logs a1 --tail 15");
    assert!(
        seen.contains("> Bash: echo hi > a.txt; pwd; echo…\n"),
        "{seen}"
    );
    let coloured = person.terminal.picture().lines_in_colour();
    let red = coloured
        .iter()
        .any(|line| line.windows(3).any(|part| part == b"31m"));
    assert!(
        red,
        "{}",
        String::from_utf8_lossy(&coloured.concat()).escape_debug()
    );
    assert!(
        !env.weald(&["agent", "logs", "a1"])
            .stdout
            .contains('\u{1b}')
    );
    person.types("exit\r");
    shell.ended();
}

#[test]
fn a11_nothing_says_alive_once_a_supervisor_is_dead() {
    let env = TestEnv::with_files(WEALD);
    let started = env.weald(&["work", "slow work", "--detach", "--", "sleep", "600"]);
    assert_eq!(started.code, 0, "{started:#?}");
    let started = env.ok(&["agent", "pulse", "a1"])["agents"][0].clone();
    let supervisor = started["supervisor"]["pid"].as_u64().unwrap();
    let mut kill = env.command("kill");
    assert!(
        kill.args(["-9", &supervisor.to_string()])
            .status()
            .unwrap()
            .success()
    );
    // A process ends some time after it is killed.
    wait_until("the supervisor's end", || {
        let stat = fs::read_to_string(format!("/proc/{supervisor}/stat"));
        stat.map_or(true, |stat| stat.contains(") Z "))
    });
    for args in [
        &["agent", "list", "--all"][..],
        &["agent", "show", "a1"],
        &["agent"],
        &[],
        &["session", "list"],
        &["task", "show", "1"],
    ] {
        let seen = env
            .weald(args)
            .stdout
            .replace("while it was running", "")
            .replace("No agents running", "");
        assert!(
            !seen.contains("running") && !seen.contains("alive"),
            "{args:?}: {seen}"
        );
    }
}

/// Codex in a terminal of a person who has weald on the search path.
fn codex(env: &TestEnv) -> Command {
    let (weald, own) = (Path::new(WEALD).parent().unwrap(), env.home().join("bin"));
    let mut codex = env.command(own.join("codex"));
    let path = [own.display(), weald.display()].map(|folder| folder.to_string());
    codex.env("PATH", format!("{}:{}", path.join(":"), env.plain_path()));
    codex.stdin(Stdio::null());
    codex
}

/// An environment with Codex as it is; `None` where it can't be had or has no sandbox here.
fn with_codex(model: &ScriptedModel) -> Option<TestEnv> {
    let env = TestEnv::with_agents(WEALD, model)?;
    let mut probe = codex(&env);
    probe.args(["sandbox", "-c", "sandbox_mode=\"workspace-write\"", "true"]);
    let answer = Answer::of(probe.output().unwrap());
    if answer.code != 0 {
        weald_testkit::skipped(&format!(
            "Codex's own sandbox does not work here: {}",
            answer.stderr
        ));
        return None;
    }
    Some(env)
}

#[test]
fn a14_codex_in_its_own_sandbox_writes_the_worktree_that_it_claimed_and_not_main() {
    let main =
        "{ echo x > .git/x; git commit --allow-empty -m around; } 2>&1 | tail -1; echo tried";
    let work = "cd ../app.weald/hello && echo hi > hello.txt && git add -A && git commit -qm hello && echo committed";
    let turns = [
        Turn::Tool {
            name: "mcp__weald__task_claim".to_owned(),
            input: json!({"task_id": 1}),
        },
        Turn::shell(work),
        Turn::shell(main),
        Turn::say("done"),
    ];
    let model = ScriptedModel::start([Scenario::new("in the sandbox", turns)]);
    let Some(env) = with_codex(&model) else {
        return;
    };
    let config = env.home().join(".codex/config.toml");
    let before = fs::read(&config).unwrap();
    env.ok(&["install", "codex"]);
    assert_ne!(fs::read(&config).unwrap(), before);
    env.ok(&["install", "codex", "--remove"]);
    assert_eq!(fs::read(&config).unwrap(), before);
    env.ok(&["install", "codex"]);
    env.ok(&["task", "add", "hello"]);
    let head = env.git(&["rev-parse", "main"]);
    let mut command = codex(&env);
    command.args([
        "exec",
        "--skip-git-repo-check",
        "--sandbox",
        "workspace-write",
        "in the sandbox",
    ]);
    let answer = Answer::of(command.output().unwrap());
    assert_eq!(answer.code, 0, "{answer:#?}");
    let results = model.results("in the sandbox").join("\n---\n");
    assert!(results.contains("committed"), "{results}");
    assert!(results.contains("ead-only file system"), "{results}");
    assert_eq!(env.git(&["rev-parse", "main"]), head, "{results}");
    env.ok(&["land", "hello"]);
    assert_eq!(env.git(&["show", "main:hello.txt"]).trim(), "hi");
}

#[test]
fn a11_a_list_does_not_say_unimported_once_the_stop_hook_imported() {
    let env = TestEnv::with_files(WEALD);
    let tree = env.ok(&["new", "fix"])["tree"]["path"].clone();
    let tree = tree.as_str().unwrap();
    fs::write(format!("{tree}/new.txt"), "x").unwrap();
    for args in [&["add", "-A"][..], &["commit", "-qm", "work"]] {
        let mut git = env.command("git");
        let done = git.args(["-C", tree]).args(args).status().unwrap();
        assert!(done.success());
    }
    let unimported = || env.ok(&["list"])["trees"][0]["unimported"].clone();
    assert_eq!(unimported(), true);
    let input = json!({"session_id": "s", "cwd": tree, "hook_event_name": "Stop"});
    let answer = env.weald_with_input(&["hook", "claude", "stop"], input.to_string().as_bytes());
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert_eq!(unimported(), false);
    fs::write(format!("{tree}/more.txt"), "x").unwrap();
    let mut git = env.command("git");
    git.args(["-C", tree, "commit", "-q", "--allow-empty", "-m", "more"]);
    assert!(git.status().unwrap().success());
    assert_eq!(unimported(), true);
}
