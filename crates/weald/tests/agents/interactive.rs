//! An agent's own full-screen interface, inside the sandbox: detached, attached, taken over, handed back.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weald_terminal::wire::{Incoming, LONGEST_FROM_HOST, Message};
use weald_terminal::{Screen, Size, connect};
use weald_testkit::{Gate, OnTerminal, Scenario, ScriptedModel, TestEnv, Turn, Watcher};

const BINARY: &str = env!("CARGO_BIN_EXE_weald");

const SIZE: Size = Size {
    columns: 100,
    rows: 30,
};

const SMALL: Size = Size {
    columns: 80,
    rows: 20,
};

/// A shell as the agent, with a prompt that is not what is typed.
fn shell(prompt: &str) -> String {
    format!("env 'PS1=in '{prompt}'> ' bash --norc --noprofile -i")
}

/// What a person answers when the agent has ended.
const QUESTION: &str = "(default: keep):";

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn agent(env: &TestEnv, id: &str) -> Value {
    let answer = env.ok(&["agent", "pulse", id]);
    answer["agents"][0].clone()
}

/// The process that shows an agent's terminal on a person's.
fn viewer_of(env: &TestEnv, argument: &str) -> Pid {
    let is_it = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = words.split(|byte| *byte == 0).skip(1);
        words.next() == Some(b"attach".as_slice()) && words.next() == Some(argument.as_bytes())
    };
    let found = env.processes().into_iter().find(is_it);
    Pid::from_raw(found.expect("somebody is attached") as i32).unwrap()
}

/// Closes a person's terminal window.
fn close(terminal: OnTerminal) {
    terminal.handle().end("the window is closed");
    terminal.ended();
}

#[test]
fn a3_an_agent_runs_on_detached_and_several_terminals_attach() {
    let env = TestEnv::with_files(BINARY);
    let (first_terminal, mut first) = env.shell(None, SIZE);
    first.types(&format!("weald work 'Try it' -i -- {}\r", shell("a1")));
    first.sees("in a1>");
    first.types("stty size; tty; echo work > work.txt\r");
    first.sees("30 100\n/dev/pts/0");
    // Everything that is on the screen is drawn for those who come later, and the last who typed decides how large it is.
    let (_second_terminal, mut second) = env.shell(None, SMALL);
    second.types("weald attach a1\r");
    second.sees("/dev/pts/0");
    second.types("stty size; echo so | tr s t\r");
    second.sees("20 80\nto");
    first.sees("20 80\nto");
    kill_process(viewer_of(&env, "a1"), Signal::KILL).unwrap();
    second.sees("Killed");
    second.types("echo mine | tr m f\r");
    second.sees("fine");
    first.types("stty size | tr 0 o\r");
    first.sees("3o 1oo");
    first.types("\x1c");
    first.sees("detached; a1 keeps running");
    first.types("clear; weald attach try-it\r");
    first.sees("3o 1oo");
    close(first_terminal);
    assert_eq!(agent(&env, "a1")["status"], "running");
    assert_eq!(agent(&env, "a1")["interactive"], true);
    second.types("clear; weald attach 1\r");
    second.sees("3o 1oo");
    second.types("exit 7\r");
    second.sees("work.txt | 1 +");
    second.sees(QUESTION);
    second.types("\r");
    second.sees("land it: weald land try-it");
    second.types("echo code $?; clear; weald attach a1\r");
    second.sees("error: the interface of a1 has ended");
    second.types("clear; weald\r");
    second.sees("weald land try-it");
    let log = env.ok(&["agent", "logs", "a1"]);
    let log = log["text"].as_str().unwrap();
    assert!(log.contains("3o 1oo") && !log.contains('\x1b'), "{log}");
}

#[test]
fn a2_the_terminal_is_the_run_s_own_at_every_level_and_job_control_works() {
    let env = TestEnv::with_files(BINARY);
    let (terminal, mut person) = env.shell(None, SIZE);
    for (number, level) in ["full", "landlock"].into_iter().enumerate() {
        person.types(&format!(
            "clear; weald --set sandbox.level={level} work 'At {level}' -i -- {}\r",
            shell(level)
        ));
        person.sees(&format!("in {level}>"));
        person.types("sh -c 'echo go; exec sleep 100'\r");
        person.sees("\ngo");
        person.types("\x1a");
        person.sees("Stopped");
        person.types("fg\r");
        person.sees("fg\nsh -c");
        person.types("\x03");
        person.sees("^C");
        person.types("echo code $?; echo to the terminal | tr t d > /dev/tty\r");
        person.sees("code 130\ndo dhe derminal");
        // The other end of the terminal, and the main checkout.
        person.types("echo x > $WEALD_MAIN/escaped; ls /proc/self/fd | wc -l; ls -l /proc/1/fd 2>&1 | grep -c ptmx\r");
        person.sees("escaped: ");
        person.sees("\n0\n");
        person.types("echo work > $WEALD_TREE; exit 1\r");
        person.sees(QUESTION);
        person.types("x\r");
        person.types("l\r");
        person.sees(&format!("at-{level} landed on main"));
        person.types("echo \"code $?\"; cat $PWD/escaped\r");
        person.sees("code 0");
        assert_eq!(
            env.ok(&["task", "show", &(number + 1).to_string()])["task"]["status"],
            "completed"
        );
    }
    assert!(!env.repo().join("escaped").exists());
    // Without a terminal nothing is started, but by the command that starts it detached.
    env.refused(&["work", "No terminal", "-i", "--", "sh"], 2, "no_terminal");
    let answer = env.weald(&[
        "agent",
        "spawn",
        "Spawn it",
        "-i",
        "--",
        "sh",
        "-c",
        "read a; exit $a",
    ]);
    assert!(
        answer.stdout.contains("attach with: weald attach a3"),
        "{answer:?}"
    );
    env.refused(&["attach", "a3"], 2, "no_terminal");
    env.refused(&["attach", "a9"], 4, "agent_not_found");
    env.refused(&["agent", "take", "a3"], 2, "no_terminal");
    let mut stream = connect(&env.private().join("agents/a3")).unwrap();
    let keys = [Message::Size(SMALL), Message::Keys(b"5\r".to_vec())];
    stream
        .write_all(&keys.map(|key| key.encoded()).concat())
        .unwrap();
    let (_, ended) = everything_sent(&mut stream);
    assert_eq!(ended, "a3 ended");
    env.ok(&["agent", "wait", "a3"]);
    // Nobody was there to be asked.
    let task = env.ok(&["task", "show", "3"]);
    assert_eq!(
        task["task"]["parked"],
        "its interactive agent ended and changed nothing"
    );
    close(terminal);
}

/// Types what an agent's interface takes for typed, not for pasted.
fn say(person: &mut Watcher, text: &str) {
    person.types(text);
    person.sees(text);
    person.types("\r");
}

/// Both agents, with the words that end their interfaces.
const AGENTS: [(&str, &str); 2] = [("claude", "/exit"), ("codex", "/quit")];

#[test]
fn a2_a_real_agent_s_interface_works_inside_and_its_work_lands_when_the_person_says_so() {
    let writes = |name: &str| {
        let script =
            format!("echo {name} > {name}.txt; echo x > $WEALD_MAIN/stolen; echo status $?");
        let about = format!("greet by {name}");
        Scenario::new(
            &about,
            [
                Turn::shell(script),
                Turn::say(format!("{name} has greeted")),
            ],
        )
    };
    let model = ScriptedModel::start(AGENTS.map(|(name, _)| writes(name)));
    let Some(env) = TestEnv::with_agents(BINARY, &model) else {
        return;
    };
    let people = AGENTS.map(|(name, _)| {
        let (terminal, mut person) = env.shell(Some(&model), SIZE);
        person.types(&format!("weald work 'greet by {name}' -i -- {name}\r"));
        (terminal, person)
    });
    for ((terminal, mut person), (name, leave)) in people.into_iter().zip(AGENTS) {
        person.sees(&format!("{name} has greeted"));
        let results = model.results(&format!("greet by {name}"));
        assert!(results[0].contains("ead-only file system"), "{results:?}");
        close(terminal);
        let (_terminal, mut person) = env.shell(Some(&model), SMALL);
        person.types(&format!("weald attach greet-by-{name}\r"));
        person.sees(&format!("{name} has greeted"));
        say(&mut person, leave);
        person.sees(&format!("{name}.txt | 1 +"));
        person.sees(QUESTION);
        person.types("l\r");
        person.sees(&format!("greet-by-{name} landed on main"));
        assert!(env.repo().join(format!("{name}.txt")).exists());
    }
    assert!(!env.repo().join("stolen").exists());
}

#[test]
fn a4_a_person_takes_an_agent_over_and_hands_the_same_conversation_back() {
    let gates = [Gate::new(), Gate::new()];
    let plan = |name: &str| format!("plan of {name}");
    let alone = |name: &str| format!("{name} may finish alone");
    let write = |number: usize| Turn::shell(format!("echo {number} > $WEALD_TREE-{number}.txt"));
    let scenarios: Vec<_> = AGENTS
        .iter()
        .zip(&gates)
        .flat_map(|((name, _), gate)| {
            let first = [
                write(1),
                write(2).behind(gate),
                Turn::say("both are written"),
            ];
            let last = [write(1), write(2), write(3), Turn::say("all are written")];
            [
                Scenario::new(&alone(name), last),
                Scenario::new(&plan(name), first),
            ]
        })
        .collect();
    let model = ScriptedModel::start(scenarios);
    let Some(env) = TestEnv::with_agents(BINARY, &model) else {
        return;
    };
    for (name, _) in AGENTS {
        let spawn = ["agent", "spawn", &plan(name), "--", name];
        assert!(
            env.weald_with_agents(&model, &spawn)
                .status()
                .unwrap()
                .success()
        );
    }
    // Both are at work, headless, and wait for the model.
    for (name, _) in AGENTS {
        model.wait_for_requests(&plan(name), 2);
    }
    for (number, ((name, leave), gate)) in AGENTS.into_iter().zip(&gates).enumerate() {
        let task = (number + 1).to_string();
        let (_terminal, mut person) = env.shell(Some(&model), SIZE);
        person.types(&format!("weald agent take {task}\r"));
        person.sees(&plan(name));
        gate.open();
        say(&mut person, "carry on with me");
        person.sees("both are written");
        say(&mut person, leave);
        person.sees(QUESTION);
        person.types("\r");
        let feedback = alone(name);
        let resume = ["resume", &task, "--feedback", &feedback];
        let resumed = env.weald_with_agents(&model, &resume).output().unwrap();
        assert!(resumed.status.success(), "{name}: {resumed:?}");
        // One conversation: what the headless agent, the person and the headless agent again had done.
        let last = model.requests(&alone(name)).pop().unwrap();
        assert!(last.results().len() >= 3, "{name}: {last:?}");
        for said in [plan(name), "carry on with me".to_owned()] {
            assert!(
                last.said().iter().any(|one| one.contains(&said)),
                "{name}: {last:?}"
            );
        }
        assert_eq!(
            env.ok(&["task", "show", &task])["task"]["status"],
            "completed"
        );
    }
    for name in ["plan-of-claude-3.txt", "plan-of-codex-3.txt"] {
        assert!(env.repo().join(name).exists(), "{name}");
    }
}

/// All that a viewer is sent until the end: what is written to its terminal as it is, and why it ended.
fn everything_sent(stream: &mut UnixStream) -> (String, String) {
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let (mut incoming, mut drawn) = (Incoming::default(), Vec::new());
    loop {
        incoming.read(&*stream).unwrap();
        while let Some(message) = incoming.next(LONGEST_FROM_HOST).unwrap() {
            match message {
                Message::Draw(drawing) => drawn.extend(drawing),
                Message::Ended(why) | Message::Detached(why) => {
                    return (String::from_utf8_lossy(&drawn).into_owned(), why);
                }
                other => panic!("a host sent {other:?}"),
            }
        }
    }
}

#[test]
fn x21_nothing_but_drawings_of_the_model_reach_a_live_terminal() {
    let env = TestEnv::with_files(BINARY);
    let evil = r#"read a; printf '\033]52;c;ZXZpbA==\a\033]0;owned\033\\\033Pq#0~\033\\\033P+q544e\033\\\033_Gf=24;AAAA\033\\\033^pm\033\\\233]0;x\234\302\220q\302\234\033]8;;http://evil\033\\link\033]8;;\033\\ \033[5i\033[21t\033#8\033c\342\200\256turned done\n'; read b; kill -STOP $$; read c"#;
    env.ok(&["agent", "spawn", "Be evil", "-i", "--", "sh", "-c", evil]);
    let folder = env.private().join("agents/a1");
    let mut stream = connect(&folder).unwrap();
    let first = [Message::Size(SMALL), Message::Keys(b"\r".to_vec())];
    stream
        .write_all(&first.map(|key| key.encoded()).concat())
        .unwrap();
    let mut watched = connect(&folder).unwrap();
    watched.write_all(&Message::Size(SMALL).encoded()).unwrap();
    let mut screen = Screen::new(SMALL);
    let mut incoming = Incoming::default();
    until("the drawing", || {
        incoming.read(&watched).unwrap();
        while let Some(Message::Draw(drawing)) = incoming.next(LONGEST_FROM_HOST).unwrap() {
            screen.read(&drawing);
        }
        screen.text().join("\n").contains("done")
    });
    // One that stops itself is continued, and its viewers are told.
    stream
        .write_all(&Message::Keys(b"\r".to_vec()).encoded())
        .unwrap();
    let (drawn, why) = everything_sent(&mut stream);
    assert_eq!(
        why,
        "a1 suspended itself and was continued; attach again: weald attach a1"
    );
    for forbidden in [
        "\x1b]", "\x1bP", "\x1b_", "\x1b^", "\u{9b}", "\u{9d}", "\u{90}", "\x1bc", "\x1b[21t",
        "\x1b[5i", "52;c", "owned", "evil",
    ] {
        assert!(!drawn.contains(forbidden), "{forbidden:?} in {drawn:?}");
    }
    let mut again = connect(&folder).unwrap();
    let last = [Message::Size(SMALL), Message::Keys(b"\r".to_vec())];
    again
        .write_all(&last.map(|key| key.encoded()).concat())
        .unwrap();
    assert_eq!(everything_sent(&mut again).1, "a1 ended");
}
