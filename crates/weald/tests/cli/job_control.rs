//! Ctrl-Z and `fg`, as for a program that runs without a sandbox.

use std::fs;

use weald_terminal::Size;
use weald_testkit::{OnTerminal, TestEnv, Watcher};

use crate::trees_remove::repository;

const SIZE: Size = Size {
    columns: 100,
    rows: 24,
};

/// A person's shell in the repository.
fn shell(env: &TestEnv) -> (OnTerminal, Watcher) {
    env.shell(None, SIZE)
}

/// Waits, and says that it was continued. What it forks has begun before it says anything.
const WAITER: &str = "sleep 600 & trap \"echo again\" CONT; echo begun; while :; do wait; done";

fn levels() -> [&'static str; 3] {
    ["full", "landlock", "off"]
}

#[test]
fn y30_a_full_screen_program_is_suspended_and_continued_with_its_run() {
    let env = repository();
    env.ok(&["new", "fix"]);
    let path = env.ok(&["path", "fix"])["path"]
        .as_str()
        .unwrap()
        .to_owned();
    let (terminal, mut person) = shell(&env);
    for level in levels() {
        let file = format!("{path}/{level}.txt");
        fs::write(&file, format!("this is {level}\n")).unwrap();
        person.types(&format!(
            "weald run fix --sandbox {level} -- vi -u NONE {level}.txt\r"
        ));
        person.sees(&format!("this is {level}"));
        person.sees("~");
        person.types("Atyped \x1b\x1a");
        person.sees("Stopped");
        person.types("echo in the $(echo shell)\r");
        person.sees("in the shell");
        person.types("clear; fg\r");
        person.sees("~");
        person.types(":wq\r");
        person.no_longer_sees("~");
        person.sees("prompt>");
        person.types("echo code $?; clear\r");
        person.sees("prompt>");
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            format!("this is {level}typed \n")
        );
    }
    person.types("exit\r");
    terminal.ended();
}

#[test]
fn y30_a_run_stops_as_a_job_with_any_input_and_in_the_background() {
    let env = repository();
    env.ok(&["new", "fix"]);
    let path = env.ok(&["path", "fix"])["path"]
        .as_str()
        .unwrap()
        .to_owned();
    fs::write(format!("{path}/a.txt"), "this is it\n").unwrap();
    let (terminal, mut person) = shell(&env);
    for level in levels() {
        // Input that is no terminal.
        person.types(&format!(
            "clear; weald run fix --sandbox {level} -- sh -c '{WAITER}' </dev/null\r"
        ));
        person.takes_until("begun", |person| {
            person.terminal.text().iter().any(|line| line == "begun")
        });
        for _ in 0..2 {
            person.types("\x1a");
            person.sees("Stopped");
            person.types("clear; fg\r");
            person.no_longer_sees("Stopped");
            // Not before: a Ctrl-Z between the words of fg and the signal that continues the job is the shell's.
            person.takes_until("again", |person| {
                person.terminal.text().iter().any(|line| line == "again")
            });
        }
        person.types("\x03");
        person.sees("prompt>");
        // A job in the background that wants the terminal.
        person.types(&format!(
            "clear; weald run fix --sandbox {level} -- vi -u NONE a.txt &\r"
        ));
        person.sees("Stopped");
        person.types("clear; fg\r");
        person.sees("this is it");
        person.types(":q\r");
        person.no_longer_sees("~");
        person.types("echo code $?\r");
        person.sees("code 0");
    }
    person.types("exit\r");
    terminal.ended();
}

#[test]
fn y30_a_plain_command_stops_at_ctrl_z_and_its_time_goes_on() {
    let env = repository();
    env.ok(&["new", "fix"]);
    let (terminal, mut person) = shell(&env);
    for level in levels() {
        person.types("clear\r");
        // Nothing forks here: a shell whose child is stopped between vfork and exec stops under no terminal.
        person.types(&format!(
            "weald run fix --sandbox {level} --timeout 5s -- sh -c 'echo begun; exec sleep 600'\r"
        ));
        person.takes_until("begun", |person| {
            person.terminal.text().iter().any(|line| line == "begun")
        });
        person.types("\x1a");
        person.sees("Stopped");
        // Longer than it may take.
        person.types("sleep 5; fg; echo code $?\r");
        person.sees("code 124");
    }
    person.types("exit\r");
    terminal.ended();
}
